//! Tests of jobs that a daemon did not complete: the next daemon resumes exactly these.

use suimon_contract::{
    ConvertDiskRequest, DiskFormat, EventKind, HostConfig, Operation, OperationState, StorageState,
};
use suimon_ports::StateStore;

use crate::DiskFileJob;
use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name, wait_until};

const DRAFT: &str = ".copy.vhdx.suimon-new";

/// Returns a disk large enough that a job on it does not complete during the test.
fn config(extra: &str) -> HostConfig {
    host(&format!(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = "16 TiB"
        {extra}
        "#
    ))
}

fn convert() -> DiskFileJob {
    DiskFileJob::Convert(ConvertDiskRequest {
        file: "copy.vhdx".parse().unwrap(),
        format: DiskFormat::Vhdx,
        kind: None,
    })
}

/// Starts a daemon and a conversion, and returns while the conversion runs.
fn converting() -> Harness {
    let harness = Harness::with_store();
    harness.apply_ok(&config(""));
    let operation = harness.node.start_disk_job(&name("data"), convert()).unwrap();
    wait_until("the conversion is in progress", || {
        harness.node.operation(operation.id).unwrap().steps_done > 1000
    });
    harness
}

/// Stops the daemon regularly, and starts another one with its state.
fn end(harness: Harness) -> Harness {
    harness.node.stop();
    kill(harness)
}

fn kill(harness: Harness) -> Harness {
    let (store, devices, disks) = harness.kill_with_disks();
    Harness::with_disks(store, devices, disks)
}

fn only_operation(harness: &Harness) -> Operation {
    let operations = harness.node.operations();
    assert_eq!(operations.len(), 1, "{operations:?}");
    operations[0].clone()
}

fn goes_on(harness: &Harness) -> Operation {
    harness.node.finish_start();
    wait_until("the job is resumed", || !harness.node.operations().is_empty());
    only_operation(harness)
}

/// Returns the recorded number of starts of the job since its last progress.
fn attempts(harness: &Harness) -> u64 {
    let record = harness.store.read("disk_work", "data").unwrap().unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    record["tries"].as_u64().unwrap()
}

fn is_ready(harness: &Harness) -> bool {
    harness.node.disk("data").unwrap().state == StorageState::Ready
}

fn assert_nothing_left(harness: &Harness, files: &[&str]) {
    wait_until("the disk is in service and no other file exists", || {
        let is_forgotten = harness.store.keys("disk_work").is_empty();
        is_ready(harness) && is_forgotten && harness.disks.files(DISK_STORE) == files
    });
}

fn assert_abandoned(harness: &Harness, reason: &str) {
    let events = || harness.events(EventKind::DiskWorkGivenUp.id());
    wait_until("an event is emitted", || !events().is_empty());
    assert_eq!(events().len(), 1);
    assert!(events()[0].text.contains(reason), "{}", events()[0].text);
}

#[test]
fn a_job_continues_from_its_checkpoint_after_a_stop_of_the_daemon() {
    let harness = end(converting());
    assert_eq!(harness.store.keys("disk_work"), ["data"]);
    let reason = harness.node.disk("data").unwrap().reason;
    assert_eq!(reason.as_deref(), Some("being opened"), "the disk is not in service before");
    let operation = goes_on(&harness);
    assert_eq!(
        (operation.kind.as_str(), operation.subject.as_str()),
        ("disk convert", "disk/data")
    );
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_nothing_left(&harness, &["copy.vhdx", "data.vhdx"]);
    let events = harness.wait_events(EventKind::DiskWorkResumed.id(), 1);
    let start_bytes: u64 = events[0].fields["from_bytes"].parse().unwrap();
    assert!(start_bytes > 1000 << 20, "{start_bytes}");
}

#[test]
fn a_job_without_a_checkpoint_starts_again_after_a_kill_and_can_be_cancelled() {
    let harness = kill(converting());
    assert_eq!(harness.disks.files(DISK_STORE), [DRAFT, "data.vhdx"]);
    let operation = goes_on(&harness);
    wait_until("the job is in progress", || {
        harness.node.operation(operation.id).unwrap().steps_done > 100
    });
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::OperationInProgress);
    assert_eq!(harness.wait_event(EventKind::DiskWorkResumed.id()).fields["from_bytes"], "0");
    harness.node.cancel_operation(operation.id);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
    assert_nothing_left(&harness, &["data.vhdx"]);
    let harness = kill(harness);
    harness.node.finish_start();
    assert_nothing_left(&harness, &["data.vhdx"]);
    assert!(harness.node.operations().is_empty());
}

#[test]
fn a_job_is_abandoned_after_three_daemon_exits_without_progress() {
    let mut harness = kill(converting());
    // A job that reaches a checkpoint before the daemon is killed has made progress.
    while attempts(&harness) < 3 {
        goes_on(&harness);
        harness = kill(harness);
    }
    harness.node.finish_start();
    assert_nothing_left(&harness, &["data.vhdx"]);
    assert!(harness.node.operations().is_empty());
    assert_abandoned(&harness, "3 daemons");
}

#[test]
fn a_job_of_a_changed_or_deleted_disk_is_abandoned() {
    let without_disks = host("[[store]]\nname = \"fast\"\npath = \"/srv/fast\"");
    let harness = end(converting());
    // An image is created only for a new disk.
    harness.apply_ok(&without_disks);
    harness.apply_ok(&config("file = \"other.vhdx\""));
    harness.node.finish_start();
    assert_nothing_left(&harness, &["data.vhdx", "other.vhdx"]);
    assert_abandoned(&harness, "another file");

    let harness = end(converting());
    harness.apply_ok(&without_disks);
    harness.node.finish_start();
    wait_until("the record of the job is deleted", || harness.store.keys("disk_work").is_empty());
    wait_until("the job's image is removed", || harness.disks.files(DISK_STORE) == ["data.vhdx"]);
}

#[test]
fn a_job_that_cannot_be_recorded_does_not_start() {
    let harness = Harness::with_store();
    harness.apply_ok(&config(""));
    harness.store.arm(crate::testing::StoreFailure::Refuse(0));
    let operation = harness.node.start_disk_job(&name("data"), convert()).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert_nothing_left(&harness, &["data.vhdx"]);
}

#[test]
fn a_resumed_job_waits_for_its_store() {
    let harness = end(converting());
    let files = harness.disks.take_store(DISK_STORE);
    let operation = goes_on(&harness);
    wait_until("the job waits for the store", || {
        let step = harness.node.operation(operation.id).unwrap().current_step;
        step.is_some_and(|step| step.starts_with("waiting for the store"))
    });
    harness.disks.put_store(DISK_STORE, files);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_nothing_left(&harness, &["copy.vhdx", "data.vhdx"]);
}

/// The number of regular restarts exceeds the limit for daemon exits without progress.
#[test]
fn a_job_waits_for_space_over_restarts_unless_its_disk_reports_full_stores() {
    let mut harness = Harness::with_store();
    harness.apply_ok(&config(""));
    let wait_queued = |harness: &Harness| {
        wait_until("the conversion waits for space", || {
            let operations = harness.node.operations();
            let conversion = operations.iter().find(|operation| operation.kind == "disk convert");
            let step = conversion.and_then(|conversion| conversion.current_step.as_deref());
            step.is_some_and(|step| step.contains("store fast is full"))
        });
    };
    harness.disks.store(DISK_STORE).set_change_limit(Some(0));
    harness.node.start_disk_job(&name("data"), convert()).unwrap();
    wait_queued(&harness);
    for _ in 0..4 {
        harness = end(harness);
        harness.disks.store(DISK_STORE).set_change_limit(Some(0));
        goes_on(&harness);
        wait_queued(&harness);
    }
    let operation = only_operation(&harness);
    harness.node.cancel_operation(operation.id);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled, "{operation:?}");
    harness.disks.store(DISK_STORE).set_change_limit(None);
    assert_nothing_left(&harness, &["data.vhdx"]);

    harness.disks.store(DISK_STORE).set_change_limit(Some(0));
    let operation = harness.node.start_disk_job(&name("data"), convert()).unwrap();
    wait_until("the conversion waits for space", || {
        let step = harness.node.operation(operation.id).unwrap().current_step.unwrap_or_default();
        step.contains("store fast is full")
    });
    harness.disks.store(DISK_STORE).set_change_limit(None);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_nothing_left(&harness, &["copy.vhdx", "data.vhdx"]);

    harness.apply_ok(&config("on_full = \"error\""));
    harness.disks.store(DISK_STORE).set_change_limit(Some(0));
    let operation = harness.node.start_disk_job(&name("data"), other_copy()).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    harness.disks.store(DISK_STORE).set_change_limit(None);
}

fn other_copy() -> DiskFileJob {
    let DiskFileJob::Convert(request) = convert() else { unreachable!("it converts") };
    DiskFileJob::Convert(ConvertDiskRequest { file: "other.vhdx".parse().unwrap(), ..request })
}
