//! Tests that the file of a disk is checked until the disk is in service for writing.

use suimon_contract::{ErrorCode, HostConfig, OperationState, StorageState};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use super::{CHILD, patch, rename, with_child};
use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name, wait_until};
use crate::{ChangeOptions, DiskFileJob, Edit, ResourceEdit};

const UNCHECKED_DISKS: &str = "unchecked_disks";
const REFUSAL: &str = "base.vhdx is the parent of child.vhdx";

/// Returns the configuration of the disk `data` with these keys.
fn with_keys(keys: &str) -> HostConfig {
    host(&CHILD.replace("file = \"child.vhdx\"", keys))
}

/// Applies a host file as at the start of the daemon.
fn apply_at_start(harness: &Harness, config: &HostConfig) {
    let options = ChangeOptions { keeps_faulty_disks: true, ..ChangeOptions::default() };
    let edit = Edit::ApplyFile { config: Box::new(config.clone()), text: format!("{config:?}") };
    let operation = harness.node.submit_with(edit, options).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

fn state(harness: &Harness, disk: &str) -> StorageState {
    harness.node.disk(disk).unwrap().state
}

fn is_refused(harness: &Harness) -> bool {
    let disk = harness.node.disk("data").unwrap();
    let is_refused = disk.reason.is_some_and(|reason| reason.contains(REFUSAL));
    disk.state == StorageState::Failed && is_refused
}

/// The child is not damaged, and the disk can use it.
fn assert_child_usable(harness: &Harness) {
    let operation = patch(harness, r#"{"file": "child.vhdx"}"#);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(state(harness, "data"), StorageState::Ready);
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), Vec::<String>::new());
}

/// The images of a failed node stay locked for some time, during which the disk is added.
#[test]
fn the_parent_of_a_locked_image_is_refused_also_when_it_is_not_locked_any_more() {
    let harness = with_child();
    let files = harness.disks.store(DISK_STORE);
    let locks = ["base.vhdx", "child.vhdx"].map(|file| {
        let file = FileName::new(file).unwrap();
        StoreFiles::open(&files, &file, FileLockMode::Write, 512).unwrap()
    });
    apply_at_start(&harness, &with_keys("file = \"base.vhdx\""));
    assert!(is_refused(&harness), "{:?}", harness.node.disk("data"));
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), ["data"]);
    drop(locks);
    let operation = patch(&harness, r#"{"serial": "S1"}"#);
    assert!(operation.error.unwrap().message.contains(REFUSAL));
    // The next daemon checks the disk, too.
    let (store, devices, disks) = harness.kill_with_disks();
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("the disk is refused", || is_refused(&harness));
    assert_child_usable(&harness);
}

/// An attempt that finds the file does not end the check, although the disk is not new any more.
#[test]
fn a_disk_whose_file_was_found_is_still_checked() {
    let harness = with_child();
    let shared = harness.node.shared();
    apply_at_start(&harness, &with_keys("file = \"base.vhdx\""));
    let entry = shared.disks.find(&name("data")).unwrap();
    entry.set_new(false);
    assert!(entry.checks_children());
    let failure = shared.image_task(&entry).open().err().unwrap();
    assert!(failure.error.message.contains(REFUSAL), "{}", failure.error);
    assert_child_usable(&harness);
    assert!(!entry.checks_children());
}

#[test]
fn a_read_only_disk_on_a_parent_does_not_become_writable() {
    for restarts in [false, true] {
        let mut harness = with_child();
        harness.apply_ok(&with_keys("file = \"base.vhdx\"\nread_only = true"));
        assert_eq!(harness.store.keys(UNCHECKED_DISKS), ["data"]);
        if restarts {
            let (store, devices, disks) = harness.kill_with_disks();
            harness = Harness::with_disks(store, devices, disks);
        }
        wait_until("the disk is ready", || state(&harness, "data") == StorageState::Ready);
        let error = patch(&harness, r#"{"read_only": false}"#).error.unwrap();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert!(error.message.contains(REFUSAL), "{error}");
        wait_until("the disk is ready", || state(&harness, "data") == StorageState::Ready);
        let operation = patch(&harness, r#"{"file": "child.vhdx", "read_only": false}"#);
        assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
        assert_eq!(harness.store.keys(UNCHECKED_DISKS), Vec::<String>::new());
    }
}

#[test]
fn an_existing_disk_does_not_get_the_parent_of_an_image_of_no_disk() {
    let harness = with_child();
    harness.apply_ok(&with_keys("file = \"other.vhdx\"\nsize_bytes = 8388608"));
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), Vec::<String>::new());
    let set = r#"{"file": "base.vhdx"}"#;
    let error = patch(&harness, set).error.unwrap();
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    assert!(error.message.contains(REFUSAL), "{error}");
    wait_until("the disk is ready", || state(&harness, "data") == StorageState::Ready);
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), Vec::<String>::new());
    let child = FileName::new("child.vhdx").unwrap();
    harness.disks.store(DISK_STORE).remove(&child).unwrap();
    let operation = patch(&harness, set);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

/// The disk `another` looks up the parents of the child while its parent is missing.
#[test]
fn a_parent_that_was_missing_is_protected_when_it_is_there_again() {
    let harness = with_child();
    let disk = |name: &str, keys: &str| {
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"vhdx\"\n{keys}\n\
             nbd = {{ socket = \"/run/nbd.sock\" }}\n"
        )
    };
    rename(&harness, "base.vhdx", "moved.vhdx");
    let another = disk("another", "file = \"another.vhdx\"\nsize_bytes = 8388608");
    let base = disk("base", "file = \"base.vhdx\"");
    apply_at_start(&harness, &host(&format!("{CHILD}{another}{base}")));
    assert_eq!(state(&harness, "data"), StorageState::Failed);
    let operation = harness
        .change(Edit::Disk(ResourceEdit::Patch(name("another"), br#"{"serial": "S1"}"#.to_vec())));
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    rename(&harness, "moved.vhdx", "base.vhdx");
    wait_until("the child is in service", || state(&harness, "data") == StorageState::Ready);
    assert_eq!(state(&harness, "base"), StorageState::Failed);
}

/// The file of the disk after the merge is still the parent of the child, which is removed last.
/// Errors about too many layers request the merge of a disk that has never been in service.
#[test]
fn a_disk_that_has_not_been_in_service_is_merged_and_then_opened() {
    let harness = with_child();
    harness.disks.refuse("/run/nbd.sock", true);
    apply_at_start(&harness, &with_keys("file = \"child.vhdx\""));
    assert_eq!(state(&harness, "data"), StorageState::Failed);
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), ["data"]);
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Merge).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(harness.disks.files(DISK_STORE), ["base.vhdx"]);
    assert_eq!(harness.store.keys(UNCHECKED_DISKS), Vec::<String>::new());
    let disk = harness.node.config().disks.remove(0);
    assert_eq!(disk.file.unwrap().as_str(), "base.vhdx");
    harness.disks.refuse("/run/nbd.sock", false);
    wait_until("the disk is ready", || state(&harness, "data") == StorageState::Ready);
}

/// The ending of the other child's name is unusual, so that only its disk shows its parent.
#[test]
fn the_parent_of_a_disk_that_is_not_open_is_not_merged_into() {
    let harness = with_child();
    let mut files = harness.disks.take_store(DISK_STORE).files();
    let child = files[&FileName::new("child.vhdx").unwrap()].clone();
    files.insert(FileName::new("other.img").unwrap(), child);
    harness.disks.put_store(DISK_STORE, MemoryFiles::with_files(files));
    harness.disks.refuse("/run/other.sock", true);
    let other = "[[disk]]\nname = \"other\"\nstore = \"fast\"\nformat = \"vhdx\"\n\
                 file = \"other.img\"\nnbd = { socket = \"/run/other.sock\" }\n";
    apply_at_start(&harness, &host(&format!("{CHILD}{other}")));
    assert_eq!(state(&harness, "data"), StorageState::Ready);
    assert_eq!(state(&harness, "other"), StorageState::Failed);
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Merge).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    let error = operation.error.unwrap();
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    assert!(error.message.contains("base.vhdx is also a parent of disk/other"), "{error}");
    wait_until("the disk is ready", || state(&harness, "data") == StorageState::Ready);
    harness.disks.refuse("/run/other.sock", false);
    wait_until("the other disk is ready", || state(&harness, "other") == StorageState::Ready);
}

#[test]
fn a_damaged_image_does_not_prevent_adding_a_disk() {
    let harness = Harness::with_store();
    let files = harness.disks.store(DISK_STORE);
    let damaged = FileName::new("damaged.vhdx").unwrap();
    drop(StoreFiles::create(&files, &damaged, 512).unwrap());
    let config = with_keys("file = \"data.vhdx\"\nsize_bytes = 8388608");
    harness.apply_ok(&config);
    harness.apply_ok(&HostConfig::default());
    // The file exists now, so that the store is searched.
    harness.apply_ok(&config);
    assert_eq!(state(&harness, "data"), StorageState::Ready);
}
