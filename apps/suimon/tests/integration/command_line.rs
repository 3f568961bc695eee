//! Program as run by a user: exit codes, output streams, and behaviour with a slow, refusing or
//! absent daemon.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Daemon, command, json, lines, operation, outcome, suimon};

/// Waits until a condition is true.
fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(90);
    while !condition() {
        assert!(Instant::now() < limit, "no {description}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns true if the process handles SIGINT, which is signal 2.
fn catches_interrupts(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
}

fn host_file(dir: &Path, text: &str) -> String {
    let path = dir.join("host.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const GOOD: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"web\"\n\
                    switch = \"lan\"\nbackend = \"tap\"\n";

#[test]
fn an_invalid_host_file_is_rejected_with_all_errors_without_a_request() {
    let daemon = Daemon::new(&[]);
    let text = GOOD.replace("\"tap\"", "\"tap\"\nvlan = 5000\ncolour = 1");
    let path = host_file(daemon.dir.path(), &text);
    for verb in ["check", "apply"] {
        let (code, out, err) = outcome(&daemon.run(&[verb, "-f", &path]));
        assert_eq!((code, out.as_str()), (3, ""));
        let expected = format!(
            "{path}:8: nic/web: vlan: must be a number from 1 to 4094, not 5000\n{path}:9: \
             nic/web: colour: the key does not exist;"
        );
        assert!(err.starts_with(&expected), "{err}");
    }
    assert_eq!(daemon.requests(), [""; 0]);
    let (code, _, err) = outcome(&suimon(&["check", "-f", "-"], b"[host\n"));
    assert_eq!(code, 3);
    assert!(err.starts_with("<stdin>:1: the file is not valid TOML"), "{err}");
    assert_eq!(outcome(&suimon(&["check", "-f", "-"], GOOD.as_bytes())).0, 0);
    assert_eq!(outcome(&suimon(&["check", "-f", "/no/such/file"], b"")).0, 1);
}

#[test]
fn apply_prints_the_plan_and_waits_for_the_end() {
    let progress = [operation("running", ""), operation("succeeded", "")];
    let daemon = Daemon::new(&[
        ("POST /1.0/apply ", json("202 Accepted", &operation("running", ""))),
        ("GET /1.0/operations/7/follow", lines(&progress)),
    ]);
    let path = host_file(daemon.dir.path(), GOOD);
    let (code, out, err) = outcome(&daemon.run(&["apply", "-f", &path]));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "+ nic/web create\n", ""));
    assert!(daemon.requests()[0].contains("\"toml\":\"[[switch]]"));

    let (code, out, _) = outcome(&daemon.run(&["apply", "-f", &path, "--json"]));
    assert_eq!(code, 0);
    let operation: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(operation["state"], "succeeded");

    let (code, out, err) = outcome(&daemon.run(&["apply", "-f", &path, "--no-wait"]));
    assert_eq!((code, out.as_str()), (0, "+ nic/web create\n"));
    assert!(err.contains("operation 7"), "{err}");
}

#[test]
fn a_failed_operation_is_reported_with_reason_and_location() {
    let error = r#","error":{"code":"device_busy","message":"eth0 is held","resource":"nic/web"}"#;
    let daemon = Daemon::new(&[
        ("POST /1.0/apply ", json("202 Accepted", &operation("running", ""))),
        ("GET /1.0/operations/7/follow", lines(&[operation("failed", error)])),
        ("GET /1.0/operations/7 ", json("200 OK", &operation("cancelled", ""))),
    ]);
    let path = host_file(daemon.dir.path(), GOOD);
    let (code, _, err) = outcome(&daemon.run(&["apply", "-f", &path]));
    assert_eq!(code, 6, "as when it is refused at once");
    assert_eq!(err, format!("suimon: apply of host failed: {path}:4: nic/web: eth0 is held\n"));
    let (code, _, err) = outcome(&daemon.run(&["operation", "watch", "7"]));
    assert_eq!((code, err.as_str()), (7, "suimon: apply of host was cancelled\n"));
}

#[test]
fn errors_of_the_daemon_have_their_own_exit_code() {
    let error_response = |status: &str, code: &str| {
        json(status, &format!(r#"{{"errors":[{{"code":"{code}","message":"m"}}]}}"#))
    };
    let daemon = Daemon::new(&[
        ("GET /1.0/nics/gone", error_response("404 Not Found", "not_found")),
        ("DELETE /1.0/nics/", error_response("409 Conflict", "in_use")),
        ("PATCH /1.0/nics/", error_response("422 Unprocessable", "unknown_reference")),
        ("POST /1.0/nics", error_response("500 Error", "internal")),
        ("POST /1.0/uplinks", error_response("422 Unprocessable", "unsupported")),
    ]);
    let code = |args: &[&str]| {
        let (code, out, err) = outcome(&daemon.run(args));
        assert_eq!((out.as_str(), err.as_str()), ("", "m\n"));
        code
    };
    assert_eq!(code(&["nic", "show", "gone"]), 4);
    assert_eq!(code(&["nic", "delete", "web"]), 6);
    assert_eq!(code(&["nic", "set", "web", "--switch", "x"]), 3);
    assert_eq!(code(&["nic", "add", "web", "--switch", "x", "--backend", "tap"]), 1);
    assert_eq!(code(&["uplink", "add", "out", "--device", "lo"]), 3);
    assert!(daemon.requests()[2].ends_with(r#"{"switch":"x"}"#), "{:?}", daemon.requests());
}

#[test]
fn errors_are_json_with_the_json_flag() {
    let refusal = r#"{"errors":[{"code":"in_use","message":"m","resource":"nic/web"},{"code":"conflict","message":"n"}]}"#;
    let error = r#","error":{"code":"device_busy","message":"eth0 is held","resource":"nic/web"}"#;
    let daemon = Daemon::new(&[
        ("DELETE /1.0/nics/", json("409 Conflict", refusal)),
        ("POST /1.0/apply ", json("202 Accepted", &operation("running", ""))),
        ("GET /1.0/operations/7/follow", lines(&[operation("failed", error)])),
        ("GET /1.0/operations/8 ", json("200 OK", &operation("cancelled", ""))),
    ]);
    let valid_file = host_file(daemon.dir.path(), GOOD);
    let invalid_path = daemon.dir.path().join("wrong.toml");
    std::fs::write(&invalid_path, "[[nic]]\nname = 5\n").unwrap();
    let invalid_file = invalid_path.to_str().unwrap();
    // Exit code, and code and resource of the first error.
    let cases: &[(&[&str], i32, &str, Option<&str>)] = &[
        (&["nic", "delete", "web"], 6, "in_use", Some("nic/web")),
        (&["apply", "-f", &valid_file], 6, "device_busy", Some("nic/web")),
        (&["operation", "watch", "8"], 7, "cancelled", None),
        (&["check", "-f", invalid_file], 3, "missing_key", Some("nic[0]")),
        (&["check", "-f", "/no/such/file"], 1, "file", None),
        (&["nic", "nonsense"], 2, "usage", None),
        (&["nic", "list", "--socket", "/no/such/socket"], 5, "unreachable", None),
    ];
    for (args, exit, code, resource) in cases {
        let plain = outcome(&daemon.run(args));
        let (exit_code, _, err) = outcome(&daemon.run(&[*args, &["--json"]].concat()));
        assert_eq!((exit_code, plain.0), (*exit, *exit), "{args:?}: {err}");
        let body: serde_json::Value = serde_json::from_str(&err).expect(&err);
        let first = &body["errors"][0];
        assert_eq!((first["code"].as_str(), first["resource"].as_str()), (Some(*code), *resource));
        assert!(!first["message"].as_str().unwrap().is_empty(), "{err}");
        assert!(serde_json::from_str::<serde_json::Value>(&plain.2).is_err(), "{}", plain.2);
    }
    // Errors of the daemon are passed on unchanged.
    let (_, _, err) = outcome(&daemon.run(&["nic", "delete", "web", "--json"]));
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parse(&err), parse(refusal));
}

#[test]
fn without_a_daemon_the_exit_code_is_5_and_a_remedy_is_printed() {
    let (code, out, err) = outcome(&suimon(&["--socket", "/no/such/socket", "nic", "list"], b""));
    assert_eq!((code, out.as_str()), (5, ""));
    assert!(err.contains("/no/such/socket") && err.contains("is suimond running"), "{err}");
}

#[test]
fn interrupting_the_wait_leaves_the_operation_running() {
    let waiting = format!("HTTP/1.1 200 OK\r\n\r\n{}\nWAIT", operation("running", ""));
    let daemon = Daemon::new(&[
        ("DELETE /1.0/nics/web", json("202 Accepted", &operation("running", ""))),
        ("GET /1.0/operations/7/follow", waiting),
    ]);
    let socket = daemon.socket();
    let args = ["--socket", socket.to_str().unwrap(), "nic", "delete", "web"];
    let child = command(&args).spawn().unwrap();
    let id = child.id().to_string();
    wait_for("request to follow", || daemon.requests().iter().any(|line| line.contains("/follow")));
    wait_for("wait for the signal", || catches_interrupts(&id));
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let (code, _, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!(code, 130);
    assert!(err.contains("operation 7 continues"), "{err}");
    assert!(!daemon.requests().iter().any(|line| line.starts_with("DELETE /1.0/operations")));
}

#[test]
fn a_capture_goes_to_a_file_of_its_owner_or_to_standard_output() {
    use std::os::unix::fs::PermissionsExt;
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\nsuimon-operation: 3\r\n\r\npcapng";
    let daemon = Daemon::new(&[("GET /1.0/nics/web/capture?max_frames=2 ", answer.to_owned())]);
    let path = daemon.dir.path().join("w.pcapng");
    let file = path.to_str().unwrap();
    let (code, out, err) =
        outcome(&daemon.run(&["nic", "capture", "web", "-w", file, "--count", "2"]));
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err, format!("web: 6 B written to {file}\n"));
    assert_eq!(std::fs::read(&path).unwrap(), b"pcapng");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, out, _) =
        outcome(&daemon.run(&["nic", "capture", "web", "-w", "-", "--count", "2"]));
    assert_eq!((code, out.as_str()), (0, "pcapng"));
    // The client waits for the end of a capture, so that the next one can start at once.
    let wait_requests =
        daemon.requests().iter().filter(|l| l.starts_with("GET /1.0/operations/3/wait")).count();
    assert_eq!(wait_requests, 2);
}

#[test]
fn a_closed_reader_of_standard_output_is_no_error() {
    let event = r#"{"sequence":1,"time_unix_ms":2,"id":1001,"severity":"info","subject":"host","text":"t"}"#;
    let daemon = Daemon::new(&[("GET /1.0/events/follow", lines(&vec![event.to_owned(); 20_000]))]);
    let socket = daemon.socket();
    let mut child =
        command(&["--socket", socket.to_str().unwrap(), "event", "follow"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.ends_with("host: t\n"), "{first}");
    let (code, _, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn pages_are_made_without_a_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert_eq!(outcome(&suimon(&["docs", "--dir", path], b"")).0, 0);
    assert_eq!(outcome(&suimon(&["man", "--dir", path], b"")).0, 0);
    for page in [
        "cli.md",
        "config.md",
        "errors.md",
        "events.md",
        "suimon.1",
        "suimon-nic-add.1",
        "suimon-team-add.1",
    ] {
        assert!(dir.path().join(page).exists(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = outcome(&suimon(&["completions", shell], b""));
        assert_eq!(code, 0);
        assert!(out.contains("offload-segmentation"), "{shell}");
    }
    let (code, out, _) = outcome(&suimon(&["man"], b""));
    assert!(code == 0 && out.contains(".TH suimon 1"), "{out}");
}
