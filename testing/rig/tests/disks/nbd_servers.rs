//! Disks over NBD as the host file configures them: over TLS for clients with a certificate, and
//! over Unix sockets for users of this host. The clients are nbdinfo, nbdcopy and QEMU's tools.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, Rig, create_certificates, run, run_any, wait_for_value, wait_until};

const PATIENCE: Duration = Duration::from_secs(120);

/// Returns a host file with two disks whose `[disk.nbd]` tables have these keys.
fn host(rig: &Rig, nbd: &str) -> String {
    let store = rig.path("store");
    fs::create_dir_all(&store).unwrap();
    let disk = |name: &str, format: &str| {
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"{format}\"\n\
             size_bytes = \"32 MiB\"\n[disk.nbd]\n{nbd}\n"
        )
    };
    format!(
        "[[store]]\nname = \"s\"\npath = \"{store}\"\n{}{}",
        disk("a", "raw"),
        disk("b", "vhdx")
    )
}

/// Starts a daemon and waits until its disks `a` and `b` are ready.
fn start(rig: &Rig, toml: &str) -> Daemon {
    let daemon = Daemon::start(rig, toml).unwrap();
    for disk in ["a", "b"] {
        wait_state(&daemon, disk, "ready");
    }
    daemon
}

/// Waits until a disk has this state, and returns its status. The daemon may respond before it has
/// opened its disks.
fn wait_state(daemon: &Daemon, disk: &str, state: &str) -> Value {
    wait_for_value(&format!("disk {disk} that is {state}"), PATIENCE, || {
        let shown = daemon.json(&["disk", "show", disk])?;
        Ok((shown["state"] == state).then_some(shown))
    })
    .unwrap()
}

/// Returns a port that is currently unused.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn tls(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "listen = \"127.0.0.1:{port}\"\ntls_certificate = \"{folder}/server-cert.pem\"\n\
         tls_key = \"{folder}/server-key.pem\"\ntls_client_ca = \"{folder}/ca-cert.pem\""
    )
}

fn uri(disk: &str, port: u16, folder: &Path) -> String {
    format!("nbds://localhost:{port}/{disk}?tls-certificates={}", folder.display())
}

fn is_admitted(uri: &str) -> bool {
    run_any(&["nbdinfo", "--size", uri], PATIENCE).unwrap().is_ok()
}

fn folders(rig: &Rig) -> [PathBuf; 2] {
    ["good", "other"].map(|name| create_certificates(Path::new(&rig.path(name))))
}

fn event_texts(daemon: &Daemon, id: u32) -> Vec<String> {
    let events = daemon.json(&["event", "list"]).unwrap();
    let events_all = events.as_array().unwrap().iter();
    let matching = events_all.filter(|event| event["id"] == id);
    matching.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that the threads that serve clients have no capabilities and only permitted system
/// calls, and that none was rejected.
fn assert_confined(daemon: &mut Daemon) {
    let host = daemon.json(&["host", "show"]).unwrap();
    let layers = host["confinement"]["layers"].as_array().unwrap();
    let layer = layers.iter().find(|layer| layer["threads"] == "nbd-servers").unwrap();
    assert_eq!(layer["capabilities"], Value::Array(Vec::new()), "{host}");
    assert!(layer["system_calls"].as_str().unwrap().ends_with("allowed"), "{host}");
    assert_eq!(host["confinement"]["refused_calls"], 0, "{host}");
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.process().id())).unwrap();
    let mut servers = 0;
    for task in tasks.flatten() {
        let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim().starts_with("nbd") {
            servers += 1;
            let status = read("status");
            let line = |key: &str| {
                let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
                line.split_whitespace().nth(1).unwrap_or_default().to_owned()
            };
            assert_eq!(line("CapEff:"), "0000000000000000");
            assert_eq!((line("Seccomp:"), line("NoNewPrivs:")), ("2".to_owned(), "1".to_owned()));
        }
    }
    assert!(servers > 0);
}

#[test]
fn a_disk_is_accessible_over_tls_with_a_certificate_only() {
    let rig = Rig::new().unwrap();
    let ([valid, other], port) = (folders(&rig), free_port());
    let mut daemon = start(&rig, &host(&rig, &tls(&valid, port)));
    let a = uri("a", port, &valid);
    let info = run(&["nbdinfo", "--json", &a]).unwrap();
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["TLS"], true, "{info}");
    let source = rig.path("source");
    fs::write(&source, (0..32_u32 << 20).map(|index| (index / 4096) as u8).collect::<Vec<_>>())
        .unwrap();
    run(&["nbdcopy", "--flush", "--connections=2", &source, &a]).unwrap();
    let returned = rig.path("back");
    run(&["nbdcopy", &a, &returned]).unwrap();
    assert!(fs::read(&source).unwrap() == fs::read(&returned).unwrap());
    let credentials = format!("tls-creds-x509,id=t,endpoint=client,dir={}", valid.display());
    let image = format!("driver=nbd,host=localhost,port={port},export=a,tls-creds=t");
    let source_options = format!("driver=raw,file.filename={source}");
    let arguments = ["--object", &credentials, "--image-opts", &source_options, &image];
    run(&[&["qemu-img", "compare"][..], &arguments].concat()).unwrap();
    let image = image.replace("export=a", "export=b");
    let io = ["-c", "write -P 7 1M 2M", "-c", "flush", "-c", "read -P 7 1M 2M"];
    let arguments = [&["qemu-io", "--object", &credentials, "--image-opts"][..], &io, &[&image]];
    let output = run(&arguments.concat()).unwrap();
    assert!(!output.contains("failed"), "{output}");

    // Clients with a certificate of another CA, without a certificate, and without TLS.
    let unsigned = PathBuf::from(rig.path("stranger"));
    fs::create_dir(&unsigned).unwrap();
    fs::copy(valid.join("ca-cert.pem"), unsigned.join("ca-cert.pem")).unwrap();
    assert!(!is_admitted(&uri("a", port, &unsigned)));
    for file in ["client-cert.pem", "client-key.pem"] {
        fs::copy(other.join(file), unsigned.join(file)).unwrap();
    }
    assert!(!is_admitted(&uri("a", port, &unsigned)));
    assert!(!is_admitted(&format!("nbd://localhost:{port}/a")));
    wait_until("events of the rejected clients", PATIENCE, || {
        Ok(!event_texts(&daemon, 6114).is_empty())
    })
    .unwrap();
    assert_confined(&mut daemon);

    daemon.kill();
    daemon.restart(&rig).unwrap();
    wait_state(&daemon, "a", "ready");
    assert!(is_admitted(&a) && !is_admitted(&uri("a", port, &unsigned)));
    run(&["nbdcopy", &a, &returned]).unwrap();
    assert!(fs::read(&source).unwrap() == fs::read(&returned).unwrap());
    assert!(daemon.stop().unwrap().success());
}

#[test]
fn the_admitted_clients_change_live_and_certificates_are_reloaded() {
    let rig = Rig::new().unwrap();
    let ([valid, other], port) = (folders(&rig), free_port());
    let socket = rig.path("nbd.sock");
    let toml = host(&rig, &format!("socket = \"{socket}\"\n{}", tls(&valid, port)));
    let mut daemon = start(&rig, &toml);
    let through_socket = format!("nbd+unix:///a?socket={socket}");
    assert!(is_admitted(&through_socket) && is_admitted(&uri("a", port, &valid)));

    // Replaces the certificate files under the same names.
    for file in ["ca-cert.pem", "server-cert.pem", "server-key.pem"] {
        fs::copy(other.join(file), valid.join(file)).unwrap();
    }
    let file = rig.path("again.toml");
    fs::write(&file, &toml).unwrap();
    daemon.ok(&["apply", "-f", &file]).unwrap();
    assert!(is_admitted(&uri("a", port, &other)));

    // A disk is removed from TCP; the other one remains there, and both remain on the socket.
    daemon
        .ok(&[
            "disk",
            "export",
            "a",
            "listen=default",
            "tls_certificate=default",
            "tls_key=default",
            "tls_client_ca=default",
        ])
        .unwrap();
    assert!(!is_admitted(&uri("a", port, &other)) && is_admitted(&uri("b", port, &other)));
    let output = daemon.ok(&["disk", "export", "b"]).unwrap();
    assert!(output.contains(&format!("nbds://127.0.0.1:{port}/b")), "{output}");
    daemon.ok(&["disk", "export", "b", "--none"]).unwrap();
    assert!(!is_admitted(&uri("b", port, &other)) && is_admitted(&through_socket));

    // First only a user that does not exist on this host is permitted, then root.
    daemon.ok(&["disk", "export", "a", "users=4711"]).unwrap();
    assert!(!is_admitted(&through_socket));
    daemon.ok(&["disk", "export", "a", "users=root"]).unwrap();
    assert!(is_admitted(&through_socket));
    let output = daemon.cli(&["disk", "export", "a", "groups=no-such-group"]).unwrap();
    assert!(
        !output.is_ok() && output.stderr.contains("group `no-such-group` is not in"),
        "{}",
        output.stderr
    );
    assert!(is_admitted(&through_socket));
    assert!(daemon.stop().unwrap().success());
}

#[test]
fn files_that_cannot_be_used_are_named_and_the_other_disks_work() {
    let rig = Rig::new().unwrap();
    let ([valid, other], port) = (folders(&rig), free_port());
    let socket = rig.path("nbd.sock");
    let toml = host(&rig, &format!("socket = \"{socket}\""));
    let mut daemon = start(&rig, &toml);
    let export = |folder: &Path, key: &str| {
        let folder = folder.display();
        let arguments = [
            "disk".to_owned(),
            "export".to_owned(),
            "b".to_owned(),
            format!("listen=127.0.0.1:{port}"),
            format!("tls_certificate={folder}/server-cert.pem"),
            format!("tls_key={key}"),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        daemon.cli(&arguments).unwrap()
    };
    let key = valid.join("server-key.pem").display().to_string();
    for (folder, key, field) in [
        (Path::new("/nowhere"), key.clone(), "nbd.tls_certificate"),
        (&*valid, "/nowhere".to_owned(), "nbd.tls_key"),
        (&*valid, other.join("server-key.pem").display().to_string(), "nbd.tls_key"),
    ] {
        let output = export(folder, &key);
        assert!(!output.is_ok() && output.stderr.contains(field), "{field}: {}", output.stderr);
    }
    run(&["chmod", "644", &key]).unwrap();
    let output = export(&valid, &key);
    assert!(!output.is_ok() && output.stderr.contains("chmod o="), "{}", output.stderr);
    run(&["chmod", "600", &key]).unwrap();
    assert!(export(&valid, &key).is_ok());
    assert!(is_admitted(&uri("b", port, &valid)));

    // The certificate file is missing when the daemon restarts: one disk fails and names the
    // reason.
    daemon.kill();
    let certificate = valid.join("server-cert.pem");
    fs::rename(&certificate, valid.join("away")).unwrap();
    daemon.restart(&rig).unwrap();
    let failed = wait_state(&daemon, "b", "failed");
    assert!(failed["reason"].as_str().unwrap().contains("server-cert.pem"), "{failed}");
    wait_state(&daemon, "a", "ready");
    assert!(is_admitted(&format!("nbd+unix:///a?socket={socket}")));
    fs::rename(valid.join("away"), &certificate).unwrap();
    wait_state(&daemon, "b", "ready");
    assert!(is_admitted(&uri("b", port, &valid)));
    assert!(daemon.stop().unwrap().success());
}

/// Neither the number of events nor the daemon's log grows with each rejected client, and the
/// events' counts include all of them.
#[test]
fn clients_that_are_refused_by_the_thousand_fill_no_log() {
    const CLIENTS: u64 = 2000;
    let rig = Rig::new().unwrap();
    let socket = rig.path("nbd.sock");
    let toml = host(&rig, &format!("socket = \"{socket}\"\nusers = [\"4711\"]"));
    let mut daemon = start(&rig, &toml);
    let lines = |daemon: &mut Daemon| daemon.process().log().lines().count();
    let before = lines(&mut daemon);
    let began = Instant::now();
    for _ in 0..CLIENTS {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The server closes the connection; its last output is irrelevant.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let refusals = |daemon: &Daemon| -> Vec<u64> {
        let events = daemon.json(&["event", "list", "--id", "6114"]).unwrap();
        let count = |event: &Value| {
            let count = event["fields"]["events"].as_str();
            count.map_or(1, |count| count.parse().unwrap())
        };
        events.as_array().unwrap().iter().map(count).collect()
    };
    wait_until("events of all rejected clients", PATIENCE, || {
        Ok(refusals(&daemon).iter().sum::<u64>() == CLIENTS)
    })
    .unwrap();
    let (event_count, grown) = (refusals(&daemon).len(), lines(&mut daemon) - before);
    // At most 12 events of each kind in 10 s, however long the test takes.
    let additional = 12 * (began.elapsed().as_secs() as usize / 10);
    let text = format!("{event_count} events, {grown} lines of log in {:?}", began.elapsed());
    assert!(event_count < 50 + additional && grown < 100 + 2 * additional, "{text}");
    assert!(daemon.stop().unwrap().success());
}

/// Connects to the export `a` and sends reads of 1 MiB until the server stops receiving. Does not
/// receive the replies.
fn request_and_collect_nothing(socket: &str) -> std::io::Result<UnixStream> {
    // Client flags, and NBD_OPT_EXPORT_NAME.
    let hello = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 1], b"a"].concat();
    let mut stream = UnixStream::connect(socket)?;
    stream.read_exact(&mut [0; 18])?;
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; 10])?;
    stream.set_nonblocking(true)?;
    let fields = [&[0, 0, 0, 0][..], &[0; 16], &(1_u32 << 20).to_be_bytes()].concat();
    let read = [&0x2560_9513_u32.to_be_bytes()[..], &fields].concat();
    for _ in 0..256 {
        if stream.write_all(&read).is_err() {
            break;
        }
    }
    Ok(stream)
}

#[test]
fn clients_that_collect_nothing_stay_within_the_limits_of_their_export() {
    const MIB: u64 = 1 << 20;
    let rig = Rig::new().unwrap();
    let socket = rig.path("nbd.sock");
    let keys = "connections_max = 8\nbuffer_max_bytes = \"16 MiB\"";
    let toml = host(&rig, &format!("socket = \"{socket}\"\n{keys}"));
    let mut daemon = start(&rig, &toml);
    let anonymous = |daemon: &mut Daemon| -> u64 {
        let path = format!("/proc/{}/smaps_rollup", daemon.process().id());
        let text = fs::read_to_string(path).unwrap();
        let kib = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        kib.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    };
    let before = anonymous(&mut daemon);
    let greedy: Vec<_> = (0..7).map(|_| request_and_collect_nothing(&socket).unwrap()).collect();
    let nbd = |daemon: &Daemon| daemon.json(&["disk", "show", "a"]).unwrap()["nbd"].clone();
    wait_until("the memory to be in use", PATIENCE, || {
        Ok(nbd(&daemon)["buffer_bytes"].as_u64().unwrap() > 13 * MIB)
    })
    .unwrap();
    // Another client can read the whole disk meanwhile, and no more than one is admitted.
    let uri = format!("nbd+unix:///a?socket={socket}");
    run(&["nbdcopy", "--connections=1", &uri, &rig.path("copy")]).unwrap();
    // The daemon detects the other client's disconnection with a delay.
    let last = wait_for_value("a free connection slot", PATIENCE, || {
        Ok(request_and_collect_nothing(&socket).ok())
    })
    .unwrap();
    assert!(request_and_collect_nothing(&socket).is_err());
    wait_until("the event of the limit", PATIENCE, || {
        Ok(event_texts(&daemon, 6123).iter().any(|text| text.contains("connections_max")))
    })
    .unwrap();
    assert!(nbd(&daemon)["buffer_bytes"].as_u64().unwrap() <= 16 * MIB);
    let grown = anonymous(&mut daemon).saturating_sub(before);
    assert!(grown < 64 * MIB, "{grown} bytes; without limits each client has 64 MiB");
    drop((greedy, last));
    wait_until("the memory to be free", PATIENCE, || Ok(nbd(&daemon)["buffer_bytes"] == 0))
        .unwrap();
    assert!(daemon.stop().unwrap().success());
}

mod full {
    use suimon_rig::{Namespace, Veth};

    use super::*;

    /// Time limit for the end of a connection to a client that has vanished. The daemon ends it
    /// after 120 s; the rest is for a loaded host.
    const VANISHED: Duration = Duration::from_secs(400);

    /// The link to a client is cut: the daemon receives nothing from it, not even the end of its
    /// connection.
    #[test]
    fn a_client_that_vanishes_gives_its_place_back() {
        let rig = Rig::new().unwrap();
        let (far, port) = (Namespace::new(&rig, "client").unwrap(), free_port());
        let [near, device] = ["v", "w"].map(|tag| rig.device(tag));
        let veth = Veth::new(&near, &device, &far).unwrap();
        run(&["ip", "address", "add", "10.99.0.1/24", "dev", veth.near()]).unwrap();
        far.address(&device, "10.99.0.2/24").unwrap();
        let keys = format!(
            "listen = \"10.99.0.1:{port}\"\nplaintext = true\naddresses = [\"10.99.0.0/24\"]"
        );
        let mut daemon = start(&rig, &host(&rig, &keys));
        let clients = || daemon.json(&["disk", "show", "a"]).unwrap()["nbd"]["clients"].as_u64();
        // The client reads once and then stays idle.
        let command =
            format!("(echo read 0 4k; sleep 3600) | qemu-io -f raw nbd://10.99.0.1:{port}/a");
        let _client = far.start(&rig, "qemu-io", &["sh", "-c", &command]).unwrap();
        wait_until("the client", PATIENCE, || Ok(clients() == Some(1))).unwrap();
        run(&["ip", "link", "set", veth.near(), "down"]).unwrap();
        wait_until("the end of its connection", VANISHED, || Ok(clients() == Some(0))).unwrap();
        assert!(daemon.stop().unwrap().success());
    }
}
