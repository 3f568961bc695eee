//! Migrations of a VM with a VF: the guest releases the VF before memory is sent, and is assigned
//! one on the destination if one is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use suimon_contract::{
    EventKind, HostConfig, IovPath, MigrateVmRequest, Operation, OperationState, VmMigration,
    VmState,
};
use suimon_ports::{VmErrorKind, VmRunState};

use crate::testing::{
    DEADLINE, FakeDevices, FakePeerNodes, FakeSriov, FakeVms, Harness, MemoryStore, host, name,
    wait_until,
};
use crate::{PeerError, VmAction};

const NODE: &str = r#"
[[switch]]
name = "wan"
kind = "external"
uplink = "up"
iov = true
[[uplink]]
name = "up"
device = "wan0"
[[pf]]
name = "wan"
device = "wan0"
vfs = 1
[[node]]
name = "there"
address = "192.0.2.2:8443"
authority = "/etc/suimon/there.pem"
token_file = "/etc/suimon/there.token"
"#;
const VM: &str = r#"
[[nic]]
name = "web"
switch = "wan"
backend = "vhost-user"
mac = "52:54:00:00:00:01"
iov_weight = 50
[[vm]]
name = "web"
memory_bytes = "1 GiB"
nics = ["web"]
"#;
/// Assigns the only VF statically.
const TAKEN: &str = "[[pf.vf]]\nindex = 0\nmac = \"52:54:00:00:00:09\"\n";

/// Source and destination, with an SR-IOV adapter each; the VM has a VF on the source.
struct Pair {
    here: Harness,
    there: Harness,
    adapter_here: FakeSriov,
    adapter_there: FakeSriov,
}

fn there_has_vf() -> HostConfig {
    host(NODE)
}

fn there_has_none() -> HostConfig {
    host(&NODE.replace("vfs = 1\n", &format!("vfs = 1\n{TAKEN}")))
}

impl Pair {
    fn new(of_there: &HostConfig) -> Self {
        let far_nodes = FakePeerNodes::default();
        let new = |sriov: &FakeSriov| {
            let state = (MemoryStore::default(), FakeDevices::default());
            let vms = (sriov.clone(), FakeVms::default());
            let harness = Harness::with_iov_among_nodes(state, vms, far_nodes.clone());
            harness.plane.run_clock();
            harness
        };
        let adapter_here = FakeSriov::with_adapters(1);
        let adapter_there = FakeSriov::with_adapters(1);
        let (source, target) = (new(&adapter_here), new(&adapter_there));
        far_nodes.connect("192.0.2.2:8443", &target.node);
        target.apply_ok(of_there);
        source.apply_ok(&host(&format!("{NODE}{VM}")));
        let pair = Self { here: source, there: target, adapter_here, adapter_there };
        let started = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
        pair.here.node.wait_operation(started.id, DEADLINE).unwrap();
        pair.wait_path(&pair.here, IovPath::Vf);
        pair
    }

    fn wait_path(&self, node: &Harness, path: IovPath) {
        let is_on =
            || node.node.nic("web").is_ok_and(|nic| nic.iov.is_some_and(|iov| iov.path == path));
        let deadline = std::time::Instant::now() + DEADLINE;
        while !is_on() {
            let state = || (node.node.vm("web"), node.node.nic("web"), node.vms.commands());
            assert!(std::time::Instant::now() < deadline, "not on {path:?}: {:?}", state());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    fn reason(&self, node: &Harness) -> String {
        node.node.nic("web").unwrap().iov.and_then(|iov| iov.reason).unwrap_or_default()
    }

    fn begin(&self) -> Operation {
        let request = MigrateVmRequest {
            destination: name("there"),
            downtime_ms: 300,
            bandwidth_max_bytes_per_s: None,
            deletes_source_files: false,
        };
        self.here.node.migrate_vm(&name("web"), request).unwrap()
    }

    fn end(&self, operation: &Operation) -> Operation {
        self.here.node.wait_operation(operation.id, DEADLINE).unwrap()
    }

    fn moving(&self) -> Option<VmMigration> {
        self.here.node.vm("web").unwrap().migration
    }

    /// Waits until the hot-unplug of the VF was requested.
    fn wait_queried(&self) {
        let is_requested =
            || self.here.vms.commands().iter().any(|command| command == "web unplug VF of nic/web");
        wait_until("the unplug of the VF is requested", is_requested);
    }

    /// Asserts that no memory of the VM was sent.
    fn assert_nothing_sent(&self) {
        let migration = self.moving().unwrap();
        assert_eq!(
            (migration.memory_bytes_copied, migration.memory_bytes_remaining),
            (0, 0),
            "{migration:?}"
        );
        assert_eq!(self.here.vms.state("web"), Some(VmRunState::Running));
        assert_eq!(self.here.vms.sends(), 0);
    }

    fn address_of_vf_here(&self) -> String {
        self.adapter_here.properties(0).vfs[0].settings.clone().unwrap().mac.to_string()
    }
}

#[test]
fn a_vf_is_released_before_memory_is_sent_and_the_destination_assigns_one() {
    let pair = Pair::new(&there_has_vf());
    let operation = pair.begin();
    pair.wait_queried();
    wait_until("the VM has a QEMU process on the destination", || {
        pair.there.vms.state("web").is_some()
    });
    // Long enough for the destination to assign VFs and for the source to send memory; much shorter
    // than the limit on the release of the VF, which is 2.4 s here.
    std::thread::sleep(std::time::Duration::from_millis(500));
    pair.assert_nothing_sent();
    assert!(pair.there.vms.vfs().is_empty(), "a VM that is not there yet has a VF");
    wait_until("the reason on the destination", || {
        pair.reason(&pair.there) == "its VM is migrating from node test"
    });
    assert!(pair.adapter_there.led_addresses().is_empty(), "VFs there find it by the wire");
    pair.here.vms.hold_memory(true);
    pair.here.vms.release_vf("web", "web");
    pair.wait_path(&pair.here, IovPath::Paravirtual);
    assert_eq!(pair.reason(&pair.here), "its VM is migrating to node there");
    pair.here.vms.hold_memory(false);
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.wait_path(&pair.there, IovPath::Vf);
    assert_eq!(pair.there.node.vm("web").unwrap().state, VmState::Running);
    let commands = pair.there.vms.commands();
    let position = |part: &str| commands.iter().position(|command| command.contains(part)).unwrap();
    assert!(position("Resume") < position("plug VF"), "{commands:?}");
    // The VF on the source is unassigned.
    wait_until("no VF is bound to vfio-pci on the source", || pair.here.vms.vfs().is_empty());
    assert_eq!(pair.address_of_vf_here(), "00:00:00:00:00:00");
    pair.here.wait_events(EventKind::NicOnSynthetic.id(), 1);
}

#[test]
fn a_vm_uses_the_switch_of_a_destination_without_a_free_vf() {
    let pair = Pair::new(&there_has_none());
    let operation = pair.begin();
    pair.wait_queried();
    pair.here.vms.release_vf("web", "web");
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let nic = || pair.there.node.nic("web").unwrap().iov.unwrap();
    wait_until("the NIC's status contains the reason", || {
        nic().reason.is_some_and(|reason| reason.contains("no VF for this NIC is free"))
    });
    assert_eq!(nic().path, IovPath::Paravirtual);
    assert!(pair.there.vms.plugged_vfs("web").is_empty());
}

#[test]
fn a_guest_that_does_not_release_its_vf_stays_and_no_memory_is_sent() {
    let pair = Pair::new(&there_has_vf());
    let operation = pair.begin();
    pair.wait_queried();
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert!(operation.error.unwrap().message.contains("has not released its VF"));
    assert_eq!(pair.here.vms.sends(), 0);
    assert_eq!(pair.here.vms.state("web"), Some(VmRunState::Running));
    wait_until("the destination has removed the VM's folder", || {
        pair.there.vms.folders().is_empty()
    });
    assert!(pair.there.vms.vfs().is_empty());
    // The guest releases the VF late and is assigned one again.
    assert!(!pair.here.vms.plugged_vfs("web").is_empty());
    pair.here.vms.release_vf("web", "web");
    wait_until("the VF is plugged into the VM", || !pair.here.vms.plugged_vfs("web").is_empty());
    pair.wait_path(&pair.here, IovPath::Vf);
}

#[test]
fn a_cancelled_or_failed_migration_assigns_the_vf_again() {
    for is_cancelled in [true, false] {
        let pair = Pair::new(&there_has_vf());
        pair.here.vms.hold_memory(true);
        let operation = pair.begin();
        pair.wait_queried();
        pair.here.vms.release_vf("web", "web");
        wait_until("memory is sent", || pair.here.vms.sends() == 1);
        // During the transfer no VF is assigned, although one is free.
        pair.adapter_here.wait_polled();
        assert!(pair.here.vms.vfs().is_empty());
        if is_cancelled {
            pair.here.node.cancel_operation(operation.id).unwrap();
        } else {
            pair.here.vms.refuse("send_status", VmErrorKind::Refused, "no");
        }
        assert_ne!(pair.end(&operation).state, OperationState::Succeeded);
        pair.wait_path(&pair.here, IovPath::Vf);
        assert_eq!(pair.address_of_vf_here(), "52:54:00:00:00:01");
        assert!(pair.there.vms.vfs().is_empty());
    }
}

/// Queries the state of an incoming migration every 20 ms until it is dropped. In these tests a
/// node abandons a migration after 2.4 s without a request, 120 times the request interval of 20
/// ms.
struct KeepsAsking {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KeepsAsking {
    fn start(node: &Harness, id: String) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let (node, stop) = (Arc::clone(&node.node), Arc::clone(&has_ended));
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = node.incoming_migration(&id);
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        Self { is_over: has_ended, thread: Some(thread) }
    }
}

impl Drop for KeepsAsking {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Only the destination knows which node owns the VM, so the next daemon of the source assigns no
/// VF.
#[test]
fn a_handed_over_vm_gets_no_vf() {
    let pair = Pair::new(&there_has_vf());
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name
            .starts_with("activate_arrival")
            .then(|| PeerError::Unreachable("no route".to_owned()))
    });
    pair.begin();
    pair.wait_queried();
    pair.here.vms.release_vf("web", "web");
    let is_handed_over =
        |node: &Harness| node.node.vm("web").is_ok_and(|vm| vm.state == VmState::HandedOver);
    wait_until("the VM is handed over", || is_handed_over(&pair.here));
    let id = pair.moving().unwrap().id;
    let _asking = KeepsAsking::start(&pair.there, id);
    let Pair { here: source, there: target, adapter_here, adapter_there } = pair;
    let (vms, far_nodes) = (source.vms.clone(), source.far_nodes.clone());
    vms.forget_observers();
    let stopped = source.kill();
    vms.cut_lines();
    let iov = (adapter_here.clone(), vms.clone());
    let source = Harness::with_iov_among_nodes(stopped, iov, far_nodes.clone());
    source.plane.run_clock();
    wait_until("the VM is handed over", || is_handed_over(&source));
    adapter_here.wait_polled();
    assert!(vms.vfs().is_empty(), "a VM that is another node's has a VF here");
    far_nodes.intercept(|_, _| None);
    let pair = Pair { here: source, there: target, adapter_here, adapter_there };
    pair.wait_path(&pair.there, IovPath::Vf);
    assert_eq!(pair.there.vms.state("web"), Some(VmRunState::Running));
}
