//! Commands `suimon node` and `suimon vm migrate` with a daemon that has a node configured, and
//! `suimon --node`.

use crate::support::{Daemon, command, json, lines, operation, outcome};

const NODE: &str = r#"{"config":{"name":"right","address":"right:8443","ca_certificate":"/a.pem","token_file":"/t"},"condition":{"health":"down","reason":"cannot reach right:8443: no process listens there"}}"#;
const PLAN: &str = r#"{"steps":[{"action":"create","resource":"vm/web"}]}"#;

fn host_with_node() -> Daemon {
    let refusal = r#"{"errors":[{"code":"unknown_reference","message":"node right has no switch lan","resource":"nic/web"}]}"#;
    let followed = [operation("running", ""), operation("succeeded", "")];
    Daemon::new(&[
        ("GET /1.0/nodes ", json("200 OK", &format!("[{NODE}]"))),
        ("POST /1.0/nodes ", json("202 Accepted", &operation("succeeded", ""))),
        ("POST /1.0/vms/web/migrate?dry_run=true ", json("200 OK", PLAN)),
        ("POST /1.0/vms/web/migrate ", json("202 Accepted", &operation("running", ""))),
        ("POST /1.0/vms/db/migrate ", json("422 Unprocessable", refusal)),
        ("GET /1.0/operations/7/follow", lines(&followed)),
    ])
}

#[test]
fn nodes_are_listed_and_made() {
    let daemon = host_with_node();
    let (code, out, err) = outcome(&daemon.run(&["node", "list"]));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("right:8443") && out.contains("no process listens there"), "{out}");
    let flags =
        ["--address", "[2001:db8::2]:8443", "--ca-certificate", "/a.pem", "--token-file", "/t"];
    let (code, _, err) = outcome(&daemon.run(&[&["node", "create", "left"][..], &flags].concat()));
    assert_eq!(code, 0, "{err}");
    let request = daemon.requests().pop().unwrap();
    assert!(request.starts_with("POST /1.0/nodes "), "{request}");
    assert!(
        request.contains(r#""address":"[2001:db8::2]:8443","ca_certificate":"/a.pem""#),
        "{request}"
    );
    let (code, _, err) = outcome(&daemon.run(&["node", "set", "left", "--address", "left"]));
    assert_eq!(code, 2);
    assert!(err.contains("must be a host name or IP address and a port"), "{err}");
}

#[test]
fn a_vm_is_migrated_and_the_end_is_awaited() {
    let daemon = host_with_node();
    let flags = ["--to", "right", "--downtime", "1s 500ms", "--bandwidth", "100MiB"];
    let args = [&["vm", "migrate", "web", "--with-files"][..], &flags].concat();
    let (code, _, err) = outcome(&daemon.run(&args));
    assert_eq!(code, 0, "{err}");
    let requests = daemon.requests();
    let body = r#"{"to":"right","downtime_ms":1500,"bandwidth":104857600,"with_files":true}"#;
    assert_eq!(requests[0], format!("POST /1.0/vms/web/migrate HTTP/1.1 {body}"));
    assert!(requests[1].starts_with("GET /1.0/operations/7/follow "), "{requests:?}");

    let (code, out, _) =
        outcome(&daemon.run(&["vm", "migrate", "web", "--to", "right", "--dry-run"]));
    assert_eq!((code, out.as_str()), (0, "+ vm/web create\n"));
    let args = ["vm", "migrate", "web", "--to", "right", "--no-wait", "--json"];
    let (code, out, _) = outcome(&daemon.run(&args));
    assert_eq!(code, 0);
    assert!(out.contains(r#""id": 7"#), "{out}");
    let (code, _, err) = outcome(&daemon.run(&["vm", "migrate", "db", "--to", "right"]));
    assert_eq!(code, 3);
    assert_eq!(err, "nic/web: node right has no switch lan\n");
    for invalid in ["0ms", "61s", "300", "soon"] {
        let args = ["vm", "migrate", "web", "--to", "right", "--downtime", invalid];
        let (code, _, err) = outcome(&daemon.run(&args));
        assert_eq!(code, 2, "{invalid}");
        assert!(err.contains("must be a time from 1ms to 60s"), "{err}");
    }
}

#[test]
fn another_daemon_accepts_requests_over_tcp_with_its_certificate_and_token() {
    let daemon = host_with_node();
    let (code, _, err) = outcome(&daemon.run(&["--node", "127.0.0.1:1", "node", "list"]));
    assert_eq!(code, 2);
    assert!(
        err.contains("--ca-certificate <PATH>") && err.contains("--token-file <PATH>"),
        "{err}"
    );
    let flags =
        ["--node", "127.0.0.1:1", "--ca-certificate", "/nowhere", "--token-file", "/nowhere"];
    let (code, _, err) = outcome(&daemon.run(&[&flags[..], &["node", "list"]].concat()));
    assert_eq!(code, 3);
    assert!(err.starts_with("--node 127.0.0.1:1: /nowhere cannot be used"), "{err}");
    // Environment variables apply unless a socket is given.
    let environment = |args: &[&str]| {
        let mut command = command(args);
        command.env("SUIMON_NODE", "127.0.0.1:1").env("SUIMON_AUTHORITY", "/nowhere");
        outcome(&command.env("SUIMON_TOKEN_FILE", "/nowhere").output().unwrap())
    };
    assert_eq!(environment(&["node", "list"]).0, 3);
    let socket = daemon.socket();
    let socket = socket.to_str().unwrap();
    assert_eq!(environment(&["--socket", socket, "node", "list"]).0, 0);
    assert_eq!(environment(&["node", "list", "--socket", socket]).0, 0);
}
