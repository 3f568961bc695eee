//! Grants of the leader, and the rates they permit over time.

use core::time::Duration;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::{AdmissionCheck, GrantId, NodeId, PolicyKey, ReportId};

/// Node's share of a store or of a policy's maximum. Rates are in normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeShare {
    /// Maximum rate while the lease is in force.
    pub leased_iops: u64,
    /// Maximum rate that applies indefinitely, with or without a lease.
    pub reserved_iops: u64,
    /// Rate that applies, if higher than the reserved one, after
    /// [`Parameters::fallback_after`](crate::Parameters::fallback_after) without a grant; 0: none.
    #[serde(rename = "late_iops")]
    pub fallback_iops: u64,
    /// Largest leased rate of all grants still in force, including this one. Read by the next
    /// leader.
    #[serde(rename = "leased_held_iops")]
    pub leased_outstanding_iops: u64,
    /// Largest reserved rate of all grants the node may still apply. Read by the next leader.
    #[serde(rename = "reserved_held_iops")]
    pub reserved_outstanding_iops: u64,
    /// Largest fallback rate of all grants the node may still apply. Read by the next leader.
    #[serde(rename = "late_held_iops")]
    pub fallback_outstanding_iops: u64,
}

/// Share that the leader intends to grant to each node.
pub(crate) type TargetShares = BTreeMap<NodeId, NodeShare>;

/// Node's share of the minimum and maximum of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyShare {
    /// Identifier of the policy, unique in the cluster.
    pub policy: PolicyKey,
    /// Guaranteed rate of the policy's disks on this node, in normalised operations per second.
    pub min_iops: u64,
    /// Maximum rate of the policy's disks on this node; `None`: the policy has no maximum.
    pub max: Option<NodeShare>,
}

/// Grant of a leader: rates a node may use until it receives another grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGrant {
    /// Protocol version, [`crate::PROTOCOL_VERSION`].
    pub version: u16,
    /// Identifier of the grant, increasing across leaders.
    pub id: GrantId,
    /// Report that the grant answers. The duration of the lease counts from the time at which the
    /// node made that report.
    #[serde(rename = "answers")]
    pub answered_report: ReportId,
    /// Time at which the grant was given, on the leader's clock.
    #[serde(rename = "at")]
    pub granted_at: Time,
    /// Duration of the lease, counted from the time at which the node made the answered report.
    pub lease: Duration,
    /// Estimated capacity of the store: intended maximum rate of all nodes together, in normalised
    /// operations per second.
    #[serde(rename = "limit_iops")]
    pub store_limit_iops: u64,
    /// Share of the store's capacity.
    pub store: NodeShare,
    /// Shares of policies, in ascending order of policies.
    pub policies: Vec<PolicyShare>,
    /// Admission calculation if the node's requested reservation was rejected. It stays rejected
    /// until other nodes reduce their guarantees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub refusal: Option<AdmissionCheck>,
}
