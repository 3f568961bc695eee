//! Disks whose flush has failed, with stores in memory.

use suimon_contract::{
    EventKind, HostConfig, Operation, OperationState, SnapshotDiskRequest, StorageState,
};

use crate::DiskFileJob;
use crate::testing::{DEADLINE, Harness, host, name, wait_until};

fn config() -> HostConfig {
    host(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = 8388608
        vhost_user = { socket = "/run/data.sock" }
        "#,
    )
}

/// Returns a host with a disk whose flush has failed.
fn failed_disk_host() -> Harness {
    let harness = Harness::with_store();
    harness.apply_ok(&config());
    harness.disks.connect(true);
    harness.disks.fail_flush("input/output error");
    let event = harness.wait_event(EventKind::DiskFlushFailed.id());
    assert!(event.text.contains("suimon disk reopen data"), "{}", event.text);
    assert_eq!(event.fields["detail"], "input/output error");
    harness
}

fn state(harness: &Harness) -> StorageState {
    harness.node.disk("data").unwrap().state
}

fn run(harness: &Harness, work: DiskFileJob) -> Operation {
    let operation = harness.node.start_disk_job(&name("data"), work).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap()
}

#[test]
fn a_disk_whose_flush_failed_is_shown_until_it_is_reopened() {
    let harness = failed_disk_host();
    assert_eq!(state(&harness), StorageState::Faulted);
    let reason = harness.node.disk("data").unwrap().reason.unwrap();
    assert!(reason.contains("input/output error") && reason.contains("disk reopen"), "{reason}");
    let snapshot = SnapshotDiskRequest { file: "child.vhdx".parse().unwrap() };
    let error = run(&harness, DiskFileJob::Snapshot(snapshot)).error.unwrap();
    assert!(error.message.contains("disk reopen"), "{error}");
    assert_eq!(state(&harness), StorageState::Faulted);
    let operation = run(&harness, DiskFileJob::Reopen);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(state(&harness), StorageState::Ready);
    harness.wait_events(EventKind::DiskRecovered.id(), 1);
    assert_eq!(harness.disks.served_counts(), (1, 1), "its clients have seen a pause");
}

#[test]
fn a_disk_without_a_failed_flush_is_reopened_too() {
    let harness = Harness::with_store();
    harness.apply_ok(&config());
    assert_eq!(run(&harness, DiskFileJob::Reopen).state, OperationState::Succeeded);
    assert_eq!(state(&harness), StorageState::Ready);
}

#[test]
fn an_image_that_the_failed_flush_has_damaged_is_not_served() {
    let harness = failed_disk_host();
    // One of two region tables (MS-VHDX, 2.2.3), without which the image can be opened.
    harness.disks.overwrite(192 << 10, &vec![0xff; 64 << 10]);
    let operation = run(&harness, DiskFileJob::Reopen);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    wait_until("the disk has failed", || state(&harness) == StorageState::Failed);
}
