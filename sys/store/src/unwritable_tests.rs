//! Tests on a file system that is full or read-only. Each test executes itself again in a mount
//! namespace, in which a tmpfs of its own is mounted.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use suimon_ports::{StateStore, StateStoreErrorKind};
use tempfile::TempDir;

use crate::FileStore;

/// Environment variable that the test sets for its copy in the namespace: the folder at which the
/// tmpfs is mounted.
const FOLDER: &str = "SUIMON_TEST_TMPFS";
const DEADLINE: Duration = Duration::from_secs(60);

/// Executes `run` with the folder of a tmpfs of 8 MiB.
fn on_tmpfs(test: &str, run: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return run(Path::new(&folder));
    }
    let folder = TempDir::new().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=8M tmpfs \"${FOLDER}\" && exec \"$0\" --exact unwritable_tests::{test}"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the test was not executed: {text}");
}

fn remount(folder: &Path, options: &str) {
    let status = Command::new("mount").args(["-o", options]).arg(folder).status().unwrap();
    assert!(status.success(), "mount -o {options}");
}

fn filled(folder: &Path) -> FileStore {
    let store = FileStore::open(folder).unwrap();
    store.commit(&[put("kept", &[7; 1000])]).unwrap();
    store
}

fn put<'a>(key: &str, value: &[u8]) -> (&'a str, String, Option<Vec<u8>>) {
    ("t", key.to_owned(), Some(value.to_vec()))
}

#[track_caller]
fn assert_unchanged(store: &FileStore) {
    assert_eq!(store.read("t", "kept").unwrap().as_deref(), Some(&[7; 1000][..]));
    assert_eq!(store.scan("t", "", 9).unwrap().len(), 1);
}

/// Repeats a commit until it succeeds.
fn commit_until_it_succeeds(store: &FileStore, key: &str) {
    let started_at = Instant::now();
    while let Err(error) = store.commit(&[put(key, b"new")]) {
        assert!(started_at.elapsed() < DEADLINE, "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_read_only_store_is_read_and_written_when_that_is_possible() {
    on_tmpfs("a_read_only_store_is_read_and_written_when_that_is_possible", |folder| {
        drop(filled(folder));
        remount(folder, "remount,ro");
        let store = FileStore::open(folder).unwrap();
        assert_unchanged(&store);
        let error = store.commit(&[put("new", b"new")]).unwrap_err();
        assert_eq!(error.kind, StateStoreErrorKind::Unwritable);
        assert!(error.detail.contains("Read-only file system"), "{error}");
        assert_unchanged(&store);
        remount(folder, "remount,rw");
        commit_until_it_succeeds(&store, "new");
        drop(store);
        let store = FileStore::open(folder).unwrap();
        assert_eq!(store.scan("t", "", 9).unwrap().len(), 2);
    });
}

#[test]
fn a_store_that_becomes_read_only_while_it_is_open_stays_readable() {
    on_tmpfs("a_store_that_becomes_read_only_while_it_is_open_stays_readable", |folder| {
        // A process that holds a file open for writing prevents a file system from becoming
        // read-only, so the file is closed by a failure first.
        let store = filled(folder);
        store.close_for_test();
        remount(folder, "remount,ro");
        assert_unchanged(&store);
        let error = store.commit(&[put("new", b"new")]).unwrap_err();
        assert_eq!(error.kind, StateStoreErrorKind::Unwritable);
        remount(folder, "remount,rw");
        commit_until_it_succeeds(&store, "new");
    });
}

#[test]
fn a_store_on_a_full_file_system_is_read_and_written_when_there_is_space() {
    on_tmpfs("a_store_on_a_full_file_system_is_read_and_written_when_there_is_space", |folder| {
        drop(filled(folder));
        let filler = folder.join("filler");
        std::fs::write(&filler, vec![1; 16 << 20]).unwrap_err();
        let store = FileStore::open(folder).unwrap();
        assert_unchanged(&store);
        let large = vec![2; 1 << 20];
        let error = store.commit(&[put("large", &large), put("large2", &large)]).unwrap_err();
        assert_eq!(error.kind, StateStoreErrorKind::Unwritable, "{error}");
        assert_unchanged(&store);
        std::fs::remove_file(&filler).unwrap();
        commit_until_it_succeeds(&store, "new");
        drop(store);
        assert_eq!(FileStore::open(folder).unwrap().scan("t", "", 9).unwrap().len(), 2);
    });
}

/// A process that was killed leaves a file that has to be repaired when it is opened.
#[test]
fn a_store_of_a_killed_process_is_read_on_a_full_file_system() {
    on_tmpfs("a_store_of_a_killed_process_is_read_on_a_full_file_system", |folder| {
        let store = filled(folder);
        let crashed = folder.join("crashed");
        std::fs::create_dir(&crashed).unwrap();
        std::fs::copy(store.path(), crashed.join(crate::STATE_FILE_NAME)).unwrap();
        std::fs::write(folder.join("filler"), vec![1; 16 << 20]).unwrap_err();
        assert_unchanged(&FileStore::open(&crashed).unwrap());
    });
}
