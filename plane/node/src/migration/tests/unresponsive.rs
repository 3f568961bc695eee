//! A QEMU process or a control thread that does not respond at the end of a migration.

use std::time::{Duration, Instant};

use suimon_contract::{EventKind, OperationState, VmState};
use suimon_ports::{StateStore, VmErrorKind, VmRunState};

use super::{NODES, Pair, failure, wait_one_event};
use crate::testing::{DEADLINE, Harness, StoreFailure, host, name, wait_until};
use crate::vms::{DirectKillResult, KILL_NOT_PERMITTED, Message};
use crate::{Edit, ResourceEdit, VmAction};

const SILENT: &str = "it has not answered in 10 s";

/// Time after which a call that is held must not have ended.
const HELD: Duration = Duration::from_secs(30);

impl Pair {
    /// Starts a migration that stays in the copying phase.
    fn copying() -> Self {
        let pair = Self::new();
        pair.here.vms.hold_memory(true);
        pair.begin();
        wait_until("memory is copied", || pair.here.vms.sends() == 1);
        pair
    }

    /// Kills the source's daemon and starts another, which cannot adopt the VM.
    fn restart_here_without_adoption(self) -> Self {
        self.here.vms.refuse_all("adopt", VmErrorKind::Timeout, SILENT);
        self.restart_here()
    }

    fn permit_all(harness: &Harness) {
        harness.vms.refuse("none", VmErrorKind::Host, "");
    }

    /// Has a held switchover fail. Then QEMU does not respond to its cancellation.
    fn fail_switchover(&self) {
        let vms = &self.here.vms;
        let stalls = vms.stalls_started();
        vms.refuse_and_hold("send_status", SILENT);
        vms.hold_call(None);
        wait_until("the driver is blocked again", || {
            vms.held_call() == Some("send_status") && vms.stalls_started() > stalls
        });
    }

    fn wait_for_state_here(&self, state: VmState) {
        wait_until("the state is shown", || {
            self.here.node.vm("web").is_ok_and(|vm| vm.state == state)
        });
    }
}

#[test]
fn a_vm_adopted_late_is_found_by_the_next_daemon() {
    let pair = Pair::copying().restart_here_without_adoption();
    wait_one_event(&pair.here, EventKind::VmStays);
    pair.wait_for_state_here(VmState::NotResponding);
    Pair::permit_all(&pair.here);
    pair.assert_here();
    let pair = pair.restart_here();
    pair.assert_here();
    assert!(pair.here.events(EventKind::VmFailed.id()).is_empty());
}

#[test]
fn a_stopped_vm_is_resumed_when_it_is_adopted_late() {
    let pair = Pair::copying().restart_here_without_adoption();
    wait_one_event(&pair.here, EventKind::VmStays);
    pair.here.vms.stop_for_switchover("web");
    // A daemon that ends before the adoption leaves the cancellation to the next one.
    let pair = pair.restart_here_without_adoption();
    pair.wait_for_state_here(VmState::NotResponding);
    Pair::permit_all(&pair.here);
    pair.assert_here();
    // The migration has ended, so that operations are permitted.
    let reset = pair.here.node.start_vm_action(&name("web"), VmAction::Reset).unwrap();
    let reset = pair.end(&reset);
    assert_eq!(reset.state, OperationState::Succeeded, "{reset:?}");
}

#[test]
fn a_returned_vm_is_resumed_when_it_is_adopted_late() {
    let pair = Pair::new();
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name.starts_with("activate_arrival").then(|| failure(false))
    });
    pair.begin();
    pair.wait_for_state_here(VmState::HandedOver);
    let pair = pair.restart_here_without_adoption();
    pair.wait_for_state_here(VmState::HandedOver);
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    pair.here.wait_event(EventKind::VmStays.id());
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Paused));
    // The adoption succeeds, and the first command after it gets no response.
    pair.here.vms.refuse("tell", VmErrorKind::Timeout, SILENT);
    wait_until("the VM is running on the source", || {
        pair.here.vms.state("web") == Some(VmRunState::Running)
    });
    pair.wait_for_state_here(VmState::Running);
}

#[test]
fn a_vm_that_is_killed_before_it_is_adopted_can_be_started() {
    let pair = Pair::copying().restart_here_without_adoption();
    pair.wait_for_state_here(VmState::NotResponding);
    for work in [VmAction::Kill, VmAction::Start] {
        let operation = pair.here.node.start_vm_action(&name("web"), work).unwrap();
        let operation = pair.end(&operation);
        assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    }
    Pair::permit_all(&pair.here);
    pair.assert_here();
    let pair = pair.restart_here();
    pair.assert_here();
}

/// QMP does not respond once when the migration is cancelled.
#[test]
fn a_vm_whose_cancellation_gets_no_response_continues() {
    let pair = Pair::copying();
    let refused_count = pair.here.vms.refused_count();
    pair.here.vms.refuse_all("send_status", VmErrorKind::Timeout, SILENT);
    pair.here.vms.stop_for_switchover("web");
    // The first failure ends the migration, the second one is that of the cancellation.
    wait_until("two attempts have failed", || pair.here.vms.refused_count() >= refused_count + 2);
    Pair::permit_all(&pair.here);
    pair.assert_here();
    wait_one_event(&pair.here, EventKind::VmStays);
}

#[test]
fn a_vm_that_does_not_resume_at_once_is_resumed_later() {
    let pair = Pair::copying();
    let refused_count = pair.here.vms.refused_count();
    pair.here.vms.refuse_all("tell", VmErrorKind::Timeout, SILENT);
    pair.here.vms.stop_for_switchover("web");
    wait_until("two attempts have failed", || pair.here.vms.refused_count() >= refused_count + 2);
    Pair::permit_all(&pair.here);
    pair.assert_here();
}

#[test]
fn a_migration_that_cannot_be_recorded_does_not_begin() {
    let pair = Pair::new();
    pair.here.store.arm(StoreFailure::Refuse(0));
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed);
    assert!(operation.error.unwrap().message.contains("state directory"));
    assert!(pair.there.events(EventKind::VmArrives.id()).is_empty());
    assert_eq!(pair.migrate().state, OperationState::Succeeded);
    pair.assert_there();
}

/// The destination owns the VM, and the source has not adopted its process.
#[test]
fn a_process_that_was_not_adopted_is_killed_when_the_destination_owns_the_vm() {
    let pair = Pair::new();
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival answer").then(|| failure(false)));
    pair.begin();
    pair.wait_for_state_here(VmState::HandedOver);
    let pair = pair.restart_here_without_adoption();
    pair.wait_for_state_here(VmState::HandedOver);
    pair.here.far_nodes.intercept(|_, _| None);
    pair.assert_there();
}

#[test]
fn a_process_of_a_migrated_vm_that_cannot_be_killed_is_killed_later() {
    let pair = Pair::new();
    let refused_count = pair.here.vms.refused_count();
    pair.here.vms.refuse_all("kill", VmErrorKind::Timeout, "the kernel holds it");
    let operation = pair.begin();
    wait_until("two attempts have failed", || pair.here.vms.refused_count() >= refused_count + 2);
    let view = pair.here.node.vm("web").unwrap();
    assert_eq!(view.state, VmState::NotResponding);
    assert!(view.reason.unwrap().contains("the kernel holds it"));
    Pair::permit_all(&pair.here);
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
}

/// The next daemon kills the process and does not adopt it.
#[test]
fn a_process_that_cannot_be_killed_is_killed_by_the_next_daemon() {
    let pair = Pair::new();
    let refused_count = pair.here.vms.refused_count();
    pair.here.vms.refuse_all("kill", VmErrorKind::Timeout, "the kernel holds it");
    pair.begin();
    wait_until("an attempt has failed", || pair.here.vms.refused_count() > refused_count);
    let pair = pair.restart_here();
    Pair::permit_all(&pair.here);
    pair.assert_there();
    assert!(pair.here.events(EventKind::VmFound.id()).is_empty());
    assert!(pair.here.events(EventKind::VmFailed.id()).is_empty());
}

#[test]
fn a_process_of_an_abandoned_migration_that_cannot_be_killed_is_killed_later() {
    for restarts in [false, true] {
        let pair = Pair::copying();
        let refused_count = pair.there.vms.refused_count();
        pair.there.vms.refuse_all("kill", VmErrorKind::Timeout, "the kernel holds it");
        let pair = if restarts {
            pair.restart_there()
        } else {
            let operations = pair.here.node.operations();
            let migrate =
                operations.iter().find(|operation| operation.kind == "vm migrate").unwrap();
            pair.here.node.cancel_operation(migrate.id).unwrap();
            pair
        };
        wait_until("two attempts have failed", || {
            pair.there.vms.refused_count() >= refused_count + 2
        });
        Pair::permit_all(&pair.there);
        pair.here.vms.hold_memory(false);
        pair.assert_here();
    }
}

/// The destination's daemon ended before it received the process id, and the next one cannot
/// determine which VMs run.
#[test]
fn an_undetermined_process_of_an_incoming_migration_is_killed_later() {
    let pair = Pair::copying();
    let target_store = pair.there.store.clone();
    let stored = String::from_utf8(target_store.read("vms", "web").unwrap().unwrap()).unwrap();
    let mut stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    stored["run"].as_object_mut().unwrap().remove("process").unwrap();
    let stored = serde_json::to_vec(&stored).unwrap();
    target_store.commit(&[("vms", "web".to_owned(), Some(stored))]).unwrap();
    let refused_count = pair.there.vms.refused_count();
    pair.there.vms.refuse_all("running", VmErrorKind::Host, "the launcher is not there");
    let pair = pair.restart_there();
    wait_until("two attempts have failed", || pair.there.vms.refused_count() >= refused_count + 2);
    Pair::permit_all(&pair.there);
    pair.here.vms.hold_memory(false);
    pair.assert_here();
}

/// The record of the activation is kept as long as the VM exists.
#[test]
fn an_activation_is_recorded_as_long_as_the_vm_exists() {
    let pair = Pair::new();
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival answer").then(|| failure(false)));
    let operation = pair.begin();
    pair.wait_for_state_here(VmState::HandedOver);
    let id = pair.here.node.vm("web").unwrap().migration.unwrap().id;
    // Records of other incoming migrations have displaced this one.
    pair.there.store.commit(&[("arrivals", id, None)]).unwrap();
    let pair = pair.restart_there();
    wait_until("the VM is shown as running on the destination", || {
        pair.there.node.vm("web").is_ok_and(|vm| vm.state == VmState::Running)
    });
    // A later record of the VM keeps the migration id.
    let patch =
        Edit::Vm(ResourceEdit::Patch(name("web"), br#"{"cpus_max": 2, "cpus": 2}"#.to_vec()));
    assert_eq!(pair.there.change(patch).state, OperationState::Succeeded);
    let reset = pair.there.node.start_vm_action(&name("web"), VmAction::Reset).unwrap();
    pair.there.node.wait_operation(reset.id, DEADLINE).unwrap();
    pair.here.far_nodes.intercept(|_, _| None);
    assert_eq!(pair.end(&operation).state, OperationState::Succeeded);
    pair.assert_there();
}

/// The VM has migrated to a third node before the source repeats its request.
#[test]
fn an_activation_is_recorded_after_the_vm_was_deleted() {
    let pair = Pair::new();
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival answer").then(|| failure(false)));
    let operation = pair.begin();
    pair.wait_for_state_here(VmState::HandedOver);
    let kill = pair.there.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    pair.there.node.wait_operation(kill.id, DEADLINE).unwrap();
    let delete = Edit::Apply(Box::new(host(NODES)));
    assert_eq!(pair.there.change(delete).state, OperationState::Succeeded);
    let pair = pair.restart_there();
    pair.here.far_nodes.intercept(|_, _| None);
    assert_eq!(pair.end(&operation).state, OperationState::Succeeded);
    assert_eq!(pair.here.vms.state("web"), None);
}

/// The control thread of the source is busy, and its queue is full when the migration ends.
#[test]
fn a_migration_that_ends_while_the_control_thread_is_busy_has_succeeded() {
    let pair = Pair::new();
    pair.here
        .far_nodes
        .intercept(|_, call_name| (call_name == "activate_arrival").then(|| failure(false)));
    let operation = pair.begin();
    pair.wait_for_state_here(VmState::HandedOver);
    let busy = pair.here.keep_busy();
    pair.here.far_nodes.intercept(|_, _| None);
    wait_one_event(&pair.here, EventKind::VmLeft);
    assert_eq!(pair.here.node.operation(operation.id).unwrap().state, OperationState::Running);
    pair.here.vms.hold_prepare(false);
    assert_eq!(pair.end(&busy).state, OperationState::Failed);
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
    let operations = pair.here.node.operations();
    let departs = operations.iter().filter(|operation| operation.kind == "vm depart");
    assert!(
        departs.clone().all(|operation| operation.state == OperationState::Succeeded),
        "{operations:?}"
    );
}

/// The launcher lists the VMs slowly, so that the switchover is complete before the process is
/// killed.
#[test]
fn a_vm_handed_over_during_a_kill_is_not_killed_on_the_source() {
    let pair = Pair::copying();
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name.starts_with("activate_arrival").then(|| failure(false))
    });
    pair.here.vms.hold_list(true);
    let shared = std::sync::Arc::clone(pair.here.node.shared());
    let kill = std::thread::spawn(move || {
        let entry = shared.vms.find(&name("web")).unwrap();
        shared.kill_without_driver(&entry)
    });
    wait_until("the launcher is asked", || pair.here.vms.is_list_blocked());
    pair.here.vms.hold_memory(false);
    pair.wait_for_state_here(VmState::HandedOver);
    pair.here.vms.hold_list(false);
    let killed = kill.join().unwrap();
    assert_eq!(killed, DirectKillResult::LeftToDriver(KILL_NOT_PERMITTED));
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Paused));
    pair.here.far_nodes.intercept(|_, _| None);
    pair.assert_there();
}

/// QEMU does not respond while the remaining state is sent.
#[test]
fn only_the_driver_kills_a_vm_during_the_switchover() {
    let pair = Pair::copying();
    pair.here.vms.hold_call(Some("finish"));
    pair.here.vms.hold_memory(false);
    wait_until("the switchover is in progress", || pair.here.vms.is_stalled());
    let shared = pair.here.node.shared();
    let entry = shared.vms.find(&name("web")).unwrap();
    let killed = shared.kill_without_driver(&entry);
    assert_eq!(killed, DirectKillResult::LeftToDriver(KILL_NOT_PERMITTED));
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Paused));
    pair.here.vms.hold_call(None);
    pair.assert_there();
}

/// QEMU does not respond while the migration is cancelled.
#[test]
fn a_vm_whose_migration_has_failed_is_killed_without_its_driver() {
    let pair = Pair::copying();
    pair.here.vms.refuse_and_hold("send_status", SILENT);
    pair.here.vms.stop_for_switchover("web");
    wait_until("the driver is blocked", || pair.here.vms.is_stalled());
    let kill = pair.here.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    let kill = pair.end(&kill);
    assert_eq!(kill.state, OperationState::Succeeded, "{kill:?}");
    assert_eq!(pair.here.vms.kills_while_stalled(), 1);
    pair.wait_for_state_here(VmState::Stopped);
    assert!(pair.here.events(EventKind::VmFailed.id()).is_empty());
}

/// The switchover has begun before the migration fails.
#[test]
fn a_vm_whose_switchover_has_failed_is_killed_without_its_driver() {
    let pair = Pair::copying();
    // The destination does not get the remaining state.
    pair.here.vms.hold_call(Some("finish"));
    pair.here.vms.hold_memory(false);
    wait_until("the switchover is in progress", || pair.here.vms.is_stalled());
    pair.fail_switchover();
    let kill = pair.here.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    let kill = pair.end(&kill);
    assert_eq!(kill.state, OperationState::Succeeded, "{kill:?}");
    assert_eq!(pair.here.vms.kills_while_stalled(), 1);
    pair.wait_for_state_here(VmState::Stopped);
}

/// The kill is requested during the switchover, which fails then.
#[test]
fn a_kill_during_a_switchover_that_fails_does_not_wait_for_the_driver() {
    let pair = Pair::copying();
    pair.here.vms.hold_call(Some("finish"));
    pair.here.vms.hold_memory(false);
    wait_until("the switchover is in progress", || pair.here.vms.is_stalled());
    let kill = pair.here.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    let entry = pair.here.node.shared().vms.find(&name("web")).unwrap();
    wait_until("the kill is left to the driver", || entry.kills_left() == 1);
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Paused));
    let started = Instant::now();
    pair.here.vms.refuse_and_hold("send_status", SILENT);
    pair.here.vms.hold_call(None);
    let kill = pair.end(&kill);
    assert_eq!(kill.state, OperationState::Succeeded, "{kill:?}");
    assert!(started.elapsed() < HELD, "the driver has executed it");
    pair.wait_for_state_here(VmState::Stopped);
}

/// The daemon ends while QEMU does not respond.
#[test]
fn requests_behind_the_end_of_a_driver_fail_with_the_reason() {
    let pair = Pair::copying();
    pair.here.vms.hold_call(Some("send_status"));
    wait_until("the driver is blocked", || pair.here.vms.is_stalled());
    let shared = pair.here.node.shared();
    let entry = shared.vms.find(&name("web")).unwrap();
    entry.inbox.put(Message::Detach);
    let submit = || {
        let operation = shared.operations.add("vm reset", "vm/web", false).unwrap();
        let id = operation.id();
        shared.submit_vm_action(&name("web"), VmAction::Reset, operation);
        id
    };
    let end_of = |id| {
        let operation = pair.here.node.wait_operation(id, DEADLINE).unwrap();
        assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
        operation.error.unwrap().message
    };
    let queued = submit();
    pair.here.vms.hold_call(None);
    let queued = end_of(queued);
    assert!(queued.contains("the daemon ends") && queued.contains("repeat it"), "{queued}");
    let late_error = end_of(submit());
    assert_eq!(late_error, queued);
    let operations = pair.here.node.operations();
    let migration = operations.iter().find(|operation| operation.kind == "vm migrate").unwrap().id;
    let migration = end_of(migration);
    assert!(migration.contains("the daemon ends during the migration"), "{migration}");
}
