//! Tests with two nodes on one network: the switches of both reach a VM while it migrates between
//! them.

use suimon_contract::{MigrateVmRequest, Operation, OperationState, VmState};
use suimon_forwarding::PortRole;
use suimon_frame::MacAddr;
use suimon_quantity::PortId;
use suimon_switch::Topology;

use crate::testing::{
    DEADLINE, FakeDevices, FakePeerNodes, FakeVms, Harness, MemoryStore, host, name, wait_until,
};
use crate::{Edit, PeerError, ResourceEdit, VmAction};

const NODE: &str = r#"
[[switch]]
name = "lan"
kind = "external"
uplink = "out"
[[node]]
name = "there"
address = "192.0.2.2:8443"
authority = "/etc/suimon/there.pem"
token_file = "/etc/suimon/there.token"
"#;
const UPLINK: &str = "[[uplink]]\nname = \"out\"\ndevice = \"wan0\"\n";
const TEAM: &str = "[[uplink]]\nname = \"a\"\ndevice = \"wan0\"\n[[uplink]]\nname = \"b\"\n\
                    device = \"wan1\"\n[[team]]\nname = \"out\"\n\
                    mode = \"switch-independent\"\nmembers = [\"a\", \"b\"]\n";
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
const WEB: MacAddr = MacAddr::new([0x52, 0x54, 0, 0, 0, 1]);

/// Source and destination of a VM's migration.
struct Pair {
    here: Harness,
    there: Harness,
}

impl Pair {
    fn new(uplink_port: &str) -> Self {
        let far_nodes = FakePeerNodes::default();
        let new = || {
            let state = (MemoryStore::default(), FakeDevices::default());
            Harness::among_nodes(state, FakeVms::default(), far_nodes.clone())
        };
        let pair = Self { here: new(), there: new() };
        far_nodes.connect("192.0.2.2:8443", &pair.there.node);
        pair.there.apply_ok(&host(&format!("{NODE}{uplink_port}")));
        pair.here.apply_ok(&host(&format!("{NODE}{uplink_port}{VM}")));
        let started = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
        pair.here.node.wait_operation(started.id, DEADLINE).unwrap();
        pair
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

    fn end(&self, operation: &Operation) -> OperationState {
        self.here.node.wait_operation(operation.id, DEADLINE).unwrap().state
    }
}

/// Returns the port by which a node's switch reaches the VM instead of the NIC's own; `None` if the
/// node does not have the VM.
fn reached_by(node: &Harness) -> Option<Option<PortId>> {
    reached_by_in(&node.plane.topology())
}

fn reached_by_in(tables: &Topology) -> Option<Option<PortId>> {
    let port = tables.ports.iter().find(|port| port.spec.mac == Some(WEB))?;
    Some(port.spec.reached_by_uplink)
}

fn uplink_port(node: &Harness) -> PortId {
    let topology = node.plane.topology();
    topology.ports.iter().find(|port| port.spec.role == PortRole::Uplink).unwrap().spec.id
}

#[test]
fn an_incoming_vm_is_reached_by_the_uplink_until_it_is_activated() {
    for out in [UPLINK, TEAM] {
        let pair = Pair::new(out);
        pair.here.vms.hold_memory(true);
        let operation = pair.begin();
        wait_until("memory is sent", || pair.here.vms.sends() == 1);
        assert_eq!(reached_by(&pair.there), Some(Some(uplink_port(&pair.there))));
        assert_eq!(reached_by(&pair.here), Some(None));
        pair.here.vms.hold_memory(false);
        assert_eq!(pair.end(&operation), OperationState::Succeeded);
        wait_until("the destination's switch reaches the NIC by its own port", || {
            reached_by(&pair.there) == Some(None)
        });
    }
}

#[test]
fn a_handed_over_vm_is_reached_by_the_uplink_and_a_returned_one_is_not() {
    let pair = Pair::new(UPLINK);
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name
            .starts_with("activate_arrival")
            .then(|| PeerError::Unreachable("no route".to_owned()))
    });
    let operation = pair.begin();
    let is_handed_over = || {
        let vm = pair.here.node.vm("web");
        vm.is_ok_and(|vm| vm.state == VmState::HandedOver)
    };
    wait_until("the VM is handed over", is_handed_over);
    let out = Some(uplink_port(&pair.here));
    wait_until("the source's switch reaches the NIC through the uplink", || {
        reached_by(&pair.here) == Some(out)
    });
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    assert_eq!(pair.end(&operation), OperationState::Failed);
    wait_until("the source's switch reaches the NIC by its own port", || {
        reached_by(&pair.here) == Some(None)
    });
}

/// The next daemon applies the migration's record to its first forwarding tables.
#[test]
fn the_next_daemon_reaches_a_handed_over_vm_only_by_the_uplink() {
    let pair = Pair::new(UPLINK);
    pair.here.far_nodes.intercept(|_, call_name| {
        call_name
            .starts_with("activate_arrival")
            .then(|| PeerError::Unreachable("no route".to_owned()))
    });
    pair.begin();
    let is_handed_over =
        |node: &Harness| node.node.vm("web").is_ok_and(|vm| vm.state == VmState::HandedOver);
    wait_until("the VM is handed over", || is_handed_over(&pair.here));
    let (vms, far_nodes) = (pair.here.vms.clone(), pair.here.far_nodes.clone());
    vms.forget_observers();
    let stopped = pair.here.kill();
    vms.cut_lines();
    let source = Harness::among_nodes(stopped, vms, far_nodes);
    wait_until("the VM is handed over", || is_handed_over(&source));
    let out = Some(uplink_port(&source));
    let led: Vec<_> = source.plane.published().iter().map(reached_by_in).collect();
    assert!(!led.is_empty() && led.iter().all(|uplink| *uplink == Some(out)), "{led:?}");
}
