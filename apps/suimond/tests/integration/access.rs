//! Wrong credentials: delays by peer, closed connections. Time is simulated: it advances only when
//! all tasks are idle.
#![forbid(unsafe_code)]

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use suimond_api::{
    AccessFailures, CONNECTIONS_MAX, Listener, NotificationSender, TcpApi, serve, with_token_check,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use crate::tcp::{TOKEN, complete};

/// Capacity of a connection for unread bytes.
const ROOM_BYTES: usize = 4096;
/// Tolerance of the resolution of timers.
const TOLERANCE: Duration = Duration::from_millis(20);

/// Connection with the address of its peer.
type Arrived = (DuplexStream, IpAddr);

struct InMemory(Mutex<mpsc::UnboundedReceiver<Arrived>>);

impl Listener for InMemory {
    type Connection = DuplexStream;
    type Accepted = Arrived;

    async fn accept(&self) -> io::Result<Arrived> {
        match self.0.lock().await.recv().await {
            Some(arrived) => Ok(arrived),
            None => std::future::pending().await,
        }
    }

    fn peer(&self, (_, peer): &Arrived) -> Option<IpAddr> {
        Some(*peer)
    }

    async fn prepare(&self, (stream, _): Arrived) -> io::Result<DuplexStream> {
        Ok(stream)
    }
}

struct Server {
    connect: mpsc::UnboundedSender<Arrived>,
    /// Number of tokens that were guessed.
    guesses: AtomicU64,
    _news: NotificationSender,
}

impl Server {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (config, _) = complete(directory.path());
        let (_, tokens) = TcpApi::load(&config).unwrap().bind().await.unwrap();
        let (connect, arrived) = mpsc::unbounded_channel();
        let (sender, notifications) = NotificationSender::new();
        let router = Router::new().route("/", get(|| async { "permitted" }));
        let router = with_token_check(router, tokens, AccessFailures::default());
        tokio::spawn(serve(InMemory(Mutex::new(arrived)), router, notifications));
        Self { connect, guesses: AtomicU64::default(), _news: sender }
    }

    /// Sends a request of a peer with this token.
    async fn send_request(&self, peer: &str, token: &str) -> DuplexStream {
        let (mut client_end, server_end) = tokio::io::duplex(ROOM_BYTES);
        self.connect.send((server_end, peer.parse().unwrap())).unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        client_end.write_all(head.as_bytes()).await.unwrap();
        client_end
    }

    /// Sends a request of a peer with a wrong token that differs from all before.
    async fn guess(&self, peer: &str) -> DuplexStream {
        let number = self.guesses.fetch_add(1, Ordering::Relaxed);
        self.send_request(peer, &format!("guess-{number}")).await
    }

    /// Returns the status of a guess's response, and the time until the connection was closed.
    async fn rejected_guess(&self, peer: &str) -> (String, Duration) {
        let started = Instant::now();
        let mut stream = self.guess(peer).await;
        let mut content = String::new();
        stream.read_to_string(&mut content).await.unwrap();
        (content.chars().skip("HTTP/1.1 ".len()).take(3).collect(), started.elapsed())
    }

    /// Checks that the right token of a peer is accepted without delay.
    async fn is_permitted_at_once(&self, peer: &str) {
        let started = Instant::now();
        let mut stream = self.send_request(peer, TOKEN).await;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        assert_eq!(started.elapsed(), Duration::ZERO, "{peer} was delayed");
    }
}

#[tokio::test(start_paused = true)]
async fn each_wrong_token_of_a_peer_takes_longer_and_closes_its_connection() {
    let server = Server::start().await;
    for delay_ms in [250, 500, 1000, 2000, 4000, 5000, 5000] {
        let delay = Duration::from_millis(delay_ms);
        let (status, elapsed) = server.rejected_guess("192.0.2.1").await;
        assert_eq!(status, "401");
        assert!((delay..delay + TOLERANCE).contains(&elapsed), "{elapsed:?} instead of {delay:?}");
    }
    let (_, elapsed) = server.rejected_guess("192.0.2.2").await;
    assert!(elapsed < Duration::from_millis(250) + TOLERANCE, "another peer: {elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_an_outdated_token_learns_of_it_within_its_time_limit() {
    let server = Server::start().await;
    for _ in 0..20 {
        let started = Instant::now();
        let mut stream = server.send_request("192.0.2.1", "outdated").await;
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(2) + TOLERANCE, "{:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn guesses_on_many_connections_are_not_faster() {
    let server = Server::start().await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(server.guess("192.0.2.1").await);
    }
    let started = Instant::now();
    let mut times = Vec::new();
    for stream in &mut streams {
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        times.push(started.elapsed());
    }
    for (time, least_ms) in times.iter().zip([250, 750, 1750, 3750, 7750]) {
        assert!(*time >= Duration::from_millis(least_ms), "{times:?}");
    }
    // No response is delayed by more than 10 s.
    assert!(times[9] < Duration::from_secs(10) + TOLERANCE, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn the_right_token_is_accepted_at_once_while_its_peer_guesses() {
    let server = Server::start().await;
    let mut guesses = Vec::new();
    for _ in 0..CONNECTIONS_MAX / 2 {
        guesses.push(server.guess("192.0.2.1").await);
    }
    // Lets the server record all guesses.
    tokio::time::sleep(Duration::from_millis(1)).await;
    for peer in ["192.0.2.1", "192.0.2.2"] {
        server.is_permitted_at_once(peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_responses_keep_no_other_client_out() {
    let server = Server::start().await;
    let mut guesses = Vec::new();
    for _ in 0..2 * CONNECTIONS_MAX {
        guesses.push(server.guess("192.0.2.1").await);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    for _ in 0..10 {
        server.is_permitted_at_once("192.0.2.2").await;
        server.is_permitted_at_once("192.0.2.1").await;
    }
}
