//! Requests, guests and cancellations around the handover of the VM.

use super::*;

#[test]
fn a_request_whose_response_was_lost_is_repeated() {
    for lost in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        let fails = std::sync::atomic::AtomicU32::new(5);
        pair.here.far_nodes.intercept(move |_, call_name| {
            let fails = call_name == lost
                && fails
                    .fetch_update(
                        std::sync::atomic::Ordering::Relaxed,
                        std::sync::atomic::Ordering::Relaxed,
                        |remaining| remaining.checked_sub(1),
                    )
                    .is_ok();
            fails.then(|| failure(false))
        });
        let operation = pair.begin();
        wait_one_event(&pair.here, EventKind::VmHandedOver);
        assert_ne!(pair.here.vms.state("web"), Some(VmRunState::Running));
        let operation = pair.end(&operation);
        assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
        pair.assert_there();
    }
}

#[test]
fn a_rejected_activation_has_no_effect() {
    let pair = Pair::new();
    pair.there.store.arm(crate::testing::StoreFailure::Refuse(usize::MAX));
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival").then(|| failure(true)));
    assert_eq!(pair.migrate().state, OperationState::Failed);
    pair.assert_here();
}

/// Covers a second request that passed its check before the first one took effect.
#[test]
fn a_second_request_does_not_affect_the_first() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    let shared = pair.here.node.shared();
    let second = shared.operations.add("vm migrate", "vm/web", false).unwrap();
    let id = second.id();
    let entry = shared.vms.find(&name("web")).unwrap();
    entry.inbox.put(Message::Migrate(Box::new(request("there")), second));
    let second = pair.here.node.wait_operation(id, DEADLINE).unwrap();
    assert!(second.error.unwrap().message.contains("already"));
    let reset = pair.here.node.start_vm_action(&name("web"), VmAction::Reset).unwrap();
    let reset = pair.here.node.wait_operation(reset.id, DEADLINE).unwrap();
    assert!(reset.error.unwrap().message.contains("is migrating"), "the VM is still migrating");
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Succeeded);
    pair.assert_there();
}

/// Covers a request that is handled after the decision.
#[test]
fn a_request_after_the_decision_gets_the_decision() {
    let pair = Pair::new();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let entry = pair.there.node.shared().vms.find(&name("web")).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    entry.inbox.put(Message::IncomingRequest((IncomingRequest::Abandon, sender)));
    let answer = receiver.recv_timeout(DEADLINE).unwrap().unwrap();
    assert!(matches!(answer, IncomingResponse::State(IncomingMigrationState::Active)));
    pair.assert_there();
}

#[test]
fn a_guest_that_ends_during_the_handover_has_ended() {
    let pair = Pair::new();
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name.starts_with("activate_arrival").then(|| failure(false))
    });
    let operation = pair.begin();
    wait_until("the VM is shown as handed over on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::HandedOver
    });
    let reason = "QEMU was killed".to_owned();
    pair.here.vms.guest("web", VmNotice::Ended { is_orderly: false, reason });
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    wait_until("the VM is shown as stopped on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::Stopped
    });
}

/// A cancellation after the handover has no effect, and the remains on the source are deleted.
#[test]
fn a_cancellation_after_the_handover_has_no_effect() {
    let pair = Pair::new();
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival").then(|| failure(false)));
    let operation = pair.begin();
    wait_until("the VM is shown as handed over on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::HandedOver
    });
    pair.here.node.cancel_operation(operation.id).unwrap();
    pair.here.far_nodes.intercept(|_, _| None);
    assert_eq!(pair.end(&operation).state, OperationState::Succeeded);
    pair.assert_there();
}

/// After the handover, each write of the state store in turn fails once.
#[test]
fn remains_of_a_migrated_vm_are_deleted_although_a_store_write_fails() {
    for failed_write in 0..8 {
        let pair = Pair::new();
        pair.here
            .far_nodes
            .intercept(|_, call_name| (call_name == "activate_arrival").then(|| failure(false)));
        let operation = pair.begin();
        wait_one_event(&pair.here, EventKind::VmHandedOver);
        pair.here.store.arm(crate::testing::StoreFailure::Refuse(failed_write));
        pair.here.far_nodes.intercept(|_, _| None);
        assert_eq!(pair.end(&operation).state, OperationState::Succeeded, "{failed_write}");
        pair.assert_there();
    }
}

#[test]
fn a_migration_abandoned_before_its_request_is_never_prepared() {
    let pair = Pair::new();
    let arrival = pair.here.node.shared().outgoing_request(&name("web")).unwrap();
    let abandoned = pair.there.node.abandon_incoming_migration(&arrival.id).unwrap();
    assert_eq!(abandoned.state, IncomingMigrationState::Abandoned);
    let errors = pair.there.node.prepare_incoming_migration(arrival).unwrap_err();
    assert!(errors[0].message.contains("cancelled this migration"), "{errors:?}");
    pair.assert_here();
}
