//! Limits that have a name and may be given to many disks.

use serde::{Deserialize, Serialize};
use suimon_quantity::Cap;

use crate::Limits;

/// A policy, for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyId(pub u32);

/// Whether disks share a policy's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// Each disk has these limits for itself.
    #[default]
    Dedicated,
    /// All disks together have these limits; among them they are served equally.
    Aggregated,
}

/// A policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySpec {
    /// Whether disks share it.
    pub kind: PolicyKind,
    /// What it says.
    pub limits: Limits,
}

/// Where a disk has its limits from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// They are its own.
    Own(Limits),
    /// They are a policy's.
    Policy(PolicyId),
}

impl Default for Assignment {
    fn default() -> Self {
        Self::Own(Limits::default())
    }
}

/// What a node has of an aggregated policy that disks of other nodes share. It holds beside
/// the policy's own maximums, and its minimum is in place of the policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPart {
    /// What the policy's disks here get together whenever they want it, in normalised operations
    /// per second; 0: nothing in particular.
    pub min_iops: u64,
    /// What they may do together; `None`: the policy has no maximum.
    pub max: Option<Cap>,
}
