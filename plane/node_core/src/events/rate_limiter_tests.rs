use super::*;
use suimon_contract::EventKind;

fn refused(subject: &str, peer: u64) -> EventDraft {
    let text = format!("Client {peer} was refused.");
    EventDraft::new(EventKind::NbdClientRefused, subject, text)
}

const ONE: RateLimitKey = RateLimitKey { count: 1, group: RateLimitGroup::Kind(6114), field: None };

fn texts(drafts: &[EventDraft]) -> Vec<&str> {
    drafts.iter().map(|draft| draft.text.as_str()).collect()
}

#[test]
fn a_flood_is_reported_once_per_window_and_counted_completely() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    let mut total: u64 = 0;
    let mut drafts = Vec::new();
    for second in 0..35 {
        let now = started_at + Duration::from_secs(second);
        for peer in 0..100 {
            drafts.extend(repeats.admit(refused("host", peer), ONE, now));
        }
        drafts.extend(repeats.end_windows(now));
    }
    drafts.extend(repeats.disable());
    assert_eq!(drafts.len(), BURST as usize + 4, "{:?}", texts(&drafts));
    for draft in &drafts {
        total += draft.fields.get("events").map_or(1, |count| count.parse::<u64>().unwrap());
    }
    assert_eq!(total, 3500);
    let last = "Client 99 was refused. This is the last of 1100 such events.";
    assert_eq!(drafts[BURST as usize].text, last.replace("1100", "1090"));
}

#[test]
fn a_single_withheld_event_is_unchanged_and_a_quiet_window_ends_the_merging() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    for peer in 0..u64::from(BURST) {
        assert!(repeats.admit(refused("host", peer), ONE, started_at).is_some());
    }
    assert!(repeats.admit(refused("host", 77), ONE, started_at).is_none());
    assert!(repeats.end_windows(started_at + WINDOW / 2).is_empty());
    let withheld = repeats.end_windows(started_at + WINDOW);
    assert_eq!(texts(&withheld), ["Client 77 was refused."]);
    assert!(withheld[0].fields.is_empty());
    // Withheld in the next window, and no longer after a window without withheld events.
    assert!(repeats.admit(refused("host", 78), ONE, started_at + WINDOW).is_none());
    assert_eq!(repeats.end_windows(started_at + 2 * WINDOW).len(), 1);
    assert!(repeats.end_windows(started_at + 3 * WINDOW).is_empty());
    assert!(repeats.admit(refused("host", 79), ONE, started_at + 3 * WINDOW).is_some());
}

#[test]
fn events_of_other_kinds_and_subjects_are_not_withheld() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    for peer in 0..100 {
        repeats.admit(refused("host", peer), ONE, started_at);
    }
    assert!(repeats.admit(refused("disk/a", 1), ONE, started_at).is_some());
    let other = EventDraft::new(EventKind::DiskNotOffered, "host", "The disk is not offered.");
    assert!(
        repeats
            .admit(other, RateLimitKey::for_kind(EventKind::DiskNotOffered), started_at)
            .is_some()
    );
    let by_peer = RateLimitKey { field: Some("peer"), ..ONE };
    assert!(repeats.admit(refused("host", 1).with("peer", 1), by_peer, started_at).is_some());
    let many =
        repeats.admit(refused("disk/b", 1), RateLimitKey { count: 5, ..ONE }, started_at).unwrap();
    assert_eq!(many.text, "Client 1 was refused. This is the last of 5 such events.");
}

/// Events of subjects beyond the bound are merged per kind, however many subjects there are.
#[test]
fn subjects_beyond_the_bound_share_a_window() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    let subject = |number: usize| format!("disk/{number}");
    for number in 0..KEYS_MAX {
        assert!(repeats.admit(refused(&subject(number), 1), ONE, started_at).is_some());
    }
    let mut emitted = Vec::new();
    for number in KEYS_MAX..KEYS_MAX * 3 {
        emitted.extend(repeats.admit(refused(&subject(number), 1), ONE, started_at));
    }
    assert_eq!(emitted.len(), BURST as usize, "{:?}", texts(&emitted));
    assert_eq!(repeats.windows.len(), KEYS_MAX + 1);
    // Known subjects and other kinds are not affected.
    assert!(repeats.admit(refused(&subject(0), 1), ONE, started_at).is_some());
    let other = EventDraft::new(EventKind::DiskNotOffered, "disk/new", "The disk is not offered.");
    assert!(
        repeats
            .admit(other, RateLimitKey::for_kind(EventKind::DiskNotOffered), started_at)
            .is_some()
    );
    let withheld = repeats.end_windows(started_at + WINDOW);
    let merged = KEYS_MAX * 2 - BURST as usize;
    let text = format!(
        "Client 1 was refused. This is the last of {merged} such events of several objects."
    );
    assert_eq!(texts(&withheld), [text.as_str()]);
    assert_eq!(withheld[0].subject, subject(KEYS_MAX * 3 - 1));
    assert_eq!(withheld[0].fields["events"], merged.to_string());
    // The windows end when their events end.
    repeats.end_windows(started_at + 2 * WINDOW);
    assert!(repeats.windows.is_empty());
}

/// Returns the size of the keys and withheld events of all windows.
fn window_bytes(repeats: &EventRateLimiter) -> usize {
    let windows = repeats.windows.iter();
    let sizes = windows.map(|(key, window)| {
        key_bytes(key) + window.withheld.as_ref().map_or(0, |event| event.draft.bytes())
    });
    sizes.sum()
}

#[test]
fn withheld_events_are_bounded_in_bytes_and_keep_their_number() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    let event =
        |number: usize| refused(&format!("disk/{number}"), 1).with("devices", "x".repeat(8 << 10));
    let mut emitted = 0;
    for number in 0..4000 {
        for _ in 0..BURST + 2 {
            emitted += u64::from(repeats.admit(event(number), ONE, started_at).is_some());
        }
    }
    let bytes = window_bytes(&repeats);
    assert_eq!(bytes, repeats.bytes);
    // Abbreviated events are small.
    assert!(bytes <= WINDOW_BYTES_MAX + 4000 * 100, "{bytes}");
    // An event takes the place of the one before it in the same window.
    assert!(repeats.admit(event(0), ONE, started_at).is_none());
    assert_eq!(window_bytes(&repeats), repeats.bytes);
    let withheld = repeats.end_windows(started_at + WINDOW);
    assert_eq!(window_bytes(&repeats), repeats.bytes);
    let represented = withheld
        .iter()
        .map(|draft| draft.fields.get("events").map_or(1, |count| count.parse::<u64>().unwrap()));
    assert_eq!(emitted + represented.sum::<u64>(), 4000 * u64::from(BURST + 2) + 1);
    let is_complete = |draft: &&EventDraft| draft.fields.contains_key("devices");
    assert!(withheld.iter().filter(is_complete).count() > 2000);
    repeats.end_windows(started_at + 2 * WINDOW);
    assert_eq!((repeats.windows.len(), repeats.bytes), (0, 0));
}

#[test]
fn long_subjects_beyond_the_bound_share_a_window() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    let by_peer = RateLimitKey { field: Some("peer"), ..ONE };
    for number in 0..4000 {
        let peer = format!("{number:08192}");
        repeats.admit(refused("host", 1).with("peer", peer), by_peer, started_at);
    }
    assert!(repeats.windows.len() > 2000 && repeats.bytes <= WINDOW_BYTES_MAX + (8 << 10) + 100);
    assert_eq!(window_bytes(&repeats), repeats.bytes);
    repeats.take_withheld();
    assert_eq!(window_bytes(&repeats), repeats.bytes);
}

#[test]
fn the_last_reported_state_is_the_last_received() {
    let event = |is_up: bool| {
        let kind = if is_up { EventKind::NicConnected } else { EventKind::NicDisconnected };
        EventDraft::new(kind, "nic/a", if is_up { "The uplink is up." } else { "It is down." })
    };
    for ends_up in [true, false] {
        for changes in [3, 11, 12, 25, 40] {
            let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
            let link = RateLimitKey::for_kind(EventKind::NicConnected);
            assert_eq!(link, RateLimitKey::for_kind(EventKind::NicDisconnected));
            let mut emitted = Vec::new();
            for change in 0..changes {
                let is_up = (changes - 1 - change) % 2 == u32::from(!ends_up);
                let now = started_at + Duration::from_millis(700) * change;
                emitted.extend(repeats.end_windows(now));
                emitted.extend(repeats.admit(event(is_up), link, now));
            }
            emitted.extend(repeats.end_windows(started_at + 10 * WINDOW));
            let expected =
                if ends_up { EventKind::NicConnected } else { EventKind::NicDisconnected };
            assert_eq!(emitted.last().unwrap().kind, expected, "{changes} changes");
        }
    }
}

#[test]
fn opposite_states_of_stores_are_merged() {
    let pairs = [
        [EventKind::StoreFailed, EventKind::StoreRecovered],
        [EventKind::DiskFull, EventKind::DiskHasSpace],
        [EventKind::StoreNearlyFull, EventKind::StoreHasSpace],
        [EventKind::VmPausedForSpace, EventKind::VmContinuedWithSpace],
    ];
    for [begin, end] in pairs {
        assert_eq!(RateLimitKey::for_kind(begin), RateLimitKey::for_kind(end));
    }
}

#[test]
fn withheld_events_are_reported_in_chronological_order() {
    let (mut repeats, started_at) = (EventRateLimiter::default(), Instant::now());
    for subject in ["z", "a", "m"] {
        for _ in 0..=BURST {
            repeats.admit(refused(subject, 1), ONE, started_at);
        }
    }
    let withheld = repeats.take_withheld();
    let subjects: Vec<&str> = withheld.iter().map(|draft| draft.subject.as_str()).collect();
    assert_eq!(subjects, ["z", "a", "m"]);
    assert!(repeats.admit(refused("z", 1), ONE, started_at).is_none(), "the flood goes on");
    assert_eq!(repeats.disable().len(), 1);
    assert!(
        repeats.admit(refused("z", 1), ONE, started_at).is_some(),
        "nothing is held at the end"
    );
}

/// A node of a cluster determines the rate of its reports, and hides no event about another node.
#[test]
fn events_about_the_nodes_of_a_store_are_limited_per_node() {
    let (mut limiter, now) = (EventRateLimiter::default(), Instant::now());
    let mut admit = |node: &str| {
        let draft = EventDraft::new(EventKind::NodeUnaccounted, "store/san", "It holds more.");
        let mut draft = draft.with("node", node).rate_limited();
        let key = draft.rate_limit.take().unwrap();
        limiter.admit(draft, key, now)
    };
    let emitted = (0..100).filter_map(|_| admit("n1")).count();
    assert_eq!(emitted, BURST as usize);
    assert!(admit("n2").is_some());
}
