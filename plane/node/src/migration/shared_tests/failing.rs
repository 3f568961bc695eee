//! Failures during a handover: at most one node has the disk's file open.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_contract::{EventKind, OperationState, StorageState};
use suimon_ports::{DiskFile, StoreFiles, VmNotice, VmRunState};

use super::pair::{Pair, assert_open, failure, request, state_of_disk, take};
use crate::testing::{StoreFailure, name, wait_until};
use crate::{Edit, ResourceEdit};

/// Time in which failed disks are retried several times.
const RETRIED: Duration = Duration::from_millis(500);

#[test]
fn exactly_one_node_has_the_disk_whichever_call_fails() {
    for call in ["prepare_arrival", "operation", "line", "arrival", "abandon_arrival"] {
        for is_refused in [false, true] {
            let pair = Pair::new();
            // The state of the incoming migration is queried only during a long memory transfer.
            pair.here.vms.hold_memory(call == "arrival");
            pair.watch(move |call_name| (call_name == call).then(|| failure(is_refused)));
            let operation = pair.migrate();
            if call == "abandon_arrival" {
                assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
                pair.assert_there();
            } else {
                assert_eq!(operation.state, OperationState::Failed, "{call} {is_refused}");
                pair.assert_here();
            }
        }
    }
}

#[test]
fn a_vm_whose_migration_is_cancelled_or_fails_keeps_its_disk() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    pair.here.node.cancel_operation(operation.id).unwrap();
    assert_eq!(pair.end(&operation).state, OperationState::Cancelled);
    pair.assert_here();

    let operation = pair.begin();
    pair.wait_for_waiting();
    let reason = "it was killed".to_owned();
    pair.there.vms.guest("web", VmNotice::Ended { is_orderly: false, reason });
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();

    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
}

/// The file is closed on the source, opened on the destination, and returned.
#[test]
fn a_vm_whose_activation_cannot_be_recorded_stays_on_the_source() {
    let pair = Pair::new();
    let remote_store = pair.there.store.clone();
    let has_told = AtomicU32::new(0);
    pair.watch(move |call_name| {
        if call_name == "activate_arrival" && has_told.fetch_add(1, Ordering::Relaxed) == 0 {
            remote_store.arm(StoreFailure::Refuse(0));
        }
        None
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    pair.assert_here();
}

#[test]
fn a_disk_that_the_destination_cannot_open_returns_to_the_source() {
    let pair = Pair::new();
    // Another client opens the file first.
    let held_files: Arc<Mutex<Option<Arc<dyn DiskFile>>>> = Arc::default();
    let (files, holder) = (pair.files.clone(), held_files.clone());
    pair.watch(move |call_name| {
        if call_name == "activate_arrival" {
            *holder.lock().unwrap() = take(&files);
        }
        None
    });
    // The VM is connected, and still paused when the opening fails.
    pair.here.disks.connect(true);
    let served_disks = pair.here.disks.served_counts();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    let message = operation.error.unwrap().message;
    assert!(message.contains("cancelled the migration"), "{message}");
    // The failure is reported, and retried until the other client has closed the file.
    wait_until("the source emits DiskFailed", || {
        !pair.here.events(EventKind::DiskFailed.id()).is_empty()
    });
    held_files.lock().unwrap().take().expect("it was closed here");
    // The disk stays offered until its VM has started the device, because QEMU would not reconnect.
    std::thread::sleep(RETRIED);
    assert_eq!(pair.here.disks.served_counts(), served_disks);
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Failed);
    pair.here.disks.start_devices(true);
    wait_until("the source emits DiskRecovered", || {
        !pair.here.events(EventKind::DiskRecovered.id()).is_empty()
    });
    pair.assert_here();
}

/// The destination's file system is unmounted before the activation, so its directory lacks the
/// store's mark.
#[test]
fn a_store_that_has_changed_before_the_activation_is_rejected() {
    let pair = Pair::new();
    let files = pair.files.clone();
    pair.watch(move |call_name| {
        if call_name == "activate_arrival" {
            let marks = files.names(".suimon-new").unwrap();
            marks.iter().for_each(|mark| files.remove(mark).unwrap());
        }
        None
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    pair.assert_here();
}

#[test]
fn the_source_daemon_is_killed_while_memory_is_copied() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    pair.begin();
    pair.wait_for_waiting();
    let pair = pair.restart_here();
    pair.assert_here();
}

#[test]
fn the_source_daemon_is_killed_after_the_handover() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.watch(move |call_name| (call_name == reaches).then(|| failure(false)));
        pair.begin();
        pair.wait_for_handed_over();
        let pair = pair.restart_here();
        pair.wait_for_handed_over();
        assert_eq!(state_of_disk(&pair.here).0, StorageState::OpenOnOtherNode);
        assert_eq!(pair.here.disks.served_counts(), (0, 0), "the disk is not open on the source");
        pair.here.far_nodes.intercept(|_, _| None);
        pair.assert_there();
    }
}

/// The destination has abandoned the VM before the restarted source activates it.
#[test]
fn a_disk_handed_over_by_a_killed_daemon_is_opened_again() {
    let pair = Pair::new();
    pair.watch(|call_name| (call_name == "activate_arrival").then(|| failure(false)));
    pair.begin();
    pair.wait_for_handed_over();
    let pair = pair.restart_here().restart_there();
    pair.wait_for_handed_over();
    pair.here.far_nodes.intercept(|_, _| None);
    pair.assert_here();
}

/// The control thread is busy, and its queue is full when the disk is to be opened.
#[test]
fn a_returned_disk_is_opened_when_the_control_thread_is_free() {
    let pair = Pair::new();
    pair.watch(|call_name| (call_name == "activate_arrival").then(|| failure(false)));
    pair.begin();
    pair.wait_for_handed_over();
    let pair = pair.restart_here().restart_there();
    pair.wait_for_handed_over();
    let busy = pair.here.keep_busy();
    pair.here.far_nodes.intercept(|_, _| None);
    pair.here.wait_event(EventKind::VmStays.id());
    pair.here.vms.hold_prepare(false);
    assert_eq!(pair.end(&busy).state, OperationState::Failed);
    pair.assert_here();
}

#[test]
fn the_destination_daemon_is_killed_before_the_activation() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    let pair = pair.restart_there();
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();
}

#[test]
fn the_destination_daemon_is_killed_before_and_after_the_activation_request() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.watch(move |call_name| (call_name == reaches).then(|| failure(false)));
        let operation = pair.begin();
        pair.wait_for_handed_over();
        let pair = pair.restart_there();
        pair.here.far_nodes.intercept(|_, _| None);
        let operation = pair.end(&operation);
        if reaches == "activate_arrival" {
            assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
            pair.assert_here();
        } else {
            assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
            pair.assert_there();
        }
    }
}

#[test]
fn a_disk_returns_when_the_destination_is_deleted_from_the_configuration() {
    let pair = Pair::new();
    pair.watch(|call_name| call_name.starts_with("activate_arrival").then(|| failure(false)));
    let operation = pair.begin();
    pair.wait_for_handed_over();
    let (state, reason) = state_of_disk(&pair.here);
    assert_eq!(state, StorageState::OpenOnOtherNode);
    assert!(reason.contains("has taken over the disk"), "{reason}");
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    wait_until("the VM is running on the source", || {
        pair.here.vms.state("web") == Some(VmRunState::Running)
    });
    assert_open(&pair.here);
}

/// After the handover, each write of the state store in turn fails once. The source neither opens
/// the disk nor deletes its file.
#[test]
fn remains_of_a_migrated_disk_do_not_affect_it() {
    for failed_write in 0..8 {
        let pair = Pair::new();
        pair.watch(|call_name| (call_name == "activate_arrival").then(|| failure(false)));
        let operation = pair.begin();
        pair.wait_for_handed_over();
        pair.here.store.arm(StoreFailure::Refuse(failed_write));
        pair.here.far_nodes.intercept(|_, _| None);
        assert_eq!(pair.end(&operation).state, OperationState::Succeeded, "{failed_write}");
        pair.assert_there();
    }
}

/// Queued writes prevent a migration at its start, and end it while memory is copied.
#[test]
fn a_vm_with_queued_writes_migrates_when_there_is_space() {
    let pair = Pair::new();
    pair.here.disks.fill(Some(3));
    let errors = pair.here.node.check_migration(&name("web"), &request("there")).unwrap_err();
    assert!(errors[0].message.contains("writes to disk/web are queued"), "{errors:?}");
    let refused_operation = pair.migrate();
    assert_eq!(refused_operation.state, OperationState::Failed);
    assert_eq!(refused_operation.error.unwrap().message, errors[0].message);
    pair.here.disks.fill(None);
    pair.assert_here();

    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    pair.here.disks.fill(Some(1));
    let failed = pair.end(&operation);
    assert_eq!(failed.state, OperationState::Failed);
    assert!(failed.error.unwrap().message.contains("writes to disk/web are queued"));
    pair.here.vms.hold_memory(false);
    pair.here.disks.fill(None);
    pair.assert_here();

    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
}

/// Writes become queued while disks are copied, and after all memory was sent.
#[test]
fn a_vm_whose_writes_are_queued_just_before_the_next_stage_stays() {
    for (before, sends) in [("operation", 0), ("line", 1)] {
        let pair = Pair::new();
        let disks = pair.here.disks.clone();
        pair.watch(move |call_name| {
            if call_name == before {
                disks.fill(Some(1));
            }
            None
        });
        let failed = pair.migrate();
        assert_eq!(failed.state, OperationState::Failed, "{failed:?}");
        assert!(failed.error.unwrap().message.contains("writes to disk/web are queued"));
        assert_eq!(pair.here.vms.sends(), sends);
        pair.here.disks.fill(None);
        pair.assert_here();
    }
}
