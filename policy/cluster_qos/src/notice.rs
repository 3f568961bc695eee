//! Notices of the leader to the operators of the cluster.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AdmissionCheck, DiskKey, NodeId, PolicyKey};

/// Maximum number of disks named as causes of an unmet minimum.
pub const DISKS_OVER_GUARANTEE_MAX: usize = 8;

/// Disk that got more than its guaranteed rate while another disk's minimum was unmet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverGuaranteeDisk {
    /// Node on which the disk is open.
    pub node: NodeId,
    /// Identifier of the disk, unique in the cluster.
    pub disk: DiskKey,
    /// Delivered rate, in normalised operations per second.
    pub delivered_iops: u64,
    /// Guaranteed part of the disk's demand, in normalised operations per second.
    #[serde(rename = "entitled_iops")]
    pub guaranteed_iops: u64,
}

/// Cause of an unmet minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmetMinimumCause {
    /// The minimum was not admitted, because the guarantees would exceed the capacity.
    NotAdmitted,
    /// Other nodes have not yet released enough of their shares.
    OtherNodes,
    /// The cap of the node is sufficient and used up by its other disks.
    #[serde(rename = "own_node")]
    OtherDisksOnNode,
    /// The store delivers less than its capacity: it has external load or has become slower.
    #[serde(rename = "foreign_load")]
    ExternalLoad,
    /// The cap of the node is sufficient, but the store's latency is too high for the queue depth.
    StoreLatency,
}

/// Unmet minimum of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBelowMinimum {
    /// Node on which the disk is open.
    pub node: NodeId,
    /// Identifier of the disk, unique in the cluster.
    pub disk: DiskKey,
    /// Duration for which the minimum has been unmet.
    #[serde(rename = "lasting")]
    pub unmet_for: Duration,
    /// Guaranteed part of the demand, in normalised operations per second.
    #[serde(rename = "entitled_iops")]
    pub guaranteed_iops: u64,
    /// Demand, in normalised operations per second.
    #[serde(rename = "demanded_iops")]
    pub demand_iops: u64,
    /// Delivered rate, in normalised operations per second.
    pub delivered_iops: u64,
    /// Cause of the deficit, as far as known.
    pub cause: UnmetMinimumCause,
    /// Disks on any node above their guaranteed rate, largest excess first.
    #[serde(rename = "aggressors")]
    pub disks_over_guarantee: Vec<OverGuaranteeDisk>,
}

/// External user of the store, outside this cluster, detected on the store itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalUser {
    /// Name of the other cluster or node, as found on the store.
    pub name: String,
    /// Throughput that the external user itself publishes, in normalised operations per second; 0
    /// if unknown.
    pub delivered_iops: u64,
}

/// Notice about a store of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A requested minimum exceeds the capacity. The node keeps its previous reservation.
    #[serde(rename = "refused")]
    ReservationRefused {
        /// Node that requested the reservation.
        node: NodeId,
        /// Admission calculation that shows the excess.
        #[serde(rename = "promises")]
        admission: AdmissionCheck,
    },
    /// A minimum has been unmet for a minute.
    MinimumUnmet(DiskBelowMinimum),
    /// A minimum that was reported as unmet is now met or the disk demands less.
    MinimumMet {
        /// Node on which the disk is open.
        node: NodeId,
        /// Identifier of the disk, unique in the cluster.
        disk: DiskKey,
    },
    /// The store delivers less than its capacity.
    #[serde(rename = "foreign_load")]
    ExternalLoad {
        /// Throughput of all nodes of this cluster, in normalised operations per second.
        delivered_iops: u64,
        /// Capacity of the store, declared or measured, in normalised operations per second.
        #[serde(rename = "capability_iops")]
        capacity_iops: u64,
        /// External users detected on the store.
        #[serde(rename = "strangers")]
        external_users: Vec<ExternalUser>,
        /// Nodes that send no reports but may still use their reservations.
        #[serde(rename = "silent")]
        silent_nodes: Vec<NodeId>,
    },
    /// The store delivers its capacity again.
    #[serde(rename = "foreign_load_gone")]
    ExternalLoadEnded,
    /// An external user of the store was detected that was not known.
    #[serde(rename = "stranger_seen")]
    ExternalUserDetected(ExternalUser),
    /// A node has sent no report for longer than twice the idle interval plus a lease. It may still
    /// use its reservation.
    NodeSilent {
        /// Node that has stopped sending reports.
        node: NodeId,
        /// Reservation of the node, in normalised operations per second.
        reserved_iops: u64,
    },
    /// A node holds a reservation that the leader has no record of granting. The leader counts it
    /// from now on.
    Unaccounted {
        /// Node that reported the reservation.
        node: NodeId,
        /// Reservation reported by the node.
        reserved_iops: u64,
        /// Reservation according to the leader's account.
        known_iops: u64,
    },
    /// A node uses an unsupported version. It gets no grants and keeps its reservation.
    OtherVersion {
        /// Node with the other version.
        node: NodeId,
        /// Protocol version of the node.
        version: u16,
    },
    /// A policy to be removed is in use by disks. It stays in effect until none uses it.
    PolicyInUse {
        /// Policy that is to be removed.
        policy: PolicyKey,
        /// Node on which such disks are open.
        node: NodeId,
    },
    /// Disks refer to a policy that does not exist. They may do no I/O until it does.
    PolicyUnknown {
        /// Policy that does not exist.
        policy: PolicyKey,
        /// Node on which such disks are open.
        node: NodeId,
    },
}
