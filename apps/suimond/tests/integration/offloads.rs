//! Offloads over the API: settings of an uplink, its status, and their description.
#![forbid(unsafe_code)]

use crate::support::Server;
use hyper::Method;
use serde_json::{Value, json};

const WAN: &str = r#"{"name": "wan", "device": "eth9"}"#;
const LAN: &str = r#"{"name": "lan", "kind": "external", "uplink": "wan"}"#;

/// Collects every `$ref` in `value`.
fn references(value: &Value, found_references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found_references.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, found_references));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found_references)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switches_of_an_uplink_are_patched_live_and_shown() {
    let server = Server::start().await;
    for (path, body) in [("/1.0/uplinks", WAN), ("/1.0/switches", LAN)] {
        let operation = server.change(Method::POST, path, body).await;
        assert_eq!(operation["state"], "succeeded", "{operation}");
    }
    let get_uplink = async || {
        let uplink = server.get("/1.0/uplinks/wan").await;
        let mut offloads = uplink["offloads"].as_array().unwrap().iter();
        let large = offloads.find(|offload| offload["name"] == "tx_tcp4_segmentation");
        (large.unwrap().clone(), uplink["config"]["offload"].clone())
    };
    let (large, config) = get_uplink().await;
    assert_eq!((&large["enabled"], config), (&json!(true), Value::Null), "{large}");

    let disabled = r#"{"offload": {"segmentation": false}}"#;
    let (status, plan) =
        server.call(Method::PATCH, "/1.0/uplinks/wan?dry_run=true", disabled).await;
    assert_eq!((status, &plan["steps"][0]["action"]), (200, &json!("change-live")), "{plan}");
    server.change(Method::PATCH, "/1.0/uplinks/wan", disabled).await;
    let (large, config) = get_uplink().await;
    assert_eq!(config["segmentation"], false);
    assert_eq!((&large["enabled"], &large["effective"]), (&json!(false), &json!(false)));
    assert_eq!(large["by"], "software");
    assert_eq!(large["reason"], "switched off by segmentation");

    let invalid = r#"{"offload": {"tso": false}}"#;
    let (status, body) = server.call(Method::PATCH, "/1.0/uplinks/wan", invalid).await;
    let error = &body["errors"][0];
    assert_eq!((status, &error["code"]), (422, &json!("unknown_key")), "{body}");
    assert_eq!(error["field"], "offload.tso");
    assert!(error["message"].as_str().unwrap().contains("receive_coalescing"), "{body}");

    let default = r#"{"offload": {"segmentation": null}}"#;
    server.change(Method::PATCH, "/1.0/uplinks/wan", default).await;
    let (large, config) = get_uplink().await;
    assert_eq!((&large["enabled"], config), (&json!(true), Value::Null), "{large}");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_in_the_openapi_document_resolve() {
    let server = Server::start().await;
    let document = server.get("/1.0/openapi.json").await;
    let mut found_references = Vec::new();
    references(&document, &mut found_references);
    for reference in &found_references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for name in ["OffloadConfig", "OffloadStatus", "OffloadDoer", "DeviceFeaturesStatus"] {
        assert!(
            found_references.iter().any(|reference| reference.ends_with(&format!("/{name}"))),
            "{name}"
        );
    }
}
