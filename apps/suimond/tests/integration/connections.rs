//! Limits of connections and of their idle times. Time is simulated: it advances only when all
//! tasks are idle.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use suimond_api::{
    CONNECTIONS_MAX, Listener, NotificationSender, REQUEST_HEAD_TIMEOUT, UPGRADED_CONNECTIONS_MAX,
    WRITE_TIMEOUT, serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

/// Capacity of a connection for unread bytes.
const ROOM_BYTES: usize = 4096;
const LARGE_BYTES: usize = 4 << 20;
/// Interval of output of an endless response.
const SAYS_EVERY: Duration = Duration::from_secs(7);

struct InMemory(Mutex<mpsc::UnboundedReceiver<DuplexStream>>);

impl Listener for InMemory {
    type Connection = DuplexStream;
    type Accepted = DuplexStream;

    async fn accept(&self) -> io::Result<DuplexStream> {
        match self.0.lock().await.recv().await {
            Some(stream) => Ok(stream),
            None => std::future::pending().await,
        }
    }

    async fn prepare(&self, accepted: DuplexStream) -> io::Result<DuplexStream> {
        Ok(accepted)
    }
}

struct Server {
    connect: mpsc::UnboundedSender<DuplexStream>,
    _news: NotificationSender,
}

impl Server {
    fn start() -> Self {
        let (connect, accepted) = mpsc::unbounded_channel();
        let (sender, notifications) = NotificationSender::new();
        let follow = || async {
            let chunks = futures_util::stream::unfold((), |()| async {
                tokio::time::sleep(SAYS_EVERY).await;
                Some((Ok::<_, io::Error>(Bytes::from_static(b"word\n")), ()))
            });
            Body::from_stream(chunks)
        };
        let router = Router::new()
            .route("/short", get(|| async { "short" }))
            .route("/large", get(|| async { vec![b'x'; LARGE_BYTES] }))
            .route("/follow", get(follow))
            .route("/upgrade", get(upgrade));
        tokio::spawn(serve(InMemory(Mutex::new(accepted)), router, notifications));
        Self { connect, _news: sender }
    }

    fn connect(&self) -> DuplexStream {
        let (client_end, server_end) = tokio::io::duplex(ROOM_BYTES);
        self.connect.send(server_end).unwrap();
        client_end
    }

    async fn send_request(&self, path: &str) -> DuplexStream {
        let mut stream = self.connect();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
            .await
            .unwrap();
        stream
    }
}

/// Accepts an upgrade, and returns the bytes that the client sends.
async fn upgrade(mut request: Request) -> Response {
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().unwrap();
    tokio::spawn(async move {
        let client = TokioIo::new(upgrade.await.unwrap());
        let (mut from, mut to) = tokio::io::split(client);
        let _ = tokio::io::copy(&mut from, &mut to).await;
    });
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Reads until the end of a response's head.
async fn head(stream: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    String::from_utf8(head).unwrap()
}

async fn is_closed(stream: &mut DuplexStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await;
    matches!(read, Ok(Ok(0)))
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_replaces_the_longest_idle_one_at_once() {
    let server = Server::start();
    let started = Instant::now();
    let mut idle: VecDeque<_> = (0..600).map(|_| server.connect()).collect();
    let mut used = server.send_request("/short").await;
    assert!(head(&mut used).await.starts_with("HTTP/1.1 200"));
    assert_eq!(started.elapsed(), Duration::ZERO, "the server waited for a timeout");
    let turned_away = 601 - CONNECTIONS_MAX;
    for (index, stream) in idle.iter_mut().enumerate() {
        assert_eq!(is_closed(stream).await, index < turned_away, "connection {index}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_pending_request_is_not_idle() {
    let server = Server::start();
    let mut followers = Vec::new();
    for _ in 0..CONNECTIONS_MAX - 1 {
        let mut follower = server.send_request("/follow").await;
        head(&mut follower).await;
        followers.push(follower);
    }
    // The only remaining slot is shared by the other connections.
    let mut active = server.send_request("/short").await;
    assert!(head(&mut active).await.starts_with("HTTP/1.1 200"));
    for _ in 0..20 {
        let mut other = server.send_request("/short").await;
        assert!(head(&mut other).await.starts_with("HTTP/1.1 200"));
    }
    let mut remaining = Vec::new();
    active.read_to_end(&mut remaining).await.unwrap();
    assert_eq!(remaining, b"short");
    for follower in &mut followers {
        assert!(!is_closed(follower).await);
    }
}

#[tokio::test(start_paused = true)]
async fn upgraded_connections_are_not_idle_and_leave_connections_for_others() {
    let server = Server::start();
    let upgrade = || async {
        let mut stream = server.connect();
        let request =
            b"GET /upgrade HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let head = head(&mut stream).await;
        (stream, head)
    };
    let mut upgraded = Vec::new();
    for _ in 0..UPGRADED_CONNECTIONS_MAX {
        let (stream, head) = upgrade().await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        upgraded.push(stream);
    }
    assert!(upgrade().await.1.starts_with("HTTP/1.1 409"));
    for _ in 0..2 * CONNECTIONS_MAX {
        assert!(head(&mut server.send_request("/short").await).await.starts_with("HTTP/1.1 200"));
    }
    for stream in &mut upgraded {
        stream.write_all(b"a").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'a');
    }
    upgraded.pop();
    // The end of a connection is noticed by its task.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(upgrade().await.1.starts_with("HTTP/1.1 101"));
}

#[tokio::test(start_paused = true)]
async fn without_an_idle_connection_a_new_one_waits_for_an_end() {
    let server = Server::start();
    let mut followers = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut follower = server.send_request("/follow").await;
        head(&mut follower).await;
        followers.push(follower);
    }
    let mut late_stream = server.send_request("/short").await;
    let mut byte = [0];
    let wait = tokio::time::timeout(Duration::from_secs(600), late_stream.read(&mut byte));
    assert!(wait.await.is_err(), "there was a place");
    // The unread buffer of a follower has room for output of ten minutes.
    followers.pop();
    assert!(head(&mut late_stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn silent_connections_are_closed_also_between_requests() {
    let server = Server::start();
    let started = Instant::now();
    let mut silent = server.connect();
    let mut cut = server.connect();
    cut.write_all(b"GET /short HTTP/1.1\r\nho").await.unwrap();
    let mut finished = server.send_request("/short").await;
    for stream in [&mut silent, &mut cut, &mut finished] {
        let mut content = Vec::new();
        stream.read_to_end(&mut content).await.unwrap();
    }
    let elapsed = started.elapsed();
    assert!((REQUEST_HEAD_TIMEOUT..REQUEST_HEAD_TIMEOUT * 2).contains(&elapsed), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_are_disconnected_and_slow_readers_are_not() {
    let server = Server::start();
    let mut unread = server.send_request("/large").await;
    let mut slow = server.send_request("/large").await;
    head(&mut slow).await;
    let mut piece = vec![0; 1 << 10];
    for _ in 0..20 {
        tokio::time::sleep(WRITE_TIMEOUT / 2).await;
        slow.read_exact(&mut piece).await.unwrap();
    }
    // Only buffered bytes remain of the response that was not read.
    let mut remaining = Vec::new();
    unread.read_to_end(&mut remaining).await.unwrap();
    assert!(remaining.len() <= ROOM_BYTES, "{}", remaining.len());
    let mut remaining = Vec::new();
    let reading = tokio::time::timeout(WRITE_TIMEOUT / 2, async {
        while remaining.len() < LARGE_BYTES - 20 * piece.len() {
            slow.read_buf(&mut remaining).await.unwrap();
        }
    });
    reading.await.expect("the slow reader gets the whole answer");
}
