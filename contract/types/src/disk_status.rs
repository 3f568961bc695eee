//! Observed state of stores and disks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    CapabilitySource, DiskConfig, DiskKind, QosFlowStatus, StoreConfig, StoreEstimate, StoreFile,
    StoreMeasurement,
};

/// Whether a store or a disk is as desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageState {
    /// It is open.
    Ready,
    /// It is a disk out of service while an operation works on its file; `reason` names
    /// the operation.
    Working,
    /// It is not; `reason` says why, and the daemon tries again.
    Failed,
    /// It is open, and its store does not answer; its requests wait.
    Stalled,
    /// It is a disk that is open, and its store has no space for its requests. They are queued or fail;
    /// requests to allocated blocks go on.
    Full,
    /// It is a disk whose VM goes to another node or comes from one, and it is that node which has
    /// its file open; `reason` says which way.
    Away,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// As desired.
    pub config: StoreConfig,
    /// Whether it is as desired.
    pub state: StorageState,
    /// Why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes of the file system or device; absent while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Bytes of these that nothing is in; absent for a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Whether more of it is used than its `full_warning_percent`.
    #[serde(default)]
    pub nearly_full: bool,
    /// Bytes of its disks as their guests see them, in sum.
    #[serde(default)]
    pub virtual_bytes: u64,
    /// Bytes that the files of its disks take, in sum. Parents are not counted.
    #[serde(default)]
    pub allocated_bytes: u64,
    /// `virtual_bytes` in percent of `total_bytes`, rounded up; absent while that is not known. Above 100
    /// the disks can find the store full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overcommit_percent: Option<u64>,
    /// Normalised operations per second that it is taken to be able to do; absent while
    /// that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_iops: Option<u64>,
    /// How that is known; absent while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_source: Option<CapabilitySource>,
    /// What the last measurement found out, of the store as it is configured now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<StoreMeasurement>,
    /// What it did when requests last waited for it; absent if they never did since its
    /// disks are in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<StoreEstimate>,
    /// What all minimums on it come to, in normalised operations per second.
    pub promised_iops: u64,
    /// How much of its capability that is, in percent, rounded up; absent while its
    /// capability is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised_percent: Option<u64>,
    /// Disks in it.
    pub disks: usize,
    /// Normalised operations per second that it did in the last 5 s.
    pub delivered_iops: u64,
    /// What the device takes for a request now, in ns; absent if it had none lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// Requests that the device has.
    pub depth: u32,
    /// Requests that it gets at a time at most now, `depth_max` or fewer.
    pub depth_allowed: u32,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskStatus {
    /// As desired.
    pub config: DiskConfig,
    /// Whether it is as desired.
    pub state: StorageState,
    /// Why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Absolute path of its file, or of the block device that it is.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// Kind of the disk, read from its image; absent while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
    /// File of the parent that was found, relative to the store's path; absent without a parent
    /// and while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<StoreFile>,
    /// Bytes of the disk, as the guest sees it; absent while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes that its file takes on the file system; absent for a block device and while
    /// it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// Files that it consists of: its own and its parents', 64 at most. 0 for a block device;
    /// absent while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Bytes of the image's metadata that a crash of the host would take: what was written and not
    /// flushed. 0 when the disk was idle for 2 s; absent while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted_bytes: Option<u64>,
    /// Requests that its store has no space for; absent if there is space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<DiskFullStatus>,
    /// The processor that works it off; absent while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<u16>,
    /// The virtio disk of a VM, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<DiskVhostUserStatus>,
    /// The NBD export, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<DiskNbdStatus>,
    /// What was asked of it.
    pub counters: DiskCounters,
    /// What it gets and is held to, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<QosFlowStatus>,
}

/// A disk whose store has no space for its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskFullStatus {
    /// Requests that are queued until there is space.
    pub queued_requests: u64,
    /// Time since the first request that found the store full, in ms.
    pub lasts_ms: u64,
}

/// A disk as a virtio disk of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskVhostUserStatus {
    /// Whether a VM is connected.
    pub connected: bool,
    /// Queues that the guest's driver uses.
    pub queues: u16,
    /// Features that the guest's driver has agreed on, as virtio calls them.
    pub features: Vec<String>,
}

/// A disk as an NBD export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskNbdStatus {
    /// Connections that use it.
    pub clients: u32,
    /// These connections, in the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<DiskNbdClient>,
}

/// A connection of an NBD client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskNbdClient {
    /// By which way it came.
    pub way: NbdWay,
    /// Who it is: the process and its user, or the address and port.
    pub peer: String,
}

/// By which way NBD clients come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NbdWay {
    /// Through the Unix socket.
    Unix,
    /// Over TCP, without TLS.
    Tcp,
    /// Over TCP with TLS.
    Tls,
}

/// What was asked of a disk since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskCounters {
    /// Reads.
    pub reads: DiskRequestCounters,
    /// Writes.
    pub writes: DiskRequestCounters,
    /// Flushes.
    pub flushes: DiskRequestCounters,
    /// Discards, and writes of zeros.
    pub discards: DiskRequestCounters,
}

/// Requests of one kind. Latencies are from when a request was seen to when it was
/// answered, waits for limits included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskRequestCounters {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Half of them took this long at most, in ns.
    pub latency_ns_p50: u64,
    /// All but one of a hundred took this long at most, in ns.
    pub latency_ns_p99: u64,
    /// The longest, in ns.
    pub latency_ns_max: u64,
}

#[cfg(test)]
#[path = "disk_status_tests.rs"]
mod tests;
