//! Applications of the host file over the API.
#![forbid(unsafe_code)]

use hyper::Method;
use serde_json::json;
use suimon_node::ChangeOptions;

use crate::support::{HOST_FILE, Server};

const TEXT: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

async fn apply(server: &Server, text: &str) {
    let body = json!({"toml": text, "file": "any name"}).to_string();
    let operation = server.change(Method::POST, "/1.0/apply", &body).await;
    assert_eq!(operation["state"], "succeeded", "{operation}");
}

/// Returns true if a start of the daemon with this host file would apply it.
fn would_apply(server: &Server, text: &str) -> bool {
    server.node.submit_file(text, HOST_FILE, ChangeOptions::default()).unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_revert_changes_made_after_the_host_file_was_applied() {
    let server = Server::start().await;
    std::fs::write(server.directory.path().join(HOST_FILE), TEXT).unwrap();
    apply(&server, TEXT).await;
    server.change(Method::DELETE, "/1.0/switches/lan", "").await;
    assert!(!would_apply(&server, TEXT));
    // The application of another file does not change which host file was applied last.
    apply(&server, "").await;
    assert!(!would_apply(&server, TEXT));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_applies_a_host_file_that_was_not_applied() {
    let server = Server::start().await;
    apply(&server, TEXT).await;
    assert!(would_apply(&server, TEXT), "the file did not exist when this text was applied");
    server.stop().await;
}
