//! Tests a store on a full disk, and after space was freed.

use std::path::Path;
use std::process::Command;

use suimon_ports::{StateStore, StateStoreError};
use suimon_store::FileStore;
use tempfile::TempDir;

const DIRECTORY: &str = "SUIMON_STORE_TEST_FULL_DISK";
/// Mount option with the size of the disk. A new store needs some hundred KiB.
const DISK: &str = "size=4m";

fn put(store: &FileStore, key: &str, value: &[u8]) -> Result<(), StateStoreError> {
    let counter = Some(value.len().to_le_bytes().to_vec());
    store.commit(&[
        ("t", key.to_owned(), Some(value.to_vec())),
        ("t", "last".to_owned(), counter.clone()),
        ("other", "last".to_owned(), counter),
    ])
}

fn read(store: &FileStore, key: &str) -> Option<Vec<u8>> {
    store.read("t", key).unwrap()
}

/// Fills the small disk, which is mounted in the mount namespace of this process only.
#[test]
#[ignore = "child process of a_store_on_a_full_disk_can_be_read_and_written_again_when_there_is_space"]
fn on_the_small_disk() {
    let directory = std::env::var(DIRECTORY).unwrap();
    let disk = Path::new(&directory);
    let store = FileStore::open(&disk.join("state")).unwrap();
    put(&store, "small", b"1").unwrap();
    let ballast = disk.join("ballast");
    for round in 0..3_u8 {
        // The last write is incomplete.
        let full = std::fs::write(&ballast, vec![round; 8 << 20]);
        assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        let refused = put(&store, "large", &vec![round; 1 << 20]).unwrap_err().detail;
        assert!(refused.contains("state.redb") && refused.contains("has free space"), "{refused}");
        let refused = put(&store, "large", &vec![round; 2 << 20]).unwrap_err().detail;
        assert!(refused.contains("has free space"), "the repeated commit: {refused}");
        // Earlier content exists, and nothing of the rejected commit.
        assert_eq!(read(&store, "small").unwrap(), b"1");
        assert_eq!(read(&store, "last").unwrap(), 1_usize.to_le_bytes());
        assert_eq!(store.scan("other", "", 9).unwrap().len(), 1);
        std::fs::remove_file(&ballast).unwrap();
        put(&store, "small", b"1").unwrap();
    }
    put(&store, "large", &[7; 1 << 20]).unwrap();
    drop(store);
    let store = FileStore::open(&disk.join("state")).unwrap();
    assert_eq!(read(&store, "large").unwrap(), [7; 1 << 20]);
    assert_eq!(read(&store, "last").unwrap(), (1_usize << 20).to_le_bytes());
}

#[test]
fn a_store_on_a_full_disk_can_be_read_and_written_again_when_there_is_space() {
    let directory = TempDir::new().unwrap();
    let script = format!("mount -t tmpfs -o {DISK} none \"${DIRECTORY}\" && exec \"$@\"");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-ec", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["full_disk::on_the_small_disk", "--exact", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
}
