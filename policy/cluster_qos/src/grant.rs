//! What the leader gives nodes, and what that allows them at each moment.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::{GrantId, PolicyKey, Promises, ReportId};

/// A node's part of a store, or of a policy's maximum. All are normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// While the lease is in force.
    pub leased_iops: u64,
    /// Without end, lease or not.
    pub reserved_iops: u64,
    /// A long while after the last grant, instead; 0: never.
    pub late_iops: u64,
    /// The most that grants still in force, this one included, let the node have. It is for the
    /// next leader.
    pub leased_held_iops: u64,
    /// The most that any grant to which the node may still adhere reserves.
    pub reserved_held_iops: u64,
    /// The same of `late_iops`.
    pub late_held_iops: u64,
}

/// A node's part of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyShare {
    /// Which.
    pub policy: PolicyKey,
    /// What the policy's disks on this node are to get whenever they want it.
    pub min_iops: u64,
    /// What they may do; `None`: the policy has no maximum.
    pub max: Option<Share>,
}

/// What a node may do, until it hears otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// [`crate::VERSION`].
    pub version: u16,
    /// Which.
    pub id: GrantId,
    /// The report that it answers: the lease counts from when that was made.
    pub answers: ReportId,
    /// When it was given, on the leader's clock.
    pub at: Time,
    /// For how long.
    pub lease: Duration,
    /// What all nodes together may do.
    pub limit_iops: u64,
    /// Of the store.
    pub store: Share,
    /// Of policies, ascending.
    pub policies: Vec<PolicyShare>,
    /// Why what the report asks for is not reserved, and will not be unless others ask for less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Promises>,
}
