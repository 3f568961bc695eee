use super::*;

/// Records wrong credentials that differ from all before.
fn guess(
    table: &mut FailureTable,
    now: Instant,
    listener: AuthenticatedListener,
    peer: Option<IpAddr>,
) -> Duration {
    let fingerprint = table.total(listener);
    table.record_failure(now, (listener, peer), fingerprint)
}

fn address(last: u32) -> Option<IpAddr> {
    Some(IpAddr::V4((0xc000_0200 + last).into()))
}

#[test]
fn delays_grow_for_one_peer_and_no_other() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let mut time = now;
    let mut delays = Vec::new();
    for _ in 0..7 {
        let delay = guess(&mut table, time, AuthenticatedListener::Api, address(1));
        delays.push(delay.as_millis());
        time += delay;
    }
    assert_eq!(delays, [250, 500, 1000, 2000, 4000, 5000, 5000]);
    assert_eq!(guess(&mut table, time, AuthenticatedListener::Api, address(2)), DELAY_STEP_INITIAL);
    assert_eq!(
        guess(&mut table, time, AuthenticatedListener::Console, address(1)),
        DELAY_STEP_INITIAL
    );
    let later = time + FORGET_AFTER;
    assert_eq!(
        guess(&mut table, later, AuthenticatedListener::Api, address(1)),
        DELAY_STEP_INITIAL,
        "forgotten"
    );
}

#[test]
fn the_same_token_again_is_no_guess() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let mut fail = |fingerprint| {
        table.record_failure(now, (AuthenticatedListener::Api, address(1)), fingerprint).as_millis()
    };
    assert_eq!([0; 6].map(&mut fail), [250, 750, 1750, 2000, 2000, 2000]);
    assert!(fail(1) > 2000 && fail(0) > 2000, "different ones are guesses");
    assert_eq!(fail(0), 2000);
}

#[test]
fn requests_on_several_connections_are_answered_one_after_another() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let delays: Vec<_> = (0..100)
        .map(|_| guess(&mut table, now, AuthenticatedListener::Api, address(1)).as_millis())
        .collect();
    assert_eq!(delays[..5], [250, 750, 1750, 3750, 7750]);
    assert!(delays[5..].iter().all(|delay| *delay == DELAY_MAX.as_millis()), "{delays:?}");
    assert_eq!(table.total(AuthenticatedListener::Api), 100);
    assert_eq!(table.total(AuthenticatedListener::Console), 0);
}

#[test]
fn addresses_of_one_ipv6_network_are_one_peer() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let fail = |table: &mut FailureTable, text: &str| {
        guess(table, now, AuthenticatedListener::Api, Some(text.parse().unwrap())).as_millis()
    };
    assert_eq!(fail(&mut table, "2001:db8::1"), 250);
    assert_eq!(fail(&mut table, "2001:db8::ffff:1"), 750);
    assert_eq!(fail(&mut table, "2001:db8:0:1::1"), 250);
    assert_eq!(fail(&mut table, "::1"), 250);
    let peers: Vec<_> = table
        .take_remaining_reports(now)
        .into_iter()
        .map(|report| peer_text(report.peer.unwrap()))
        .collect();
    assert_eq!(peers, ["::1", "2001:db8::/64", "2001:db8:0:1::/64"]);
}

#[test]
fn a_peer_is_reported_soon_and_then_once_a_minute() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let mut reports = Vec::new();
    for second in 0..180 {
        let time = now + Duration::from_secs(second);
        guess(&mut table, time, AuthenticatedListener::Console, address(1));
        assert!(table.next_deadline().is_some_and(|due| due >= time));
        let due = table.poll_reports(time + Duration::from_millis(999));
        reports.extend(
            due.into_iter().map(|report| (second, report.count, report.duration.as_secs())),
        );
    }
    assert_eq!(reports[..2], [(2, 3, 2), (62, 60, 59)], "{reports:?}");
    assert!(reports.len() <= 4, "{reports:?}");
    let reported: u64 = reports.iter().map(|(_, count, _)| count).sum();
    let end = now + Duration::from_secs(180);
    let remaining: u64 = table.take_remaining_reports(end).iter().map(|report| report.count).sum();
    assert_eq!(reported + remaining, 180, "none is lost");
    assert_eq!(table.next_deadline(), None);
}

#[test]
fn peers_are_bounded_and_no_count_of_a_replaced_one_is_lost() {
    let (mut table, now) = (FailureTable::default(), Instant::now());
    let peers = u32::try_from(PEERS_MAX).unwrap() + 100;
    for peer in 0..peers {
        let time = now + Duration::from_millis(peer.into());
        guess(&mut table, time, AuthenticatedListener::Api, address(peer));
    }
    assert_eq!(table.entries.len(), PEERS_MAX + 1);
    let reports = table.take_remaining_reports(now + Duration::from_secs(1));
    let others: Vec<_> = reports.iter().filter(|report| report.peer.is_none()).collect();
    assert_eq!(others.len(), 1);
    assert_eq!((others[0].count, others[0].duration.as_millis()), (100, 99));
    assert_eq!(reports.iter().map(|report| report.count).sum::<u64>(), u64::from(peers));
}
