use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

/// Time limit for conditions that a test waits for; generous, because the machine may be loaded.
const LIMIT: Duration = Duration::from_secs(60);

fn peer(number: u32) -> IpAddr {
    Ipv4Addr::from(number).into()
}

/// Returns the server's socket and the client's socket of a connection.
fn client() -> (OwnedFd, UnixStream) {
    let (local, peer) = UnixStream::pair().unwrap();
    (local.into(), peer)
}

/// Returns how many of `attempts` handshakes, all requested by `peer` at `now`, may begin before
/// `limit`.
fn permitted_handshakes(
    peers: &mut Peers,
    peer: IpAddr,
    mut now: Duration,
    limit: Duration,
    attempts: u32,
) -> u32 {
    let bucket = peers.bucket(peer, now);
    for started in 0..attempts {
        now += bucket.wait(now);
        if now > limit {
            return started;
        }
        bucket.take(now);
    }
    attempts
}

#[test]
fn a_peer_begins_a_burst_and_then_handshakes_at_a_limited_rate() {
    let (mut peers, second) = (Peers::default(), Duration::from_secs(1));
    let attempts = 10 * HANDSHAKES_BURST;
    let expected = HANDSHAKES_BURST + 2 * HANDSHAKES_PER_SECOND;
    assert_eq!(permitted_handshakes(&mut peers, peer(1), second, second * 3, attempts), expected);
    // Other peers are not delayed.
    assert_eq!(
        permitted_handshakes(&mut peers, peer(2), second, second, HANDSHAKES_BURST),
        HANDSHAKES_BURST
    );
    // The bucket is full again after some time, and never more than full.
    let later = second * 1000;
    assert_eq!(permitted_handshakes(&mut peers, peer(1), later, later, attempts), HANDSHAKES_BURST);
}

#[test]
fn peers_are_bounded_and_further_ones_share_a_limit() {
    let mut peers = Peers::default();
    let number = u32::try_from(HANDSHAKE_PEERS_MAX).unwrap();
    for index in 0..number {
        assert_eq!(
            permitted_handshakes(&mut peers, peer(index), Duration::ZERO, Duration::ZERO, 1),
            1
        );
    }
    let shared_bucket = peers.bucket(peer(number), Duration::ZERO);
    assert!(Arc::ptr_eq(&shared_bucket, &peers.bucket(peer(number + 1), Duration::ZERO)));
    assert_eq!(peers.buckets.len(), HANDSHAKE_PEERS_MAX);
    let queued = peers.bucket(peer(0), Duration::ZERO);
    // Peers with a full bucket and without queued clients are removed.
    let minute = Duration::from_secs(60);
    assert!(!Arc::ptr_eq(&shared_bucket, &peers.bucket(peer(number), minute)));
    assert_eq!(peers.buckets.len(), 2);
    assert!(Arc::ptr_eq(&queued, &peers.bucket(peer(0), minute)));
}

#[test]
fn a_network_of_64_bits_is_one_peer() {
    let network_of = |text: &str| network(text.parse().unwrap());
    assert_eq!(network_of("2001:db8::1"), network_of("2001:db8::ffff:ffff:ffff:ffff"));
    assert_ne!(network_of("2001:db8::1"), network_of("2001:db8:0:1::1"));
    assert_eq!(network_of("::ffff:192.0.2.1"), IpAddr::from([192, 0, 2, 1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_handshake_is_computed_at_a_time_and_one_that_waits_for_its_peer_delays_none() {
    let limits = HandshakeLimits::default();
    let (socket, _silent) = client();
    let silent = limits.run(peer(1), socket, std::future::pending::<io::Result<()>>(), |_| {});
    assert!(timeout(Duration::from_millis(10), silent).await.is_err());
    let (running, max) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let (limits, running, max) = (limits.clone(), running.clone(), max.clone());
            tokio::spawn(async move {
                let (socket, _client) = client();
                let handshake = async {
                    // The handshake has two flights of the client.
                    for _ in 0..2 {
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        max.fetch_max(now, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_micros(200));
                        running.fetch_sub(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Ok(())
                };
                limits.run(peer(number), socket, handshake, |_| {}).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(max.load(Ordering::SeqCst), 1);
}

/// Clients that disconnect while they are queued must not use the tokens of clients behind them,
/// such as those of the same host or network.
#[tokio::test]
async fn clients_that_disconnect_before_their_handshake_use_no_token_and_delay_none() {
    let limits = HandshakeLimits::default();
    let bucket = limits.0.lock().bucket(peer(1), Duration::ZERO);
    // The bucket is empty.
    let now = limits.0.now();
    (0..HANDSHAKES_BURST).for_each(|_| bucket.take(now));
    let before = *bucket.full_at();
    let computed = AtomicU32::new(0);
    let handshake = || async {
        computed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let queue = (0..100).map(|_| limits.run(peer(1), client().0, handshake(), |_| {}));
    let disconnected = async {
        for client in queue {
            let error = client.await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    };
    timeout(LIMIT, disconnected).await.unwrap();
    let (socket, _client) = client();
    let honest = timeout(LIMIT, limits.run(peer(1), socket, handshake(), |_| {})).await.unwrap();
    honest.unwrap();
    assert_eq!(computed.load(Ordering::SeqCst), 1);
    assert_eq!(*bucket.full_at() - before, Bucket::INTERVAL);
}

/// The handshake of a client that disconnected while another handshake was computed is not
/// computed.
#[tokio::test]
async fn a_client_that_disconnects_at_the_head_of_the_queue_uses_no_token() {
    let limits = HandshakeLimits::default();
    let computing = limits.0.computing.acquire().await.unwrap();
    let (socket, client) = client();
    let handshake = async { io::Result::Ok(()) };
    let mut run = pin!(limits.run(peer(1), socket, handshake, |_| {}));
    assert!(timeout(Duration::from_millis(1), run.as_mut()).await.is_err());
    drop(client);
    drop(computing);
    assert_eq!(run.await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(*limits.0.lock().bucket(peer(1), Duration::ZERO).full_at(), Duration::ZERO);
}

/// While another handshake is computed, `note` reports that the client waits for the server, also
/// before the second flight.
#[tokio::test]
async fn each_turn_for_which_the_server_is_busy_counts_as_waiting_for_it() {
    let limits = HandshakeLimits::default();
    let (socket, _client) = client();
    let (flight, received) = oneshot::channel();
    let handshake = async { received.await.map_err(io::Error::other) };
    let is_waiting = Mutex::new(None);
    let waiting_is = |requested: Option<bool>| *is_waiting.lock().unwrap() == requested;
    let note = |is_so| *is_waiting.lock().unwrap() = Some(is_so);
    let mut run = pin!(limits.run(peer(1), socket, handshake, note));
    let moment = Duration::from_millis(5);
    let busy = limits.0.computing.acquire().await.unwrap();
    assert!(timeout(moment, run.as_mut()).await.is_err());
    assert!(waiting_is(Some(true)), "the first turn");
    drop(busy);
    assert!(timeout(moment, run.as_mut()).await.is_err());
    assert!(waiting_is(Some(false)), "the handshake waits for the client");
    let busy = limits.0.computing.acquire().await.unwrap();
    flight.send(7).unwrap();
    assert!(timeout(moment, run.as_mut()).await.is_err());
    assert!(waiting_is(Some(true)), "the second turn");
    drop(busy);
    assert_eq!(timeout(LIMIT, run).await.unwrap().unwrap(), 7);
    assert!(waiting_is(Some(false)), "the handshake has ended");
}
