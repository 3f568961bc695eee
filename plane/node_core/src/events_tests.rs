use suimon_contract::EventKind;

use super::*;
use crate::NoListener;
use crate::testing::{MemoryStore, StoreFailure};

fn open(store: Arc<MemoryStore>) -> EventLog {
    EventLog::open(store, Arc::new(|| 7), Arc::new(NoListener)).unwrap()
}

fn draft(text: &str) -> EventDraft {
    EventDraft::new(EventKind::NicCreated, "nic/a", text)
}

fn failure(text: &str) -> EventDraft {
    EventDraft::new(EventKind::NicFailed, "nic/a", text)
}

fn errors() -> EventFilter {
    EventFilter { severity_min: Severity::Error, ..EventFilter::default() }
}

#[test]
fn sequences_survive_a_restart() {
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    log.append(vec![draft("1"), draft("2")]);
    log.release_unused_sequences();
    let log = open(store);
    log.append(vec![draft("3")]);
    let events = log.page(0, 10, &EventFilter::default()).events;
    let actual: Vec<_> = events.iter().map(|e| (e.sequence, e.text.as_str())).collect();
    assert_eq!(actual, [(1, "1"), (2, "2"), (3, "3")]);
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
    assert_eq!((page.missed_count, page.events.len(), page.events[0].sequence), (500, 10, 1001));
    assert_eq!(log.page(page.last_examined, 10, &EventFilter::default()).missed_count, 0);
    // The log is the same after a restart.
    let log = open(store);
    assert_eq!(log.page(0, 1, &EventFilter::default()).events[0].sequence, 1001);
    assert_eq!(log.page(u64::MAX, 1, &EventFilter::default()).events, []);
}

#[test]
fn the_size_of_the_log_is_bounded_in_memory_and_in_the_store() {
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    let text = "x".repeat(8000);
    for _ in 0..45 {
        log.append((0..100).map(|_| draft(&text)).collect());
    }
    let events = |log: &EventLog| log.tail(EVENTS_MAX, &EventFilter::default()).events;
    let count = events(&log).len();
    assert!((3900..=4194).contains(&count), "{count} events of 8000 and some bytes in 32 MiB");
    assert_eq!(store.keys(EVENTS).len(), count);
    assert_eq!(events(&log)[count - 1].sequence, 4500);
    // The log is the same after a restart.
    assert_eq!(events(&open(store)).len(), count);
}

/// Names and errors of other parties may have any length.
#[test]
fn a_long_event_is_shortened_and_does_not_prevent_later_commits() {
    let log = open(Arc::default());
    let long = "\u{1}ä".repeat(2 << 20);
    let drafts = || {
        let draft = (0..40).fold(draft(&long), |draft, nth| draft.with(&nth.to_string(), &long));
        vec![EventDraft { subject: long.clone(), ..draft.clone() }, draft.rate_limited()]
    };
    log.append(drafts());
    log.commit(drafts(), Vec::new()).unwrap();
    for event in log.tail(10, &EventFilter::default()).events {
        assert!(event.text.len() <= 8 << 10 && event.text.ends_with('…'));
        assert!(event.fields.len() <= 32 && event.subject.len() <= 1 << 10);
    }
    assert_eq!(log.tail(10, &EventFilter::default()).events.len(), 4);
}

#[test]
fn filtered_events_count_as_examined() {
    let log = open(Arc::default());
    log.append(vec![draft("1"), failure("2"), draft("3")]);
    let page = log.page(0, 10, &errors());
    assert_eq!((page.events.len(), page.last_examined), (1, 3));
    let page = log.tail(1, &errors());
    assert_eq!((page.events[0].sequence, page.last_examined), (2, 3));
}

#[test]
fn refused_events_are_written_with_the_next_commit() {
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

/// A follower that has seen an event which a crash has lost sees all later events.
#[test]
fn sequences_of_refused_events_are_not_assigned_again() {
    let filter = EventFilter::default();
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    log.append(vec![draft("saved")]);
    store.arm(StoreFailure::RefuseFrom(0));
    log.append(vec![draft("refused"), draft("refused too")]);
    // The end of a daemon whose store refuses events releases nothing.
    log.release_unused_sequences();
    let last_sequence = log.page(1, 1, &filter).last_examined;
    assert_eq!(last_sequence, 2);
    let log = open(Arc::new(store.surviving()));
    log.append(vec![draft("next")]);
    let page = log.page(last_sequence, 10, &filter);
    assert_eq!(page.events.len(), 1, "{page:?}");
    assert_eq!(page.events[0].text, "next");
    assert!(page.missed_count >= 1, "{page:?}");
    // One that has seen only saved events misses none of those.
    let page = log.page(1, 10, &filter);
    assert_eq!((page.missed_count, page.events[0].text.as_str()), (0, "next"));
    assert_eq!(log.page(page.last_examined, 10, &filter).missed_count, 0);
}

#[test]
fn gaps_of_sequences_do_not_grow_the_log_and_stay_small() {
    let filter = EventFilter::default();
    let store = Arc::new(MemoryStore::default());
    for _ in 0..8 {
        let log = open(store.clone());
        (0..5).for_each(|_| log.append((0..500).map(|_| draft("x")).collect()));
    }
    assert_eq!(store.keys(EVENTS).len(), EVENTS_MAX);
    let events = open(store).page(0, usize::MAX, &filter).events;
    assert_eq!(events.len(), EVENTS_MAX);
    let steps = events.windows(2).map(|pair| pair[1].sequence - pair[0].sequence);
    assert!(steps.clone().all(|step| (1..=EVENTS_MAX as u64 + 1).contains(&step)));
    assert_eq!(steps.filter(|step| *step > 1).count(), 3, "one gap per process");
}

#[test]
fn events_that_the_store_refuses_are_bounded_in_memory_and_written_later() {
    let filter = EventFilter::default();
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    log.append(vec![draft("first")]);
    store.arm(StoreFailure::RefuseFrom(0));
    for _ in 0..30 {
        log.append((0..1000).map(|_| draft("refused")).collect());
    }
    let last = log.page(0, usize::MAX, &filter).last_examined;
    assert!(last <= EVENTS_MAX as u64 + 1, "published beyond the reservation: {last}");
    assert!(last > EVENTS_MAX as u64 / 2, "{last}");
    // Another process assigns none of these sequences.
    let next = open(Arc::new(store.surviving()));
    next.append(vec![draft("next")]);
    assert_eq!(next.page(last, 10, &filter).events.len(), 1);
    // If the store accepts events again, it gets those in memory.
    store.arm(StoreFailure::Refuse(usize::MAX));
    log.append(vec![draft("last")]);
    let retained = log.page(0, usize::MAX, &filter).events;
    assert_eq!(retained.last().unwrap().sequence, last + 1);
    assert_eq!(store.keys(EVENTS).len(), retained.len());
    assert_eq!(open(store).page(0, usize::MAX, &filter).events, retained);
}

#[test]
fn the_size_of_events_that_the_store_refuses_is_bounded() {
    let filter = EventFilter::default();
    let store = Arc::new(MemoryStore::default());
    let log = open(store.clone());
    store.arm(StoreFailure::RefuseFrom(0));
    let text = "x".repeat(8000);
    for _ in 0..5 {
        log.append((0..1000).map(|_| draft(&text)).collect());
    }
    let first_unsaved = lock(&log.writer).first_unsaved.unwrap();
    let bytes: usize = lock(&log.recent).after(first_unsaved - 1).map(Record::json_bytes).sum();
    assert!(bytes > 30 << 20 && bytes <= recent::EVENT_BYTES_MAX, "{bytes}");
    // If the store accepts events again, it gets those in memory, and no others.
    store.arm(StoreFailure::Refuse(usize::MAX));
    log.append(vec![draft("last")]);
    let retained = log.page(0, usize::MAX, &filter).events;
    assert_eq!(retained.last().unwrap().sequence, 5001);
    assert_eq!(store.keys(EVENTS).len(), retained.len());
    assert_eq!(open(store).page(0, usize::MAX, &filter).events, retained);
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
    let empty = log.wait(2, 10, &EventFilter::default(), Duration::from_millis(1));
    assert_eq!(empty.events, []);
}
