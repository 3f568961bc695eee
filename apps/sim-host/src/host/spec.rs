//! Scenarios of kind `host`.

use std::collections::BTreeMap;

use serde::Deserialize;
use suimon_offload::{DeviceFeature, OffloadToggles};
use suimon_power::PowerPlan;
use suimon_sim_kernel::FigurePurpose;

use crate::processors::CpuSharingModel;

/// Host scenario: a list of cases, each of which starts with an idle machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// Description of the scenario for readers of the file.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// Length in ms of the initial part of a case that is excluded from figures.
    pub(crate) settle_ms: u64,
    pub(crate) measure_ms: u64,
    /// Machines; a case that names none uses the first one.
    pub(crate) machine: Vec<MachineSpec>,
    /// NICs; a case that names none uses the first one.
    #[serde(default)]
    pub(crate) nic: Vec<NicSpec>,
    pub(crate) vms: Vec<VmsSpec>,
    pub(crate) case: Vec<CaseSpec>,
}

/// CPUs of a machine. The durations in stages apply to this machine with its nominal clock.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineSpec {
    pub(crate) name: String,
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    #[serde(rename = "sibling_percent")]
    pub(crate) busy_sibling_speed_percent: u64,
    /// Increase of the duration of work by each other busy core, in thousandths.
    pub(crate) contention_permille: u64,
    /// Further increase of the duration of host work by each other CPU that processes host work, in
    /// thousandths. It models locks and caches of the switch.
    #[serde(default)]
    pub(crate) host_contention_permille: u64,
    /// Additional duration in µs of a virtual CPU's work if another virtual CPU ran on the core
    /// before.
    #[serde(default)]
    #[serde(rename = "refill_us")]
    pub(crate) cache_refill_us: u64,
    /// Duration of the work of each kind of VM, in percent of the durations in the scenario.
    #[serde(default)]
    #[serde(rename = "takes_percent")]
    pub(crate) duration_percent: BTreeMap<String, u64>,
    /// Clocks, idle states and power; clocks are nominal if absent.
    pub(crate) energy: Option<EnergySpec>,
}

impl MachineSpec {
    pub(crate) const fn sharing(&self) -> CpuSharingModel {
        let Self {
            logical_cpus,
            threads_per_core,
            numa_nodes,
            busy_sibling_speed_percent: sibling_percent,
            ..
        } = *self;
        CpuSharingModel {
            logical_cpus,
            threads_per_core,
            numa_nodes,
            busy_sibling_speed_percent: sibling_percent,
        }
    }
}

/// Power management properties of a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnergySpec {
    /// Clocks in MHz, ascending; the last is the nominal one.
    pub(crate) mhz: Vec<u64>,
    /// Turbo clock of a socket in MHz by number of busy cores.
    pub(crate) turbo_mhz: Vec<u64>,
    /// Voltages in mV at the lowest, the nominal and the highest turbo clock.
    pub(crate) millivolts: [u64; 3],
    /// Power of a busy core at the nominal clock in mW.
    pub(crate) core_mw: u64,
    /// Power of all components other than cores in mW.
    #[serde(rename = "rest_mw")]
    pub(crate) non_core_mw: u64,
    pub(crate) idle: Vec<IdleSpec>,
}

/// Idle state of a core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdleSpec {
    pub(crate) name: String,
    pub(crate) latency_us: u64,
    pub(crate) residency_us: u64,
    pub(crate) core_mw: u64,
}

/// NIC. [`nic`](super::nic) documents the equations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicSpec {
    pub(crate) name: String,
    pub(crate) gbit_s: u64,
    pub(crate) mtu: u64,
    /// Features, by the kernel's names.
    #[serde(default)]
    pub(crate) features: Vec<DeviceFeature>,
    /// Time in ns that the engine takes to start the segmentation of a packet.
    #[serde(default)]
    #[serde(rename = "cut_ns")]
    pub(crate) segmentation_start_ns: u64,
    /// Time in ns that the engine takes for each frame.
    #[serde(default)]
    pub(crate) frame_ns: u64,
    /// Time in ps that the engine takes to fetch each byte.
    #[serde(default)]
    pub(crate) byte_ps: u64,
    /// Largest number of frames buffered between engine and wire.
    pub(crate) fifo_frames: usize,
    /// Number of virtual functions of the NIC.
    #[serde(default)]
    pub(crate) vfs: u16,
}

/// Group of equal VMs with their load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmsSpec {
    pub(crate) name: String,
    /// Default number of VMs in a case.
    pub(crate) count: u32,
    /// Virtual CPUs of each VM; threads of the server for a host without VMs.
    pub(crate) vcpus: u16,
    /// Weight in the assignment of virtual functions; 0 for none.
    #[serde(default)]
    pub(crate) iov_weight: u8,
    /// Number of sessions of each VM, each with one request at a time; 0 for an idle VM.
    pub(crate) sessions: u32,
    /// Shortest time in µs between the starts of a session's requests.
    #[serde(default)]
    #[serde(rename = "pace_us")]
    pub(crate) request_interval_min_us: u64,
    /// Requests per second that count as 1 in the score.
    #[serde(rename = "reference")]
    pub(crate) reference_rate: Option<f64>,
    /// Broadcasts of each VM per second.
    #[serde(default)]
    #[serde(rename = "broadcasts")]
    pub(crate) broadcasts_per_s: u64,
    #[serde(default)]
    pub(crate) request: Vec<RequestSpec>,
}

/// Kind of request and its path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestSpec {
    #[expect(dead_code, reason = "for readers of the file")]
    name: String,
    /// Relative number of requests of this kind.
    pub(crate) share: u64,
    /// Bytes of payload per request.
    pub(crate) bytes: u64,
    /// Bytes that the application writes per system call.
    #[serde(default = "block_bytes")]
    pub(crate) block_bytes: u64,
    pub(crate) stage: Vec<StageSpec>,
}

const fn block_bytes() -> u64 {
    65_536
}

/// Component that executes one stage of a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Executor {
    /// Virtual CPU of the VM, or a thread of a host without VMs.
    Vm,
    /// Thread of the host for the VM.
    Host,
    /// CPU that services the VM's queue of the NIC, as assigned by `policy/vmq`.
    Queue,
    /// Virtual CPU of the VM that the frames are sent to.
    PeerVm,
    PeerHost,
    /// Transmission by the NIC of the host.
    Nic,
    /// Frames are received from the wire.
    Wire,
    /// External component: takes `request_ns` ± 50 % and uses no CPU of the host.
    Wait,
}

/// Stage of the path of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    /// Name of the module that CPU time is attributed to.
    pub(crate) module: String,
    #[serde(rename = "at")]
    pub(crate) executor: Executor,
    /// Conditions all of which must hold for the stage to be executed: conditions of the case, or
    /// derived from policies ([`route`](super::route)).
    #[serde(default)]
    #[serde(rename = "when")]
    pub(crate) required_conditions: Vec<String>,
    /// Conditions that exclude the stage if one of them holds.
    #[serde(default)]
    #[serde(rename = "unless")]
    pub(crate) excluding_conditions: Vec<String>,
    #[serde(default)]
    pub(crate) request_ns: u64,
    /// Duration in ns for each block written by the application.
    #[serde(default)]
    pub(crate) block_ns: u64,
    /// Duration in ns for each packet of the stack: a large packet or a segment.
    #[serde(default)]
    pub(crate) packet_ns: u64,
    /// Duration in ns for each frame on the wire.
    #[serde(default)]
    pub(crate) frame_ns: u64,
    /// Duration in ns for each acknowledgement, one per two frames (RFC 1122, section 4.2.3.2).
    #[serde(default)]
    pub(crate) ack_ns: u64,
    #[serde(default)]
    pub(crate) byte_ps: u64,
    /// Percentage of the duration that is spent waiting for memory and does not depend on the
    /// clock.
    #[serde(default)]
    pub(crate) memory_percent: u64,
}

/// Case of a scenario: settings and load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseSpec {
    pub(crate) name: String,
    pub(crate) machine: Option<String>,
    pub(crate) nic: Option<String>,
    /// Names of the conditions that hold in the case.
    #[serde(default)]
    #[serde(rename = "with")]
    pub(crate) conditions: Vec<String>,
    /// Number of VMs of each kind, which replaces [`VmsSpec::count`].
    #[serde(default)]
    pub(crate) vms: BTreeMap<String, u32>,
    /// Bytes that applications write per system call; those of the request's kind if absent.
    pub(crate) block_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) offload: OffloadToggles,
    pub(crate) power: Option<PowerPlanSpec>,
    pub(crate) vmq: Option<VmqCaseSpec>,
    #[serde(default)]
    pub(crate) switch: SwitchKind,
    /// Pairs (sender, receiver) of VMs by number from 1. All other VMs communicate with the
    /// external network.
    #[serde(default)]
    #[serde(rename = "talk")]
    pub(crate) traffic_pairs: Vec<(u32, u32)>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// Power plan of a case.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PowerPlanSpec {
    pub(crate) plan: PowerPlan,
    pub(crate) performance_percent_min: Option<u8>,
}

/// VMQ settings of a case.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmqCaseSpec {
    pub(crate) enabled: bool,
    #[serde(rename = "max_processors")]
    pub(crate) max_workers: u16,
}

/// Kind of switch that the VMs are connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SwitchKind {
    /// Switch with an uplink.
    #[default]
    External,
    /// Switch without an uplink.
    Private,
}

/// Published figure with an expectation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) purpose: FigurePurpose,
    #[serde(rename = "expect")]
    pub(crate) expectation: Expectation,
}

/// Expectation for a published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    #[serde(rename = "of")]
    pub(crate) measure: Measure,
    /// Kind of VMs, or module, that the measure is restricted to; empty for all.
    #[serde(default)]
    #[serde(rename = "what")]
    pub(crate) measure_filter: String,
    /// Name of the case to compare with, or with [`Comparison::PercentFromBest`] the prefix of
    /// several names.
    #[serde(rename = "against")]
    pub(crate) reference_case: Option<String>,
    #[serde(default)]
    #[serde(rename = "by")]
    pub(crate) comparison: Comparison,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// Measure that a figure is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Throughput of payload in Mbit/s.
    Mbit,
    /// Rate of requests per second.
    Rate,
    /// Utilisation of all CPUs in percent.
    Cpu,
    /// CPU time per request in µs, summed over all CPUs.
    #[serde(rename = "cpu-each")]
    CpuPerRequest,
    /// Host CPU time per request of these VMs, in µs.
    #[serde(rename = "host-each")]
    HostCpuPerRequest,
    /// CPU time of a VM per request, in µs.
    #[serde(rename = "vm-each")]
    VmCpuPerRequest,
    /// CPU time of a module per request, in µs.
    #[serde(rename = "module")]
    ModuleCpuPerRequest,
    /// Power of the whole machine in W.
    Watts,
    /// Score of tiles, relative to reference rates.
    Score,
    /// Unicast frames between VMs per second that leave the host, and broadcasts.
    #[serde(rename = "left")]
    FramesOut,
    #[serde(rename = "left-broadcasts")]
    BroadcastsOut,
}

/// Way in which the value of a case is compared with another case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Comparison {
    /// Ratio to the other case; the value itself without another case.
    #[default]
    #[serde(rename = "times")]
    Ratio,
    /// Ratio of the other case to this one, for a value that decreases.
    #[serde(rename = "times-less")]
    InverseRatio,
    /// Increase over the other case in percent.
    #[serde(rename = "percent-more")]
    PercentIncrease,
    /// Decrease from the other case in percent.
    #[serde(rename = "percent-less")]
    PercentDecrease,
    /// Difference from the other case, in the unit of the measure.
    #[serde(rename = "more")]
    Difference,
    /// Relative difference from the best of all cases whose names begin with `against`.
    #[serde(rename = "best")]
    PercentFromBest,
}
