use super::*;
use crate::NoListener;
use crate::testing::{MemoryStore, StoreFailure};

fn open(store: Arc<MemoryStore>) -> EventLog {
    EventLog::open(store, Arc::new(|| 7), Arc::new(NoListener)).unwrap()
}

fn draft(text: &str) -> Draft {
    Draft::new(EventKind::NicCreated, "nic/a", text)
}

fn failure(text: &str) -> Draft {
    Draft::new(EventKind::NicFailed, "nic/a", text)
}

fn errors() -> EventFilter {
    EventFilter { severity: Severity::Error, ..EventFilter::default() }
}

#[test]
fn sequences_survive_a_restart() {
    let store = Arc::new(MemoryStore::default());
    open(store.clone()).append(vec![draft("1"), draft("2")]);
    let log = open(store);
    log.append(vec![draft("3")]);
    let events = log.page(0, 10, &EventFilter::default()).events;
    let all: Vec<_> = events.iter().map(|e| (e.sequence, e.text.as_str())).collect();
    assert_eq!(all, [(1, "1"), (2, "2"), (3, "3")]);
}

#[test]
fn the_log_is_bounded_and_a_slow_reader_is_told() {
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    for _ in 0..11 {
        log.append((0..1000).map(|_| draft("x")).collect());
    }
    assert_eq!(store.keys(EVENTS).len(), EVENTS_MAX);
    let page = log.page(500, 10, &EventFilter::default());
    assert_eq!((page.lost, page.events.len(), page.events[0].sequence), (500, 10, 1001));
    assert_eq!(log.page(page.seen, 10, &EventFilter::default()).lost, 0);
    // The log is unchanged after a restart.
    let log = open(store);
    assert_eq!(log.page(0, 1, &EventFilter::default()).events[0].sequence, 1001);
    assert_eq!(log.page(u64::MAX, 1, &EventFilter::default()).events, []);
}

#[test]
fn filtered_events_are_seen() {
    let log = open(Arc::default());
    log.append(vec![draft("1"), failure("2"), draft("3")]);
    let page = log.page(0, 10, &errors());
    assert_eq!((page.events.len(), page.seen), (1, 3));
    let page = log.tail(1, &errors());
    assert_eq!((page.events[0].sequence, page.seen), (2, 3));
}

#[test]
fn what_the_store_refuses_goes_with_the_next_commit() {
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    store.arm(StoreFailure::Refuse(0));
    log.append(vec![draft("1")]);
    assert_eq!(log.page(0, 10, &EventFilter::default()).events.len(), 1);
    assert!(store.keys(EVENTS).is_empty());
    log.append(vec![draft("2")]);
    assert_eq!(store.keys(EVENTS).len(), 2);
    // A commit with changes is atomic.
    store.arm(StoreFailure::Refuse(0));
    assert!(log.commit(vec![draft("3")], Vec::new()).is_err());
    assert_eq!(log.page(0, 10, &EventFilter::default()).events.len(), 2);
    log.append(vec![draft("3 again")]);
    assert_eq!(log.page(2, 10, &EventFilter::default()).events[0].sequence, 3);
}

#[test]
fn a_follower_is_woken() {
    let log = Arc::new(open(Arc::default()));
    let waiting = log.clone();
    let follower =
        std::thread::spawn(move || waiting.wait(0, 10, &errors(), Duration::from_secs(20)));
    log.append(vec![draft("not this")]);
    log.append(vec![failure("this")]);
    assert_eq!(follower.join().unwrap().events[0].text, "this");
    let nothing = log.wait(2, 10, &EventFilter::default(), Duration::from_millis(1));
    assert_eq!(nothing.events, []);
}
