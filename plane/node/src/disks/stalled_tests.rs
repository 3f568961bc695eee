//! Tests of stores that do not respond: only their own disks are affected.

use std::time::{Duration, Instant};

use suimon_contract::{EventKind, HostConfig, Operation, OperationState, StorageState};
use suimon_ports::testing::MemoryStore;

use super::store_threads::STORE_TIMEOUT;
use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name, wait_until};
use crate::{ChangeOptions, DiskFileJob, Edit, ResourceEdit};

/// Upper bound for operations that must not wait for the store; operations that need the store wait
/// this long. Unaffected operations need milliseconds of CPU time, and a start waits for stores a
/// fifth of this bound, so that the bound holds on a loaded machine. The store does not respond
/// meanwhile, so that a wrong wait would exceed the bound.
const AT_ONCE: Duration = STORE_TIMEOUT;

fn two_stores() -> HostConfig {
    host(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[store]]
        name = "other"
        path = "/srv/other"
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = 8388608
        [[disk]]
        name = "good"
        store = "other"
        format = "raw"
        size_bytes = 1048576
        "#,
    )
}

/// Creates a host with two ready disks. Returns it with the store that is going to stall.
fn ready() -> (Harness, MemoryStore) {
    let harness = Harness::with_store();
    harness.disks.put_store("/srv/other", MemoryStore::default());
    harness.apply_ok(&two_stores());
    let store = harness.disks.store(DISK_STORE);
    (harness, store)
}

fn serial(harness: &Harness, disk: &str, serial: &str) -> Operation {
    let patch = format!("{{\"serial\": \"{serial}\"}}");
    harness.change(Edit::Disk(ResourceEdit::Patch(name(disk), patch.into_bytes())))
}

/// Asserts that the other disk can be changed and read without delay.
fn assert_others_go_on(harness: &Harness, text: &str) {
    let started = Instant::now();
    let changed = serial(harness, "good", text);
    assert_eq!(changed.state, OperationState::Succeeded, "{changed:?}");
    assert_eq!(harness.node.disks().len(), 2);
    assert_eq!(harness.node.disk("good").unwrap().state, StorageState::Ready);
    assert_eq!(harness.node.stores().len(), 2);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
}

fn state(harness: &Harness) -> StorageState {
    harness.node.disk("data").unwrap().state
}

#[test]
fn a_change_of_a_disk_on_a_stalled_store_is_rejected_and_the_disk_recovers() {
    let (harness, store) = ready();
    store.set_stalled(true);
    let changed = serial(&harness, "data", "new");
    assert_eq!(changed.state, OperationState::Failed);
    let error = changed.error.unwrap();
    assert!(error.message.contains("has not responded"), "{error}");
    assert_eq!(error.resource.as_deref(), Some("disk/data"));
    assert_others_go_on(&harness, "one");
    // The store is marked as silent now, so that the second change fails at once.
    let started = Instant::now();
    let changed = serial(&harness, "data", "new");
    assert_eq!(changed.state, OperationState::Failed);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    store.set_stalled(false);
    wait_until("the disk is ready", || state(&harness) == StorageState::Ready);
    assert_eq!(serial(&harness, "data", "new").state, OperationState::Succeeded);
}

#[test]
fn an_abandoned_creation_of_a_disk_leaves_no_file() {
    let harness = Harness::with_store();
    harness.disks.put_store("/srv/other", MemoryStore::default());
    let (mut config, store) = (two_stores(), harness.disks.store(DISK_STORE));
    let data = config.disks.remove(0);
    harness.apply_ok(&config);
    // The request opens the store.
    assert_eq!(harness.node.stores().len(), 2);
    store.set_stalled(true);
    let added = harness.change(Edit::Disk(ResourceEdit::Add(data.clone())));
    assert_eq!(added.state, OperationState::Failed, "{added:?}");
    store.set_stalled(false);
    wait_until("the created file is removed", || {
        harness.disks.files(DISK_STORE).is_empty() && !store.ops().is_empty()
    });
    wait_until("the store responds", || {
        let added = harness.change(Edit::Disk(ResourceEdit::Add(data.clone())));
        added.state == OperationState::Succeeded
    });
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

#[test]
fn a_daemon_starts_although_a_store_stalls() {
    let (harness, _) = ready();
    let (state_store, devices, disks) = harness.kill_with_disks();
    let store = disks.store(DISK_STORE);
    store.set_stalled(true);
    let started = Instant::now();
    let harness = Harness::with_disks(state_store, devices, disks);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_others_go_on(&harness, "two");
    wait_until("DiskOpeningStalled is emitted once", || {
        harness.events(EventKind::DiskOpeningStalled.id()).len() == 1
    });
    let status = harness.node.disk("data").unwrap();
    assert_eq!(status.state, StorageState::Stalled);
    assert!(status.reason.unwrap().contains("opens when it responds"));
    assert_others_go_on(&harness, "three");
    store.set_stalled(false);
    wait_until("the disk is ready", || state(&harness) == StorageState::Ready);
    assert_eq!(harness.disks.served_counts().0, 2);
    harness.wait_events(EventKind::DiskRecovered.id(), 1);
}

#[test]
fn a_disk_whose_store_stalls_during_a_snapshot_keeps_its_file() {
    let (harness, store) = ready();
    store.set_stalled(true);
    let request = suimon_contract::SnapshotDiskRequest { file: "snap.vhdx".parse().unwrap() };
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Snapshot(request));
    let id = operation.unwrap().id;
    let operation = harness.node.wait_operation(id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert_others_go_on(&harness, "three");
    store.set_stalled(false);
    wait_until("the disk is ready", || state(&harness) == StorageState::Ready);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

#[test]
fn a_job_on_a_stalled_store_delays_nothing_else_and_continues() {
    let (harness, store) = ready();
    store.set_stalled(true);
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Check).unwrap();
    wait_until("the other disk is added and the job is in progress", || {
        let disk = harness.node.config().disks.len();
        disk == 2 && harness.node.operation(operation.id).unwrap().state == OperationState::Running
    });
    assert_others_go_on(&harness, "four");
    store.set_stalled(false);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    wait_until("the disk is ready", || state(&harness) == StorageState::Ready);
}

#[test]
fn queries_of_a_store_that_stalls_have_one_thread_and_make_it_silent() {
    let (harness, store) = ready();
    let disks = &harness.node.shared().disks;
    let (path, stores) = (std::path::Path::new(DISK_STORE), harness.node.config().stores);
    wait_until("no thread works on the store", || disks.threads.running_on(path) == 0);
    store.set_stalled(true);
    for _ in 0..100 {
        disks.start_space_queries(&stores);
    }
    assert_eq!(disks.threads.running_on(path), 1);
    assert_others_go_on(&harness, "one");
    wait_until("the store is silent", || disks.threads.check_responds(path).is_err());
    store.set_stalled(false);
    wait_until("the store is not silent", || disks.threads.check_responds(path).is_ok());
    disks.start_space_queries(&stores);
    wait_until("no thread works on the store", || disks.threads.running_on(path) == 0);
}

#[test]
fn a_plan_does_not_wait_for_a_store_that_stalls() {
    let (harness, store) = ready();
    store.set_stalled(true);
    let edit = |file: &str| {
        let patch = format!("{{\"file\": \"{file}\"}}");
        Edit::Disk(ResourceEdit::Patch(name("data"), patch.into_bytes()))
    };
    let started = Instant::now();
    let plan = harness.node.preview(&edit("other.vhdx"), ChangeOptions::default()).unwrap();
    let note = plan.steps[0].note.clone().unwrap();
    assert!(note.contains("the kind of the image is unknown"), "{note}");
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    store.set_stalled(false);
}
