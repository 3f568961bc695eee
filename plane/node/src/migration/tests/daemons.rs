//! Daemons and nodes that end during a migration.

use super::*;

#[test]
fn the_destination_ends_while_the_remaining_state_is_sent() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    let reason = "it was killed".to_owned();
    pair.there.vms.guest("web", VmNotice::Ended { is_orderly: false, reason });
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();
}

#[test]
fn a_vm_handed_over_to_a_failed_node_returns_when_the_node_is_deleted() {
    let pair = Pair::new();
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name.starts_with("activate_arrival").then(|| failure(false))
    });
    let operation = pair.begin();
    let is_handed_over = || pair.here.node.vm("web").unwrap().state == VmState::HandedOver;
    wait_until("the VM is handed over", is_handed_over);
    pair.here.node.cancel_operation(operation.id).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(is_handed_over(), "the owner of the VM is not known");
    let resume = pair.here.node.start_vm_action(&name("web"), VmAction::Resume).unwrap_err();
    assert!(resume.message.contains("use that node"), "{resume}");
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    wait_until("the VM is running on the source", || {
        pair.here.vms.state("web") == Some(VmRunState::Running)
    });
}

#[test]
fn the_source_daemon_is_killed_while_memory_is_copied() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    pair.begin();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    let pair = pair.restart_here();
    pair.assert_here();
    wait_one_event(&pair.here, EventKind::VmStays);
}

#[test]
fn the_source_daemon_is_killed_after_the_handover() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.here
            .far_nodes
            .intercept(move |_, call_name| (call_name == reaches).then(|| failure(false)));
        pair.begin();
        let is_handed_over = || pair.here.node.vm("web").unwrap().state == VmState::HandedOver;
        wait_until("the VM is handed over", is_handed_over);
        let pair = pair.restart_here();
        wait_until("the VM is shown as handed over on the source", || {
            pair.here.node.vm("web").is_ok_and(|vm| vm.state == VmState::HandedOver)
        });
        assert_ne!(pair.here.vms.state("web"), Some(VmRunState::Running));
        pair.here.far_nodes.intercept(|_, _| None);
        pair.assert_there();
    }
}

#[test]
fn the_destination_daemon_is_killed_before_the_activation() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    let pair = pair.restart_there();
    wait_one_event(&pair.there, EventKind::VmDidNotArrive);
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();
}

#[test]
fn the_destination_daemon_is_killed_before_and_after_the_activation_request() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.here
            .far_nodes
            .intercept(move |_, call_name| (call_name == reaches).then(|| failure(false)));
        let operation = pair.begin();
        wait_until("the VM is shown as handed over on the source", || {
            pair.here.node.vm("web").unwrap().state == VmState::HandedOver
        });
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
fn a_migration_without_requests_of_the_source_is_abandoned() {
    let pair = Pair::new();
    let arrival = pair.here.node.shared().outgoing_request(&name("web")).unwrap();
    let operation = pair.there.node.prepare_incoming_migration(arrival.clone()).unwrap();
    let operation = pair.there.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(
        pair.there.node.incoming_migration(&arrival.id).unwrap().state,
        IncomingMigrationState::InProgress
    );
    // The VM's state is incomplete, so the activation is rejected.
    let early_error = pair.there.node.activate_incoming_migration(&arrival.id).unwrap_err();
    assert!(early_error.message.contains("was not received completely"), "{early_error}");
    pair.assert_here();
    assert_eq!(
        pair.there.node.incoming_migration(&arrival.id).unwrap().state,
        IncomingMigrationState::Abandoned
    );
    let late_arrival = pair.there.node.activate_incoming_migration(&arrival.id).unwrap();
    assert_eq!(late_arrival.state, IncomingMigrationState::Abandoned);
    let line = pair
        .there
        .node
        .open_incoming_connection(&arrival.id, &crate::PeerStream::Memory)
        .unwrap_err();
    assert_eq!(line.code, ErrorCode::NotFound);
}
