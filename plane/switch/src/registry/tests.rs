use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_quantity::SwitchId;

use super::*;
use crate::topology::PortTopology;

fn topology(ports: u32) -> Topology {
    let port = |id| PortTopology {
        spec: ForwardingPortSpec::new(PortId(id), SwitchId(1), PortRole::Nic),
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    Topology {
        switches: vec![SwitchSpec::new(SwitchId(1))],
        ports: (0..ports).map(port).collect(),
        teams: Vec::new(),
    }
}

#[test]
fn queues_do_not_change_the_forwarding_tables() {
    let mut registry = Registry::without_workers();
    registry.set_topology(topology(2)).unwrap();
    let before = registry.build_tables().unwrap();
    let id = QueueId { port: PortId(1), direction: Direction::Egress, index: 0 };
    registry.queues.insert(id, QueueRecord::new(WorkerId(0)));
    let after = registry.build_tables().unwrap();
    assert_eq!((before.owners.len(), after.owners.len()), (0, 1));
    assert!(Arc::ptr_eq(&before.forwarding_tables, &after.forwarding_tables));
    registry.set_topology(topology(3)).unwrap();
    let after = registry.build_tables().unwrap();
    assert_eq!(after.forwarding_tables.port_count(), 3);
    // A topology that is refused leaves the tables unchanged.
    let mut invalid = topology(4);
    invalid.switches.clear();
    assert!(registry.set_topology(invalid).is_err());
    assert!(Arc::ptr_eq(
        &registry.build_tables().unwrap().forwarding_tables,
        &after.forwarding_tables
    ));
}
