//! Metrics in the text format of Prometheus.
//!
//! Names follow the conventions of Prometheus: base units, `_total` for counters. Labels are names
//! of configured resources and stable reasons, so that the configuration bounds the number of
//! series.
//!
//! Each family is defined once (`family.rs`); `GET /metrics` and `docs/reference/metrics.md` have
//! the same descriptions.

mod disks;
mod family;
mod host;
mod minimums;
mod nbd;
mod ports;
mod power;
mod reference;
mod sriov;
mod stores;
mod teams;
mod text_format;
mod vmq;
mod vms;
mod workers;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use suimon_contract::{
    ApiError, Condition, DiskStatus, ErrorCode, Health, HostStatus, IovPath, PfStatus,
    PortCounters, PowerStatus, QueueStatus, SriovAdapter, StoreStatus, TeamStatus, VmStatus,
    VmqStatus, WorkerStatus,
};
use suimon_node::Node;

pub use reference::page;

/// Content type of the text written by [`render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Values of all metrics, read at one time.
#[derive(Clone, Debug)]
pub struct Readings {
    host: HostStatus,
    ports: Vec<PortReading>,
    /// NICs with an `iov_weight`, and whether their frames use a VF.
    nics_on_vf: Vec<(String, bool)>,
    teams: Vec<TeamStatus>,
    vmqs: Vec<VmqStatus>,
    queues: Vec<QueueStatus>,
    workers: Vec<WorkerStatus>,
    stores: Vec<StoreStatus>,
    disks: Vec<DiskStatus>,
    vms: Vec<VmStatus>,
    power: PowerStatus,
    pfs: Vec<PfStatus>,
    sriov: Vec<SriovAdapter>,
    /// Requests with wrong credentials, by listener.
    refused_access: [(&'static str, u64); 2],
}

/// Values of one NIC, uplink, team or host NIC.
#[derive(Clone, Debug)]
struct PortReading {
    /// Kind of port: `nic`, `uplink`, `team` or `switch`.
    kind: &'static str,
    name: String,
    is_up: bool,
    counters: PortCounters,
}

impl Readings {
    /// Reads the values from the node. `refused_access` are the numbers of requests with wrong
    /// credentials by listener.
    pub fn of(node: &Node, refused_access: [(&'static str, u64); 2]) -> Self {
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
            let Some(counters) = switch.host_nic else { continue };
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
            nics_on_vf,
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
            sriov: node.sriov_adapters().unwrap_or_default(),
            refused_access,
        }
    }
}

/// Renders all metrics as text.
///
/// # Errors
/// Defects of the metrics' definitions.
pub fn render(readings: &Readings) -> Result<String, ApiError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(readings.clone()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
    Ok(text_format::from_open_metrics(&text))
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_host(&mut encoder)?;
        self.encode_ports(&mut encoder)?;
        self.encode_teams(&mut encoder)?;
        self.encode_vmq(&mut encoder)?;
        self.encode_stores(&mut encoder)?;
        self.encode_disks(&mut encoder)?;
        self.encode_minimums(&mut encoder)?;
        self.encode_nbd(&mut encoder)?;
        self.encode_power(&mut encoder)?;
        self.encode_vms(&mut encoder)?;
        self.encode_sriov(&mut encoder)?;
        self.encode_workers(&mut encoder)
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
