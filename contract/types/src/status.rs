//! Observed state: what is. Never written by a user.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

use crate::{
    ConfinementStatus, DeviceFeaturesStatus, DrainStatus, IovStatus, KernelPathStatus, Name,
    NicConfig, OffloadStatus, ProcessorStages, SteeringStatus, SwitchConfig, TopDisk, TopPower,
    UplinkConfig, XdpStatus,
};

/// `GET /1.0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostStatus {
    /// Name of the host.
    pub name: String,
    /// Version of the daemon.
    pub version: String,
    /// Seconds since the daemon started.
    pub uptime_s: u64,
    /// Counts up with every change of desired state; survives restarts.
    pub revision: u64,
    /// Number of switches.
    pub switches: usize,
    /// Number of uplinks.
    pub uplinks: usize,
    /// Number of teams.
    #[serde(default)]
    pub teams: usize,
    /// Number of NICs.
    pub nics: usize,
    /// Number of stores.
    #[serde(default)]
    pub stores: usize,
    /// Number of QoS policies.
    #[serde(default)]
    pub qos_policies: usize,
    /// Number of disks.
    #[serde(default)]
    pub disks: usize,
    /// Number of VMs.
    #[serde(default)]
    pub vms: usize,
    /// Number of adapters with SR-IOV of which something is desired.
    #[serde(default)]
    pub pfs: usize,
    /// Number of other nodes.
    #[serde(default)]
    pub nodes: usize,
    /// That it is drained, if it is: no VM comes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
    /// What the daemon's threads can no longer ask of the kernel.
    #[serde(default)]
    pub confinement: ConfinementStatus,
}

/// Whether desired and observed state agree for one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As desired, and frames can pass.
    Up,
    /// As desired, but the other side is not there: no VM, no carrier.
    Down,
    /// Not as desired; `reason` says why, and the daemon tries again.
    Failed,
}

/// Health with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Condition {
    /// In one word.
    pub health: Health,
    /// Why it is not up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Counters of one port since it was made, seen from the switch: `rx` came in
/// from the port, `tx` went out to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortCounters {
    /// Frames in; a large frame counts once.
    pub rx_frames: u64,
    /// Bytes in.
    pub rx_bytes: u64,
    /// Frames out; a large frame counts once.
    pub tx_frames: u64,
    /// Bytes out.
    pub tx_bytes: u64,
    /// Frames that came in and went nowhere, by reason.
    pub rx_dropped: Vec<DropCounter>,
    /// Frames meant for this port that did not go out, by reason.
    pub tx_dropped: Vec<DropCounter>,
    /// Frames this port caused to be flooded.
    pub flooded: u64,
    /// Frames segmented in software on their way out here.
    pub software_segmented: u64,
    /// Frames whose checksum was completed in software on their way out here.
    pub software_checksummed: u64,
    /// Frames that were joined with others of their TCP stream in software on their
    /// way out here.
    pub software_coalesced_segments: u64,
    /// The large frames they became, which are among the frames out.
    pub software_coalesced_units: u64,
}

/// Drops of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropCounter {
    /// Stable name of the reason, like `spoofed_source`.
    pub reason: String,
    /// How many.
    pub frames: u64,
}

/// A queue and the processor that owns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueStatus {
    /// `NIC/rx/0`, `NIC/tx/0`, seen from the guest as Hyper-V and Linux do:
    /// `rx` carries frames to it.
    pub id: String,
    /// The NIC, uplink or switch (for its host NIC) it belongs to.
    pub port: String,
    /// Owning processor.
    pub processor: u16,
    /// Frames carried since it was made.
    pub frames: u64,
    /// Bytes carried since it was made.
    pub bytes: u64,
    /// Frames lost because the other side had no room.
    pub full: u64,
    /// Times it was handed over to another processor.
    pub moves: u64,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NicStatus {
    /// As desired.
    pub config: NicConfig,
    /// Whether it is as desired.
    pub condition: Condition,
    /// Counters.
    pub counters: PortCounters,
    /// Offloads.
    pub offloads: Vec<OffloadStatus>,
    /// Negotiated virtio features as a hexadecimal number, if it is virtio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtio_features: Option<String>,
    /// Queue pairs in use.
    pub queue_pairs: u16,
    /// Addresses learned on it.
    pub learned: u32,
    /// Source address that is bound to the NIC, which has no `mac`. Frames from it that other NICs send
    /// are dropped until the guest disconnects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bound_mac: Option<MacAddr>,
    /// Its path in the kernel, if it asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_path: Option<KernelPathStatus>,
    /// Which of its two paths its frames take, if it is to have a virtual function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iov: Option<IovStatus>,
}

/// An uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UplinkStatus {
    /// As desired.
    pub config: UplinkConfig,
    /// The switch that uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Whether it is as desired.
    pub condition: Condition,
    /// Counters.
    pub counters: PortCounters,
    /// Largest IP packet now.
    pub mtu: u16,
    /// The device's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// Offloads.
    #[serde(default)]
    pub offloads: Vec<OffloadStatus>,
    /// What the device does itself, as the kernel says now.
    #[serde(default)]
    pub device: DeviceFeaturesStatus,
    /// How its AF_XDP sockets get at frames, while they are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub af_xdp: Option<XdpStatus>,
    /// Whether the device gives frames to receive queues of NICs, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<SteeringStatus>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchStatus {
    /// As desired.
    pub config: SwitchConfig,
    /// Whether it is as desired.
    pub condition: Condition,
    /// Names of the NICs on it.
    pub nics: Vec<Name>,
    /// Counters of the host NIC of an internal switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_nic: Option<PortCounters>,
    /// Offloads of the host NIC of an internal switch; empty for other switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_nic_offloads: Vec<OffloadStatus>,
    /// Addresses known on it.
    pub addresses: usize,
}

/// `GET /1.0/switches/{name}/addresses`: one line of the forwarding table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressStatus {
    /// The address.
    #[schema(value_type = String)]
    pub mac: MacAddr,
    /// Its VLAN; absent for the untagged network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// NIC, uplink or switch (for its host NIC) behind which it is.
    pub port: String,
    /// Whether it was configured, not learned.
    pub fixed: bool,
    /// Seconds since it was last seen; absent if configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessorStatus {
    /// Counts from 0.
    pub id: u16,
    /// The logical CPU it is pinned to; none if it runs on any that the daemon may use,
    /// as it does where the host's `processors` are not set.
    pub cpu: Option<u16>,
    /// Queues it owns.
    pub queues: usize,
    /// CPU time used since the daemon started, in ns.
    pub cpu_time_ns: u64,
    /// Time in which it did not sleep, in ns: all of its stages but idle.
    pub busy_ns: u64,
    /// Batches taken from queues.
    pub batches: u64,
    /// Frames taken from queues.
    pub frames: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Whether it sleeps now.
    pub asleep: bool,
    /// Times it stopped polling for answers of devices for a while, because somebody else wants
    /// all of its CPU.
    #[serde(default)]
    pub rests: u64,
    /// Whether it does not poll now for that reason.
    #[serde(default)]
    pub resting: bool,
    /// Where its time went.
    #[serde(default)]
    pub stages: ProcessorStages,
}

/// `GET /1.0/top`: all counters at one moment. Rates are the differences of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopSnapshot {
    /// When they were read, in milliseconds since 1970-01-01 UTC.
    pub time_unix_ms: u64,
    /// When they were read, in ns on a clock that only goes forward, which is the
    /// one to divide by.
    pub time_monotonic_ns: u64,
    /// NICs, by name.
    pub nics: Vec<TopPort>,
    /// Uplinks, by name.
    pub uplinks: Vec<TopPort>,
    /// Teams, by name.
    #[serde(default)]
    pub teams: Vec<TopTeam>,
    /// Disks, by name.
    #[serde(default)]
    pub disks: Vec<TopDisk>,
    /// Processors, by number.
    pub processors: Vec<ProcessorStatus>,
    /// Power and energy.
    #[serde(default)]
    pub power: TopPower,
}

/// What `suimon top` shows of a NIC or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopPort {
    /// Name of the NIC or uplink.
    pub name: Name,
    /// The switch it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Whether it is as desired.
    pub health: Health,
    /// Frames that came in from it.
    pub rx_frames: u64,
    /// Bytes that came in from it.
    pub rx_bytes: u64,
    /// Frames that went out to it.
    pub tx_frames: u64,
    /// Bytes that went out to it.
    pub tx_bytes: u64,
    /// Frames from it that went nowhere.
    pub rx_dropped: u64,
    /// Frames meant for it that did not go out.
    pub tx_dropped: u64,
}

/// What `suimon top` shows of a team. What it carries is what its members carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopTeam {
    /// Its name.
    pub name: Name,
    /// The switch that uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Whether it is as desired.
    pub health: Health,
    /// The uplinks it is made of, as they are configured.
    pub members: Vec<Name>,
}

impl TopPort {
    /// The line of a port with these counters.
    pub fn new(name: Name, switch: Option<Name>, health: Health, counters: &PortCounters) -> Self {
        let sum = |drops: &[DropCounter]| {
            drops.iter().fold(0u64, |sum, drop| sum.saturating_add(drop.frames))
        };
        Self {
            name,
            switch,
            health,
            rx_frames: counters.rx_frames,
            rx_bytes: counters.rx_bytes,
            tx_frames: counters.tx_frames,
            tx_bytes: counters.tx_bytes,
            rx_dropped: sum(&counters.rx_dropped),
            tx_dropped: sum(&counters.tx_dropped),
        }
    }
}
