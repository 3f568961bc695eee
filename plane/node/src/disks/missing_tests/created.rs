//! Images that `--create-image` creates for a change that does not complete: no daemon opens them
//! as images of the disk.

use suimon_ports::StateStore;

use super::*;

mod content;

const CREATED: &str = "created_images";
/// Modification time of files that are written in the tests, in seconds since 1970-01-01 UTC.
const NOW_UNIX_S: u64 = 100;
const REFUSED: &str = r#"{"nbd": {"socket": "/run/refused.sock"}}"#;

/// Returns a host whose disk `boot` has failed, because its image file is missing.
fn without_boot() -> Harness {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    harness
}

/// Returns a host on which a change has created `boot.raw` and has failed. The removal of the file
/// is queued behind a store that does not respond.
fn with_queued_removal(patch: &str) -> Harness {
    with_queued_removal_of("boot", "boot.raw", patch)
}

/// Like [`with_queued_removal`], for any disk and its file.
fn with_queued_removal_of(disk: &str, image: &str, patch: &str) -> Harness {
    let (harness, _) = restarted_without(with_data(), &[image]);
    assert_missing(&harness, disk, &format!("/srv/fast/{image}"));
    harness.disks.refuse("/run/refused.sock", true);
    harness.disks.store(DISK_STORE).set_time(NOW_UNIX_S);
    harness.disks.stall_at_refusal(DISK_STORE);
    let operation = set(&harness, disk, patch, true);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    harness
}

fn killed(harness: Harness) -> Harness {
    let (store, devices, disks) = harness.kill_with_disks();
    Harness::with_disks(store, devices, disks)
}

/// Removes length and modification time from the record of an image, as if they were not known.
fn forget_written(store: &MemoryStore, image: &str) {
    let stored = store.read(CREATED, image).unwrap().unwrap();
    let mut stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    assert!(stored["written"].is_object(), "{stored}");
    stored["written"] = serde_json::Value::Null;
    let stored = serde_json::to_vec(&stored).unwrap();
    store.commit(&[(CREATED, image.to_owned(), Some(stored))]).unwrap();
}

fn wait_for_no_record(harness: &Harness) {
    wait_until("the record is deleted", || harness.store.keys(CREATED).is_empty());
}

#[test]
fn a_failed_image_is_in_no_disk_until_it_is_removed() {
    let harness = with_queued_removal(REFUSED);
    let disks = &harness.node.shared().disks;
    let is_unsettled =
        || disks.stores.reserved_files.contains(DISK_STORE.as_ref(), &file("boot.raw"));
    assert!(is_unsettled());
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/boot.raw"]);
    harness.disks.store(DISK_STORE).set_stalled(false);
    wait_until("the file is removed", || !is_unsettled());
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    wait_for_no_record(&harness);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
}

#[test]
fn the_next_daemon_removes_the_image_of_a_failed_change() {
    let harness = killed(with_queued_removal(REFUSED));
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    wait_for_no_record(&harness);
    // A request creates the image.
    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(harness.store.keys(CREATED).is_empty());
    let harness = killed(harness);
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
}

#[test]
fn the_next_daemon_removes_an_image_that_no_disk_has() {
    let patch = r#"{"file": "new.raw", "nbd": {"socket": "/run/refused.sock"}}"#;
    let harness = with_queued_removal(patch);
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/new.raw"]);
    let harness = killed(harness);
    wait_for_no_record(&harness);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

#[test]
fn the_image_is_also_removed_from_a_store_that_is_mounted_later() {
    let (store, devices, disks) = with_queued_removal(REFUSED).kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    assert!(files.files().contains_key(&file("boot.raw")));
    disks.put_store(DISK_STORE, MemoryFiles::default());
    let harness = Harness::with_disks(store, devices, disks);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/boot.raw"]);
    harness.disks.put_store(DISK_STORE, files);
    wait_until("the disk is in service", || state(&harness, "data") == StorageState::Ready);
    wait_for_no_record(&harness);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

/// The operator restores the file before the next daemon starts.
#[test]
fn a_file_that_has_replaced_the_image_stays() {
    let (store, devices, disks) = with_queued_removal(REFUSED).kill_with_disks();
    let files = disks.store(DISK_STORE);
    StoreFiles::remove(&files, &file("boot.raw")).unwrap();
    let restored = StoreFiles::create(&files, &file("boot.raw"), 512).unwrap();
    restored.write_at(0, &[7; 1 << 20]).unwrap();
    drop(restored);
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(has_pattern(&harness));
    wait_for_no_record(&harness);
}

/// A restored image is written to the existing file, or a guest has written to it before the
/// commit.
#[test]
fn a_file_that_was_written_since_stays() {
    for len in [512, 1 << 20] {
        let (store, devices, disks) = with_queued_removal(REFUSED).kill_with_disks();
        let files = disks.store(DISK_STORE);
        let image = StoreFiles::open(&files, &file("boot.raw"), FileLockMode::Write, 512).unwrap();
        image.write_at(0, &vec![7; len]).unwrap();
        drop(image);
        let harness = Harness::with_disks(store, devices, disks);
        wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
        assert!(has_pattern(&harness), "{len}");
        wait_for_no_record(&harness);
    }
}

#[test]
fn a_file_that_cannot_be_compared_stays_and_is_in_no_disk() {
    let (store, devices, disks) = with_queued_removal(REFUSED).kill_with_disks();
    forget_written(&store, "/srv/fast/boot.raw");
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("the disk has failed", || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("may be an empty one"))
    });
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/boot.raw"]);
    // A request uses it.
    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(harness.store.keys(CREATED).is_empty());
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
}

#[test]
fn a_new_disk_that_uses_an_uncertain_image_ends_its_record() {
    let patch = r#"{"file": "new.raw", "nbd": {"socket": "/run/refused.sock"}}"#;
    let (store, devices, disks) = with_queued_removal(patch).kill_with_disks();
    forget_written(&store, "/srv/fast/new.raw");
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("the disk is in service", || state(&harness, "data") == StorageState::Ready);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx", "new.raw"]);
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/new.raw"]);
    let added = host(&format!("{}{}", stores(), disk("new", "raw"))).disks.remove(0);
    let add = Edit::Disk(ResourceEdit::Add(added));
    let operation = submitted(&harness, add, ChangeOptions::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(harness.store.keys(CREATED).is_empty());
}

/// The operator renames a restored file to the name before the change is rolled back.
#[test]
fn a_rollback_removes_only_the_file_that_was_created() {
    let harness = without_boot();
    let shared = harness.node.shared();
    let entry = shared.disks.find(&name("boot")).unwrap();
    entry.set_new(true);
    let work = shared.image_task(&entry);
    entry.set_new(false);
    let opened = work.open().ok().unwrap();
    let files = harness.disks.store(DISK_STORE);
    let restored = StoreFiles::create(&files, &file("restored.raw"), 512).unwrap();
    restored.write_at(0, &[7; 1 << 20]).unwrap();
    drop(restored);
    StoreFiles::replace(&files, &file("restored.raw"), &file("boot.raw")).unwrap();
    opened.undo();
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(has_pattern(&harness));
}

/// A restored image is written to the file that the change has created, before it is rolled back.
#[test]
fn a_rollback_keeps_an_image_that_was_written_since() {
    let harness = without_boot();
    harness.disks.store(DISK_STORE).set_time(NOW_UNIX_S);
    let shared = harness.node.shared();
    let entry = shared.disks.find(&name("boot")).unwrap();
    let set_requested = |is_requested| {
        entry.set_new(is_requested);
        entry.lock().is_image_requested = is_requested;
    };
    set_requested(true);
    let work = shared.image_task(&entry);
    set_requested(false);
    let opened = work.open().ok().unwrap();
    let image = &opened.images.layer_stack.layers[0].file;
    image.as_image_file().write_at(0, &[7; 1 << 20]).unwrap();
    opened.undo();
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(has_pattern(&harness));
    assert!(harness.store.keys(CREATED).is_empty());
}

#[test]
fn no_image_is_created_that_cannot_be_recorded() {
    let harness = without_boot();
    harness.store.set_full(true);
    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    harness.store.set_full(false);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
}
