use std::net::IpAddr;

use super::*;

fn address(last: u8) -> Origin {
    Origin::from_address(IpAddr::from([192, 0, 2, last]))
}

fn is_evicted(handshake: &NegotiationEntry) -> bool {
    *handshake.replacement_signal.0.borrow()
}

/// Begins one negotiation per origin, all at `now`.
fn begin_all(
    handshakes: &Negotiations,
    origins: impl Iterator<Item = u8>,
    now: Instant,
) -> Vec<NegotiationEntry> {
    origins.map(|last| handshakes.begin(address(last), now).unwrap()).collect()
}

#[test]
fn the_oldest_silent_negotiation_of_the_same_peer_is_replaced() {
    let (handshakes, now) = (Negotiations::default(), Instant::now());
    let other_handshakes = begin_all(&handshakes, 0..8, now);
    let many = begin_all(&handshakes, [100; PEER_REPLACEMENT_THRESHOLD].into_iter(), now);
    let later = now + SILENT_AFTER;
    // The first client sends bytes later than the second one.
    many[0].handle_bytes(later);
    many[1].handle_bytes(now);
    let new = begin_all(&handshakes, [100, 100].into_iter(), later);
    let evicted: Vec<_> =
        (0..PEER_REPLACEMENT_THRESHOLD).filter(|&index| is_evicted(&many[index])).collect();
    assert_eq!(evicted, [2, 3]);
    assert!(!other_handshakes.iter().chain(&new).any(is_evicted));
    // A negotiation that has ended does not count towards the limits.
    drop((other_handshakes, many));
    assert_eq!(handshakes.lock().entries.len(), new.len());
}

#[test]
fn clients_that_connect_at_once_do_not_replace_each_other() {
    let (handshakes, now) = (Negotiations::default(), Instant::now());
    let storm = begin_all(&handshakes, [7; PEER_LIMIT].into_iter(), now);
    assert!(!storm.iter().any(is_evicted));
    storm[0].handle_bytes(now);
    let _one_more = handshakes.begin(address(7), now).unwrap();
    let evicted: Vec<_> = (0..PEER_LIMIT).filter(|&index| is_evicted(&storm[index])).collect();
    assert_eq!(evicted, [1], "at the peak, the oldest of those that have sent nothing");
}

/// The server delays TLS handshakes. Clients whose handshake is queued cannot send anything.
#[test]
fn negotiations_that_wait_for_the_server_are_not_silent() {
    let (handshakes, now) = (Negotiations::default(), Instant::now());
    let waiting = begin_all(&handshakes, [7; PEER_REPLACEMENT_THRESHOLD].into_iter(), now);
    waiting.iter().for_each(|handshake| handshake.handle().set_waiting_for_server(true, now));
    let later = now + SILENT_AFTER;
    let new = begin_all(&handshakes, [7, 7].into_iter(), later);
    assert!(!waiting.iter().chain(&new).any(is_evicted));
    // The TLS handshake is not queued any more, and the client sends nothing.
    waiting[5].handle().set_waiting_for_server(false, later);
    let _last = handshakes.begin(address(7), later + SILENT_AFTER).unwrap();
    let evicted: Vec<_> =
        waiting.iter().chain(&new).filter(|handshake| is_evicted(handshake)).collect();
    assert_eq!(evicted.len(), 1);
    assert!(
        !waiting.iter().enumerate().any(|(index, handshake)| index != 5 && is_evicted(handshake))
    );
}

#[test]
fn at_the_limit_of_the_host_the_peer_with_most_makes_room() {
    let (handshakes, now) = (Negotiations::default(), Instant::now());
    let origins: Vec<_> =
        (0..HOST_REPLACEMENT_THRESHOLD - 20).map(|index| (index / 10) as u8).collect();
    let few = begin_all(&handshakes, origins.into_iter(), now);
    let many = begin_all(&handshakes, [200; 20].into_iter(), now);
    let new = begin_all(&handshakes, 100..105, now + SILENT_AFTER);
    assert_eq!(many.iter().filter(|handshake| is_evicted(handshake)).count(), new.len());
    assert!(!few.iter().chain(&new).any(is_evicted));
    // The clients are not silent, so the number grows up to the peak.
    let storm: Vec<_> = (0..HOST_LIMIT).map(|index| (index / 16) as u8).collect();
    let storm = begin_all(&handshakes, storm.into_iter(), now + SILENT_AFTER);
    assert_eq!(handshakes.lock().entries.len(), HOST_LIMIT);
    drop(storm);
}

#[test]
fn clients_that_have_presented_a_certificate_are_not_replaced() {
    let (handshakes, now) = (Negotiations::default(), Instant::now());
    let authenticated = begin_all(&handshakes, [9; PEER_LIMIT].into_iter(), now);
    authenticated[1..].iter().for_each(NegotiationEntry::handle_authenticated);
    let next = handshakes.begin(address(9), now).unwrap();
    assert!(is_evicted(&authenticated[0]));
    next.handle_authenticated();
    assert!(handshakes.begin(address(9), now).is_none());
    assert!(handshakes.begin(address(8), now).is_some(), "another peer");
    assert!(!authenticated[1..].iter().any(is_evicted));
}
