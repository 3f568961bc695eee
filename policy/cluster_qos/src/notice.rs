//! What the leader of a store tells those who look after it.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{DiskKey, NodeId, PolicyKey, Promises};

/// So many disks are named that a minimum was displaced by.
pub const AGGRESSORS_MAX: usize = 8;

/// A disk that got more than it is entitled to while another did not get its minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggressor {
    /// Where it is.
    pub node: NodeId,
    /// Which.
    pub disk: DiskKey,
    /// What it got, in normalised operations per second.
    pub delivered_iops: u64,
    /// What of it it is entitled to.
    pub entitled_iops: u64,
}

/// Why a minimum is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It was not admitted, because more would be promised than the store can keep.
    NotAdmitted,
    /// Others have not made room yet.
    OtherNodes,
    /// The node may do enough, and its own other disks have it.
    OwnNode,
    /// The store does less than it can do: something that the cluster does not know uses it,
    /// or it has become slower.
    ForeignLoad,
    /// The node may do enough, and the store takes too long for so few requests at a time.
    StoreLatency,
}

/// A minimum that is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmet {
    /// Where the disk is.
    pub node: NodeId,
    /// Which.
    pub disk: DiskKey,
    /// For how long so far.
    pub lasting: Duration,
    /// What it is entitled to of what it asks for, in normalised operations per second.
    pub entitled_iops: u64,
    /// What it asks for.
    pub demanded_iops: u64,
    /// What it gets.
    pub delivered_iops: u64,
    /// Why.
    pub cause: Cause,
    /// Who gets more than it is entitled to on any node, most first.
    pub aggressors: Vec<Aggressor>,
}

/// Something that uses the store and is not of this cluster, as it was seen on the store itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stranger {
    /// Its name: that of another cluster, or of a node.
    pub name: String,
    /// What it does, as far as it says so.
    pub delivered_iops: u64,
}

/// Something happened in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// More minimums were asked for than can be kept. The node keeps what it had.
    Refused {
        /// Whose.
        node: NodeId,
        /// The arithmetic.
        promises: Promises,
    },
    /// A minimum has not been met for a minute.
    MinimumUnmet(Unmet),
    /// One of which this was told is met, or nobody asks for it.
    MinimumMet {
        /// Where it is.
        node: NodeId,
        /// Whose.
        disk: DiskKey,
    },
    /// The store does less than it can do.
    ForeignLoad {
        /// What it does for all nodes together.
        delivered_iops: u64,
        /// What it can do.
        capability_iops: u64,
        /// Who was seen on it.
        strangers: Vec<Stranger>,
        /// Nodes that say nothing and may use what is reserved for them.
        silent: Vec<NodeId>,
    },
    /// The store does what it can do again.
    ForeignLoadGone,
    /// Somebody uses the store who is not of this cluster.
    StrangerSeen(Stranger),
    /// A node says nothing any more. It may use what is reserved for it.
    NodeSilent {
        /// Which.
        node: NodeId,
        /// Normalised operations per second.
        reserved_iops: u64,
    },
    /// A node has reserved what nobody here knows to have given. It is counted from now on.
    Unaccounted {
        /// Which.
        node: NodeId,
        /// What it says.
        reserved_iops: u64,
        /// What was known.
        known_iops: u64,
    },
    /// A node speaks another version. It gets nothing, and keeps what is reserved for it.
    OtherVersion {
        /// Which.
        node: NodeId,
        /// What it speaks.
        version: u16,
    },
    /// A policy that was to be removed has disks still. It stays in force until there are none.
    PolicyInUse {
        /// Which.
        policy: PolicyKey,
        /// Where.
        node: NodeId,
    },
    /// Disks have a policy that does not exist. They may do nothing until it does.
    PolicyUnknown {
        /// Which.
        policy: PolicyKey,
        /// Where.
        node: NodeId,
    },
}
