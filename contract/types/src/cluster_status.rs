//! Observed state of the host's cluster membership.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ClusterConfig, Condition, Name};

/// Response of `GET /1.0/cluster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    /// Desired state; absent if the host is not in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ClusterConfig>,
    /// `up` if the host is a node of the cluster and etcd responds, `down` if etcd does not
    /// respond, `failed` if the host cannot join the cluster.
    pub condition: Condition,
    /// Age of the following values in ms; absent before the first report from etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Nodes of the cluster, by name.
    pub members: Vec<ClusterMember>,
    /// Shared stores of this host, in the order of the configuration.
    pub stores: Vec<SharedStoreStatus>,
}

/// Node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterMember {
    /// Name of the node in the cluster.
    pub name: String,
    /// Number of the node; never reassigned to another node.
    pub id: u32,
    /// True if the node is this host.
    #[serde(rename = "is_this")]
    pub is_this_host: bool,
    /// True if the node keeps its lease in etcd alive.
    pub is_alive: bool,
}

/// Store shared by several nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ClusterStore)]
pub struct SharedStoreStatus {
    /// Name of the shared store.
    pub store: Name,
    /// Node that divides the store's capacity among the nodes (leader); absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Term of the leader; higher than the term of every earlier leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Capacity of the store in normalised operations per second, as configured on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<u64>,
    /// Limit of all nodes together, in normalised operations per second. Below the capacity under
    /// external load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_iops: Option<u64>,
    /// True if load from outside the cluster uses the store, or if the store delivers less than its
    /// capacity.
    pub has_external_load: bool,
    /// Limit of this host on the store.
    pub cap: ClusterCap,
    /// Share last granted to each node.
    pub shares: Vec<ClusterShare>,
    /// Heartbeats of other nodes, read from the store itself, independent of etcd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<ClusterHeartbeat>,
    /// Reason why this host does not participate in the store's cluster QoS; absent if it
    /// participates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Limit of a host on a store, in normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterCap {
    /// Limit in force at the time of the response.
    pub iops: u64,
    /// Reservation, valid without expiry and independent of the cluster's state.
    pub reserved_iops: u64,
    /// Leased limit, valid until the lease expires; absent without a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_iops: Option<u64>,
    /// Remaining duration of the lease in ms, unless it is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lease_ms")]
    pub lease_remaining_ms: Option<u64>,
    /// Limit that replaces the reservation after a long loss of contact with the cluster; absent if
    /// the reservation remains in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_iops: Option<u64>,
    /// Time in ms until `fallback_iops` takes effect, unless contact is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "fallback_ms")]
    pub time_to_fallback_ms: Option<u64>,
}

/// Heartbeat that a node writes to a shared store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "ClusterBeat")]
#[schema(as = ClusterBeat)]
pub struct ClusterHeartbeat {
    /// Name of the node's cluster.
    pub cluster: Name,
    /// Name of the node in its cluster.
    pub node: Name,
    /// True if the node belongs to another cluster.
    #[serde(rename = "is_other_cluster")]
    pub is_from_other_cluster: bool,
    /// Delivered rate of the node's disks on the store, in normalised operations per second.
    pub delivered_iops: u64,
    /// Reservation of the node, in normalised operations per second.
    pub reserved_iops: u64,
    /// Age of the heartbeat in ms. Nodes write one every 5 s.
    pub age_ms: u64,
}

/// Share of a store granted to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterShare {
    /// Name of the node in the cluster.
    pub node: String,
    /// Limit in normalised operations per second while the node's lease is valid.
    pub leased_iops: u64,
    /// Reservation in normalised operations per second, valid without expiry.
    pub reserved_iops: u64,
}

/// Entry of `GET /1.0/cluster/flows`: a disk on a shared store, from the last report of its node.
/// Rates are normalised operations per second. A report names the 8 disks with the highest rate
/// above their guaranteed share, and the 8 disks with the largest shortfall below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterDisk {
    /// Name of the disk's node.
    pub node: String,
    /// Name of the shared store.
    pub store: String,
    /// Name of the disk on its node.
    pub disk: String,
    /// Guaranteed rate: the part of the demand that the disk's minimum covers.
    pub guaranteed_iops: u64,
    /// Demanded rate: the rate of the client's requests.
    pub demand_iops: u64,
    /// Delivered rate: the rate of completed requests.
    pub delivered_iops: u64,
    /// Disks of any node that exceed their guaranteed share, highest excess first, while this disk
    /// is below its own; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "aggressors")]
    pub disks_over_guarantee: Option<Vec<DiskOverGuarantee>>,
}

/// Disk that exceeds its guaranteed share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "ClusterAggressor")]
#[schema(as = ClusterAggressor)]
pub struct DiskOverGuarantee {
    /// Name of the disk's node.
    pub node: String,
    /// Name of the disk on its node.
    pub disk: String,
    /// Delivered rate in normalised operations per second.
    pub delivered_iops: u64,
    /// Guaranteed rate in normalised operations per second.
    pub guaranteed_iops: u64,
}
