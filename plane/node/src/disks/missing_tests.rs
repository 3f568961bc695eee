//! Disks whose image files are missing: an empty image is created only for a disk that has had
//! none.

use suimon_contract::{
    ApiError, ErrorCode, EventKind, HostConfig, Operation, OperationState, StorageState,
};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use crate::testing::{
    DEADLINE, DISK_STORE, FakeDevices, FakeDisks, Harness, MemoryStore, host, name, wait_until,
};
use crate::{ChangeOptions, Edit, ResourceEdit};

mod created;
mod new_disks;
mod plans;

/// Path of a second store.
const OTHER_STORE: &str = "/srv/other";
const NEW_DISKS: &str = "new_disks";

fn stores() -> &'static str {
    r#"
    [[store]]
    name = "fast"
    path = "/srv/fast"
    [[store]]
    name = "other"
    path = "/srv/other"
    "#
}

fn disk(name: &str, format: &str) -> String {
    format!(
        "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"{format}\"\n\
         size_bytes = 1048576\nnbd = {{ socket = \"/run/{name}.sock\" }}\n"
    )
}

fn two_disks() -> HostConfig {
    host(&format!("{}{}{}", stores(), disk("boot", "raw"), disk("data", "vhdx")))
}

fn file(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

fn with_both_stores() -> Harness {
    let disks = FakeDisks::with_store(DISK_STORE);
    disks.put_store(OTHER_STORE, MemoryFiles::default());
    Harness::with_disks(MemoryStore::default(), FakeDevices::default(), disks)
}

/// Returns a host with both disks, whose raw image begins with a pattern.
fn with_data() -> Harness {
    let harness = with_both_stores();
    harness.apply_ok(&two_disks());
    harness.apply_ok(&host(stores()));
    write_pattern(&harness);
    harness.apply_ok(&two_disks());
    assert_eq!(harness.disks.served_counts().0, 2);
    harness
}

/// Returns a host whose disk `boot` has failed and whose device is still open for a VM that has not
/// started it.
fn with_stopped_vm() -> Harness {
    let harness = with_data();
    let patch = r#"{"vhost_user": {"socket": "/run/vm.sock"}}"#;
    let operation = set(&harness, "boot", patch, false);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    harness.disks.connect(true);
    harness.disks.put_store(DISK_STORE, MemoryFiles::default());
    harness.disks.lose("the store was unmounted");
    wait_until("the disk has failed", || state(&harness, "boot") == StorageState::Failed);
    let entry = harness.node.shared().disks.find(&name("boot")).unwrap();
    assert!(entry.lock().open.is_some(), "the disk is still offered");
    harness
}

fn write_pattern(harness: &Harness) {
    let files = harness.disks.store(DISK_STORE);
    let image = StoreFiles::open(&files, &file("boot.raw"), FileLockMode::Write, 512).unwrap();
    image.write_at(0, &[7; 512]).unwrap();
}

fn has_pattern(harness: &Harness) -> bool {
    harness.disks.store(DISK_STORE).files()[&file("boot.raw")][..512] == [7; 512]
}

/// Kills the process and starts another one, which finds `missing` only in the returned files.
fn restarted_without(harness: Harness, missing: &[&str]) -> (Harness, MemoryFiles) {
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let kept_files =
        files.files().into_iter().filter(|(name, _)| !missing.contains(&name.as_str()));
    disks.put_store(DISK_STORE, MemoryFiles::with_files(kept_files));
    (Harness::with_disks(store, devices, disks), files)
}

fn state(harness: &Harness, disk: &str) -> StorageState {
    harness.node.disk(disk).unwrap().state
}

fn assert_missing(harness: &Harness, disk: &str, path: &str) {
    wait_until("the disk has failed", || {
        let disk = harness.node.disk(disk).unwrap();
        let is_missing = disk.reason.is_some_and(|reason| reason.contains("is missing"));
        disk.state == StorageState::Failed && is_missing
    });
    let reason = harness.node.disk(disk).unwrap().reason.unwrap();
    for part in [path, "store fast", "--create-image"] {
        assert!(reason.contains(part), "{reason}");
    }
}

fn set(harness: &Harness, disk: &str, patch: &str, creates_image: bool) -> Operation {
    let edit = Edit::Disk(ResourceEdit::Patch(name(disk), patch.as_bytes().to_vec()));
    let options = ChangeOptions { creates_image, ..ChangeOptions::default() };
    submitted(harness, edit, options)
}

fn submitted(harness: &Harness, edit: Edit, options: ChangeOptions) -> Operation {
    let operation = harness.node.submit_with(edit, options).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap()
}

/// Applies a host file as at the start of the daemon.
fn apply_at_start(harness: &Harness, config: &HostConfig) {
    let options = ChangeOptions { keeps_faulty_disks: true, ..ChangeOptions::default() };
    let edit = Edit::ApplyFile { config: Box::new(config.clone()), text: format!("{config:?}") };
    let operation = submitted(harness, edit, options);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

fn assert_refused(operation: &Operation, resource: &str, path: &str) {
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    let error = operation.error.as_ref().unwrap();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::NotFound, Some("file")));
    assert_eq!(error.resource.as_deref(), Some(resource));
    assert!(error.message.contains(path) && error.message.contains("--create-image"), "{error}");
}

#[test]
fn a_missing_file_fails_its_disk_until_it_is_restored() {
    for missing in ["boot.raw", "data.vhdx"] {
        let (disk, other) = if missing == "boot.raw" { ("boot", "data") } else { ("data", "boot") };
        let (harness, files) = restarted_without(with_data(), &[missing]);
        assert_missing(&harness, disk, &format!("/srv/fast/{missing}"));
        assert_eq!(state(&harness, other), StorageState::Ready);
        harness.wait_event(EventKind::DiskFailed.id());
        assert!(!harness.disks.files(DISK_STORE).contains(&missing.to_owned()));

        let restored_store = harness.disks.store(DISK_STORE);
        let image = StoreFiles::create(&restored_store, &file(missing), 512).unwrap();
        image.write_at(0, &files.files()[&file(missing)]).unwrap();
        drop(image);
        wait_until("the disk is in service", || state(&harness, disk) == StorageState::Ready);
        wait_until("DiskRecovered is emitted once", || {
            harness.events(EventKind::DiskRecovered.id()).len() == 1
        });
        assert!(has_pattern(&harness), "{missing}");
        assert_eq!(harness.events(EventKind::DiskFileMade.id()).len(), 2, "of the first start");
    }
}

/// A store that is not mounted is an empty directory.
#[test]
fn a_store_that_is_mounted_later_is_found_and_its_mount_point_stays_empty() {
    let (store, devices, disks) = with_data().kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    disks.put_store(DISK_STORE, MemoryFiles::default());
    let harness = Harness::with_disks(store, devices, disks);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_missing(&harness, "data", "/srv/fast/data.vhdx");
    let mount_point = harness.disks.store(DISK_STORE);
    harness.disks.put_store(DISK_STORE, files);
    wait_until("the disks are in service", || harness.disks.served_counts().0 == 2);
    assert!(has_pattern(&harness));
    assert!(mount_point.files().is_empty());
}

#[test]
fn a_store_that_is_unmounted_in_service_leads_to_no_empty_image() {
    let harness = with_data();
    let files = harness.disks.take_store(DISK_STORE);
    harness.disks.put_store(DISK_STORE, MemoryFiles::default());
    harness.disks.lose("the store was unmounted");
    let is_missing = || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("is missing"))
    };
    wait_until("the retry has failed", is_missing);
    assert!(harness.disks.files(DISK_STORE).is_empty());
    harness.disks.put_store(DISK_STORE, files);
    wait_until("the disks are in service", || harness.disks.served_counts().0 == 2);
    assert!(has_pattern(&harness));
}

#[test]
fn another_file_must_exist_unless_an_image_is_requested() {
    let harness = with_data();
    let patches = [
        (r#"{"file": "new.raw"}"#, "/srv/fast/new.raw"),
        (r#"{"store": "other"}"#, "/srv/other/boot.raw"),
        (r#"{"format": "vhdx"}"#, "/srv/fast/boot.vhdx"),
    ];
    for (patch, path) in patches {
        assert_refused(&set(&harness, "boot", patch, false), "disk/boot", path);
        assert_eq!(harness.node.config(), two_disks());
        assert_eq!(state(&harness, "boot"), StorageState::Ready);
    }
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert!(harness.disks.files(OTHER_STORE).is_empty());

    let operation = set(&harness, "boot", r#"{"file": "new.raw"}"#, true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let note = operation.plan.unwrap().steps[0].note.clone().unwrap();
    assert!(note.contains("/srv/fast/new.raw"), "{note}");
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx", "new.raw"]);
    harness.wait_events(EventKind::DiskFileMade.id(), 3);
    // The former file exists.
    let operation = set(&harness, "boot", r#"{"file": null}"#, false);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(has_pattern(&harness));
    // An existing image is opened also if a new one is requested.
    let operation = set(&harness, "boot", r#"{"file": "new.raw"}"#, true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    harness.wait_events(EventKind::DiskFileMade.id(), 3);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
}

#[test]
fn another_path_of_a_store_must_contain_the_images() {
    let harness = with_data();
    let patch = br#"{"path": "/srv/empty"}"#.to_vec();
    harness.disks.put_store("/srv/empty", MemoryFiles::default());
    let edit = Edit::Store(ResourceEdit::Patch(name("fast"), patch));
    // Only a change of one disk can request an image.
    let options = ChangeOptions { creates_image: true, ..ChangeOptions::default() };
    let operation = submitted(&harness, edit, options);
    assert_refused(&operation, "disk/boot", "/srv/empty/boot.raw");
    assert!(harness.disks.files("/srv/empty").is_empty());
    assert_eq!(harness.disks.served_counts().0, 2);
}

#[test]
fn a_renamed_disk_is_not_new() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    let mut config = two_disks();
    config.disks[0].name = name("renamed");
    config.disks[0].file = Some("boot.raw".parse().unwrap());
    assert_refused(&harness.apply(&config), "disk/renamed", "/srv/fast/boot.raw");
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    // A disk that was deleted before is new.
    let mut removed = config.clone();
    removed.disks.remove(0);
    harness.apply_ok(&removed);
    harness.apply_ok(&config);
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
}

#[test]
fn a_failed_disk_gets_an_empty_image_on_request() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    let operation = set(&harness, "boot", "{}", false);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");

    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(state(&harness, "boot"), StorageState::Ready);
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.node.config(), two_disks());
    harness.wait_events(EventKind::DiskFileMade.id(), 3);
    // A disk in service is not changed.
    let (requests, revision) = (harness.disks.served_counts(), harness.node.host_status().revision);
    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(
        (harness.disks.served_counts(), harness.node.host_status().revision),
        (requests, revision)
    );
}

#[test]
fn a_request_for_an_image_that_fails_leaves_no_image() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    harness.disks.refuse("/run/refused.sock", true);
    let patch = r#"{"nbd": {"socket": "/run/refused.sock"}}"#;
    let operation = set(&harness, "boot", patch, true);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    // The request does not outlive its operation.
    let operation = set(&harness, "boot", r#"{"serial": "S1"}"#, false);
    assert_refused(&operation, "disk/boot", "/srv/fast/boot.raw");
}

#[test]
fn an_image_created_on_request_is_removed_if_the_change_fails_later() {
    let harness = with_data();
    // Commits of the change: intent, and new state.
    harness.store.arm(crate::testing::StoreFailure::Refuse(1));
    let operation = set(&harness, "boot", r#"{"file": "new.raw"}"#, true);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(state(&harness, "boot"), StorageState::Ready);
    assert!(has_pattern(&harness));
}

fn preview(harness: &Harness, patch: &str, creates_image: bool) -> Result<(), Vec<ApiError>> {
    let edit = Edit::Disk(ResourceEdit::Patch(name("boot"), patch.as_bytes().to_vec()));
    let options = ChangeOptions { creates_image, ..ChangeOptions::default() };
    harness.node.preview(&edit, options).map(drop)
}

#[test]
fn a_plan_of_a_change_that_needs_a_missing_file_is_refused() {
    let harness = with_data();
    let missing = r#"{"file": "new.raw"}"#;
    let errors = preview(&harness, missing, false).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].resource.as_deref(), Some("disk/boot"));
    assert!(errors[0].message.contains("/srv/fast/new.raw"), "{errors:?}");
    preview(&harness, missing, true).unwrap();
    // Neither an existing file, nor a live change, nor a new disk needs an image.
    let config = HostConfig { disks: Vec::new(), ..two_disks() };
    preview(&harness, r#"{"serial": "S1"}"#, false).unwrap();
    preview(&harness, r#"{"qos": {"max_iops": 500}}"#, false).unwrap();
    harness.node.preview(&Edit::Apply(Box::new(config)), ChangeOptions::default()).unwrap();
    let added = host(&format!("{}{}", stores(), disk("added", "raw"))).disks.remove(0);
    let add = Edit::Disk(ResourceEdit::Add(added));
    harness.node.preview(&add, ChangeOptions::default()).unwrap();

    let (harness, _) = restarted_without(harness, &["boot.raw"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_eq!(preview(&harness, r#"{"serial": "S1"}"#, false).unwrap_err().len(), 1);
    preview(&harness, r#"{"qos": {"max_iops": 500}}"#, false).unwrap();
    preview(&harness, "{}", true).unwrap();
}

/// QEMU does not reconnect a device that its guest has not started.
#[test]
fn a_failed_disk_that_is_still_offered_gets_an_image_on_request() {
    let harness = with_stopped_vm();
    let operation = set(&harness, "boot", "{}", true);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(state(&harness, "boot"), StorageState::Ready);
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw"]);
}

#[test]
fn a_disk_with_a_pending_retry_is_opened_anew_on_request() {
    let (store, devices, disks) = with_data().kill_with_disks();
    let files = disks.store(DISK_STORE);
    files.set_stalled(true);
    let harness = Harness::with_disks(store, devices, disks);
    let disks = &harness.node.shared().disks;
    let entry = disks.find(&name("boot")).unwrap();
    assert!(entry.lock().opening.is_some());
    assert!(disks.images_before(Some(name("boot"))).is_created_disk_reopened);
    files.set_stalled(false);
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(!disks.images_before(Some(name("boot"))).is_created_disk_reopened);
}

/// An attempt that began before the request must not create the image after it.
#[test]
fn an_attempt_uses_the_state_at_its_beginning() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    let shared = harness.node.shared();
    let entry = shared.disks.find(&name("boot")).unwrap();
    let earlier = shared.image_task(&entry);
    entry.set_new(true);
    let later = shared.image_task(&entry);
    let unopened = earlier.open().err().unwrap();
    assert!(unopened.error.message.contains("is missing") && !unopened.has_file);
    entry.set_new(false);
    let opened = later.open().ok().unwrap();
    assert!(opened.created_file.is_some());
    opened.undo();
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

/// The removal is queued behind a store that does not respond.
#[test]
fn a_file_that_is_about_to_be_removed_is_not_opened() {
    let harness = with_data();
    let disks = &harness.node.shared().disks;
    let removed = disks.stores.reserved_files.add(DISK_STORE.as_ref(), &file("boot.raw"));
    let operation = set(&harness, "boot", r#"{"serial": "S1"}"#, false);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert_eq!(operation.error.unwrap().code, ErrorCode::DeviceBusy);
    // Also the rollback does not open it.
    wait_until("the disk has failed for this reason", || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("is being created or removed"))
    });
    drop(removed);
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(has_pattern(&harness));
}
