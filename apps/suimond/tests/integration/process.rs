//! Daemon as a process: exit status, locks and orderly stop.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn suimond(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suimond"));
    command.args(arguments).env_remove("NOTIFY_SOCKET").env_remove("SUIMON_LOG");
    command
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Daemon that is killed at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(directory: &Path, state: &str, socket: &Path) -> Running {
    let state = directory.join(state);
    let config = directory.join("host.toml");
    std::fs::write(&config, "[[switch]]\nname = \"lan\"\nkind = \"private\"\n").unwrap();
    let child = suimond(&[
        "--config",
        text(&config),
        "--socket",
        text(socket),
        "--state-dir",
        text(&state),
    ])
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let running = Running(child);
    let deadline = Instant::now() + Duration::from_secs(90);
    while !answers(socket) {
        assert!(Instant::now() < deadline, "the daemon does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    running
}

/// Returns true if the daemon responds. Its socket exists earlier, at a time when a signal would
/// end it at once.
pub(crate) fn answers(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    let written = stream.write_all(b"GET /1.0/host HTTP/1.1\r\nHost: suimond\r\n\r\n");
    written.is_ok() && stream.read_exact(&mut [0; 12]).is_ok()
}

fn exit_and_stderr(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn one_daemon_per_socket_and_per_state_directory() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("a.sock");
    let mut running = start(directory.path(), "state", &socket);
    let other = directory.path().join("other");
    let output =
        suimond(&["--socket", text(&socket), "--state-dir", text(&other)]).output().unwrap();
    let (code, message) = exit_and_stderr(&output);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("already listens on"), "{message}");
    let state = directory.path().join("state");
    let free = directory.path().join("b.sock");
    let output = suimond(&["--socket", text(&free), "--state-dir", text(&state)]).output().unwrap();
    let (code, message) = exit_and_stderr(&output);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("--state-dir"), "{message}");
    assert!(!free.exists());

    let pid = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = running.0.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!socket.exists(), "the socket is removed");
    // A new daemon replaces the files of a killed one.
    let mut running = start(directory.path(), "state", &socket);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    assert!(socket.exists());
    drop(start(directory.path(), "state", &socket));
}

#[test]
fn an_invalid_host_file_is_rejected_before_any_change() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("host.toml");
    let state = directory.path().join("state");
    let socket = directory.path().join("a.sock");
    let run = |toml: &str, extra: &[&str]| {
        std::fs::write(&config, toml).unwrap();
        let mut arguments =
            vec!["--config", text(&config), "--socket", text(&socket), "--state-dir", text(&state)];
        arguments.extend(extra);
        let error_text = exit_and_stderr(&suimond(&arguments).output().unwrap());
        assert!(!state.exists() && !socket.exists());
        error_text
    };
    let (code, message) = run("[host]\ncolour = 1\n", &[]);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("host.toml:2: host: colour:"), "{message}");
    let (code, message) = run("[api]\nlisten = \"127.0.0.1:8443\"\n", &[]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("api: tls_certificate") && message.contains("token"), "{message}");
    let listener = "[host]\n[api]\nlisten = \"127.0.0.1:0\"\ntls_certificate = \"/nowhere/c\"\n\
                    tls_key = \"/nowhere/k\"\ntoken_file = \"/nowhere/t\"\n";
    let (code, message) = run(listener, &[]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("host.toml:4: api: tls_certificate: "), "{message}");
    let (code, message) = run("[[switch]]\nname = \"a\"\nkind = \"private\"\n", &["--check"]);
    assert_eq!(code, Some(0), "{message}");
    let (code, _) = run("[[switch]]\nname = \"a\"\n", &["--check"]);
    assert_eq!(code, Some(3));
    let (code, message) = exit_and_stderr(&suimond(&["--log", "=="]).output().unwrap());
    assert_eq!(code, Some(1), "{message}");
    let (code, _) = exit_and_stderr(&suimond(&["--nonsense"]).output().unwrap());
    assert_eq!(code, Some(2));
}

/// Sends a request and returns the response as far as it was received.
fn exchange(socket: &Path, head: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut answer = String::new();
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn sockets_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_kill_in_the_middle_of_a_change_leaves_no_socket_behind() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("a.sock");
    let vms = directory.path().join("vms");
    std::fs::create_dir(&vms).unwrap();
    // Stale socket of another program.
    drop(std::os::unix::net::UnixListener::bind(vms.join("others.sock")).unwrap());
    let mut toml = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n".to_owned();
    for vm in 0..64 {
        toml += &format!(
            "[[nic]]\nname = \"vm{vm}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"{}\"\n",
            vms.join(format!("vm{vm}.sock")).display()
        );
    }
    let body = serde_json::json!({ "toml": toml }).to_string();
    let mut hits = 0;
    for created_count in [2, 9, 30] {
        let mut running = start(directory.path(), "state", &socket);
        // A kill after the end of the change is of no use to the test.
        if exchange(&socket, "GET /1.0/nics", "").ends_with("]") && sockets_in(&vms) > 1 {
            break;
        }
        assert!(exchange(&socket, "POST /1.0/apply", &body).starts_with("HTTP/1.1 202"));
        let deadline = Instant::now() + Duration::from_secs(90);
        while sockets_in(&vms) < created_count {
            assert!(Instant::now() < deadline, "no sockets are made");
        }
        running.0.kill().unwrap();
        running.0.wait().unwrap();
        hits += usize::from(sockets_in(&vms) < 65);
    }
    assert!(hits > 0, "no kill came during a change");
    let running = start(directory.path(), "state", &socket);
    let nics = exchange(&socket, "GET /1.0/nics", "");
    let expected_sockets = if nics.ends_with("[]") { 1 } else { 65 };
    assert_eq!(sockets_in(&vms), expected_sockets);
    assert!(vms.join("others.sock").exists());
    drop(running);
}

#[test]
fn a_failing_launcher_reports_its_error_on_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("vms");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let socket = directory.path().join("launcher.sock");
    let mut arguments = vec!["--vm-launcher", text(&socket), "--vm-folder", text(&folder)];
    let launch = |arguments: &[&str]| {
        let output = suimond(arguments).output().unwrap();
        let (code, error) = exit_and_stderr(&output);
        (code, error, String::from_utf8(output.stdout).unwrap())
    };
    let reason = format!(
        "the folder of all VMs {} is owned by another user, or writable by others",
        text(&folder)
    );
    let (code, error, output) = launch(&arguments);
    assert_eq!((code, output.as_str()), (Some(1), ""), "{error}");
    assert!(error.contains(&reason), "{error}");
    arguments.push("--vm-launcher-ends");
    let (code, error, output) = launch(&arguments);
    assert_eq!((code, output.trim()), (Some(1), reason.as_str()), "{error}");
}
