//! Start-up errors of `make run`: each is one line that names the object, the reason and a remedy.
//!
//! Copies of the scripts run in a folder of their own, so that logs and build results go there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use suimon_rig::Rig;

/// The user `nobody`.
const NOBODY: u32 = 65534;
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the path of the program that `make run` starts.
fn first_light() -> String {
    suimon_rig::program("first-light").unwrap()
}

/// A copy of the scripts in a folder that every user may enter.
struct Scripts {
    rig: Rig,
}

impl Scripts {
    fn copy() -> Self {
        let rig = Rig::new().unwrap();
        fs::set_permissions(rig.folder(), PermissionsExt::from_mode(0o755)).unwrap();
        fs::create_dir(rig.file("scripts")).unwrap();
        for name in ["setup", "cargo", "protoc"] {
            let source = format!("{ROOT}/scripts/{name}");
            fs::copy(source, rig.file(&format!("scripts/{name}"))).unwrap();
        }
        for name in ["Cargo.toml", "rust-toolchain.toml"] {
            fs::copy(format!("{ROOT}/{name}"), rig.file(name)).unwrap();
        }
        fs::create_dir(rig.file("small")).unwrap();
        Self { rig }
    }

    fn path(&self, name: &str) -> String {
        self.rig.path(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.rig.folder()).env("RUST_BACKTRACE", "1");
        for variable in ["CARGO_TARGET_DIR", "SUIMON_ANY_RELEASE", "SUIMON_RUN_SECONDS", "TMPDIR"] {
            command.env_remove(variable);
        }
        command
    }

    /// Returns a command that runs `script` in mount and network namespaces of its own.
    fn isolated(&self, script: &str) -> Command {
        let mut command = self.command("unshare");
        command.args(["--mount", "--net", "--propagation", "private", "sh", "-ec", script]);
        command
    }
}

/// Runs a command that must fail, and returns its last line. The lines before it are `before`.
fn error_of(command: &mut Command, before: usize) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), before + 1, "{stderr}");
    stderr.trim_end().lines().last().unwrap_or_default().to_owned()
}

fn assert_contains(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is missing: {error}");
    }
}

#[test]
fn without_root_the_remedy_is_to_become_root() {
    let scripts = Scripts::copy();
    fs::copy(first_light(), scripts.path("first-light")).unwrap();
    for (program, argument) in [("scripts/setup", Some("run")), ("first-light", None)] {
        let mut command = scripts.command(&scripts.path(program));
        command.args(argument).uid(NOBODY).gid(NOBODY);
        let error = error_of(&mut command, 0);
        assert_contains(&error, &["not root", "network namespaces", "as root"]);
    }
}

#[test]
fn without_a_tun_device_the_remedy_is_its_module() {
    let scripts = Scripts::copy();
    let setup = format!("{} run", scripts.path("scripts/setup"));
    for program in [setup, first_light()] {
        let script = format!("mount -t tmpfs none /dev/net; exec {program}");
        let error = error_of(&mut scripts.isolated(&script), 0);
        assert_contains(&error, &["/dev/net/tun cannot be opened", "modprobe tun"]);
    }
}

#[test]
fn on_a_full_disk_the_space_and_the_need_are_named() {
    let scripts = Scripts::copy();
    let small = scripts.path("small");
    let setup = format!("{} run", scripts.path("scripts/setup"));
    for (variable, program) in
        [("TMPDIR", &setup), ("CARGO_TARGET_DIR", &setup), ("TMPDIR", &first_light())]
    {
        let script = format!(
            "mount -t tmpfs -o size=4m none {small}; export {variable}={small}; exec {program}"
        );
        let error = error_of(&mut scripts.isolated(&script), 0);
        let remedy = format!("set {variable} to a directory");
        assert_contains(&error, &["disk full", &small, "has 4 MiB free", "needs", &remedy]);
    }
}

#[test]
fn an_unsupported_release_is_named_with_the_supported_ones() {
    let scripts = Scripts::copy();
    let release = "ID=ubuntu\nVERSION_ID=\"24.04\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n";
    fs::write(scripts.path("os-release"), release).unwrap();
    for set in ["run", "test"] {
        let script = format!(
            "mount --bind {} /etc/os-release; exec {} {set}",
            scripts.path("os-release"),
            scripts.path("scripts/setup")
        );
        let error = error_of(&mut scripts.isolated(&script), 0);
        assert_contains(&error, &["Ubuntu 24.04 LTS is not supported", "only Debian 12 and 13"]);
        assert_contains(&error, &[&format!("--list {set}"), "SUIMON_ANY_RELEASE=1"]);
    }
}

/// No package counts as installed, and the only source is a name that does not exist.
#[test]
fn without_a_network_for_packages_the_reason_and_the_log_are_named() {
    let scripts = Scripts::copy();
    for folder in ["dpkg", "lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(scripts.path(folder)).unwrap();
    }
    fs::write(scripts.path("dpkg/status"), "").unwrap();
    fs::write(scripts.path("sources"), "deb http://packages.invalid/debian stable main\n").unwrap();
    let settings = format!(
        "Dir::Etc::sourcelist \"{0}/sources\"; Dir::Etc::sourceparts \"-\";\n\
         Dir::State::lists \"{0}/lists\"; Dir::State::status \"{0}/dpkg/status\";\n\
         Dir::Cache \"{0}/cache\"; Acquire::Retries \"0\";\n",
        scripts.rig.folder().display()
    );
    fs::write(scripts.path("apt.conf"), settings).unwrap();
    let mut command = scripts.isolated(&format!("exec {} run", scripts.path("scripts/setup")));
    command.env("DPKG_ADMINDIR", scripts.path("dpkg")).env("APT_CONFIG", scripts.path("apt.conf"));
    // The line before it lists the packages.
    let error = error_of(&mut command, 1);
    let log = scripts.path("target/setup.log");
    assert_contains(&error, &["no network", "packages.invalid", "connect this machine", &log]);
    assert!(Path::new(&log).is_file());
}

/// A build without any protobuf compiler: none is installed, and cargo cannot build one.
#[test]
fn without_a_protobuf_compiler_the_package_is_named() {
    let scripts = Scripts::copy();
    fs::create_dir(scripts.path("programs")).unwrap();
    for name in ["dirname", "env", "head", "sed", "sh"] {
        let program = suimon_rig::system_program(name).unwrap();
        std::os::unix::fs::symlink(program, scripts.path(&format!("programs/{name}"))).unwrap();
    }
    let mut command = scripts.command(&scripts.path("scripts/protoc"));
    command.env("PATH", scripts.path("programs")).env("CARGO", "/nowhere/cargo");
    let error = error_of(&mut command, 0);
    assert_contains(&error, &["protoc is not installed", "apt-get install protobuf-compiler"]);
}
