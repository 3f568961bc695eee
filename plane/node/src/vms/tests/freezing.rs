use suimon_contract::{ErrorCode, EventKind, FreezeVmRequest, OperationState, StopVmRequest};
use suimon_ports::{VmErrorKind, VmNotice};

use super::{VmAction, harness, refusal, run_action, well};
use crate::testing::{Harness, StoreFailure, name, wait_until};

const FREEZE: VmAction = VmAction::Freeze(FreezeVmRequest { thaw_after_s: 600 });

fn frozen(harness: &Harness) -> bool {
    harness.node.vm("web").unwrap().time_to_thaw_s.is_some()
}

#[test]
fn a_guest_is_frozen_and_thawed() {
    let harness = harness();
    assert!(refusal(&harness, FREEZE).contains("suimon vm start web"));
    well(&harness, VmAction::Start);
    well(&harness, FREEZE);
    assert!(harness.node.vm("web").unwrap().time_to_thaw_s.unwrap() > 590);
    let operation = run_action(&harness, FREEZE).error.unwrap();
    assert!(operation.message.contains("suimon vm thaw web"), "{operation}");
    well(&harness, VmAction::Thaw);
    assert!(!frozen(&harness));
    assert_eq!(harness.vms.commands(), ["web Freeze", "web Thaw"]);
    harness.wait_events(EventKind::VmFrozen.id(), 1);
    harness.wait_events(EventKind::VmThawed.id(), 1);
    let too_long = VmAction::Freeze(FreezeVmRequest { thaw_after_s: 601 });
    let error = harness.node.start_vm_action(&name("web"), too_long).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidValue, Some("seconds")));
}

#[test]
fn a_guest_is_thawed_without_a_request() {
    let harness = harness();
    well(&harness, VmAction::Start);
    well(&harness, VmAction::Freeze(FreezeVmRequest { thaw_after_s: 1 }));
    wait_until("the guest is thawed", || !frozen(&harness));
    assert!(harness.wait_event(EventKind::VmThawed.id()).text.contains("time limit of the freeze"));
    // A reset ends the freeze without a thaw.
    well(&harness, FREEZE);
    harness.vms.guest("web", VmNotice::Reset);
    wait_until("the guest is thawed", || !frozen(&harness));
    assert_eq!(harness.vms.commands().last().unwrap(), "web Freeze");
    let event = harness.wait_events(EventKind::VmThawed.id(), 2).remove(1);
    assert!(event.text.contains("reset"), "{event:?}");
    assert_eq!(event.fields["reason"], "reset");
}

#[test]
fn the_next_daemon_thaws_a_frozen_guest() {
    let harness = harness();
    well(&harness, VmAction::Start);
    well(&harness, FREEZE);
    let vms = harness.vms.clone();
    vms.forget_observers();
    let (store, devices) = harness.kill();
    vms.refuse("tell", VmErrorKind::Timeout, "the guest's agent does not answer");
    let harness = Harness::with_vms(store, devices, vms.clone());
    wait_until("VmNotThawed is emitted once", || {
        harness.events(EventKind::VmNotThawed.id()).len() == 1
    });
    assert_eq!(
        harness.node.vm("web").unwrap().time_to_thaw_s.map(|frozen_s| frozen_s <= 5),
        Some(true)
    );
    // The attempt is repeated.
    wait_until("the guest is thawed", || !frozen(&harness));
    assert_eq!(vms.commands().last().unwrap(), "web Thaw");
    let (store, devices) = harness.kill();
    let harness = Harness::with_vms(store, devices, vms.clone());
    wait_until("VmFound is emitted", || !harness.events(EventKind::VmFound.id()).is_empty());
    assert!(!frozen(&harness));
}

#[test]
fn a_freeze_that_fails_leaves_nothing_frozen() {
    let harness = harness();
    well(&harness, VmAction::Start);
    harness.vms.refuse("tell", VmErrorKind::Refused, "no agent runs in the guest");
    let operation = run_action(&harness, FREEZE);
    assert_eq!(operation.error.unwrap().message, "no agent runs in the guest");
    assert!(!frozen(&harness) && harness.vms.commands().is_empty());
    // A command without a response may have been executed.
    harness.vms.refuse("tell", VmErrorKind::Timeout, "it does not answer");
    assert_eq!(run_action(&harness, FREEZE).state, OperationState::Failed);
    wait_until("the thaw is requested", || harness.vms.commands() == ["web Thaw"]);
    assert!(harness.events(EventKind::VmFrozen.id()).is_empty());
}

#[test]
fn a_guest_is_not_frozen_if_the_freeze_cannot_be_recorded() {
    let harness = harness();
    well(&harness, VmAction::Start);
    harness.store.arm(StoreFailure::Refuse(0));
    let operation = run_action(&harness, FREEZE);
    assert!(operation.error.unwrap().message.contains("state directory"));
    assert!(!frozen(&harness) && harness.vms.commands().is_empty());
    well(&harness, FREEZE);
}

#[test]
fn a_shutdown_is_requested_by_the_agent_or_the_power_button() {
    let harness = harness();
    well(&harness, VmAction::Start);
    harness.vms.have_agents();
    let stop_request =
        |method| VmAction::Stop(StopVmRequest { timeout_s: 1, method, ..StopVmRequest::default() });
    for (method, expected_command) in [
        (suimon_contract::StopMethod::Auto, "web ShutDown"),
        (suimon_contract::StopMethod::Agent, "web ShutDown"),
        (suimon_contract::StopMethod::PowerButton, "web PowerButton"),
    ] {
        assert_eq!(run_action(&harness, stop_request(method)).state, OperationState::Failed);
        assert_eq!(harness.vms.commands().last().unwrap(), expected_command);
    }
    // If the agent rejects the shutdown, the power button is pressed.
    harness.vms.refuse("tell", VmErrorKind::Refused, "not allowed");
    run_action(&harness, stop_request(suimon_contract::StopMethod::Auto));
    assert_eq!(harness.vms.commands().last().unwrap(), "web PowerButton");
    harness.vms.refuse("tell", VmErrorKind::Refused, "not allowed");
    let operation = run_action(&harness, stop_request(suimon_contract::StopMethod::Agent));
    assert_eq!(operation.error.unwrap().message, "not allowed");
}

#[test]
fn the_guest_agent_reports_the_guest() {
    let harness = harness();
    assert!(harness.node.vm_guest(&name("web")).unwrap_err().message.contains("is not running"));
    well(&harness, VmAction::Start);
    let guest = harness.node.vm_guest(&name("web")).unwrap();
    assert_eq!(guest.host_name.as_deref(), Some("web"));
    harness.vms.refuse("guest", VmErrorKind::Refused, "no agent runs in the guest");
    let error = harness.node.vm_guest(&name("web")).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::Conflict, "no agent runs in the guest")
    );
    for kind in [VmErrorKind::Timeout, VmErrorKind::Host] {
        harness.vms.refuse("guest", kind, "it has not answered in 10 s");
        let error = harness.node.vm_guest(&name("web")).unwrap_err();
        assert_eq!(error.code, ErrorCode::HostError, "{error}");
    }
}
