use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::timeout;

use super::*;

fn peer(number: u32) -> IpAddr {
    Ipv4Addr::from(number).into()
}

/// Returns the number of handshakes of a peer that are permitted to begin until `now`, of those
/// requested at once.
fn begun(peers: &mut Peers, peer: IpAddr, now: Duration, until: Duration, tries: u32) -> u32 {
    let begun = (0..tries).filter(|_| now + peers.take(peer, now) <= until).count();
    u32::try_from(begun).unwrap()
}

#[test]
fn a_peer_begins_a_burst_and_then_handshakes_at_a_limited_rate() {
    let (mut peers, second) = (Peers::default(), Duration::from_secs(1));
    let tries = 10 * HANDSHAKES_BURST;
    let expected = HANDSHAKES_BURST + 2 * HANDSHAKES_PER_SECOND;
    assert_eq!(begun(&mut peers, peer(1), second, second * 3, tries), expected);
    // Other peers are not delayed.
    assert_eq!(begun(&mut peers, peer(2), second, second, HANDSHAKES_BURST), HANDSHAKES_BURST);
    // The bucket is full again after some time, and never more than full.
    let later = second * 1000;
    assert_eq!(begun(&mut peers, peer(1), later, later, tries), HANDSHAKES_BURST);
}

#[test]
fn tokens_of_abandoned_handshakes_are_returned() {
    let mut peers = Peers::default();
    for _ in 0..10 * HANDSHAKES_BURST {
        peers.take(peer(1), Duration::ZERO);
        peers.give_back(peer(1));
    }
    assert_eq!(peers.take(peer(1), Duration::ZERO), Duration::ZERO);
}

#[test]
fn peers_are_bounded_and_further_ones_share_a_limit() {
    let mut peers = Peers::default();
    let number = u32::try_from(HANDSHAKE_PEERS_MAX).unwrap();
    for of in 0..number {
        peers.take(peer(of), Duration::ZERO);
    }
    let waits: Vec<Duration> =
        (0..2 * HANDSHAKES_BURST).map(|of| peers.take(peer(number + of), Duration::ZERO)).collect();
    assert_eq!(peers.full_at.len(), HANDSHAKE_PEERS_MAX);
    assert_eq!(waits[0], Duration::ZERO);
    assert!(*waits.last().unwrap() > Duration::from_secs(1));
    // Peers with a full bucket are removed.
    assert_eq!(peers.take(peer(number), Duration::from_secs(60)), Duration::ZERO);
    assert_eq!(peers.full_at.len(), 1);
}

#[test]
fn a_network_of_64_bits_is_one_peer() {
    let of = |text: &str| network(text.parse().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:ffff:ffff:ffff"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.1"), IpAddr::from([192, 0, 2, 1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_handshake_is_computed_at_a_time_and_one_that_waits_for_its_peer_delays_none() {
    let limits = HandshakeLimits::default();
    let silent = limits.run(peer(1), pending::<()>());
    assert!(timeout(Duration::from_millis(10), silent).await.is_err());
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..64)
        .map(|of| {
            let (limits, running, most) = (limits.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                limits
                    .run(peer(of), async {
                        // The handshake has two flights of the client.
                        for _ in 0..2 {
                            most.fetch_max(
                                running.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            std::thread::sleep(Duration::from_micros(200));
                            running.fetch_sub(1, Ordering::SeqCst);
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    })
                    .await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
