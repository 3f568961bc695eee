//! Metrics in Prometheus' text format.
//!
//! Names follow Prometheus' conventions: base units, `_total` for what only
//! grows. Labels are names of configured resources and stable drop reasons, so
//! the number of series is bounded by the configuration.

mod disks;
mod power;
mod sriov;
mod teams;
mod text_format;
mod vmq;
mod vms;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use suimon_contract::{
    ApiError, Condition, DiskStatus, ErrorCode, Health, HostStatus, IovPath, PfStatus,
    PortCounters, PowerStatus, ProcessorStatus, QueueStatus, SriovAdapter, StoreStatus, TeamStatus,
    VmStatus, VmqStatus,
};
use suimon_node::Node;

/// The type of what [`render`] writes.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that is measured, read at one time.
#[derive(Clone, Debug)]
pub struct Readings {
    host: HostStatus,
    ports: Vec<PortReading>,
    /// NICs that are to have VFs, and whether their frames take one.
    nics_on_vf: Vec<(String, bool)>,
    teams: Vec<TeamStatus>,
    vmqs: Vec<VmqStatus>,
    queues: Vec<QueueStatus>,
    processors: Vec<ProcessorStatus>,
    stores: Vec<StoreStatus>,
    disks: Vec<DiskStatus>,
    vms: Vec<VmStatus>,
    power: PowerStatus,
    pfs: Vec<PfStatus>,
    sriov: Vec<SriovAdapter>,
}

/// One NIC, uplink, team or host NIC.
#[derive(Clone, Debug)]
struct PortReading {
    /// `nic`, `uplink`, `team` or `switch`.
    kind: &'static str,
    name: String,
    is_up: bool,
    counters: PortCounters,
}

impl Readings {
    /// Reads the node.
    pub fn of(node: &Node) -> Self {
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
            processors: node.processors(),
            stores: node.stores(),
            disks: node.disks(),
            vms: node.vms(),
            power: node.power(),
            pfs: node.pfs(),
            // A host that cannot be asked has none to show.
            sriov: node.sriov_adapters().unwrap_or_default(),
        }
    }
}

/// Writes all metrics.
///
/// # Errors
/// A defect of the daemon.
pub fn render(readings: &Readings) -> Result<String, ApiError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(readings.clone()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
    Ok(text_format::from_open_metrics(&text))
}

/// What one port's counter is called, and what it counts.
type PortMetric = (&'static str, &'static str, fn(&PortCounters) -> u64);

/// Seen from the guest, as it sees itself: what came in from it at the switch is
/// what it transmitted.
const GUEST_METRICS: &[PortMetric] = &[
    ("receive_bytes", "Bytes handed to it", |c| c.tx_bytes),
    ("receive_frames", "Frames handed to it; a large frame counts once", |c| c.tx_frames),
    ("transmit_bytes", "Bytes it sent", |c| c.rx_bytes),
    ("transmit_frames", "Frames it sent; a large frame counts once", |c| c.rx_frames),
];

/// Seen from the device, which receives from the wire, or from the team of several.
const UPLINK_METRICS: &[PortMetric] = &[
    ("receive_bytes", "Bytes received from the wire", |c| c.rx_bytes),
    ("receive_frames", "Frames received from the wire", |c| c.rx_frames),
    ("transmit_bytes", "Bytes sent to the wire", |c| c.tx_bytes),
    ("transmit_frames", "Frames sent to the wire; a large frame counts once", |c| c.tx_frames),
];

/// The same from all sides.
const COMMON_METRICS: &[PortMetric] = &[
    ("flooded_frames", "Frames from it that were flooded", |c| c.flooded),
    ("segmented_frames", "Frames segmented in software on their way to it", |c| {
        c.software_segmented
    }),
    (
        "checksummed_frames",
        "Frames whose checksum was completed in software on their way to it",
        |c| c.software_checksummed,
    ),
    (
        "coalesced_segments",
        "Frames joined with others of their stream in software on their way to it",
        |c| c.software_coalesced_segments,
    ),
    ("coalesced_units", "Large frames they became", |c| c.software_coalesced_units),
];

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_host(&mut encoder)?;
        for kind in ["nic", "uplink", "team", "switch"] {
            self.encode_ports(&mut encoder, kind)?;
        }
        let on_vf = self.nics_on_vf.iter();
        let on_vf = on_vf.map(|(nic, is_so)| ([("nic", nic.clone())], f64::from(u8::from(*is_so))));
        encode_gauges(
            &mut encoder,
            "suimon_nic_on_vf",
            "Whether the frames of a NIC that is to have a VF take one",
            on_vf,
        )?;
        self.encode_teams(&mut encoder)?;
        self.encode_vmq(&mut encoder)?;
        self.encode_disks(&mut encoder)?;
        self.encode_power(&mut encoder)?;
        self.encode_vms(&mut encoder)?;
        self.encode_sriov(&mut encoder)?;
        self.encode_processors(&mut encoder)
    }
}

impl Readings {
    fn encode_host(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let gauges = [
            ("suimon_desired_revision", "Counts the changes of desired state", self.host.revision),
            ("suimon_uptime_seconds", "Time since the daemon started", self.host.uptime_s),
            ("suimon_switches", "Switches desired", self.host.switches as u64),
            ("suimon_uplinks", "Uplinks desired", self.host.uplinks as u64),
            ("suimon_teams", "Teams desired", self.host.teams as u64),
            ("suimon_nics", "NICs desired", self.host.nics as u64),
            ("suimon_disks", "Disks desired", self.host.disks as u64),
            ("suimon_vms", "VMs desired", self.host.vms as u64),
            ("suimon_pfs", "Adapters with SR-IOV desired", self.host.pfs as u64),
            ("suimon_nodes", "Other nodes known", self.host.nodes as u64),
        ];
        let mut build = encoder.encode_descriptor(
            "suimon_build_info",
            "Always 1; the version is in the label",
            None,
            MetricType::Gauge,
        )?;
        let labels = [("version", self.host.version.as_str())];
        ConstGauge::new(1_u32).encode(build.encode_family(&labels)?)?;
        for (name, help, value) in gauges {
            let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(signed(value)).encode(family)?;
        }
        let refused = encoder.encode_descriptor(
            "suimon_refused_system_calls",
            "System calls that threads of the daemon were refused; any means a defect or worse",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(self.host.confinement.refused_calls).encode(refused)?;
        Ok(())
    }

    fn encode_ports(&self, encoder: &mut DescriptorEncoder<'_>, kind: &'static str) -> fmt::Result {
        let ports: Vec<&PortReading> = self.ports.iter().filter(|p| p.kind == kind).collect();
        if ports.is_empty() {
            return Ok(());
        }
        // The host NIC of a switch is a guest of it.
        let (prefix, sided) = match kind {
            "uplink" => ("suimon_uplink", UPLINK_METRICS),
            "team" => ("suimon_team", UPLINK_METRICS),
            "switch" => ("suimon_switch_host_nic", GUEST_METRICS),
            _ => ("suimon_nic", GUEST_METRICS),
        };
        for (name, help, value) in sided.iter().chain(COMMON_METRICS) {
            let name = format!("{prefix}_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for port in &ports {
                let labels = [(kind, port.name.as_str())];
                let metric = family.encode_family(&labels)?;
                ConstCounter::new(value(&port.counters)).encode(metric)?;
            }
        }
        encode_drops(encoder, kind, prefix, &ports)?;
        let name = format!("{prefix}_up");
        let help = "1 if it is as desired and frames can pass";
        let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for port in &ports {
            let labels = [(kind, port.name.as_str())];
            ConstGauge::new(u32::from(port.is_up)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_processors(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Metric = (&'static str, &'static str, fn(&ProcessorStatus) -> u64);
        let counters: [Metric; 4] = [
            ("suimon_processor_batches", "Batches taken from queues", |p| p.batches),
            ("suimon_processor_frames", "Frames taken from queues", |p| p.frames),
            ("suimon_processor_sleeps", "Times it went to sleep", |p| p.sleeps),
            (
                "suimon_processor_rests",
                "Times it stopped polling for a while, because others want its CPU",
                |p| p.rests,
            ),
        ];
        let times: [Metric; 2] = [
            ("suimon_processor_cpu_seconds", "CPU time used", |p| p.cpu_time_ns),
            ("suimon_processor_busy_seconds", "Time in which it did not sleep", |p| p.busy_ns),
        ];
        for (name, help, value) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for processor in &self.processors {
                let labels = [("processor", processor.id.to_string())];
                ConstCounter::new(value(processor)).encode(family.encode_family(&labels)?)?;
            }
        }
        for (name, help, value) in times {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for processor in &self.processors {
                let labels = [("processor", processor.id.to_string())];
                let seconds = value(processor) as f64 / 1e9;
                ConstCounter::new(seconds).encode(family.encode_family(&labels)?)?;
            }
        }
        self.encode_stages(encoder)?;
        let (name, help) = ("suimon_processor_queues", "Queues it owns");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for processor in &self.processors {
            let labels = [("processor", processor.id.to_string())];
            let queues = signed(processor.queues as u64);
            ConstGauge::new(queues).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_stages(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "suimon_processor_stage_seconds",
            "Time by what was done in it; the stages of a processor add up to all of its time",
            None,
            MetricType::Counter,
        )?;
        for processor in &self.processors {
            let id = processor.id.to_string();
            for (stage, ns) in processor.stages.named() {
                let labels = [("processor", id.as_str()), ("stage", stage)];
                ConstCounter::new(ns as f64 / 1e9).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Drops of both ways in one family: `direction` is seen as the other metrics
/// of the port are.
fn encode_drops(
    encoder: &mut DescriptorEncoder<'_>,
    kind: &'static str,
    prefix: &str,
    ports: &[&PortReading],
) -> fmt::Result {
    let name = format!("{prefix}_dropped_frames");
    let help = "Frames from it (transmit) or for it (receive) that went nowhere, by reason";
    let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
    let (from_port, to_port) = match kind {
        "uplink" | "team" => ("receive", "transmit"),
        _ => ("transmit", "receive"),
    };
    for port in ports {
        let sides = [(from_port, &port.counters.rx_dropped), (to_port, &port.counters.tx_dropped)];
        for (direction, drops) in sides {
            for drop in drops {
                let labels = [
                    (kind, port.name.as_str()),
                    ("direction", direction),
                    ("reason", drop.reason.as_str()),
                ];
                ConstCounter::new(drop.frames).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Parts per million as a ratio, as Prometheus wants it.
fn ratio(ppm: u32) -> f64 {
    f64::from(ppm) / 1e6
}

/// Writes one gauge for each label set.
fn encode_gauges<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl Iterator<Item = ([(&'static str, String); N], f64)>,
) -> fmt::Result {
    let mut series = series.peekable();
    if series.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in series {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
