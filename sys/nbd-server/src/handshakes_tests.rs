use std::net::IpAddr;

use super::*;

fn address(last: u8) -> Origin {
    Origin::of_address(IpAddr::from([192, 0, 2, last]))
}

fn is_evicted(of: &Handshake) -> bool {
    *of.evicted.0.borrow()
}

/// Begins negotiations at the same point in time.
fn begun(all: &Handshakes, origins: impl Iterator<Item = u8>, now: Instant) -> Vec<Handshake> {
    origins.map(|last| all.begin(address(last), now).unwrap()).collect()
}

#[test]
fn the_oldest_silent_negotiation_of_the_same_peer_is_replaced() {
    let (all, now) = (Handshakes::default(), Instant::now());
    let others = begun(&all, 0..8, now);
    let many = begun(&all, [100; PEER_MAX].into_iter(), now);
    let then = now + SILENT_AFTER;
    // The first client has sent bytes since; the second one has sent bytes before.
    many[0].handle_bytes(then);
    many[1].handle_bytes(now);
    let new = begun(&all, [100, 100].into_iter(), then);
    let evicted: Vec<_> = (0..PEER_MAX).filter(|&at| is_evicted(&many[at])).collect();
    assert_eq!(evicted, [2, 3]);
    assert!(!others.iter().chain(&new).any(is_evicted));
    // Ended negotiations free their places.
    drop((others, many));
    assert_eq!(all.lock().entries.len(), new.len());
}

#[test]
fn clients_that_connect_at_once_do_not_replace_each_other() {
    let (all, now) = (Handshakes::default(), Instant::now());
    let storm = begun(&all, [7; PEER_PEAK].into_iter(), now);
    assert!(!storm.iter().any(is_evicted));
    storm[0].handle_bytes(now);
    let _one_more = all.begin(address(7), now).unwrap();
    let evicted: Vec<_> = (0..PEER_PEAK).filter(|&at| is_evicted(&storm[at])).collect();
    assert_eq!(evicted, [1], "at the peak, the oldest of those that have sent nothing");
}

/// The server delays TLS handshakes; these clients wait for it and send nothing.
#[test]
fn negotiations_that_wait_for_the_server_are_not_silent() {
    let (all, now) = (Handshakes::default(), Instant::now());
    let waiting = begun(&all, [7; PEER_MAX].into_iter(), now);
    waiting.iter().for_each(|of| of.progress().set_waiting(true, now));
    let then = now + SILENT_AFTER;
    let new = begun(&all, [7, 7].into_iter(), then);
    assert!(!waiting.iter().chain(&new).any(is_evicted));
    // The TLS handshake is not queued any more, and the client sends nothing.
    waiting[5].progress().set_waiting(false, then);
    let _last = all.begin(address(7), then + SILENT_AFTER).unwrap();
    let evicted: Vec<_> = waiting.iter().chain(&new).filter(|of| is_evicted(of)).collect();
    assert_eq!(evicted.len(), 1);
    assert!(!waiting.iter().enumerate().any(|(at, of)| at != 5 && is_evicted(of)));
}

#[test]
fn at_the_limit_of_the_host_the_peer_with_most_makes_room() {
    let (all, now) = (Handshakes::default(), Instant::now());
    let few: Vec<_> = (0..HOST_MAX - 20).map(|at| (at / 10) as u8).collect();
    let few = begun(&all, few.into_iter(), now);
    let many = begun(&all, [200; 20].into_iter(), now);
    let new = begun(&all, 100..105, now + SILENT_AFTER);
    assert_eq!(many.iter().filter(|of| is_evicted(of)).count(), new.len());
    assert!(!few.iter().chain(&new).any(is_evicted));
    // The clients are not silent, so the number grows up to the peak.
    let storm: Vec<_> = (0..HOST_PEAK).map(|at| (at / 16) as u8).collect();
    let storm = begun(&all, storm.into_iter(), now + SILENT_AFTER);
    assert_eq!(all.lock().entries.len(), HOST_PEAK);
    drop(storm);
}

#[test]
fn clients_that_have_presented_a_certificate_are_not_replaced() {
    let (all, now) = (Handshakes::default(), Instant::now());
    let shown = begun(&all, [9; PEER_PEAK].into_iter(), now);
    shown[1..].iter().for_each(Handshake::handle_authenticated);
    let next = all.begin(address(9), now).unwrap();
    assert!(is_evicted(&shown[0]));
    next.handle_authenticated();
    assert!(all.begin(address(9), now).is_none());
    assert!(all.begin(address(8), now).is_some(), "another peer");
    assert!(!shown[1..].iter().any(is_evicted));
}
