//! API over a real Unix socket.
#![forbid(unsafe_code)]

use crate::support::{Server, WEB};
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_nic_is_added_changed_and_deleted() {
    let server = Server::with_web().await;
    let nic = server.get("/1.0/nics/web").await;
    assert_eq!(nic["condition"]["health"], "up");
    let (status, plan) =
        server.call(Method::PATCH, "/1.0/nics/web?dry_run=true", r#"{"vlan":7}"#).await;
    assert_eq!((status, &plan["steps"][0]["action"]), (200, &json!("change-live")));
    assert_eq!(server.get("/1.0/nics/web").await["config"].get("vlan"), None);
    server.change(Method::PATCH, "/1.0/nics/web", r#"{"vlan":7}"#).await;
    assert_eq!(server.get("/1.0/nics/web").await["config"]["vlan"], 7);
    server.change(Method::PUT, "/1.0/nics/web", WEB).await;
    assert_eq!(server.get("/1.0/nics/web").await["config"].get("vlan"), None);

    let toml = server.send(Method::GET, "/1.0/config?format=toml", "").await;
    let toml =
        String::from_utf8(toml.into_body().collect().await.unwrap().to_bytes().into()).unwrap();
    assert!(toml.contains("[[nic]]"), "{toml}");
    server.change(Method::DELETE, "/1.0/nics/web", "").await;
    assert_eq!(server.get("/1.0/nics").await, json!([]));
    let apply = json!({ "toml": toml, "file": "host.toml" }).to_string();
    let operation = server.change(Method::POST, "/1.0/apply", &apply).await;
    assert_eq!(operation["plan"]["steps"][0]["resource"], "nic/web");
    assert_eq!(server.get("/1.0/nics/web").await["condition"]["health"], "up");
    assert_eq!(server.get("/1.0").await["revision"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_is_added_changed_and_deleted() {
    let server = Server::with_web().await;
    for (name, device) in [("left", "eth0"), ("right", "eth1")] {
        let uplink = json!({ "name": name, "device": device }).to_string();
        server.change(Method::POST, "/1.0/uplinks", &uplink).await;
    }
    let team_body =
        json!({ "name": "both", "members": ["left", "right"], "mode": "lacp" }).to_string();
    let (status, plan) = server.call(Method::POST, "/1.0/teams?dry_run=true", &team_body).await;
    assert_eq!((status, &plan["steps"][0]["resource"]), (200, &json!("team/both")));
    server.change(Method::POST, "/1.0/teams", &team_body).await;
    let desired = async || server.get("/1.0/config").await["team"][0].clone();
    assert_eq!(desired().await["members"], json!(["left", "right"]));
    assert_eq!(server.get("/1.0").await["teams"], 1);

    let patch = r#"{"lacp_timer": "fast", "vmq": {"max_workers": 2}}"#;
    server.change(Method::PATCH, "/1.0/teams/both", patch).await;
    assert_eq!(desired().await["vmq"]["max_workers"], 2);
    let patch = r#"{"vmq": {"max_workers": null}}"#;
    server.change(Method::PATCH, "/1.0/teams/both", patch).await;
    assert_eq!(
        (desired().await.get("vmq"), &desired().await["lacp_timer"]),
        (None, &json!("fast"))
    );
    server.change(Method::PUT, "/1.0/teams/both", &team_body.replace("lacp", "static")).await;
    assert_eq!(
        (&desired().await["mode"], desired().await.get("lacp_timer")),
        (&json!("static"), None)
    );

    let rejections: [(Method, &str, &str, u16, &str, &str); 6] = [
        (Method::DELETE, "/1.0/uplinks/left", "", 409, "in_use", "uplink/left"),
        (Method::POST, "/1.0/teams", &team_body, 409, "already_exists", "team/both"),
        (
            Method::PATCH,
            "/1.0/uplinks/left",
            r#"{"vmq": {"enabled": false}}"#,
            422,
            "key_not_applicable",
            "uplink/left",
        ),
        (
            Method::PATCH,
            "/1.0/teams/both",
            r#"{"primary": "left"}"#,
            422,
            "key_not_applicable",
            "team/both",
        ),
        (Method::DELETE, "/1.0/teams/nobody", "", 404, "not_found", "team/nobody"),
        (Method::GET, "/1.0/vmq/nobody", "", 404, "not_found", "vmq/nobody"),
    ];
    for (method, path, body, status, code, resource) in rejections {
        let (actual_status, answer) = server.call(method.clone(), path, body).await;
        let error = &answer["errors"][0];
        let error_location = (error["code"].as_str(), error["resource"].as_str());
        assert_eq!(
            (actual_status, error_location),
            (status, (Some(code), Some(resource))),
            "{method} {path}"
        );
    }
    server.change(Method::DELETE, "/1.0/teams/both", "").await;
    server.change(Method::DELETE, "/1.0/uplinks/left", "").await;
    assert_eq!(server.get("/1.0/teams").await, json!([]));
}

/// Method, path and body of a request; status, code and field of the response.
type ErrorCase = (Method, &'static str, String, u16, &'static str, Option<&'static str>);

fn as_toml(text: &str) -> String {
    json!({ "toml": text, "file": "h.toml" }).to_string()
}

fn error_cases() -> Vec<ErrorCase> {
    [resource_error_cases(), other_error_cases()].concat()
}

fn resource_error_cases() -> Vec<ErrorCase> {
    let missing = r#"{"name":"a","switch":"lan","backend":"tap","device":"missing0"}"#;
    vec![
        (Method::GET, "/1.0/nics/nobody", "".to_owned(), 404, "not_found", None),
        (Method::GET, "/2.0", "".into(), 404, "not_found", None),
        (Method::POST, "/1.0/top", "".into(), 405, "method_not_allowed", None),
        (Method::POST, "/1.0/nics", "{".into(), 400, "malformed", None),
        (Method::POST, "/1.0/nics", "[]".into(), 400, "malformed", None),
        (Method::POST, "/1.0/nics", WEB.into(), 409, "already_exists", Some("name")),
        (
            Method::POST,
            "/1.0/nics",
            WEB.replace("web0", "web1").replace("web\"", "x\"").replace("lan", "wan"),
            422,
            "unknown_reference",
            Some("switch"),
        ),
        (Method::POST, "/1.0/nics", missing.into(), 422, "device_missing", Some("device")),
        (Method::PATCH, "/1.0/nics/web", r#"{"mtu": 1}"#.into(), 422, "invalid_value", Some("mtu")),
        (
            Method::PATCH,
            "/1.0/nics/web",
            r#"{"offload": {"x": true}}"#.into(),
            422,
            "unknown_key",
            Some("offload.x"),
        ),
        (
            Method::PATCH,
            "/1.0/nics/web",
            r#"{"name": "y"}"#.into(),
            422,
            "invalid_value",
            Some("name"),
        ),
        (
            Method::PATCH,
            "/1.0/nics/web",
            r#"{"vlna": null}"#.into(),
            422,
            "unknown_key",
            Some("vlna"),
        ),
        (Method::POST, "/1.0/apply", r#"{"tomml": ""}"#.into(), 422, "unknown_key", Some("tomml")),
        (Method::PUT, "/1.0/nics/%2e%2e", WEB.into(), 404, "not_found", None),
        (Method::DELETE, "/1.0/switches/lan", "".into(), 409, "in_use", None),
        (Method::DELETE, "/1.0/nics/web?dry=1", "".into(), 422, "unknown_key", Some("dry")),
    ]
}

fn other_error_cases() -> Vec<ErrorCase> {
    let huge = format!("{{\"toml\": \"{}\"}}", "x".repeat(5 << 20));
    vec![
        (Method::POST, "/1.0/apply", "{}".into(), 400, "malformed", None),
        (Method::POST, "/1.0/apply", huge, 413, "malformed", None),
        (
            Method::POST,
            "/1.0/apply",
            as_toml("[host]\nname = \"x\"\ncolour = 1\n"),
            422,
            "unknown_key",
            Some("colour"),
        ),
        (Method::GET, "/1.0/events?limit=x", "".into(), 400, "malformed", Some("limit")),
        (Method::GET, "/1.0/operations/99", "".into(), 404, "not_found", None),
        (Method::GET, "/1.0/operations/x", "".into(), 404, "not_found", None),
        (
            Method::POST,
            "/1.0/queues/web/up/0/move",
            r#"{"worker":0}"#.into(),
            404,
            "not_found",
            None,
        ),
        (
            Method::POST,
            "/1.0/queues/web/rx/0/move",
            r#"{"cpu":0}"#.into(),
            422,
            "unknown_key",
            Some("cpu"),
        ),
        (Method::GET, "/1.0/nics/nobody/capture", "".into(), 404, "not_found", None),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_a_status_a_code_and_a_field() {
    let server = Server::with_web().await;
    for (method, path, body, status, code, field) in error_cases() {
        let (actual_status, answer) = server.call(method.clone(), path, &body).await;
        let error = &answer["errors"][0];
        let error_field = error["field"].as_str();
        assert_eq!(
            (actual_status, error["code"].as_str(), error_field.filter(|_| field.is_some())),
            (status, Some(code), field),
            "{method} {path}: {answer}"
        );
        assert!(error["message"].as_str().unwrap().len() > 5);
    }
    let (_, answer) =
        server.call(Method::POST, "/1.0/apply", &as_toml("[[nic]]\nname = 5\n")).await;
    let errors = answer["errors"].as_array().unwrap();
    let error = errors.iter().find(|error| error["field"] == "name").unwrap();
    assert_eq!((&error["file"], &error["line"]), (&json!("h.toml"), &json!(2)));
    // None of the requests changed the state.
    assert_eq!(server.get("/1.0").await["revision"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_and_followed_until_the_daemon_stops() {
    let server = Server::with_web().await;
    let events = server.get("/1.0/events").await;
    let sequences: Vec<u64> =
        events.as_array().unwrap().iter().map(|e| e["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    let last = server.get("/1.0/events?limit=1").await;
    assert_eq!(last[0]["sequence"], json!(sequences.len()));
    assert_eq!(server.get("/1.0/events?after=1&limit=1").await[0]["sequence"], 2);

    let mut body = server.send(Method::GET, "/1.0/events/follow?after=0", "").await.into_body();
    server.change(Method::DELETE, "/1.0/nics/web", "").await;
    server.stop().await;
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let ids: Vec<u64> = String::from_utf8(text)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap())
        .collect();
    assert!(ids.contains(&3003), "{ids:?}");
    assert_eq!(ids.last(), Some(&1002));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_is_an_operation_that_can_be_cancelled() {
    let server = Server::with_web().await;
    let answer = server.send(Method::GET, "/1.0/nics/web/capture?snaplen=96", "").await;
    let id = answer.headers()["suimon-operation"].to_str().unwrap().to_owned();
    let mut body = answer.into_body();
    let start = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(start[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let (status, rejection) = server.call(Method::GET, "/1.0/nics/web/capture", "").await;
    assert_eq!((status, &rejection["errors"][0]["code"]), (409, &json!("conflict")));
    server.call(Method::DELETE, &format!("/1.0/operations/{id}"), "").await;
    let remaining = body.collect().await.unwrap().to_bytes();
    assert_eq!(remaining[..4], 5_u32.to_le_bytes(), "the statistics that end a capture");
    let operation = server.get(&format!("/1.0/operations/{id}/wait")).await;
    assert_eq!(operation["state"], "cancelled");
    // A closed reader ends its capture.
    let answer = server.send(Method::GET, "/1.0/nics/web/capture", "").await;
    let id = answer.headers()["suimon-operation"].to_str().unwrap().to_owned();
    drop(answer);
    let operation = server.get(&format!("/1.0/operations/{id}/wait")).await;
    assert_eq!(operation["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_followed_to_its_end() {
    let server = Server::with_web().await;
    let answer = server.send(Method::GET, "/1.0/operations/2/follow", "").await;
    let lines = answer.into_body().collect().await.unwrap().to_bytes();
    let last: Value = serde_json::from_slice(&lines).unwrap();
    assert_eq!((&last["id"], &last["state"]), (&json!(2), &json!("succeeded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_keep_prometheus_rules() {
    let server = Server::with_web().await;
    let answer = server.send(Method::GET, "/metrics", "").await;
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text =
        String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().into()).unwrap();
    assert!(text.ends_with('\n') && !text.contains("# EOF"));
    let mut families = std::collections::BTreeSet::new();
    let mut kind = ("", "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            kind = rest.split_once(' ').unwrap();
            assert!(families.insert(kind.0.to_owned()), "{line} twice");
            assert!(kind.0.starts_with("suimon_"), "{line}");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            assert_eq!(name, kind.0, "{line}");
            assert_eq!(name.ends_with("_total"), kind.1 == "counter", "{line}");
        }
    }
    for name in [
        "suimon_build_info{version=\"0\"} 1",
        "suimon_nic_receive_bytes_total{nic=\"web\"} 0",
        "suimon_worker_busy_seconds_total{worker=\"0\"}",
        "suimon_nic_up{nic=\"web\"} 1",
    ] {
        assert!(text.contains(name), "{name}:\n{text}");
    }
}
