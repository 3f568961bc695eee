//! Observed state of the host and its network. Read-only for users.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

use crate::condition::{Condition, Health};
use crate::{
    ConfinementStatus, DeviceFeaturesStatus, DrainStatus, IovStatus, KernelPathStatus, Name,
    NbdStatus, NicConfig, OffloadStatus, SteeringStatus, SwitchConfig, TopDisk, TopPower,
    UplinkConfig, WorkerStages, XdpStatus,
};

/// Response of `GET /1.0`: observed state of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostStatus {
    /// Name of the host.
    pub name: String,
    /// Version of the daemon.
    pub version: String,
    /// Seconds since the daemon started.
    pub uptime_s: u64,
    /// Revision of the desired state. Increases with every change and continues across restarts of
    /// the daemon.
    pub revision: u64,
    /// Number of configured switches.
    pub switches: usize,
    /// Number of configured uplinks.
    pub uplinks: usize,
    /// Number of configured teams.
    #[serde(default)]
    pub teams: usize,
    /// Number of configured NICs.
    pub nics: usize,
    /// Number of configured stores.
    #[serde(default)]
    pub stores: usize,
    /// Number of configured QoS policies.
    #[serde(default)]
    pub qos_policies: usize,
    /// Number of configured disks.
    #[serde(default)]
    pub disks: usize,
    /// Number of configured VMs.
    #[serde(default)]
    pub vms: usize,
    /// Number of configured SR-IOV adapters.
    #[serde(default)]
    pub pfs: usize,
    /// Number of configured other nodes.
    #[serde(default)]
    pub nodes: usize,
    /// State of the host's drain; absent unless the host is drained. A drained host admits no VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
    /// State directory of the daemon.
    #[serde(default)]
    pub state_store: StateStoreStatus,
    /// Confinement of the daemon's threads.
    #[serde(default)]
    pub confinement: ConfinementStatus,
    /// Connections of NBD clients to all disks.
    #[serde(default)]
    pub nbd: NbdStatus,
}

/// Ability of the daemon to store changes in its state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateStoreStatus {
    /// True if the last change was stored. While it is false, changes of the configuration are
    /// refused, VMs are not started, and new events are kept in memory only.
    pub writable: bool,
    /// Why the state directory cannot be written; absent if it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Default for StateStoreStatus {
    fn default() -> Self {
        Self { writable: true, reason: None }
    }
}

/// Counters of one port since its creation, as seen by the switch: `rx` frames came from the port,
/// `tx` frames went to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortCounters {
    /// Frames received from the port; a large frame (GSO) counts once.
    pub rx_frames: u64,
    /// Bytes received from the port.
    pub rx_bytes: u64,
    /// Frames sent to the port; a large frame (GSO) counts once.
    pub tx_frames: u64,
    /// Bytes sent to the port.
    pub tx_bytes: u64,
    /// Frames received from the port and dropped, by reason.
    pub rx_dropped: Vec<DropCounter>,
    /// Frames for the port that were dropped, by reason.
    pub tx_dropped: Vec<DropCounter>,
    /// Frames received from the port that were flooded.
    pub flooded: u64,
    /// Frames segmented in software before transmission to the port.
    pub software_segmented: u64,
    /// Frames with a checksum completed in software before transmission to the port.
    pub software_checksummed: u64,
    /// Frames coalesced with others of their TCP stream in software before transmission to the
    /// port.
    pub software_coalesced_segments: u64,
    /// Large frames that resulted from coalescing. They are included in `tx_frames`.
    #[serde(rename = "software_coalesced_units")]
    pub software_coalesced_frames: u64,
}

/// Counter of drops for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropCounter {
    /// Stable name of the reason, such as `spoofed_source`.
    pub reason: String,
    /// Number of frames dropped.
    pub frames: u64,
}

/// Queue and the worker that owns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueStatus {
    /// Id, such as `NIC/rx/0` or `NIC/tx/0`, as seen by the guest (as in Hyper-V and Linux): `rx`
    /// carries frames to the guest.
    pub id: String,
    /// NIC, uplink or switch (for its host NIC) that the queue belongs to.
    pub port: String,
    /// Worker that owns the queue.
    pub worker: u16,
    /// Frames carried since the queue's creation.
    pub frames: u64,
    /// Bytes carried since the queue's creation.
    pub bytes: u64,
    /// Frames lost because the receiving side had no free buffer.
    #[serde(rename = "full")]
    pub dropped_no_buffer: u64,
    /// Number of moves to another worker.
    pub moves: u64,
}

/// Observed state of a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NicStatus {
    /// Desired state of the NIC.
    pub config: NicConfig,
    /// Health, with the reason if it is not `up`.
    pub condition: Condition,
    /// Counters of the port's frames and drops.
    pub counters: PortCounters,
    /// State of the port's offloads.
    pub offloads: Vec<OffloadStatus>,
    /// Negotiated virtio features as a hexadecimal number; absent for other NICs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtio_features: Option<String>,
    /// Number of queue pairs in use.
    pub queue_pairs: u16,
    /// MAC addresses learned on the port.
    #[serde(rename = "learned")]
    pub learned_macs: u32,
    /// Source address bound to a NIC without `mac`. Frames with it from other NICs are dropped
    /// until the guest disconnects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bound_mac: Option<MacAddr>,
    /// Forwarding path in the kernel; absent unless `kernel_path` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_path: Option<KernelPathStatus>,
    /// Path of the NIC's frames; absent unless the NIC may have a virtual function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iov: Option<IovStatus>,
}

/// Observed state of an uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UplinkStatus {
    /// Desired state of the uplink.
    pub config: UplinkConfig,
    /// Switch that uses the uplink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Health, with the reason if it is not `up`.
    pub condition: Condition,
    /// Counters of the port's frames and drops.
    pub counters: PortCounters,
    /// Largest IP packet in bytes, as currently in effect.
    pub mtu: u16,
    /// MAC address of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// State of the port's offloads.
    #[serde(default)]
    pub offloads: Vec<OffloadStatus>,
    /// Offload features of the device, as currently reported by the kernel.
    #[serde(default)]
    #[serde(rename = "device")]
    pub device_features: DeviceFeaturesStatus,
    /// Mode of the AF_XDP sockets; absent while none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub af_xdp: Option<XdpStatus>,
    /// Hardware steering of frames to receive queues of NICs; absent while the uplink is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<SteeringStatus>,
}

/// Observed state of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchStatus {
    /// Desired state of the switch.
    pub config: SwitchConfig,
    /// Health, with the reason if it is not `up`.
    pub condition: Condition,
    /// Names of the connected NICs.
    pub nics: Vec<Name>,
    /// Counters of the host NIC of an internal switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "host_nic")]
    pub host_nic_counters: Option<PortCounters>,
    /// Offloads of the host NIC of an internal switch; empty for other switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_nic_offloads: Vec<OffloadStatus>,
    /// Number of MAC addresses in the forwarding table.
    pub addresses: usize,
}

/// Entry of `GET /1.0/switches/{name}/addresses`: entry of the forwarding table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressStatus {
    /// MAC address of the entry.
    #[schema(value_type = String)]
    pub mac: MacAddr,
    /// VLAN of the entry; absent for the untagged network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// NIC, uplink or switch (for its host NIC) that frames to the address leave by.
    pub port: String,
    /// True if the entry was configured, not learned.
    #[serde(rename = "fixed")]
    pub is_static: bool,
    /// Seconds since the address was last seen; absent if configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
}

/// Observed state of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "ProcessorStatus")]
#[schema(as = ProcessorStatus)]
pub struct WorkerStatus {
    /// Number of the worker, counted from 0.
    pub id: u16,
    /// Logical CPU to which the worker is pinned; absent if it is not pinned, which is the case
    /// without the host's `worker_cpus`.
    pub cpu: Option<u16>,
    /// Number of queues that the worker owns.
    pub queues: usize,
    /// CPU time since the daemon started, in ns.
    pub cpu_time_ns: u64,
    /// Time not sleeping in ns: the sum of all stages except idle.
    pub busy_ns: u64,
    /// Number of batches taken from queues.
    pub batches: u64,
    /// Number of frames taken from queues.
    pub frames: u64,
    /// Number of times the worker went to sleep.
    pub sleeps: u64,
    /// True if the worker is sleeping.
    pub asleep: bool,
    /// Number of times the worker backed off from polling for device completions because other
    /// threads required its CPU.
    #[serde(default)]
    pub yields: u64,
    /// True if the worker is currently backed off.
    #[serde(rename = "yielding", default)]
    pub is_yielding: bool,
    /// Time of the worker by stage.
    #[serde(default)]
    pub stages: WorkerStages,
}

/// Response of `GET /1.0/top`: a snapshot of all counters. Rates are differences of two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopSnapshot {
    /// Time of the snapshot in milliseconds since 1970-01-01 UTC.
    pub time_unix_ms: u64,
    /// Time of the snapshot in ns on a monotonic clock, for the calculation of rates.
    pub time_monotonic_ns: u64,
    /// Counters of NICs, by name.
    pub nics: Vec<TopPort>,
    /// Counters of uplinks, by name.
    pub uplinks: Vec<TopPort>,
    /// State of teams, by name.
    #[serde(default)]
    pub teams: Vec<TopTeam>,
    /// Counters of disks, by name.
    #[serde(default)]
    pub disks: Vec<TopDisk>,
    /// State of workers, by number.
    pub workers: Vec<WorkerStatus>,
    /// Power plan and energy of the host.
    #[serde(default)]
    pub power: TopPower,
}

/// Values of `suimon top` for a NIC or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopPort {
    /// Name of the NIC or uplink.
    pub name: Name,
    /// Name of the port's switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Health of the port.
    pub health: Health,
    /// Frames received from the port.
    pub rx_frames: u64,
    /// Bytes received from the port.
    pub rx_bytes: u64,
    /// Frames sent to the port.
    pub tx_frames: u64,
    /// Bytes sent to the port.
    pub tx_bytes: u64,
    /// Frames received from the port and dropped.
    pub rx_dropped: u64,
    /// Frames for the port that were dropped.
    pub tx_dropped: u64,
}

/// Values of `suimon top` for a team. Its traffic is the sum of its members' traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopTeam {
    /// Name of the team.
    pub name: Name,
    /// Switch that uses the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Health of the team.
    pub health: Health,
    /// Member uplinks in the order of the configuration.
    pub members: Vec<Name>,
}

impl TopPort {
    /// Returns the values of a port with the given counters.
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
