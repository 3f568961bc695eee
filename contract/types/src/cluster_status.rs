//! Observed state of the cluster that the host is a node of.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ClusterConfig, Condition, Name};

/// `GET /1.0/cluster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    /// As desired; absent if the host is by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ClusterConfig>,
    /// Up if the host is a node of the cluster and etcd answers, down if etcd does not answer, failed if
    /// the host cannot be the node that it is to be.
    pub condition: Condition,
    /// How old the rest of this is, in ms; absent if nothing was ever heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// All nodes, by name.
    pub members: Vec<ClusterMember>,
    /// This host's stores that nodes share, in the order in which they are configured.
    pub stores: Vec<ClusterStore>,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterMember {
    /// Its name in the cluster.
    pub name: String,
    /// Its number, which no other node ever has.
    pub id: u32,
    /// Whether it is this host.
    pub is_this: bool,
    /// Whether it keeps its lease in etcd alive.
    pub is_alive: bool,
}

/// A store that nodes share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStore {
    /// The store.
    pub store: Name,
    /// The node that divides it among nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// That node's term: higher than that of any leader before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// What the store can do, in normalised operations per second, as this host has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_iops: Option<u64>,
    /// What all nodes together may do, in normalised operations per second: less than it can do
    /// where something else loads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_iops: Option<u64>,
    /// Whether something loads the store that is not of the cluster, or it does less than it can.
    pub has_foreign_load: bool,
    /// What this host may do.
    pub cap: ClusterCap,
    /// What each node was given last.
    pub shares: Vec<ClusterShare>,
    /// Other nodes that were seen on the store itself, with etcd or without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<ClusterBeat>,
    /// Why this host does not take part in it, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

/// What a host may do of a store, in normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterCap {
    /// Now.
    pub iops: u64,
    /// Without end, with the cluster or without.
    pub reserved_iops: u64,
    /// While the lease lasts; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_iops: Option<u64>,
    /// For how long it lasts, in ms, if no other comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// What holds in place of that when the cluster was not heard of for long; absent if nothing
    /// else does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_iops: Option<u64>,
    /// In how many ms, if nothing is heard until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_ms: Option<u64>,
}

/// A node that writes on a store that it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterBeat {
    /// Its cluster.
    pub cluster: Name,
    /// Its name there.
    pub node: Name,
    /// Whether it is not of this cluster.
    pub is_stranger: bool,
    /// What its disks on the store did, in normalised operations per second.
    pub delivered_iops: u64,
    /// What they may do without anybody.
    pub reserved_iops: u64,
    /// How long ago that was seen, in ms. Nodes write each 5 s.
    pub age_ms: u64,
}

/// What a node was given of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterShare {
    /// The node.
    pub node: String,
    /// Normalised operations per second that it may do while its lease lasts.
    pub leased_iops: u64,
    /// The same without end.
    pub reserved_iops: u64,
}

/// `GET /1.0/cluster/flows`: a disk on a shared store, as its node's last report names it. Rates are
/// normalised operations per second. A report names the 8 disks that get the most beyond what they
/// are entitled to, and the 8 worst of those that do not get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterDisk {
    /// The node that it is on.
    pub node: String,
    /// The store.
    pub store: String,
    /// Its name there.
    pub disk: String,
    /// What its minimum entitles it to of what it asks for.
    pub entitled_iops: u64,
    /// What it asks for.
    pub demanded_iops: u64,
    /// What it gets.
    pub delivered_iops: u64,
    /// Who gets more than it is entitled to on any node, most first, while this disk does not get
    /// what it is; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressors: Option<Vec<ClusterAggressor>>,
}

/// A disk that gets more than it is entitled to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterAggressor {
    /// The node that it is on.
    pub node: String,
    /// Its name there.
    pub disk: String,
    /// What it gets.
    pub delivered_iops: u64,
    /// What of it it is entitled to.
    pub entitled_iops: u64,
}
