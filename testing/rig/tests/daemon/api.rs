//! The API, tested with curl: errors, operations, metrics, access control.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use suimon_rig::{Daemon, Rig, private_lan, program, run_any, wait_for_value};

/// Time limit of a program.
const LIMIT: Duration = Duration::from_secs(120);

const GOOD: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

/// Request and expected error: method, path, body, status (0: any error), code, field.
type Wrong = (&'static str, &'static str, Option<&'static str>, u16, &'static str, &'static str);

#[test]
fn wrong_requests_get_an_error_with_code_resource_and_field() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, GOOD).unwrap();
    let requests: &[Wrong] = &[
        ("GET", "/1.0/nowhere", None, 404, "not_found", ""),
        ("GET", "/2.0", None, 404, "not_found", ""),
        ("GET", "/1.0/nics/none", None, 404, "not_found", ""),
        ("DELETE", "/1.0/switches/none", None, 404, "not_found", ""),
        ("POST", "/1.0/switches", Some("{"), 400, "malformed", ""),
        ("POST", "/1.0/switches", Some("[]"), 400, "malformed", ""),
        ("POST", "/1.0/switches", Some(r#"{"name":"x","kind":"public"}"#), 422, "", "kind"),
        (
            "POST",
            "/1.0/switches",
            Some(r#"{"name":"x","kind":"private","foo":1}"#),
            422,
            "unknown_key",
            "foo",
        ),
        (
            "POST",
            "/1.0/switches",
            Some(r#"{"name":"lan","kind":"private"}"#),
            409,
            "already_exists",
            "",
        ),
        (
            "POST",
            "/1.0/nics",
            Some(r#"{"name":"a","switch":"nowhere","backend":"tap"}"#),
            0,
            "unknown_reference",
            "switch",
        ),
        (
            "POST",
            "/1.0/nics",
            Some(r#"{"name":"a","switch":"lan","backend":"tap","netns":"none"}"#),
            0,
            "device_missing",
            "netns",
        ),
        ("PATCH", "/1.0/switches/lan", Some(r#"{"ageing_s":1}"#), 0, "invalid_value", "ageing_s"),
        ("POST", "/1.0/queues/none/rx/0/move", Some(r#"{"worker":0}"#), 404, "not_found", ""),
    ];
    for (method, path, body, status, code, field) in requests {
        let answer = daemon.http(method, path, *body).unwrap();
        let description = format!("{method} {path} {body:?}: {} {}", answer.status, answer.text);
        assert!((400..500).contains(&answer.status), "{description}");
        assert!(*status == 0 || *status == answer.status, "{description}");
        let error = &answer.json["errors"][0];
        assert!(error["message"].as_str().is_some_and(|text| text.len() > 10), "{description}");
        assert!(code.is_empty() || error["code"] == *code, "{description}");
        assert!(field.is_empty() || error["field"] == *field, "{description}");
    }
    let large = format!("{{\"toml\": \"{}\"}}", "#".repeat(3 << 20));
    let file = rig.path("large.json");
    fs::write(&file, large).unwrap();
    let answer = daemon.http("POST", "/1.0/apply", Some(&format!("@{file}"))).unwrap();
    assert!((400..500).contains(&answer.status), "{} {}", answer.status, answer.text);
    let answer = daemon.http("PUT", "/1.0/events", Some("{}")).unwrap();
    assert!((400..500).contains(&answer.status), "{}", answer.text);
    assert!(answer.json["errors"][0]["code"].is_string(), "{}", answer.text);
}

#[test]
fn a_change_is_an_operation_that_can_be_watched() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, GOOD).unwrap();
    let body = r#"{"name":"second","kind":"private"}"#;
    let answer = daemon.http("POST", "/1.0/switches", Some(body)).unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.json["id"].as_u64().unwrap();
    let path = format!("/1.0/operations/{id}/wait?timeout_s=10");
    let operation = wait_for_value("end of the operation", LIMIT, || {
        let now = daemon.http("GET", &path, None)?;
        Ok((now.json["state"] != "running").then_some(now))
    })
    .unwrap();
    assert_eq!(operation.json["state"], "succeeded", "{}", operation.text);
    let operation = daemon.json(&["operation", "show", &id.to_string()]).unwrap();
    assert_eq!(operation["state"], "succeeded");
    assert!(daemon.ok(&["switch", "list"]).unwrap().contains("second"));
    let events = daemon.json(&["event", "list"]).unwrap();
    let created = events
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["id"] == 2001 && event["subject"] == "switch/second");
    assert!(created.is_some(), "{events}");
}

#[test]
fn the_socket_is_for_the_owner_and_the_group() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, GOOD).unwrap();
    let mode = fs::metadata(daemon.socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o660, "{mode:o}");
}

#[test]
fn a_second_daemon_is_refused() {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, GOOD).unwrap();
    let socket = daemon.socket().to_owned();
    for (socket, state) in
        [(socket, rig.path("state2")), (rig.path("b.sock"), daemon.path("state"))]
    {
        let arguments =
            [program("suimond").unwrap(), "--socket".into(), socket, "--state-dir".into(), state];
        let output = run_any(&arguments, LIMIT).unwrap();
        assert!(output.code != 0 && output.code != 124, "{output:?}");
        assert!(!output.stderr.is_empty());
    }
    daemon.process().check_running().unwrap();
    assert_eq!(daemon.http("GET", "/1.0", None).unwrap().status, 200);
}

#[test]
fn the_served_openapi_document_is_the_one_checked_in() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, GOOD).unwrap();
    let document = daemon.http("GET", "/1.0/openapi.json", None).unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked_in = fs::read_to_string(folder.join("../../contract/openapi.json")).unwrap();
    let checked_in: serde_json::Value = serde_json::from_str(&checked_in).unwrap();
    assert_eq!(document.json, checked_in);
}

#[test]
fn metrics_follow_the_prometheus_text_format() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    assert!(guests[0].namespace.reaches(&guests[1].address()));
    let text = daemon.http("GET", "/metrics", None).unwrap().text;
    let mut kinds = std::collections::BTreeMap::new();
    let mut samples = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(name.starts_with("suimon_"), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
        } else if !line.starts_with('#') && !line.is_empty() {
            samples += 1;
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{line}"
            );
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let kind = kinds.get(name).unwrap_or_else(|| panic!("no type for {line}"));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        }
    }
    assert!(samples > 20, "{text}");
    for metric in [
        "suimon_nic_receive_bytes_total{nic=\"a\"}",
        "suimon_worker_busy_seconds_total",
        "suimon_worker_yields_total",
        "suimon_build_info",
    ] {
        assert!(text.contains(metric), "{metric} is missing in:\n{text}");
    }
    // Prometheus checks syntax, names and help texts.
    let file = rig.path("metrics");
    fs::write(&file, &text).unwrap();
    let arguments = ["sh", "-c", "promtool check metrics <\"$0\"", &file];
    let checked = run_any(&arguments, LIMIT).unwrap();
    assert!(checked.is_ok() && checked.stderr.is_empty(), "{checked:?}\n{text}");
}

#[test]
fn a_tcp_listener_without_tls_and_token_is_refused() {
    let rig = Rig::new().unwrap();
    let file = rig.path("host.toml");
    fs::write(&file, "[api]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let arguments = [
        program("suimond").unwrap(),
        "--config".into(),
        file,
        "--socket".into(),
        rig.path("api.sock"),
        "--state-dir".into(),
        rig.path("state"),
    ];
    let output = run_any(&arguments, LIMIT).unwrap();
    assert!(output.code != 0 && output.code != 124, "{output:?}");
    assert!(output.stderr.contains("tls_certificate"), "{output:?}");
    assert!(output.stderr.contains("token_file"), "{output:?}");
}

#[test]
fn exit_codes_of_the_command_line_state_the_result() {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, GOOD).unwrap();
    assert_eq!(daemon.cli(&["host", "show"]).unwrap().code, 0);
    assert_eq!(daemon.cli(&["nonsense"]).unwrap().code, 2);
    assert_eq!(daemon.cli(&["nic", "show", "none"]).unwrap().code, 4);
    daemon.stop().unwrap();
    let output = daemon.cli(&["host", "show"]).unwrap();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stderr.contains(daemon.socket()), "{output:?}");
}
