//! Values of all metrics.

use suimon_contract::{
    Condition, DiskStatus, Health, HostStatus, IovPath, PfStatus, PortCounters, PowerStatus,
    QueueStatus, SriovAdapter, StoreStatus, TeamStatus, VmStatus, VmqStatus, WorkerStatus,
};
use suimon_node::Node;

/// Values of all metrics, read at one time.
#[derive(Clone, Debug)]
pub struct Readings {
    pub(crate) host: HostStatus,
    pub(crate) ports: Vec<PortReading>,
    /// Each NIC with an `iov_weight`, and true if its frames use a VF.
    pub(crate) nic_uses_vf: Vec<(String, bool)>,
    pub(crate) teams: Vec<TeamStatus>,
    pub(crate) vmqs: Vec<VmqStatus>,
    pub(crate) queues: Vec<QueueStatus>,
    pub(crate) workers: Vec<WorkerStatus>,
    pub(crate) stores: Vec<StoreStatus>,
    pub(crate) disks: Vec<DiskStatus>,
    pub(crate) vms: Vec<VmStatus>,
    pub(crate) power: PowerStatus,
    pub(crate) pfs: Vec<PfStatus>,
    pub(crate) sriov_adapters: Vec<SriovAdapter>,
    /// Number of requests with wrong credentials by listener (`api`, `console`).
    pub(crate) refused_requests_by_listener: [(&'static str, u64); 2],
}

/// Values of one NIC, uplink, team or host NIC.
#[derive(Clone, Debug)]
pub(crate) struct PortReading {
    /// Kind of port: `nic`, `uplink`, `team` or `switch`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) is_up: bool,
    pub(crate) counters: PortCounters,
}

impl Readings {
    /// Reads the values from the node. `refused_access` are the numbers of requests with wrong
    /// credentials by listener.
    pub fn read_from(node: &Node, refused_access: [(&'static str, u64); 2]) -> Self {
        let is_up = |condition: &Condition| condition.health == Health::Up;
        let (mut ports, mut nics_on_vf) = (Vec::new(), Vec::new());
        for nic in node.nics() {
            if let Some(iov) = &nic.iov {
                nics_on_vf.push((nic.config.name.to_string(), iov.path == IovPath::Vf));
            }
            ports.push(PortReading {
                kind: "nic",
                name: nic.config.name.to_string(),
                is_up: is_up(&nic.condition),
                counters: nic.counters,
            });
        }
        for uplink in node.uplinks() {
            ports.push(PortReading {
                kind: "uplink",
                name: uplink.config.name.to_string(),
                is_up: is_up(&uplink.condition),
                counters: uplink.counters,
            });
        }
        let teams = node.teams();
        for team in &teams {
            ports.push(PortReading {
                kind: "team",
                name: team.config.name.to_string(),
                is_up: is_up(&team.condition),
                counters: team.counters.clone(),
            });
        }
        for switch in node.switches() {
            let Some(counters) = switch.host_nic_counters else { continue };
            ports.push(PortReading {
                kind: "switch",
                name: switch.config.name.to_string(),
                is_up: is_up(&switch.condition),
                counters,
            });
        }
        Self {
            host: node.host_status(),
            ports,
            nic_uses_vf: nics_on_vf,
            teams,
            vmqs: node.vmqs(),
            queues: node.queues(),
            workers: node.workers(),
            stores: node.stores(),
            disks: node.disks(),
            vms: node.vms(),
            power: node.power(),
            pfs: node.pfs(),
            // Without access to adapters, no series exist for them.
            sriov_adapters: node.sriov_adapters().unwrap_or_default(),
            refused_requests_by_listener: refused_access,
        }
    }
}
