//! Conformance of the API to its OpenAPI document. Schemathesis sends generated requests, valid and
//! invalid, to every operation, and follows the document's links. openapi-generator creates a
//! client.

mod full {
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use suimon_rig::{Daemon, Etcd, Rig, create_certificates, run, run_any};

    /// Below the time limit of the test runner for a test of the full tier, 30 minutes.
    const LIMIT: Duration = Duration::from_secs(28 * 60);
    const PORT: u16 = 8443;
    const TOKEN: &str = "token-of-the-openapi-tests";

    /// A daemon that listens on TCP, and the installed tools.
    struct Tested {
        daemon: Daemon,
        rig: Rig,
        keys: PathBuf,
        document: String,
        installed: PathBuf,
    }

    impl Tested {
        fn start(rig: Rig, host: &str) -> Self {
            let keys = create_certificates(Path::new(&rig.path("keys")));
            let token = rig.path("token");
            fs::write(&token, format!("{TOKEN}\n")).unwrap();
            run(&["chmod", "600", &token]).unwrap();
            let api = format!(
                "[api]\nlisten = \"127.0.0.1:{PORT}\"\n\
                 tls_certificate = \"{0}/server-cert.pem\"\ntls_key = \"{0}/server-key.pem\"\n\
                 token_file = \"{token}\"\n{host}",
                keys.display()
            );
            let daemon = Daemon::start(&rig, &api).unwrap();
            let document = rig.path("openapi.json");
            let document_response = daemon.http("GET", "/1.0/openapi.json", None).unwrap();
            fs::write(&document, document_response.text).unwrap();
            fs::create_dir(rig.path("tools")).unwrap();
            Self { daemon, rig, keys, document, installed: installed() }
        }

        fn url() -> String {
            format!("https://127.0.0.1:{PORT}")
        }

        fn certificate(&self) -> String {
            self.keys.join("ca-cert.pem").display().to_string()
        }

        /// Runs a tool, which must succeed, with these folders added to Python's module path.
        fn run(&self, folders: &[&Path], arguments: &[String]) {
            let modules = [self.installed.as_path()].into_iter().chain(folders.iter().copied());
            let modules: Vec<String> = modules.map(|folder| folder.display().to_string()).collect();
            let mut command = vec![
                "env".to_owned(),
                // Tools write their caches to the current directory.
                format!("--chdir={}", self.rig.path("tools")),
                format!("PYTHONPATH={}", modules.join(":")),
                "PYTHONDONTWRITEBYTECODE=1".to_owned(),
                format!("SUIMON_URL={}", Self::url()),
                format!("SUIMON_TOKEN={TOKEN}"),
                format!("SUIMON_CA={}", self.certificate()),
                format!("SUIMON_STORE={}", self.rig.path("store")),
                "python3".to_owned(),
            ];
            command.extend_from_slice(arguments);
            let output = run_any(&command, LIMIT).unwrap();
            assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
        }

        fn check_by_schemathesis(&self) {
            let arguments = [
                self.tool("schemathesis"),
                "--config-file".to_owned(),
                checked_in("schemathesis.toml").display().to_string(),
                "run".to_owned(),
                self.document.clone(),
                format!("--url={}", Self::url()),
                format!("--tls-verify={}", self.certificate()),
                format!("--header=Authorization: Bearer {TOKEN}"),
                "--no-color".to_owned(),
            ];
            self.run(&[&checked_in("")], &arguments);
            assert_eq!(self.daemon.http("GET", "/1.0", None).unwrap().status, 200);
        }

        fn tool(&self, name: &str) -> String {
            self.installed.join("bin").join(name).display().to_string()
        }
    }

    /// Returns the path of a configuration, hook or script in the repository.
    fn checked_in(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi").join(file)
    }

    /// Returns the folder in which `scripts/openapi-tools` installs the tools.
    fn installed() -> PathBuf {
        let program_path = env::current_exe().unwrap();
        let tool_folders = program_path.ancestors().map(|folder| folder.join("tools/openapi"));
        let tools = tool_folders.into_iter().find(|folder| folder.is_dir());
        tools.expect("the tools are not installed: run scripts/openapi-tools")
    }

    #[test]
    fn schemathesis_reports_nothing_on_a_host_without_resources() {
        Tested::start(Rig::new().unwrap(), "").check_by_schemathesis();
    }

    #[test]
    fn schemathesis_reports_nothing_on_a_host_with_cluster_vms_and_disks() {
        let rig = Rig::new().unwrap();
        let etcd = Etcd::start(&rig).unwrap();
        let store = rig.path("store");
        fs::create_dir(&store).unwrap();
        let host = format!(
            "[cluster]\nname = \"lab\"\nnode = \"node1\"\nendpoints = {}\n\
             [[switch]]\nname = \"lan\"\nkind = \"private\"\n\
             [[store]]\nname = \"ssd\"\npath = \"{store}\"\n\
             [[qos_policy]]\nname = \"gold\"\n\
             [[disk]]\nname = \"web\"\nstore = \"ssd\"\nformat = \"vhdx\"\n\
             size_bytes = \"64 MiB\"\nqos_policy = \"gold\"\n\
             [[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             [[vm]]\nname = \"web\"\nmemory_bytes = \"64 MiB\"\naccelerator = \"tcg\"\n\
             nics = [\"web\"]\ndisks = [\"web\"]\nautostart = true\n",
            etcd.endpoints()
        );
        Tested::start(rig, &host).check_by_schemathesis();
    }

    #[test]
    fn a_generated_client_changes_a_host() {
        let rig = Rig::new().unwrap();
        fs::create_dir(rig.path("store")).unwrap();
        let tested = Tested::start(rig, "");
        let client = PathBuf::from(tested.rig.path("client"));
        let generate = [
            tested.tool("openapi-generator-cli"),
            "generate".to_owned(),
            format!("--input-spec={}", tested.document),
            "--generator-name=python".to_owned(),
            format!("--output={}", client.display()),
            "--package-name=suimon_api".to_owned(),
            "--additional-properties=library=urllib3,generateSourceCodeOnly=true".to_owned(),
        ];
        tested.run(&[], &generate);
        tested.run(&[&client], &[checked_in("client.py").display().to_string()]);
    }
}
