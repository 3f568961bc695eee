//! The programs as users run them: cancellation, TLS and token, Ctrl-C on a terminal.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use suimon_rig::{
    Daemon, Process, Rig, private_lan, program, run, run_any, wait_for_value, wait_until,
};

const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn an_operation_is_cancelled_through_the_command_line() {
    let rig = Rig::new().unwrap();
    let (daemon, _guests) = private_lan(&rig, &[("a", "")]).unwrap();
    let file = rig.path("a.pcapng");
    let suimon = |arguments: &[&str]| {
        let mut command =
            vec![program("suimon").unwrap(), "--socket".into(), daemon.socket().into()];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Process::start(&rig, "suimon", &command).unwrap()
    };
    let mut capture = suimon(&["nic", "capture", "a", "-w", &file]);
    let id = wait_for_value("a running operation", LIMIT, || {
        let operations = daemon.json(&["operation", "list"])?;
        let running = operations.as_array().into_iter().flatten().find(|o| o["state"] == "running");
        Ok(running.map(|operation| operation["id"].to_string()))
    })
    .unwrap();
    let mut watch = suimon(&["operation", "watch", &id]);
    assert!(watch.is_running());
    let cancelled = daemon.cli(&["operation", "cancel", &id]).unwrap();
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    assert_eq!(watch.wait(LIMIT).unwrap().code(), Some(7), "{}", watch.log());
    assert!(watch.log().contains("was cancelled"), "{}", watch.log());
    // The file of a cancelled capture is complete.
    assert_eq!(capture.wait(LIMIT).unwrap().code(), Some(0), "{}", capture.log());
    assert_eq!(fs::read(&file).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert_eq!(daemon.json(&["operation", "show", &id]).unwrap()["state"], "cancelled");
    // Cancelling an operation that has ended has no effect; an unknown operation is not found.
    let repeated = daemon.json(&["operation", "cancel", &id]).unwrap();
    assert_eq!(repeated["state"], "cancelled");
    assert_eq!(daemon.cli(&["operation", "cancel", "4711"]).unwrap().code, 4);
}

#[test]
fn curl_reaches_the_api_over_tcp_with_tls_and_the_token() {
    let rig = Rig::new().unwrap();
    let (certificate, key, token) = (rig.path("c.pem"), rig.path("k.pem"), rig.path("token"));
    run(&[
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        &key,
        "-out",
        &certificate,
    ])
    .unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    fs::write(&token, secret).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = format!(
        "{LAN}[api]\nlisten = \"127.0.0.1:{port}\"\ntls_certificate = \"{certificate}\"\n\
         tls_key = \"{key}\"\ntoken_file = \"{token}\"\n"
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    let curl = |path: &str, extra: &[&str]| {
        let address = format!("https://localhost:{port}{path}");
        let mut arguments = vec!["curl", "--silent", "--show-error", "--max-time", "100"];
        arguments.extend(["--ipv4", "--write-out", "\n%{http_code}"]);
        arguments.extend(extra);
        arguments.push(&address);
        run_any(&arguments, LIMIT).unwrap()
    };
    let trust = ["--cacert", certificate.as_str()];
    let bearer = format!("Authorization: Bearer {secret}");
    let curl_options = [&trust[..], &["--header", &bearer]].concat();
    let answer = curl("/1.0", &curl_options);
    assert!(answer.is_ok() && answer.stdout.ends_with("\n200"), "{answer:?}");
    assert!(answer.stdout.contains("\"switches\":1"), "{answer:?}");
    let body = ["--data", r#"{"name":"second","kind":"private"}"#];
    let answer = curl("/1.0/switches", &[&curl_options[..], &body].concat());
    assert!(answer.stdout.ends_with("\n202"), "{answer:?}");
    wait_until("the second switch", LIMIT, || {
        Ok(daemon.ok(&["switch", "list"])?.contains("second"))
    })
    .unwrap();
    let answer = curl("/1.0", &trust);
    assert!(
        answer.stdout.ends_with("\n401") && answer.stdout.contains("unauthorized"),
        "{answer:?}"
    );
    // Without trust in the certificate, curl fails with code 60.
    assert_eq!(curl("/1.0", &["--header", &bearer]).code, 60);
}

/// Command of `suimon` on a separate terminal, whose settings are printed before and after it.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new(daemon: &Daemon, arguments: &str) -> Self {
        let suimon = program("suimon").unwrap();
        let socket = daemon.socket();
        // The shell is in the foreground too and ignores the signal. A new terminal has no size.
        let script = format!(
            "trap : INT; stty rows 24 cols 100; echo before=$(stty -g); {suimon} --socket {socket} \
             {arguments}; echo code=$?; echo after=$(stty -g)"
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--command", &script, "/dev/null"])
            .envs([("SHELL", "/bin/sh"), ("TERM", "xterm")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let mut from = child.stdout.take().unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let to = output.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, keys, shown: output }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, text: &str) {
        wait_until(text, LIMIT, || Ok(self.text().contains(text)))
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.text()));
    }

    /// Sends Ctrl-C, asserts that the terminal's settings are restored, and returns the exit code.
    fn interrupt(&mut self) -> String {
        self.keys.write_all(b"\x03").unwrap();
        self.wait_for("after=");
        wait_until("end of line", LIMIT, || Ok(self.text().ends_with('\n'))).unwrap();
        let text = self.text();
        let value = |name: &str| {
            let value_text = text.rsplit_once(name).unwrap().1;
            value_text.split(['\r', '\n']).next().unwrap().to_owned()
        };
        assert!(value("before=").contains(':'), "{text:?}");
        assert_eq!(value("before="), value("after="), "{text:?}");
        value("code=")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn ctrl_c_ends_a_follower_of_events_well() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, LAN).unwrap();
    let mut terminal = Terminal::new(&daemon, "event follow --after 0");
    terminal.wait_for("switch/lan");
    assert_eq!(terminal.interrupt(), "0");
    assert!(!terminal.text().contains("suimon:"), "{}", terminal.text());
}

#[test]
fn ctrl_c_ends_top_and_restores_the_screen() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, LAN).unwrap();
    let mut terminal = Terminal::new(&daemon, "top --interval 100");
    // Words are drawn separately.
    terminal.wait_for("quits,");
    assert_eq!(terminal.interrupt(), "0");
    let text = terminal.text();
    let position = |sequence: &str| text.rfind(sequence).unwrap_or_else(|| panic!("{text:?}"));
    // The alternate screen is entered and left, and the cursor is visible again.
    let (entered, exited) = (position("\x1b[?1049h"), position("\x1b[?1049l"));
    assert!(entered < exited && exited < position("code="), "{text:?}");
    assert!(position("\x1b[?25l") < position("\x1b[?25h"), "{text:?}");
}
