//! A node that is drained: its VMs go to other nodes, and none comes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::migration::downtime_default;
use crate::{ByteSize, Name};

/// `POST /1.0/nodes/{name}/drain`: no VM comes to the node any more, and those that run there go to
/// others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// The nodes that they may go to, of that host's `[[node]]`s; all of them if there are none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Name>,
    /// Milliseconds for which each may stand still at the end, 1 to 60 000.
    #[serde(default = "downtime_default")]
    #[schema(minimum = 1, maximum = 60_000)]
    pub downtime_ms: u32,
    /// Bytes of memory sent in a second at most; as many as the connection carries if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<ByteSize>,
    /// Whether the files of their disks are deleted there once they run elsewhere.
    #[serde(default)]
    pub with_files: bool,
}

impl Default for DrainRequest {
    fn default() -> Self {
        let downtime_ms = downtime_default();
        Self { to: Vec::new(), downtime_ms, bandwidth: None, with_files: false }
    }
}

/// What becomes of the VMs of a node that is drained: the answer to a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainPlan {
    /// The node's host.
    pub node: String,
    /// All its VMs.
    pub vms: Vec<DrainedVm>,
}

/// What becomes of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainedVm {
    /// The VM.
    pub vm: Name,
    /// The node that it goes to; absent if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// Why it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it stays although it runs, so that the node is not empty.
    #[serde(default)]
    pub is_in_the_way: bool,
}

impl core::fmt::Display for DrainedVm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (&self.to, &self.reason) {
            (Some(to), _) => write!(f, "{} goes to {to}", self.vm),
            (None, Some(reason)) => write!(f, "{} stays: {reason}", self.vm),
            (None, None) => write!(f, "{} stays", self.vm),
        }
    }
}

/// That a host is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainStatus {
    /// Since when, in milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: u64,
    /// Whether all its VMs that ran have gone. One that was started since is not counted.
    pub is_empty: bool,
    /// The operation that has them go, while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
}
