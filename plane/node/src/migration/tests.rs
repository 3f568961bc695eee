//! Migrations between two nodes in one process: whatever fails, one node owns the VM, and at most
//! one runs it.

use suimon_contract::{
    ApiError, ErrorCode, EventKind, HostConfig, IncomingMigrationState, MigrateVmRequest,
    Operation, OperationState, VmState,
};
use suimon_ports::{VmErrorKind, VmNotice, VmRunState};

use super::{IncomingRequest, IncomingResponse};
use crate::testing::{
    DEADLINE, FakeDevices, FakePeerNodes, FakeVms, Harness, MemoryStore, host, name, wait_until,
};
use crate::vms::Message;
use crate::{Edit, PeerError, ResourceEdit, VmAction};

mod daemons;
mod handover;
mod unresponsive;
mod versions;

const NODES: &str = r#"
[[switch]]
name = "lan"
kind = "private"
[[node]]
name = "there"
address = "192.0.2.2:8443"
authority = "/etc/suimon/there.pem"
token_file = "/etc/suimon/there.token"
[[node]]
name = "here"
address = "192.0.2.1:8443"
authority = "/etc/suimon/here.pem"
token_file = "/etc/suimon/here.token"
"#;
const VM: &str = r#"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
mac = "52:54:00:00:00:01"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
nics = ["web"]
"#;

/// Source (`here`) and destination (`there`) of a migration.
struct Pair {
    here: Harness,
    there: Harness,
}

fn with_vm() -> HostConfig {
    host(&format!("{NODES}{VM}"))
}

impl Pair {
    /// Returns two nodes; the VM runs on the first.
    fn new() -> Self {
        let far_nodes = FakePeerNodes::default();
        let new = || {
            let state = (MemoryStore::default(), FakeDevices::default());
            Harness::among_nodes(state, FakeVms::default(), far_nodes.clone())
        };
        let pair = Self { here: new(), there: new() };
        pair.connect();
        pair.here.apply_ok(&with_vm());
        pair.there.apply_ok(&host(NODES));
        let started = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
        pair.here.node.wait_operation(started.id, DEADLINE).unwrap();
        pair
    }

    fn connect(&self) {
        self.here.far_nodes.connect("192.0.2.1:8443", &self.here.node);
        self.here.far_nodes.connect("192.0.2.2:8443", &self.there.node);
    }

    fn begin(&self) -> Operation {
        self.here.node.migrate_vm(&name("web"), request("there")).unwrap()
    }

    fn end(&self, operation: &Operation) -> Operation {
        self.here.node.wait_operation(operation.id, DEADLINE).unwrap()
    }

    fn migrate(&self) -> Operation {
        self.end(&self.begin())
    }

    /// Waits for the end of all operations, because configuration and devices differ during a
    /// change.
    fn wait_for_changes(&self) {
        for node in [&self.here.node, &self.there.node] {
            let has_ended = |operation: &Operation| operation.state != OperationState::Running;
            wait_until("all operations have ended", || node.operations().iter().all(has_ended));
        }
    }

    /// Asserts that the VM runs on the source and that nothing of it remains on the destination.
    fn assert_here(&self) {
        wait_until("the VM is running on the source", || {
            self.here.vms.state("web") == Some(VmRunState::Running)
        });
        let is_shown = || self.here.node.vm("web").unwrap().state == VmState::Running;
        wait_until("the VM is shown as running on the source", is_shown);
        wait_until("the destination's configuration does not contain the VM", || {
            self.there.node.config() == host(NODES)
        });
        // A change on the destination may begin after the source has abandoned the migration.
        wait_until("the VM has no QEMU process on the destination", || {
            self.there.vms.state("web").is_none()
        });
        wait_until("the destination has removed the VM's folder", || {
            self.there.vms.folders().is_empty()
        });
        self.wait_for_changes();
        assert_eq!(self.here.node.config(), with_vm());
        self.here.assert_consistent(&[]);
        self.there.assert_consistent(&[]);
    }

    /// Asserts that the VM runs on the destination and that nothing of it remains on the source.
    fn assert_there(&self) {
        wait_until("the VM is running on the destination", || {
            self.there.vms.state("web") == Some(VmRunState::Running)
        });
        wait_until("the source's configuration does not contain the VM", || {
            self.here.node.config() == host(NODES)
        });
        wait_until("the source has removed the VM's folder", || self.here.vms.folders().is_empty());
        self.wait_for_changes();
        assert_eq!(self.here.vms.state("web"), None);
        assert_eq!(self.there.node.vm("web").unwrap().state, VmState::Running);
        self.here.assert_consistent(&[]);
        self.there.assert_consistent(&[]);
    }

    /// Kills the source's daemon and starts another.
    fn restart_here(self) -> Self {
        let Self { here: source, there: target } = self;
        let source = restarted(source);
        let pair = Self { here: source, there: target };
        pair.connect();
        pair
    }

    fn restart_there(self) -> Self {
        let Self { here: source, there: target } = self;
        let target = restarted(target);
        let pair = Self { here: source, there: target };
        pair.connect();
        pair
    }
}

fn restarted(harness: Harness) -> Harness {
    let (vms, far_nodes) = (harness.vms.clone(), harness.far_nodes.clone());
    vms.forget_observers();
    let stopped = harness.kill();
    // Connections between nodes end with the daemons that relay them.
    vms.cut_lines();
    Harness::among_nodes(stopped, vms, far_nodes)
}

fn request(target_name: &str) -> MigrateVmRequest {
    MigrateVmRequest {
        destination: name(target_name),
        downtime_ms: 300,
        bandwidth_max_bytes_per_s: None,
        deletes_source_files: false,
    }
}

/// Waits until there is exactly one event of a kind.
fn wait_one_event(harness: &Harness, kind: EventKind) {
    harness.wait_events(kind.id(), 1);
}

#[test]
fn a_vm_migrates_to_the_other_node_and_back() {
    let pair = Pair::new();
    let uuid = pair.here.vms.spec("web").uuid;
    let plan = pair.here.node.check_migration(&name("web"), &request("there")).unwrap();
    assert!(format!("{plan:?}").contains("web"), "{plan:?}");
    assert_eq!(pair.there.node.config(), host(NODES), "a look changes nothing");

    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
    let spec = pair.there.vms.spec("web");
    assert_eq!((spec.uuid, spec.nics[0].root_port), (uuid, Some(3)));
    // QEMU had chosen the MAC address; the guest keeps it.
    assert!(spec.nics[0].mac.is_some());
    assert_eq!(spec.nics[0].mac, pair.there.node.config().nics[0].mac);
    assert!(pair.there.vms.commands().contains(&"web AnnounceAddresses".to_owned()));
    wait_one_event(&pair.here, EventKind::VmLeaves);
    wait_one_event(&pair.here, EventKind::VmLeft);
    wait_one_event(&pair.there, EventKind::VmArrives);
    wait_one_event(&pair.there, EventKind::VmArrived);

    let returned = pair.there.node.migrate_vm(&name("web"), request("here")).unwrap();
    let returned = pair.there.node.wait_operation(returned.id, DEADLINE).unwrap();
    assert_eq!(returned.state, OperationState::Succeeded, "{returned:?}");
    wait_until("the VM is running on the source", || {
        pair.here.vms.state("web") == Some(VmRunState::Running)
    });
    assert_eq!(pair.there.vms.state("web"), None);
    assert_eq!(pair.here.vms.spec("web").uuid, uuid);
}

#[test]
fn a_vm_that_is_paused_stays_paused() {
    let pair = Pair::new();
    let paused = pair.here.node.start_vm_action(&name("web"), VmAction::Pause).unwrap();
    pair.here.node.wait_operation(paused.id, DEADLINE).unwrap();
    wait_until("the VM is shown as paused on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::Paused
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(pair.there.vms.state("web"), Some(VmRunState::Paused));
    assert_eq!(pair.there.node.vm("web").unwrap().state, VmState::Paused);
}

fn refusal(pair: &Pair, target_name: &str) -> ApiError {
    let mut errors =
        pair.here.node.check_migration(&name("web"), &request(target_name)).unwrap_err();
    assert_eq!(pair.there.node.config().vms.len(), 0);
    errors.remove(0)
}

#[test]
fn invalid_migrations_are_rejected_before_any_change() {
    let pair = Pair::new();
    assert_eq!(refusal(&pair, "nowhere").code, ErrorCode::NotFound);
    let missing = refusal(&pair, "here").message;
    assert!(missing.contains("already"), "{missing}");

    pair.there.vms.refuse("probe", VmErrorKind::Host, "there is not enough memory");
    let full = refusal(&pair, "there").message;
    assert!(full.contains("node there rejected") && full.contains("enough memory"), "{full}");

    let other = NODES.replace("private", "internal");
    pair.there.apply_ok(&host(&other));
    let other_kind = refusal(&pair, "there");
    assert_eq!(other_kind.code, ErrorCode::Conflict);
    let target_name = pair.there.node.host_status().name;
    for part in [&format!("internal on node {target_name}"), "private on node", "same kind on both"]
    {
        assert!(other_kind.message.contains(part), "{part}: {other_kind}");
    }
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed);
    assert!(operation.error.unwrap().message.contains("private on node"));

    pair.there.apply_ok(&HostConfig::default());
    let no_switch = refusal(&pair, "there").message;
    assert!(no_switch.contains("lan"), "{no_switch}");
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed);
    assert!(operation.error.unwrap().message.contains("lan"));
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Running));
    assert_eq!(pair.here.node.vm("web").unwrap().state, VmState::Running);

    let zero = MigrateVmRequest { downtime_ms: 0, ..request("there") };
    let zero = pair.here.node.migrate_vm(&name("web"), zero).unwrap_err();
    assert_eq!(zero.field.as_deref(), Some("downtime_ms"));
    pair.here.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    wait_until("the VM is shown as stopped on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::Stopped
    });
    let stopped = pair.here.node.migrate_vm(&name("web"), request("there")).unwrap_err();
    assert!(stopped.message.contains("suimon vm start web"), "{stopped}");
}

#[test]
fn a_cancelled_migration_leaves_the_vm_on_the_source() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    let is_copied = || pair.there.vms.state("web").is_some();
    wait_until("the disks are copied", is_copied);
    // Other operations are rejected on both nodes meanwhile.
    let stop = pair.here.node.start_vm_action(&name("web"), VmAction::Reset).unwrap();
    let stop = pair.here.node.wait_operation(stop.id, DEADLINE).unwrap();
    assert!(stop.error.unwrap().message.contains("migrating to node there"));
    let patch = Edit::Vm(ResourceEdit::Patch(name("web"), br#"{"autostart": true}"#.to_vec()));
    let errors = pair.here.node.submit(patch).unwrap_err();
    assert!(errors[0].message.contains("migrating to node there"), "{errors:?}");
    let delete = Edit::Vm(ResourceEdit::Delete(name("web")));
    let errors = pair.there.node.submit(delete).unwrap_err();
    assert!(errors[0].message.contains("arriving"), "{errors:?}");
    let conflict = pair.here.node.migrate_vm(&name("web"), request("there")).unwrap_err();
    assert!(conflict.message.contains("already"), "{conflict}");
    let status = pair.there.node.vm("web").unwrap();
    assert_eq!(status.state, VmState::IncomingMigration);

    pair.here.node.cancel_operation(operation.id).unwrap();
    assert_eq!(pair.end(&operation).state, OperationState::Cancelled);
    pair.assert_here();
    wait_one_event(&pair.here, EventKind::VmStays);
    wait_one_event(&pair.there, EventKind::VmDidNotArrive);
    // Another migration is permitted.
    pair.here.vms.hold_memory(false);
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
}

/// Each call fails throughout the migration, with both kinds of failure.
#[test]
fn exactly_one_node_runs_the_vm_whichever_call_fails() {
    for call in ["prepare_arrival", "operation", "line", "arrival", "abandon_arrival"] {
        for is_refused in [false, true] {
            let pair = Pair::new();
            // The state of the incoming migration is queried only during a long memory transfer.
            pair.here.vms.hold_memory(call == "arrival");
            pair.here
                .far_nodes
                .intercept(move |_, call_name| (call_name == call).then(|| failure(is_refused)));
            let operation = pair.migrate();
            println!("{call} {is_refused}: {:?}", operation.error);
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

fn failure(is_refused: bool) -> PeerError {
    if is_refused {
        PeerError::Rejected(vec![ApiError::new(ErrorCode::HostError, "no")])
    } else {
        PeerError::Unreachable("no route".to_owned())
    }
}

#[test]
fn a_vm_that_fails_to_start_send_or_receive_continues_on_the_source() {
    for call in ["start", "receive", "send", "send_status"] {
        let pair = Pair::new();
        let vms = if call == "send" { &pair.here.vms } else { &pair.there.vms };
        vms.refuse_all(call, VmErrorKind::Refused, "no");
        let operation = pair.migrate();
        assert_eq!(operation.state, OperationState::Failed, "{call}: {operation:?}");
        vms.refuse("none", VmErrorKind::Refused, "");
        pair.assert_here();
    }
}

#[test]
fn a_guest_that_ends_during_a_migration_has_ended() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    let reason = "the guest has shut down".to_owned();
    pair.here.vms.guest("web", VmNotice::Ended { is_orderly: true, reason });
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    wait_until("the VM is shown as stopped on the source", || {
        pair.here.node.vm("web").unwrap().state == VmState::Stopped
    });
    wait_until("the destination's configuration does not contain the VM", || {
        pair.there.node.config() == host(NODES)
    });
    let started = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
    let started = pair.here.node.wait_operation(started.id, DEADLINE).unwrap();
    assert_eq!(started.state, OperationState::Succeeded, "{started:?}");
}
