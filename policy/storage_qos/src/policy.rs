//! Policies: named limits that can be assigned to several disks.

use serde::{Deserialize, Serialize};
use suimon_quantity::TimedRateLimit;

use crate::Limits;

/// Identifier of a policy, unique while the policy exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyId(pub u32);

/// Kind of a policy: limits per disk or shared by its disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// Each disk of the policy has these limits separately.
    #[default]
    Dedicated,
    /// The disks of the policy share these limits and are served equally.
    Aggregated,
}

/// Kind and limits of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySpec {
    /// Kind of the policy: dedicated or aggregated.
    pub kind: PolicyKind,
    /// Limits of the policy in effect.
    pub limits: Limits,
}

/// Source of a disk's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitsSource {
    /// Own limits of the disk.
    Own(Limits),
    /// Limits of the policy with this identifier.
    Policy(PolicyId),
}

impl Default for LimitsSource {
    fn default() -> Self {
        Self::Own(Limits::default())
    }
}

/// This node's share of an aggregated policy that has disks on several nodes. `max` applies in
/// addition to the policy's own maximums. `min_iops` replaces the policy's minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyShare {
    /// Guaranteed normalised operations per second for the policy's disks on this node together; 0
    /// without a guarantee.
    pub min_iops: u64,
    /// Largest rate of these disks together; `None` if the policy has no maximum.
    pub max: Option<TimedRateLimit>,
}
