//! Deferred changes.

use std::sync::Arc;

use suimon_ports::{StateStore, StateStoreErrorKind};

use super::DeferringStore;
use crate::testing::MemoryStore;

type Change = (&'static str, String, Option<Vec<u8>>);

fn put(key: &str, value: u8) -> Change {
    ("t", key.to_owned(), Some(vec![value]))
}

fn remove(key: &str) -> Change {
    ("t", key.to_owned(), None)
}

/// Returns a store with the entries a, b and c that defers changes of this thread.
fn starting() -> (MemoryStore, DeferringStore) {
    let memory = MemoryStore::default();
    memory.commit(&[put("a", 1), put("b", 1), put("c", 1)]).unwrap();
    let store = DeferringStore::new(Arc::new(memory.clone()));
    store.begin_start_up();
    memory.set_full(true);
    (memory, store)
}

fn keys(store: &dyn StateStore, from: &str, limit: usize) -> Vec<(String, u8)> {
    let entries = store.scan("t", from, limit).unwrap().into_iter();
    entries.map(|(key, value)| (key, value[0])).collect()
}

#[test]
fn deferred_changes_are_read_and_written_with_the_next_commit() {
    let (memory, store) = starting();
    store.commit(&[remove("a"), put("b", 2)]).unwrap();
    store.commit(&[put("d", 3), put("b", 4)]).unwrap();
    assert_eq!(store.read("t", "a").unwrap(), None);
    assert_eq!(store.read("t", "b").unwrap(), Some(vec![4]));
    let expected = [("b".to_owned(), 4), ("c".to_owned(), 1), ("d".to_owned(), 3)];
    assert_eq!(keys(&store, "", 9), expected);
    assert_eq!(keys(&store, "", 2), expected[..2]);
    assert_eq!(keys(&store, "c", 1), expected[1..2]);
    assert_eq!(keys(&memory, "", 9).len(), 3, "nothing is written yet");
    store.end_start_up();
    let error = store.commit(&[put("e", 5)]).unwrap_err();
    assert_eq!(error.kind, StateStoreErrorKind::Unwritable);
    assert_eq!(store.failure().unwrap().detail, error.detail);
    assert_eq!(keys(&store, "", 9), expected, "a refused change is not kept");
    store.write_deferred().unwrap_err();
    memory.set_full(false);
    store.commit(&[put("b", 6)]).unwrap();
    assert!(store.failure().is_none());
    let written = [("b".to_owned(), 6), ("c".to_owned(), 1), ("d".to_owned(), 3)];
    assert_eq!(keys(&memory, "", 9), written);
}

#[test]
fn deferred_changes_are_written_without_others() {
    let (memory, store) = starting();
    store.commit(&[put("d", 3)]).unwrap();
    memory.set_full(false);
    store.write_deferred().unwrap();
    assert!(store.failure().is_none());
    assert_eq!(keys(&memory, "d", 9), [("d".to_owned(), 3)]);
}

#[test]
fn only_changes_of_the_starting_thread_are_deferred_and_their_number_is_limited() {
    let (_memory, store) = starting();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| store.commit(&[put("d", 3)]));
        other.join().unwrap().unwrap_err();
    });
    for number in 0..super::DEFERRED_MAX {
        store.commit(&[put(&number.to_string(), 0)]).unwrap();
    }
    store.commit(&[put("more", 0)]).unwrap_err();
}
