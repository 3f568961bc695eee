//! Misbehaving clients on a real Unix socket.
#![forbid(unsafe_code)]

use crate::support::Server;
use hyper::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread")]
async fn followers_that_never_read_do_not_block_other_clients() {
    let server = Server::with_web().await;
    let mut followers = Vec::new();
    for _ in 0..300 {
        let mut stream = tokio::net::UnixStream::connect(&server.socket).await.unwrap();
        stream.write_all(b"GET /1.0/events/follow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        let reading = stream.read_exact(&mut status);
        tokio::time::timeout(std::time::Duration::from_secs(90), reading).await.unwrap().unwrap();
        match &status[9..] {
            b"200" => followers.push(stream),
            other => assert_eq!(other, b"409"),
        }
    }
    assert_eq!(followers.len(), suimond_api::EVENT_FOLLOWERS_MAX);
    server.get("/1.0").await;
    let (status, rejection) = server.call(Method::GET, "/1.0/events/follow", "").await;
    assert_eq!((status, &rejection["errors"][0]["code"]), (409, &json!("conflict")));
}

/// Verifies that an oversized body is read before the response. Many clients read no response
/// before they have sent the whole body, and report only "broken pipe" if the connection closes
/// earlier.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_when_it_was_sent() {
    static CHUNK: [u8; 64 << 10] = [b'x'; 64 << 10];
    let server = Server::with_web().await;
    for (chunks, is_reported) in [(80, true), (800, true), (2000, false)] {
        let mut stream = tokio::net::UnixStream::connect(&server.socket).await.unwrap();
        let bytes = chunks * CHUNK.len();
        let head = format!(
            "POST /1.0/apply HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-length: {bytes}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut write_result = Ok(());
        for _ in 0..chunks {
            write_result = write_result.and(stream.write_all(&CHUNK).await);
        }
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        if is_reported {
            write_result.and(read).unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
            assert!(answer.contains("the request body exceeds 4194304 bytes"), "{answer}");
        } else {
            write_result.unwrap_err();
        }
        assert_eq!(server.get("/1.0").await["revision"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_the_socket_costs_its_own_connection_only() {
    let server = Server::with_web().await;
    let nonsense: [&[u8]; 4] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /1.0 HTTP/9.9\r\n\r\n",
        b"POST /1.0/apply HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
        &[b'a'; 200_000],
    ];
    for bytes in nonsense {
        let mut stream = tokio::net::UnixStream::connect(&server.socket).await.unwrap();
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
        assert_eq!(server.get("/1.0").await["revision"], 2);
    }
    // A silent connection does not delay others.
    let _silent = tokio::net::UnixStream::connect(&server.socket).await.unwrap();
    assert_eq!(server.get("/1.0").await["revision"], 2);
}
