//! Contract of the store, its limits, and its behaviour on damage.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::STATE_FILE_NAME;

fn put<'a>(table: &'a str, key: &str, value: &[u8]) -> (&'a str, String, Option<Vec<u8>>) {
    (table, key.to_owned(), Some(value.to_vec()))
}

fn fails_with(result: Result<impl Sized, StateStoreError>, parts: &[&str]) {
    let detail = result.err().expect("an error").detail;
    for part in parts {
        assert!(detail.contains(part), "`{part}` is not in: {detail}");
    }
}

#[test]
fn committed_values_persist() {
    let directory = TempDir::new().unwrap();
    let nested = directory.path().join("made/on/demand");
    let store = FileStore::open(&nested).unwrap();
    assert_eq!(store.read("nic", "a").unwrap(), None);
    assert_eq!(store.scan("nic", "", 10).unwrap(), []);
    store.commit(&[put("nic", "b", b"2"), put("nic", "a", b"1"), put("event", "a", b"")]).unwrap();
    store.commit(&[]).unwrap();
    drop(store);
    let store = FileStore::open(&nested).unwrap();
    assert_eq!(store.read("nic", "a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(store.read("event", "a").unwrap().as_deref(), Some(&b""[..]));
    store.commit(&[("nic", "a".to_owned(), None), ("nic", "absent".to_owned(), None)]).unwrap();
    assert_eq!(store.scan("nic", "", 10).unwrap(), [("b".to_owned(), b"2".to_vec())]);
    let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn scans_start_at_the_key_and_end_at_the_limit() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let changes: Vec<_> = (0..100).map(|n| put("t", &format!("{n:03}"), &[n])).collect();
    store.commit(&changes).unwrap();
    let keys = |from: &str, limit| -> Vec<String> {
        store.scan("t", from, limit).unwrap().into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("097x", 10), ["098", "099"]);
    assert_eq!(keys("05", 2), ["050", "051"]);
    assert_eq!(keys("", 0), [""; 0]);
    assert_eq!(keys("", usize::MAX).len(), 100);
}

#[test]
fn a_second_process_is_rejected_until_the_first_closes_the_store() {
    let directory = TempDir::new().unwrap();
    let first = FileStore::open(directory.path()).unwrap();
    let path = directory.path().display().to_string();
    fails_with(FileStore::open(directory.path()), &[&path, "in use", "--state-dir"]);
    drop(first);
    FileStore::open(directory.path()).unwrap();
}

#[test]
fn a_commit_out_of_bounds_is_refused_completely() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let fine = put("t", "fine", b"1");
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let table = "t".repeat(TABLE_NAME_BYTES_MAX + 1);
    for (invalid, part) in [
        (put("t", &long, b""), "a key"),
        (put(&table, "k", b""), "a table's name"),
        (put("", "k", b""), "is empty"),
        (put("t", "k", &vec![0; VALUE_BYTES_MAX + 1]), "a value"),
    ] {
        fails_with(store.commit(&[fine.clone(), invalid]), &[part]);
    }
    assert_eq!(store.read("t", "fine").unwrap(), None);
    store.commit(&[put("t", "largest", &vec![7; VALUE_BYTES_MAX])]).unwrap();
    assert_eq!(store.read("t", "largest").unwrap().unwrap().len(), VALUE_BYTES_MAX);
}

#[test]
fn directories_that_cannot_be_used_are_named() {
    let directory = TempDir::new().unwrap();
    let blocked = directory.path().join("file");
    std::fs::write(&blocked, b"").unwrap();
    fails_with(FileStore::open(&blocked.join("below")), &["file/below", "check that"]);
    std::fs::create_dir(directory.path().join(STATE_FILE_NAME)).unwrap();
    fails_with(FileStore::open(directory.path()), &[STATE_FILE_NAME, "regular file"]);
}

fn filled() -> (TempDir, PathBuf, BTreeMap<String, Vec<u8>>) {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let mut content = BTreeMap::new();
    for n in 0..40_u8 {
        let (key, value) = (format!("key {n}"), vec![n; 300]);
        store.commit(&[put("t", &key, &value)]).unwrap();
        content.insert(key, value);
    }
    let file = store.path().to_owned();
    (directory, file, content)
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    for bytes in [&b""[..], b"x", &[0; 8192], b"redb but not really, and then some more text"] {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join(STATE_FILE_NAME);
        std::fs::write(&file, bytes).unwrap();
        fails_with(FileStore::open(directory.path()), &["damaged", "backup"]);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn a_truncated_store_is_reported() {
    let (directory, file, _) = filled();
    let complete = std::fs::read(&file).unwrap();
    for len in [1, 8, 100, 4095, 4096, complete.len() / 2, complete.len() - 1] {
        std::fs::write(&file, &complete[..len]).unwrap();
        fails_with(FileStore::open(directory.path()), &["damaged"]);
    }
    std::fs::write(&file, &complete).unwrap();
    FileStore::open(directory.path()).unwrap();
}

/// After any part of the file is overwritten, the result is an error or exactly the committed
/// content, never a panic or other content.
#[test]
fn overwritten_bytes_never_change_a_result() {
    let (directory, file, content) = filled();
    let complete = std::fs::read(&file).unwrap();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut errors = 0;
    // The first cells of the header, and 120 of the non-empty ones.
    let used: Vec<_> = (20..complete.len() / 16)
        .filter(|cell| complete[cell * 16..][..16].iter().any(|byte| *byte != 0))
        .collect();
    for cell in (0..20).chain(used.iter().copied().step_by(used.len() / 120)) {
        let mut bytes = complete.clone();
        bytes[cell * 16..][..16].fill(0xa5);
        std::fs::write(&file, &bytes).unwrap();
        let outcome = FileStore::open(directory.path()).and_then(|store| store.scan("t", "", 999));
        match outcome {
            Ok(actual) => assert_eq!(BTreeMap::from_iter(actual), content, "cell {cell}"),
            Err(error) => {
                assert!(error.detail.contains(STATE_FILE_NAME), "{}", error.detail);
                errors += 1;
            }
        }
    }
    std::panic::set_hook(quiet);
    assert!(errors > 10, "damage was noticed {errors} times only");
}

/// Simulates a device that fails after it has stored the last bytes of a commit.
#[test]
fn a_commit_that_was_reported_as_failed_is_reverted() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    store.commit(&[put("t", "a", b"1"), put("t", "gone", b"2")]).unwrap();
    for _ in 0..2 {
        let failed = store.work(|database, replaced| {
            let changes: [(&str, &str, Option<&[u8]>); 5] = [
                ("t", "a", Some(b"3")),
                ("t", "a", Some(b"4")),
                ("t", "gone", None),
                ("t", "new", Some(b"5")),
                ("u", "new", Some(b"6")),
            ];
            write(database, changes, replaced)?;
            Err::<(), _>(redb::Error::Io(std::io::Error::from_raw_os_error(5)).into())
        });
        fails_with(failed, &[STATE_FILE_NAME, "reading or writing"]);
        assert_eq!(store.read("t", "a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(store.scan("t", "", 9).unwrap().len(), 2);
        assert_eq!(store.scan("u", "", 9).unwrap(), []);
    }
    drop(store);
    let store = FileStore::open(directory.path()).unwrap();
    assert_eq!(store.read("t", "gone").unwrap().as_deref(), Some(&b"2"[..]));
}

/// Two calls fail for the same reason. The second one tries to close the file after another call
/// has reopened it and committed.
#[test]
fn a_failure_that_is_detected_late_does_not_close_a_reopened_file() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let fail = || Err::<(), _>(redb::Error::Io(std::io::Error::from_raw_os_error(5)).into());
    let failed = store.state.read().unwrap().openings;
    assert!(store.work(|_, _| fail()).is_err());
    assert!(store.state.read().unwrap().database.is_none());
    store.commit(&[put("t", "a", b"1")]).unwrap();
    store.close(failed);
    assert!(store.state.read().unwrap().database.is_some());
    assert_eq!(store.read("t", "a").unwrap().as_deref(), Some(&b"1"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Compares the store with a map, with batches, removals and reopenings.
    #[test]
    fn the_store_behaves_like_a_map(
        batches in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(("[a-c]", "[a-f]{0,2}", any::<Option<u16>>()), 0..6)),
            1..12,
        )
    ) {
        let directory = TempDir::new().unwrap();
        let mut store = FileStore::open(directory.path()).unwrap();
        let mut model = BTreeMap::new();
        for (reopen, batch) in &batches {
            if *reopen {
                drop(store);
                store = FileStore::open(directory.path()).unwrap();
            }
            let changes: Vec<_> = batch
                .iter()
                .map(|(table, key, value)| {
                    let value = value.map(|value| value.to_le_bytes().to_vec());
                    (table.as_str(), key.clone(), value)
                })
                .collect();
            store.commit(&changes).unwrap();
            for (table, key, value) in changes {
                match value {
                    Some(value) => model.insert((table.to_owned(), key), value),
                    None => model.remove(&(table.to_owned(), key)),
                };
            }
            for table in ["a", "b", "c"] {
                let expected: Vec<_> = model
                    .iter()
                    .filter(|((entry_table, key), _)| entry_table == table && key.as_str() >= "b")
                    .map(|((_, key), value)| (key.clone(), value.clone()))
                    .collect();
                prop_assert_eq!(store.scan(table, "b", 99).unwrap(), expected);
            }
        }
    }
}
