//! Observed state of stores and disks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    CapacitySource, DiskConfig, DiskKind, QosFlowStatus, StoreCapacityEstimate, StoreConfig,
    StoreFile, StoreMeasurement,
};

/// State of a store or disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageState {
    /// Open and in service.
    Ready,
    /// The disk is out of service while an operation works on its file; `reason` names the
    /// operation.
    #[serde(rename = "working")]
    OperationInProgress,
    /// Failed to open; `reason` states the cause. The daemon retries.
    Failed,
    /// Open, but the store does not respond. Requests are queued.
    Stalled,
    /// The disk is open, but its store has no space for its requests. These are queued or fail;
    /// requests to allocated blocks continue.
    Full,
    /// The disk is open, but a flush has failed: writes and flushes fail until the disk is reopened
    /// (`suimon disk reopen`). Reads continue.
    Faulted,
    /// The disk's VM is migrating, and the other node has the disk's file open; `reason` states the
    /// direction.
    #[serde(rename = "away")]
    OpenOnOtherNode,
}

/// Observed state of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// Desired state of the store.
    pub config: StoreConfig,
    /// Current state of the store.
    pub state: StorageState,
    /// Cause of a state other than `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Size of the file system or device in bytes; absent while unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Free bytes of the file system; absent for a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// True if the used space exceeds `full_warning_percent`.
    #[serde(default)]
    pub nearly_full: bool,
    /// Sum of the sizes of the store's disks as seen by guests, in bytes.
    #[serde(default)]
    pub virtual_bytes: u64,
    /// Sum of the bytes allocated by the files of the store's disks, without parents.
    #[serde(default)]
    pub allocated_bytes: u64,
    /// `virtual_bytes` in percent of `total_bytes`, rounded up; absent while unknown. Above 100,
    /// writes to the disks can exhaust the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overcommit_percent: Option<u64>,
    /// Capacity in normalised operations per second that the daemon assumes; absent while unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<u64>,
    /// Source of the capacity; absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_source: Option<CapacitySource>,
    /// Result of the last measurement of the store as currently configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "measured")]
    pub last_measurement: Option<StoreMeasurement>,
    /// Estimate of the capacity from the last time that requests queued for the store; absent if
    /// they have not queued since its disks went into service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<StoreCapacityEstimate>,
    /// Sum of all minimums on the store, in normalised operations per second.
    pub reserved_iops: u64,
    /// `reserved_iops` in percent of the capacity, rounded up; absent while the capacity is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_percent: Option<u64>,
    /// Number of disks in the store.
    pub disks: usize,
    /// Delivered rate during the last 5 s, in normalised operations per second.
    pub delivered_iops: u64,
    /// Current service time of a request at the device in ns; absent without recent requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// Requests in flight at the device.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Current limit of requests in flight at the device, at most `depth_max`.
    #[serde(rename = "depth_allowed")]
    pub queue_depth_limit: u32,
    /// True if no worker with disks of the store responds: latency, depth, estimate and delivered
    /// rate are the last known ones.
    #[serde(default)]
    pub stale: bool,
}

/// Observed state of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskStatus {
    /// Desired state of the disk.
    pub config: DiskConfig,
    /// Current state of the disk.
    pub state: StorageState,
    /// Cause of a state other than `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Absolute path of the disk's file or block device.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// Kind of the disk, read from its image; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
    /// File of the resolved parent, relative to the store's path; absent without a parent and while
    /// the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<StoreFile>,
    /// Size of the disk in bytes, as the guest sees it; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes allocated by the disk's file; absent for a block device and while the disk is not
    /// open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// Number of files of the disk: its own and those of its parents, at most 64. 0 for a block
    /// device; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Bytes of written but unflushed image metadata, which a crash of the host would lose. 0 after
    /// 2 s without requests; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "uncommitted_bytes")]
    pub uncommitted_metadata_bytes: Option<u64>,
    /// Requests for which the store has no space; absent if it has space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "full")]
    pub store_full: Option<DiskFullStatus>,
    /// Worker that services the disk; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u16>,
    /// virtio disk of a VM; absent if the disk has no vhost-user socket, neither `vhost_user` nor
    /// that of its VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<DiskVhostUserStatus>,
    /// NBD export; absent if `nbd` is not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<DiskNbdStatus>,
    /// Requests since the disk was opened.
    pub counters: DiskCounters,
    /// Storage QoS of the disk; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<QosFlowStatus>,
    /// True if the disk's worker does not respond: counters, NBD connections, unflushed metadata
    /// and requests without space are the last known ones.
    #[serde(default)]
    pub stale: bool,
}

/// State of a disk whose store has no space for its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskFullStatus {
    /// Requests queued until space is available.
    pub queued_requests: u64,
    /// Time since the first request failed for lack of space, in ms.
    #[serde(rename = "lasts_ms")]
    pub full_for_ms: u64,
}

/// State of a disk as a virtio disk of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskVhostUserStatus {
    /// True if a VM is connected.
    pub connected: bool,
    /// Number of queues that the guest's driver uses.
    pub queues: u16,
    /// Features negotiated with the guest's driver, by their names in the virtio specification.
    pub features: Vec<String>,
}

/// State of a disk as an NBD export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskNbdStatus {
    /// Number of connections of NBD clients.
    #[serde(rename = "clients")]
    pub connection_count: u32,
    /// Maximum number of connections in effect.
    #[serde(default)]
    pub connections_max: u32,
    /// Buffer memory of the connections in bytes, reserved memory included.
    #[serde(default)]
    pub buffer_bytes: u64,
    /// Maximum buffer memory in effect, in bytes.
    #[serde(default)]
    pub buffer_max_bytes: u64,
    /// Connections in order of acceptance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<DiskNbdClient>,
}

/// Connection of an NBD client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskNbdClient {
    /// Transport of the connection.
    pub transport: DiskNbdTransport,
    /// Peer: the process and its user, or the address and port.
    pub peer: String,
    /// Buffer memory of the connection in bytes, reserved memory included.
    #[serde(default)]
    pub buffer_bytes: u64,
}

/// Transport of an NBD connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = NbdWay)]
pub enum DiskNbdTransport {
    /// Unix socket.
    Unix,
    /// TCP without TLS.
    Tcp,
    /// TCP with TLS.
    Tls,
}

/// Requests of a disk since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskCounters {
    /// Counters of read requests.
    pub reads: DiskRequestCounters,
    /// Counters of write requests.
    pub writes: DiskRequestCounters,
    /// Counters of flush requests.
    pub flushes: DiskRequestCounters,
    /// Counters of discard and write-zeroes requests.
    pub discards: DiskRequestCounters,
}

/// Counters of one kind of request. Latencies last from the detection of a request to its
/// completion, including time queued for limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskRequestCounters {
    /// Requests completed, with or without error.
    pub requests: u64,
    /// Bytes transferred or affected by these requests.
    pub bytes: u64,
    /// Requests completed with an error.
    pub errors: u64,
    /// Median (50th percentile) of the latency in ns.
    pub latency_ns_p50: u64,
    /// 99th percentile of the latency in ns.
    pub latency_ns_p99: u64,
    /// Largest latency of a request in ns.
    pub latency_ns_max: u64,
}

#[cfg(test)]
#[path = "disk_status_tests.rs"]
mod tests;
