use suimon_contract::{EventKind, OperationState, StopVmRequest, VmState};
use suimon_ports::VmErrorKind;

use super::{VmWork, harness, state, well};
use crate::testing::{Harness, PATIENCE, name, wait_until};

fn stop(harness: &Harness, seconds: u64, force: bool) -> u64 {
    let stop = VmWork::Stop(StopVmRequest { seconds, force, ..StopVmRequest::default() });
    let id = harness.node.work_on_vm(&name("web"), stop).unwrap().id;
    wait_until("the guest was asked", || state(harness) == VmState::Stopping);
    id
}

#[test]
fn who_waits_for_a_guest_can_stop_waiting() {
    let harness = harness();
    well(&harness, VmWork::Start);
    let id = stop(&harness, 600, true);
    harness.node.cancel_operation(id).unwrap();
    let operation = harness.node.wait_operation(id, PATIENCE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
    assert!(operation.error.unwrap().message.contains("may still do so"));
    wait_until("it runs", || state(&harness) == VmState::Running);
    assert_eq!(harness.vms.running(), ["web"]);
    // Another stop is permitted.
    let again = stop(&harness, 1, true);
    let operation = harness.node.wait_operation(again, PATIENCE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
}

#[test]
fn a_guest_that_stands_still_is_not_said_to_run() {
    let harness = harness();
    well(&harness, VmWork::Start);
    let id = stop(&harness, 1, false);
    well(&harness, VmWork::Pause);
    let operation = harness.node.wait_operation(id, PATIENCE).unwrap();
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(state(&harness), VmState::Paused);
    well(&harness, VmWork::Resume);
    wait_until("it runs", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmResumed.id(), 1);
}

#[test]
fn a_guest_that_goes_on_while_it_is_to_stop_is_told() {
    let harness = harness();
    well(&harness, VmWork::Start);
    stop(&harness, 600, false);
    well(&harness, VmWork::Pause);
    wait_until("it stands still", || state(&harness) == VmState::Paused);
    well(&harness, VmWork::Resume);
    wait_until("it is to stop", || state(&harness) == VmState::Stopping);
    wait_until("it is told", || harness.events(EventKind::VmResumed.id()).len() == 1);
}

#[test]
fn a_vm_that_cannot_be_ended_either_goes_on() {
    let harness = harness();
    well(&harness, VmWork::Start);
    harness.vms.refuse("kill", VmErrorKind::Silent, "the kernel holds it");
    let id = stop(&harness, 1, true);
    let operation = harness.node.wait_operation(id, PATIENCE).unwrap();
    assert_eq!(operation.error.unwrap().message, "the kernel holds it");
    assert_eq!(state(&harness), VmState::Running);
}
