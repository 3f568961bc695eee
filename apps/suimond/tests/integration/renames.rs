//! Old and new names of renamed fields and paths in requests and responses.

use hyper::Method;
use serde_json::{Value, json};
use suimon_contract::{RENAMES, RenamedItem};

use crate::support::Server;

const STORE: &str = "/1.0/stores/fast";

/// Starts a server with a store whose capacity is given under its old name.
async fn with_store() -> Server {
    let server = Server::start().await;
    let body = json!({ "name": "fast", "path": server.directory.path(), "capability_iops": 1000 });
    let operation = server.change(Method::POST, "/1.0/stores", &body.to_string()).await;
    assert_eq!(operation["state"], "succeeded", "{operation}");
    server
}

fn warning(answer: &Value) -> &str {
    let [warning] = answer["warnings"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        panic!("{answer}");
    };
    warning.as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn either_name_of_a_key_changes_it_and_the_old_one_causes_a_warning() {
    let server = with_store().await;
    for (name, iops) in [("capability_iops", 2000), ("capacity_iops", 3000)] {
        let patch = json!({ name: iops }).to_string();
        let (status, operation) = server.call(Method::PATCH, STORE, &patch).await;
        assert_eq!(status, 202, "{operation}");
        if name == "capability_iops" {
            assert!(warning(&operation).contains("use `capacity_iops`"), "{operation}");
        } else {
            assert!(operation.get("warnings").is_none(), "{operation}");
        }
        let wait = format!("/1.0/operations/{}/wait", operation["id"]);
        server.call(Method::GET, &wait, "").await;
        let (_, store) = server.call(Method::GET, STORE, "").await;
        for object in [&store, &store["config"]] {
            assert_eq!(object["capacity_iops"], iops, "{store}");
            assert_eq!(object["capability_iops"], iops, "{store}");
        }
        assert_eq!(store["reserved_iops"], store["promised_iops"], "{store}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_and_responses_have_the_warning_too() {
    let server = with_store().await;
    let path = server.directory.path();
    let replacement = json!({ "name": "fast", "path": path, "capability_iops": 5 }).to_string();
    let (status, plan) =
        server.call(Method::PUT, &format!("{STORE}?dry_run=true"), &replacement).await;
    assert_eq!(status, 200, "{plan}");
    assert_eq!(plan["steps"][0]["changes"][0]["field"], "capacity_iops", "{plan}");
    assert!(warning(&plan).starts_with("store/fast: capability_iops: "), "{plan}");
    let toml = format!("[[store]]\nname = \"fast\"\npath = {path:?}\ncapability_iops = 5\n");
    let apply = json!({ "toml": toml, "file": "host.toml" }).to_string();
    let (_, plan) = server.call(Method::POST, "/1.0/apply?dry_run=true", &apply).await;
    assert!(warning(&plan).starts_with("host.toml:4: store/fast: "), "{plan}");
    let what_if = json!({ "proposals": [{ "store": { "name": "fast", "capability_iops": 7 } }] });
    let (status, answer) =
        server.call(Method::POST, "/1.0/qos/what-if", &what_if.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    assert!(warning(&answer).contains("capacity_iops"), "{answer}");
    let first = &answer["stores"][0];
    assert_eq!(first["capacity_iops"], first["capability_iops"], "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn different_values_of_both_names_are_refused() {
    let server = with_store().await;
    for method in [Method::PATCH, Method::PUT] {
        let body = json!({
            "name": "fast", "path": server.directory.path(),
            "capability_iops": 5, "capacity_iops": 6,
        });
        let (status, answer) = server.call(method, STORE, &body.to_string()).await;
        assert_eq!(status, 422, "{answer}");
        let error = &answer["errors"][0];
        assert_eq!(error["field"], "capacity_iops", "{answer}");
        assert!(error["message"].as_str().unwrap().contains("`capability_iops`"), "{answer}");
    }
    let body = json!({ "worker": 0, "processor": 1 }).to_string();
    let (status, answer) = server.call(Method::POST, "/1.0/queues/web/rx/0/move", &body).await;
    assert_eq!(status, 422, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_paths_serve_the_same() {
    let server = Server::start().await;
    for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::ApiPath) {
        let (status, new) = server.call(Method::GET, rename.new, "").await;
        assert_eq!(status, 200, "{new}");
        let (status, old) = server.call(Method::GET, rename.old, "").await;
        assert_eq!(status, 200, "{old}");
        assert_eq!(old.as_array().map(Vec::len), new.as_array().map(Vec::len), "{rename:?}");
    }
}
