//! Tests of snapshots and jobs on disks, with stores in memory.

use suimon_contract::{
    ApiError, DiskKind, ErrorCode, EventKind, HostConfig, Operation, OperationState, StorageState,
};

use suimon_image_files::LAYERS_MAX;
use suimon_ports::{FileName, StoreFiles};

use crate::testing::{DEADLINE, DISK_STORE, Harness, StoreFailure, host, name, wait_until};
use crate::{ChangeOptions, DiskFileJob, Edit, ResourceEdit};

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
        nbd = { socket = "/run/nbd.sock" }
        "#,
    )
}

fn harness() -> Harness {
    let harness = Harness::with_store();
    harness.apply_ok(&config());
    harness
}

fn begin(harness: &Harness, work: DiskFileJob) -> Result<Operation, ApiError> {
    harness.node.start_disk_job(&name("data"), work)
}

fn run(harness: &Harness, work: DiskFileJob) -> Operation {
    let operation = begin(harness, work).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap()
}

fn run_well(harness: &Harness, work: DiskFileJob) -> Operation {
    let operation = run(harness, work);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    operation
}

fn snapshot(file: &str) -> DiskFileJob {
    DiskFileJob::Snapshot(suimon_contract::SnapshotDiskRequest { file: file.parse().unwrap() })
}

fn convert(file: &str) -> DiskFileJob {
    DiskFileJob::Convert(suimon_contract::ConvertDiskRequest {
        file: file.parse().unwrap(),
        format: suimon_contract::DiskFormat::Vhdx,
        kind: None,
    })
}

/// Simulates a daemon that is killed, and one that starts with the state it has left.
fn kill(harness: Harness) -> Harness {
    let (store, devices, disks) = harness.kill_with_disks();
    Harness::with_disks(store, devices, disks)
}

fn is_ready(harness: &Harness) -> bool {
    harness.node.disk("data").unwrap().state == StorageState::Ready
}

#[test]
fn a_check_reports_and_the_disk_is_in_service_again() {
    let harness = harness();
    let operation = run_well(&harness, DiskFileJob::Check);
    assert_eq!((operation.kind.as_str(), operation.subject.as_str()), ("disk check", "disk/data"));
    assert!(operation.report.iter().any(|line| line.contains("no damage")), "{operation:?}");
    assert!(is_ready(&harness) && harness.disks.sockets().1.len() == 1);
    harness.wait_events(EventKind::DiskChecked.id(), 1);
    run_well(&harness, DiskFileJob::Compact);
    assert!(is_ready(&harness));
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

#[test]
fn a_damaged_disk_that_cannot_be_opened_is_checked() {
    let harness = harness();
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let damaged = files.files().into_iter().map(|(name, mut bytes)| {
        // Both region tables (MS-VHDX, 2.2.3).
        bytes[192 << 10..320 << 10].fill(0xff);
        (name, bytes)
    });
    disks.put_store(DISK_STORE, suimon_ports::testing::MemoryStore::with_files(damaged));
    let harness = Harness::with_disks(store, devices, disks);
    assert!(!is_ready(&harness));
    let operation = run_well(&harness, DiskFileJob::Check);
    assert!(operation.report[0].starts_with("damage: data.vhdx"), "{:?}", operation.report);
    assert!(!is_ready(&harness));
}

#[test]
fn disks_in_use_or_with_a_job_are_rejected() {
    let harness = harness();
    harness.disks.connect(true);
    let error = begin(&harness, DiskFileJob::Merge).unwrap_err();
    assert_eq!(error.code, ErrorCode::InUse);
    assert!(error.message.contains("shut down the VM"), "{error}");
    harness.disks.connect(false);
    let error = harness.node.start_disk_job(&name("none"), DiskFileJob::Check).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    let error = run(&harness, DiskFileJob::Merge).error.unwrap();
    assert_eq!(error.code, ErrorCode::InvalidValue, "{error}");
    assert!(is_ready(&harness));
    let error = run(&harness, snapshot("data.vhdx")).error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("disk/data"), "{error}");
}

#[test]
fn changes_proceed_during_a_long_job_which_can_be_cancelled() {
    let harness = harness();
    let mut larger = config();
    larger.disks[0].size_bytes = Some("64 TiB".parse().unwrap());
    harness.apply_ok(&larger);
    let operation = begin(&harness, convert("copy.vhdx")).unwrap();
    let step = || harness.node.operation(operation.id).unwrap().current_step.unwrap_or_default();
    wait_until("the operation shows the step convert", || step().starts_with("convert: "));
    let status = harness.node.disk("data").unwrap();
    assert_eq!(status.state, StorageState::OperationInProgress);
    assert!(status.reason.unwrap().contains("disk convert"));

    let error = begin(&harness, DiskFileJob::Check).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    let edit = Edit::Disk(ResourceEdit::Patch(name("data"), br#"{"serial": "s"}"#.to_vec()));
    assert_eq!(harness.node.submit(edit).unwrap_err()[0].code, ErrorCode::Conflict);
    let other = host("[[switch]]\nname = \"lan\"\nkind = \"private\"").switches.remove(0);
    let added = harness.change(Edit::Switch(ResourceEdit::Add(other)));
    assert_eq!(added.state, OperationState::Succeeded);
    assert_eq!(harness.node.operation(operation.id).unwrap().state, OperationState::Running);

    harness.node.cancel_operation(operation.id);
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"], "the incomplete image is removed");
    assert!(is_ready(&harness));
}

#[test]
fn a_snapshot_is_taken_in_service_and_merged_again() {
    let harness = harness();
    harness.disks.connect(true);
    run_well(&harness, snapshot("one.vhdx"));
    assert_eq!(harness.disks.served_counts(), (1, 1), "the disk was never out of service");
    run_well(&harness, snapshot("two.vhdx"));
    let disk = harness.node.config().disks.remove(0);
    assert_eq!(disk.kind, Some(DiskKind::Differencing));
    assert_eq!(disk.file.unwrap().as_str(), "two.vhdx");
    assert_eq!(disk.parent.unwrap().as_str(), "one.vhdx");
    assert_eq!(harness.store.keys("doomed"), Vec::<String>::new());

    let harness = kill(harness);
    assert!(is_ready(&harness));
    run_well(&harness, DiskFileJob::Merge);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx", "one.vhdx"]);
    run_well(&harness, DiskFileJob::Merge);
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    assert_eq!(harness.store.keys("doomed"), Vec::<String>::new());
    let disk = harness.node.config().disks.remove(0);
    assert_eq!((disk.kind, disk.parent), (Some(DiskKind::Dynamic), None));
    assert!(is_ready(&harness));
}

#[test]
fn a_host_file_from_before_a_snapshot_does_not_revert_the_disk() {
    let harness = harness();
    run_well(&harness, snapshot("one.vhdx"));
    run_well(&harness, snapshot("two.vhdx"));
    let snapshot_config = harness.node.config();
    let errors = harness.node.submit(Edit::Apply(Box::new(config()))).unwrap_err();
    assert_eq!(errors[0].code, ErrorCode::Conflict, "{errors:?}");
    assert!(errors[0].message.contains("suimon disk merge data"), "{errors:?}");
    assert_eq!(harness.node.config(), snapshot_config);
    harness.apply_ok(&snapshot_config);
    // The state as of the first snapshot is readable if the disk is read-only.
    let mut past = config();
    past.disks[0].read_only = true;
    harness.apply_ok(&past);
    harness.apply_ok(&snapshot_config);
    let force = ChangeOptions { forces_minimums: true, ..ChangeOptions::default() };
    let edit = || Edit::Apply(Box::new(config()));
    assert!(harness.node.submit_with(edit(), force).is_err(), "--force is for minimums");
    harness.change(Edit::Disk(ResourceEdit::Delete(name("data"))));
    // The images of the snapshots still have the parent, so that no new disk writes to it.
    let error = harness.apply(&config()).error.unwrap();
    assert!(error.message.contains("data.vhdx is the parent of one.vhdx"), "{error}");
    for file in ["one.vhdx", "two.vhdx"] {
        harness.disks.store(DISK_STORE).remove(&FileName::new(file).unwrap()).unwrap();
    }
    harness.apply_ok(&config());
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
}

#[test]
fn a_parent_is_not_opened_for_writing_by_another_disk_or_while_its_child_is_not_open() {
    let harness = harness();
    run_well(&harness, snapshot("one.vhdx"));
    run_well(&harness, snapshot("two.vhdx"));
    let apply = |harness: &Harness, config: HostConfig| {
        harness.node.submit(Edit::Apply(Box::new(config))).unwrap_err().remove(0)
    };
    // Host file from before the snapshots, with the disk renamed.
    let mut renamed = config();
    renamed.disks[0].name = name("other");
    renamed.disks[0].file = Some("data.vhdx".parse().unwrap());
    let error = apply(&harness, renamed);
    assert_eq!(error.resource.as_deref(), Some("disk/other"), "{error:?}");
    assert!(error.message.contains("the image of disk/data"), "{error:?}");

    let lost = FileName::new("one.vhdx").unwrap();
    harness.disks.store(DISK_STORE).remove(&lost).unwrap();
    let harness = kill(harness);
    wait_until("the disk has failed", || {
        harness.node.disk("data").unwrap().state == StorageState::Failed
    });
    let error = apply(&harness, config());
    assert!(error.message.contains("is not open"), "{error:?}");
}

#[test]
fn a_snapshot_that_cannot_be_recorded_leaves_the_disk_as_it_was() {
    let harness = harness();
    // Commit 0 records the new file, commit 1 the new desired state.
    harness.store.arm(StoreFailure::Refuse(1));
    let operation = run(&harness, snapshot("one.vhdx"));
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(harness.node.config(), config());
    assert_eq!(harness.disks.files(DISK_STORE), ["data.vhdx"]);
    assert!(is_ready(&harness));
    let error = operation.error.unwrap();
    assert!(error.message.contains("full"), "{error}");
    run_well(&harness, snapshot("one.vhdx"));
}

#[test]
fn a_disk_with_the_maximum_number_of_files_works_and_is_merged() {
    let harness = harness();
    for nth in 1..LAYERS_MAX {
        run_well(&harness, snapshot(&format!("{nth}.vhdx")));
    }
    let layers = || harness.node.disk("data").unwrap().layers;
    assert_eq!(layers(), Some(64));
    harness.wait_events(EventKind::DiskHasManyLayers.id(), 64 - 48 + 1);
    let before = harness.node.config();
    let error = begin(&harness, snapshot("more.vhdx")).unwrap_err();
    assert!(error.message.contains("suimon disk merge data"), "{error}");
    assert_eq!(harness.node.config(), before);
    assert_eq!(harness.disks.files(DISK_STORE).len(), 64);
    let harness = kill(harness);
    assert!(is_ready(&harness));
    run_well(&harness, DiskFileJob::Merge);
    run_well(&harness, snapshot("more.vhdx"));
    assert!(is_ready(&harness));
}

/// Whichever commit a crash interrupts, the next daemon opens the disk and leaves no unused file.
#[test]
fn a_crash_during_a_snapshot_or_a_merge_leaves_one_of_two_states() {
    for is_merge in [false, true] {
        for nth in 0..6 {
            for after in [false, true] {
                let harness = harness();
                if is_merge {
                    run_well(&harness, snapshot("one.vhdx"));
                }
                let crash = if after {
                    StoreFailure::CrashAfter(nth)
                } else {
                    StoreFailure::CrashBefore(nth)
                };
                harness.store.arm(crash);
                let work = if is_merge { DiskFileJob::Merge } else { snapshot("one.vhdx") };
                if let Ok(operation) = begin(&harness, work) {
                    harness.node.wait_operation(operation.id, DEADLINE);
                }
                let harness = kill(harness);
                let case = format!("merge {is_merge}, commit {nth}, after {after}");
                // An interrupted merge is resumed from its record.
                harness.node.finish_start();
                wait_until(&case, || {
                    is_ready(&harness) && harness.store.keys("disk_work").is_empty()
                });
                let disk = harness.node.config().disks.remove(0);
                let files: &[&str] = match disk.parent {
                    Some(_) => &["data.vhdx", "one.vhdx"],
                    None => &["data.vhdx"],
                };
                assert_eq!(harness.disks.files(DISK_STORE), files, "{case}");
                assert_eq!(harness.store.keys("doomed"), Vec::<String>::new(), "{case}");
                assert_eq!(harness.store.keys("desired"), ["current"], "{case}");
            }
        }
    }
}
