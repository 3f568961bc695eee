//! Tests with a server for which the test determines the response bytes: split lines, broken
//! connections, responses that are not JSON.
#![allow(clippy::indexing_slicing, reason = "tests")]

use std::path::PathBuf;

use suimon_client::{
    CaptureOptions, ChangeOptions, ChangeOutcome, Client, ClientError, EventQuery,
};
use suimon_contract::{
    ConvertDiskRequest, DiskConfig, DiskFormat, ErrorCode, EventFilter, NicConfig, QosPolicyConfig,
    QosPolicyKind, Severity, SnapshotDiskRequest, WhatIfRequest,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

/// Server that accepts one request, sends a fixed response in several writes, and returns the
/// request.
struct OneAnswer {
    _dir: TempDir,
    socket: PathBuf,
    request: JoinHandle<String>,
}

impl OneAnswer {
    fn new(parts: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        let request = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            loop {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                request.extend_from_slice(&buffer[..count]);
                if count == 0 || is_whole(&request) {
                    break;
                }
            }
            for part in parts {
                // The client may have closed the connection.
                let _ = stream.write_all(part.as_bytes()).await;
                let _ = stream.flush().await;
                tokio::time::sleep(core::time::Duration::from_millis(5)).await;
            }
            String::from_utf8(request).unwrap()
        });
        Self { _dir: dir, socket, request }
    }

    fn json(status: &str, body: &str) -> Self {
        let length = body.len();
        Self::new(&[&format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")])
    }

    fn client(&self) -> Client {
        Client::unix(&self.socket)
    }
}

/// Returns true if head and body of a request were received.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

const OPERATION: &str = r#"{"id":7,"kind":"nic set","subject":"nic/web","state":"running","steps_done":0,"steps":1,"started_unix_ms":1}"#;

#[tokio::test]
async fn a_patch_is_sent_as_one_and_gives_an_operation() {
    let server = OneAnswer::json("202 Accepted", OPERATION);
    let name = "web".parse().unwrap();
    let outcome = server
        .client()
        .patch::<NicConfig>(&name, &serde_json::json!({"vlan": null}), ChangeOptions::default())
        .await
        .unwrap();
    assert!(matches!(outcome, ChangeOutcome::Started(operation) if operation.id == 7));
    let request = server.request.await.unwrap();
    assert!(request.starts_with("PATCH /1.0/nics/web HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("content-type: application/merge-patch+json\r\n"), "{request}");
    assert!(request.ends_with("{\"vlan\":null}"), "{request}");
}

#[tokio::test]
async fn vmq_is_requested_by_the_name_of_its_team_or_uplink() {
    let vmq = r#"{"uplink":"both","config":{},"workers":[],"queues":[]}"#;
    let server = OneAnswer::json("200 OK", vmq);
    let single = server.client().vmq(&"both".parse().unwrap()).await.unwrap();
    assert_eq!(single.uplink.as_str(), "both");
    assert!(server.request.await.unwrap().starts_with("GET /1.0/vmq/both HTTP/1.1\r\n"));
    let server = OneAnswer::json("200 OK", &format!("[{vmq}]"));
    assert_eq!(server.client().vmqs().await.unwrap(), [single]);
    assert!(server.request.await.unwrap().starts_with("GET /1.0/vmq HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_dry_run_requests_the_plan() {
    let server = OneAnswer::json("200 OK", r#"{"steps":[]}"#);
    let options = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    let name = "web".parse().unwrap();
    let outcome = server.client().delete::<NicConfig>(&name, options).await.unwrap();
    assert!(matches!(outcome, ChangeOutcome::Planned(plan) if plan.is_empty()));
    assert!(server.request.await.unwrap().starts_with("DELETE /1.0/nics/web?dry_run=true "));
}

#[tokio::test]
async fn changes_send_force_dry_run_and_with_file() {
    let server = OneAnswer::json("202 Accepted", OPERATION);
    let limits = serde_json::from_str(r#"{"min_iops":9}"#).unwrap();
    let name = "gold".parse().unwrap();
    let policy = QosPolicyConfig::new(name, QosPolicyKind::Aggregated, limits);
    let options = ChangeOptions { force: true, ..ChangeOptions::default() };
    server.client().create(&policy, options).await.unwrap();
    let request = server.request.await.unwrap();
    assert!(request.starts_with("POST /1.0/qos-policies?force=true HTTP/1.1\r\n"), "{request}");

    let server = OneAnswer::json("200 OK", r#"{"steps":[]}"#);
    let options =
        ChangeOptions { dry_run: true, deletes_image_files: true, ..ChangeOptions::default() };
    server.client().delete::<DiskConfig>(&"web".parse().unwrap(), options).await.unwrap();
    let request = server.request.await.unwrap();
    assert!(request.starts_with("DELETE /1.0/disks/web?dry_run=true&with_file=true "), "{request}");
}

#[tokio::test]
async fn work_on_disks_is_an_operation() {
    let name = "web".parse().unwrap();
    let file = || "vms/copy.vhd".parse().unwrap();
    let convert = ConvertDiskRequest { file: file(), format: DiskFormat::Vhd, kind: None };
    for (verb, body) in [
        ("check", ""),
        ("compact", ""),
        ("merge", ""),
        ("reopen", ""),
        ("convert", r#"{"file":"vms/copy.vhd","format":"vhd"}"#),
        ("snapshot", r#"{"file":"vms/copy.vhd"}"#),
    ] {
        let server = OneAnswer::json("202 Accepted", OPERATION);
        let client = server.client();
        let operation = match verb {
            "check" => client.check_disk(&name).await,
            "compact" => client.compact_disk(&name).await,
            "merge" => client.merge_disk(&name).await,
            "reopen" => client.reopen_disk(&name).await,
            "convert" => client.convert_disk(&name, &convert).await,
            _ => client.snapshot_disk(&name, &SnapshotDiskRequest { file: file() }).await,
        };
        assert_eq!(operation.unwrap().id, 7);
        let request = server.request.await.unwrap();
        assert!(
            request.starts_with(&format!("POST /1.0/disks/web/{verb} HTTP/1.1\r\n")),
            "{request}"
        );
        assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
    }
}

#[tokio::test]
async fn qos_flows_and_what_if_are_requested() {
    let server = OneAnswer::json("200 OK", "[]");
    assert_eq!(server.client().qos_flows().await.unwrap(), []);
    assert!(server.request.await.unwrap().starts_with("GET /1.0/qos/flows HTTP/1.1\r\n"));

    let server = OneAnswer::json("200 OK", r#"{"fits":true,"stores":[]}"#);
    let request: WhatIfRequest =
        serde_json::from_str(r#"{"proposals":[{"without_disk":"web"}]}"#).unwrap();
    assert!(server.client().what_if(&request).await.unwrap().fits);
    let requested = server.request.await.unwrap();
    assert!(requested.starts_with("POST /1.0/qos/what-if HTTP/1.1\r\n"), "{requested}");
    assert!(requested.ends_with(r#"{"proposals":[{"without_disk":"web"}]}"#), "{requested}");
}

#[tokio::test]
async fn errors_contain_the_messages_of_the_daemon() {
    let body = r#"{"errors":[{"code":"in_use","message":"m","resource":"switch/lan"},{"code":"conflict","message":"n"}]}"#;
    let error = OneAnswer::json("409 Conflict", body).client().host().await.unwrap_err();
    assert_eq!(error.to_string(), "switch/lan: m (and 1 more)");
    assert_eq!(error.api_errors()[1].code, ErrorCode::Conflict);

    let error = OneAnswer::json("404 Not Found", "").client().host().await.unwrap_err();
    assert_eq!(error.api_errors()[0].code, ErrorCode::NotFound);
    let error = OneAnswer::json("502 Bad", "<html>").client().host().await.unwrap_err();
    assert_eq!(error.to_string(), "the daemon responded with status 502: <html>");
}

#[tokio::test]
async fn lines_are_put_together_from_pieces() {
    let event = r#"{"sequence":1,"time_unix_ms":2,"id":1001,"severity":"info","subject":"host","text":"é"}"#;
    let chunk = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        format!("{:x}\r\n{text}\r\n", bytes.len())
    };
    let server = OneAnswer::new(&[
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        &chunk(&event.as_bytes()[..20]),
        &chunk(format!("{}\n\n{event}\n{event}", &event[20..]).as_bytes()),
        &chunk(b"\n\n"),
        &chunk(event.as_bytes()),
        "0\r\n\r\n",
    ]);
    let mut follow = server.client().follow_events(Some(9), &EventFilter::default()).await.unwrap();
    let mut count = 0;
    while let Some(event) = follow.next().await.unwrap() {
        assert_eq!(event.text, "é");
        count += 1;
    }
    assert_eq!(count, 4);
    assert!(server.request.await.unwrap().starts_with("GET /1.0/events/follow?after=9 "));
}

#[tokio::test]
async fn a_stream_that_breaks_or_is_invalid_ends_with_an_error() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = OneAnswer::new(&[head, "5\r\n{\"a\":"]);
    let mut follow = server.client().follow_operation(1).await.unwrap();
    assert!(matches!(follow.next().await, Err(ClientError::ConnectionLost(_))));
    let server = OneAnswer::new(&[head, "3\r\n{}\n\r\n"]);
    let mut follow = server.client().follow_operation(1).await.unwrap();
    assert!(matches!(follow.next().await, Err(ClientError::InvalidResponse { .. })));
}

#[tokio::test]
async fn a_line_without_end_ends_the_stream_with_an_error() {
    let server = OneAnswer::new(&["HTTP/1.1 200 OK\r\n\r\n", &"x".repeat(5 << 20)]);
    let mut follow = server.client().follow_operation(1).await.unwrap();
    let Err(error) = follow.next().await else { panic!("no error") };
    assert!(format!("{error:?}").contains("a received line exceeds the length limit"), "{error}");
}

#[tokio::test]
async fn a_capture_names_its_operation_and_gives_bytes() {
    let server = OneAnswer::new(&[
        "HTTP/1.1 200 OK\r\nSuimon-Operation: 12\r\ntransfer-encoding: chunked\r\n\r\n",
        "3\r\nabc\r\n",
        "2\r\nde\r\n0\r\n\r\n",
    ]);
    let port: suimon_contract::Name = "wan".parse().unwrap();
    let options = CaptureOptions { snaplen: Some(64), frames_max: Some(2), bytes_max: None };
    let mut capture =
        server.client().capture::<suimon_contract::UplinkConfig>(&port, options).await.unwrap();
    assert_eq!(capture.operation_id(), Some(12));
    let mut bytes = Vec::new();
    while let Some(chunk) = capture.next_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(bytes, b"abcde");
    let request = server.request.await.unwrap();
    assert!(
        request.starts_with("GET /1.0/uplinks/wan/capture?snaplen=64&max_frames=2 "),
        "{request}"
    );
}

#[tokio::test]
async fn events_are_requested_by_query() {
    let server = OneAnswer::json("200 OK", "[]");
    let subject = Some("disk/web".to_owned());
    let filter = EventFilter { severity_min: Severity::Warning, subject, kind_number: Some(6108) };
    let query = EventQuery { after_sequence: None, limit: Some(3), filter };
    assert_eq!(server.client().events(query).await.unwrap(), []);
    let request = server.request.await.unwrap();
    let path = "/1.0/events?limit=3&severity=warning&subject=disk%2Fweb&id=6108";
    assert!(request.starts_with(&format!("GET {path} ")), "{request}");
}

#[tokio::test]
async fn a_missing_daemon_at_the_socket_is_reported_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let error = Client::unix(&socket).host().await.unwrap_err().to_string();
    assert!(error.contains("is suimond running"), "{error}");
    drop(UnixListener::bind(&socket).unwrap());
    let error = Client::unix(&socket).host().await.unwrap_err().to_string();
    assert!(error.contains("no process listens"), "{error}");
}

#[tokio::test]
async fn a_reply_of_another_version_is_reported() {
    let error = OneAnswer::json("200 OK", "{\"name\":1}").client().host().await.unwrap_err();
    assert!(error.to_string().contains("the same version"), "{error}");
    let error = OneAnswer::new(&["SSH-2.0-OpenSSH\r\n"]).client().host().await.unwrap_err();
    assert!(matches!(error, ClientError::ConnectionLost(_)));
}
