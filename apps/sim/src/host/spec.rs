//! What a scenario of kind `host` says.

use std::collections::BTreeMap;

use serde::Deserialize;
use suimon_offload::{DeviceFeature, OffloadSwitches};
use suimon_power::PowerPlan;

use crate::figure::Use;
use crate::host::power::EnergySpec;
use crate::processors::Sharing;

/// A scenario: cases, each on hardware that has just been turned on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// What it is about.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// What happens in the first so many ms of a case is in no figure.
    pub(crate) settle_ms: u64,
    pub(crate) measure_ms: u64,
    /// The first one is that of cases that name none; so are NICs.
    pub(crate) machine: Vec<MachineSpec>,
    #[serde(default)]
    pub(crate) nic: Vec<NicSpec>,
    pub(crate) vms: Vec<VmsSpec>,
    pub(crate) case: Vec<CaseSpec>,
}

/// Processors. What stages take is what they take on a processor with this clock.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineSpec {
    pub(crate) name: String,
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    pub(crate) sibling_percent: u64,
    /// Each other core that works makes work take so many thousandths longer.
    pub(crate) contention_permille: u64,
    /// The same of what the host does itself, and of others that do such work: locks, and the
    /// switch's own caches.
    #[serde(default)]
    pub(crate) host_contention_permille: u64,
    /// What a VM's processor takes longer where another one was.
    #[serde(default)]
    pub(crate) refill_us: u64,
    /// What the work of these VMs takes, in percent of what the scenario says.
    #[serde(default)]
    pub(crate) takes_percent: BTreeMap<String, u64>,
    /// Clocks, idle states and what they take; without it clocks are nominal.
    pub(crate) energy: Option<EnergySpec>,
}

impl MachineSpec {
    pub(crate) const fn sharing(&self) -> Sharing {
        let Self { logical_cpus, threads_per_core, numa_nodes, sibling_percent, .. } = *self;
        Sharing { logical_cpus, threads_per_core, numa_nodes, sibling_percent }
    }
}

/// A NIC; its equations are those of [`nic`](super::nic).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicSpec {
    pub(crate) name: String,
    pub(crate) gbit_s: u64,
    pub(crate) mtu: u64,
    /// What it can do, by the kernel's names.
    #[serde(default)]
    pub(crate) features: Vec<DeviceFeature>,
    /// What its engine takes before it cuts a packet, for each frame, and to fetch a byte.
    #[serde(default)]
    pub(crate) cut_ns: u64,
    #[serde(default)]
    pub(crate) frame_ns: u64,
    #[serde(default)]
    pub(crate) byte_ps: u64,
    /// Frames that it holds between engine and wire.
    pub(crate) fifo_frames: usize,
    /// Virtual functions.
    #[serde(default)]
    pub(crate) vfs: u16,
}

/// VMs that are alike, and what is asked of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmsSpec {
    pub(crate) name: String,
    /// How many there are in cases that do not say.
    pub(crate) count: u32,
    /// Processors of each; of a host without VMs, threads of its server.
    pub(crate) vcpus: u16,
    /// 0: no virtual function.
    #[serde(default)]
    pub(crate) iov_weight: u8,
    /// Who asks each of them, one request after the other; 0: it has nothing to do.
    pub(crate) sessions: u32,
    /// A session begins no request sooner than this after its last one began.
    #[serde(default)]
    pub(crate) pace_us: u64,
    /// Requests a second that count 1 in the score.
    pub(crate) reference: Option<f64>,
    /// Broadcasts a second of each.
    #[serde(default)]
    pub(crate) broadcasts: u64,
    #[serde(default)]
    pub(crate) request: Vec<RequestSpec>,
}

/// A kind of request, and the way that it goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestSpec {
    #[expect(dead_code, reason = "for readers of the file")]
    name: String,
    /// How many there are of it, to the shares of the others.
    pub(crate) share: u64,
    /// Payload that it carries.
    pub(crate) bytes: u64,
    /// What the application hands over at once.
    #[serde(default = "block_bytes")]
    pub(crate) block_bytes: u64,
    pub(crate) stage: Vec<StageSpec>,
}

const fn block_bytes() -> u64 {
    65_536
}

/// Who does a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    /// A processor of the VM, or a thread of a host without VMs.
    Vm,
    /// The host's thread for the VM.
    Host,
    /// The processor that works off the VM's queue of the NIC, by `policy/vmq`.
    Queue,
    /// The same of the VM on the other side.
    PeerVm,
    PeerHost,
    /// The NIC sends.
    Nic,
    /// Something comes in by the wire.
    Wire,
    /// Somebody else: `request_ns`, half as much to half more, and no processor of ours.
    Wait,
}

/// A stage of a way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    /// In tables of where time goes.
    pub(crate) module: String,
    pub(crate) at: Place,
    /// Only where all these hold: what a case says, or a policy ([`route`](super::route)).
    #[serde(default)]
    pub(crate) when: Vec<String>,
    /// Only where none of these holds.
    #[serde(default)]
    pub(crate) unless: Vec<String>,
    #[serde(default)]
    pub(crate) request_ns: u64,
    /// For what the application hands over at once.
    #[serde(default)]
    pub(crate) block_ns: u64,
    /// For what the stack hands down at once: a large packet or a segment.
    #[serde(default)]
    pub(crate) packet_ns: u64,
    /// For each frame on the wire.
    #[serde(default)]
    pub(crate) frame_ns: u64,
    /// For each acknowledgement, one for two frames (RFC 1122, section 4.2.3.2).
    #[serde(default)]
    pub(crate) ack_ns: u64,
    #[serde(default)]
    pub(crate) byte_ps: u64,
    /// How much of it waits for memory, which no clock of a processor makes quicker.
    #[serde(default)]
    pub(crate) memory_percent: u64,
}

/// What one case is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseSpec {
    pub(crate) name: String,
    pub(crate) machine: Option<String>,
    pub(crate) nic: Option<String>,
    /// What holds in it, for stages.
    #[serde(default)]
    pub(crate) with: Vec<String>,
    /// How many VMs of a kind.
    #[serde(default)]
    pub(crate) vms: BTreeMap<String, u32>,
    /// What applications hand over at once.
    pub(crate) block_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) offload: OffloadSwitches,
    pub(crate) power: Option<PlanSpec>,
    pub(crate) vmq: Option<QueuesSpec>,
    #[serde(default)]
    pub(crate) switch: SwitchKind,
    /// Who sends to whom, by number from 1; who is not named talks to the outside.
    #[serde(default)]
    pub(crate) talk: Vec<(u32, u32)>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// A power plan.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanSpec {
    pub(crate) plan: PowerPlan,
    pub(crate) performance_percent_min: Option<u8>,
}

/// VMQ.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueuesSpec {
    pub(crate) enabled: bool,
    pub(crate) max_processors: u16,
}

/// What VMs are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SwitchKind {
    /// A switch with an uplink.
    #[default]
    External,
    /// A switch without.
    Private,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) used: Use,
    pub(crate) expect: Expect,
}

/// When ours agrees with it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) of: Measure,
    /// VMs, or a module; without it all.
    #[serde(default)]
    pub(crate) what: String,
    /// The case that it is compared with, or how the names of several begin.
    pub(crate) against: Option<String>,
    #[serde(default)]
    pub(crate) by: By,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Payload in Mbit/s.
    Mbit,
    /// Requests a second.
    Rate,
    /// How busy all processors were, in percent of all.
    Cpu,
    /// What a request took of all processors, in µs.
    CpuEach,
    /// What the host's own work for each request of these VMs took, in µs.
    HostEach,
    /// What a VM's own work for each took, in µs.
    VmEach,
    /// What a module took of all processors for each request, in µs.
    Module,
    /// Watts of the whole machine.
    Watts,
    /// The score of tiles.
    Score,
    /// Unicast frames a second between VMs that leave the host, and broadcasts.
    Left,
    LeftBroadcasts,
}

/// How it is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    /// Not at all, or how many times the other.
    #[default]
    Times,
    /// How many times the other is ours.
    TimesLess,
    /// In percent of the other, more than it.
    PercentMore,
    /// In percent of the other, less than it.
    PercentLess,
    /// The difference.
    More,
    /// By which part the best of all cases whose names begin so is better.
    Best,
}
