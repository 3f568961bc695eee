//! Endpoints of live migration on a node without migrations.
#![forbid(unsafe_code)]

use crate::support::Server;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use suimon_contract::MIGRATION_PROTOCOL;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn arrival() -> Value {
    json!({
        "protocol": MIGRATION_PROTOCOL, "id": ID, "from": "left",
        "vm": {"name": "web", "memory_bytes": 268_435_456, "nics": ["web"]},
        "as_started": {"name": "web", "memory_bytes": 268_435_456, "nics": ["web"]},
        "is_paused": false,
        "uuid": "00000000000000000000000000000001",
        "nics": [{"name": "web", "switch": "nowhere", "backend": "vhost-user"}],
        "disks": [], "qos_policies": [], "is_kvm": false, "cpus_now": 1,
        "qemu_version": "7.2.22", "machine": "pc-q35-7.2",
        "ports": [{"device": "nic/web", "port": 0}], "cpu_flags": [],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_incoming_migration_counts_as_abandoned() {
    let server = Server::start().await;
    let abandoned = json!({"id": ID, "state": "abandoned"});
    let path = format!("/1.0/arrivals/{ID}");
    assert_eq!(server.get(&path).await, abandoned);
    let (status, answer) = server.call(Method::POST, &format!("{path}/activate"), "").await;
    assert_eq!((status, answer), (200, abandoned.clone()));
    let (status, answer) = server.call(Method::DELETE, &path, "").await;
    assert_eq!((status, answer), (200, abandoned));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_incoming_migration_is_rejected_without_changes() {
    let server = Server::start().await;
    for path in ["/1.0/arrivals", "/1.0/arrivals?dry_run=true"] {
        let (status, answer) = server.call(Method::POST, path, &arrival().to_string()).await;
        assert!((400..500).contains(&status), "{answer}");
        assert!(answer.to_string().contains("nowhere"), "{answer}");
        let mut other = arrival();
        other["protocol"] = json!(MIGRATION_PROTOCOL + 1);
        let (status, answer) = server.call(Method::POST, path, &other.to_string()).await;
        assert!((400..500).contains(&status), "{answer}");
        assert!(answer.to_string().contains("protocol"), "{answer}");
        // The protocol of the request precedes its fields, which may be unknown or missing.
        other["colour"] = json!("red");
        other.as_object_mut().unwrap().remove("machine");
        let (status, answer) = server.call(Method::POST, path, &other.to_string()).await;
        assert!((400..500).contains(&status), "{answer}");
        let error = &answer["errors"][0];
        assert_eq!((&error["code"], &error["field"]), (&json!("unsupported"), &json!("protocol")));
        assert!(error["message"].as_str().unwrap().contains("install the same version"), "{error}");
        let mut unknown = arrival();
        unknown["colour"] = json!("red");
        let (status, answer) = server.call(Method::POST, path, &unknown.to_string()).await;
        let error = &answer["errors"][0];
        assert_eq!((status, &error["field"]), (422, &json!("colour")), "{answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("install the same version"), "{error}");
        assert!(!message.contains("expected"), "names of keys are in the log only: {error}");
    }
    let (status, _) = server.call(Method::POST, "/1.0/arrivals?dry=1", "{}").await;
    assert_eq!(status, 422);
    assert_eq!(server.get("/1.0").await["revision"], 0);
    assert_eq!(server.get("/1.0/vms").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_require_a_waiting_migration_and_its_protocol() {
    let server = Server::start().await;
    for (path, protocol) in [("memory", "suimon-memory"), ("disks/root", "suimon-nbd")] {
        let path = format!("/1.0/arrivals/{ID}/{path}");
        let (status, answer) = server.call(Method::GET, &path, "").await;
        assert_eq!(status, 426, "{answer}");
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(&format!("Upgrade: {protocol}")), "{message}");
        for (protocol_name, expected_statuses) in [("websocket", 426..427), (protocol, 404..410)] {
            let stream = tokio::net::UnixStream::connect(&server.socket).await.unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection.with_upgrades());
            let request = Request::get(&path)
                .header("host", "suimond")
                .header("connection", "upgrade")
                .header("upgrade", protocol_name)
                .body(Empty::<Bytes>::new());
            let answer = sender.send_request(request.unwrap()).await.unwrap();
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(expected_statuses.contains(&status), "{status} {body:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_vm_cannot_be_migrated() {
    let server = Server::start().await;
    for path in ["/1.0/vms/web/migrate", "/1.0/vms/web/migrate?dry_run=true"] {
        let (status, answer) = server.call(Method::POST, path, r#"{"to":"right"}"#).await;
        assert_eq!((status, &answer["errors"][0]["resource"]), (404, &json!("vm/web")), "{answer}");
        let (status, answer) = server.call(Method::POST, path, "{}").await;
        assert_eq!(status, 400, "{answer}");
    }
}
