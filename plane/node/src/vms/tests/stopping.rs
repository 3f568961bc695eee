use std::sync::atomic::{AtomicBool, Ordering};

use suimon_contract::{EventKind, OperationState, StopVmRequest, VmState};
use suimon_ports::{VmErrorKind, VmNotice, VmRunState};

use super::{VmAction, harness, state, well};
use crate::testing::{DEADLINE, Harness, name, wait_until};

fn stop(harness: &Harness, seconds: u64, force: bool) -> u64 {
    let stop =
        VmAction::Stop(StopVmRequest { timeout_s: seconds, force, ..StopVmRequest::default() });
    let id = harness.node.start_vm_action(&name("web"), stop).unwrap().id;
    wait_until("the VM is shown as stopping", || state(harness) == VmState::Stopping);
    id
}

#[test]
fn a_pending_stop_can_be_cancelled() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let id = stop(&harness, 600, true);
    harness.node.cancel_operation(id).unwrap();
    let operation = harness.node.wait_operation(id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
    assert!(operation.error.unwrap().message.contains("may still do so"));
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    assert_eq!(harness.vms.running(), ["web"]);
    // Another stop is permitted.
    let second_stop = stop(&harness, 1, true);
    let operation = harness.node.wait_operation(second_stop, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
}

#[test]
fn a_paused_guest_is_not_shown_as_running() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let id = stop(&harness, 1, false);
    well(&harness, VmAction::Pause);
    let operation = harness.node.wait_operation(id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(state(&harness), VmState::Paused);
    well(&harness, VmAction::Resume);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmResumed.id(), 1);
}

#[test]
fn a_resume_during_a_stop_is_reported() {
    let harness = harness();
    well(&harness, VmAction::Start);
    stop(&harness, 600, false);
    well(&harness, VmAction::Pause);
    wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
    well(&harness, VmAction::Resume);
    wait_until("the VM is shown as stopping", || state(&harness) == VmState::Stopping);
    wait_until("VmResumed is emitted once", || {
        harness.events(EventKind::VmResumed.id()).len() == 1
    });
}

#[test]
fn a_vm_that_cannot_be_killed_continues() {
    let harness = harness();
    well(&harness, VmAction::Start);
    harness.vms.refuse("kill", VmErrorKind::Timeout, "the kernel holds it");
    let id = stop(&harness, 1, true);
    let operation = harness.node.wait_operation(id, DEADLINE).unwrap();
    assert_eq!(operation.error.unwrap().message, "the kernel holds it");
    assert_eq!(state(&harness), VmState::Running);
}

/// Notices of the guest arrive faster than they are handled.
#[test]
fn a_guest_with_many_notices_delays_neither_a_timeout_nor_an_operation() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flood = || {
            while !ends.load(Ordering::Relaxed) {
                harness.vms.guest("web", VmNotice::StateChanged(VmRunState::Running));
            }
        };
        scope.spawn(flood);
        let id = stop(&harness, 1, false);
        let stopped = harness.node.wait_operation(id, DEADLINE).unwrap();
        let reset = harness.node.start_vm_action(&name("web"), VmAction::Reset).unwrap();
        let reset = harness.node.wait_operation(reset.id, DEADLINE).unwrap();
        let cancelled = stop(&harness, 600, false);
        harness.node.cancel_operation(cancelled).unwrap();
        let cancelled = harness.node.wait_operation(cancelled, DEADLINE).unwrap();
        ends.store(true, Ordering::Relaxed);
        assert_eq!(stopped.state, OperationState::Failed, "{stopped:?}");
        assert_eq!(reset.state, OperationState::Succeeded, "{reset:?}");
        assert_eq!(cancelled.state, OperationState::Cancelled, "{cancelled:?}");
    });
}
