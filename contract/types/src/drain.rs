//! Draining of a node: migration of its VMs to other nodes, without admitting new ones.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::migration::default_downtime_ms;
use crate::{ByteSize, Name};

/// Body of `POST /1.0/nodes/{name}/drain`: the node admits no more migrating VMs, and its running
/// VMs migrate to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Permitted destinations, from the `[[node]]`s of the drained host; all of these if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "to")]
    pub destinations: Vec<Name>,
    /// Target downtime of each VM at the end of its migration, in ms, 1 to 60 000.
    #[serde(default = "default_downtime_ms")]
    #[schema(minimum = 1, maximum = 60_000)]
    pub downtime_ms: u32,
    /// Limit of memory transfer in bytes per second; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "bandwidth")]
    pub bandwidth_max_bytes_per_s: Option<ByteSize>,
    /// True if the files of a VM's disks are deleted on the drained node after the migration.
    #[serde(default)]
    #[serde(rename = "with_files")]
    pub deletes_source_files: bool,
}

impl Default for DrainRequest {
    fn default() -> Self {
        let downtime_ms = default_downtime_ms();
        Self {
            destinations: Vec::new(),
            downtime_ms,
            bandwidth_max_bytes_per_s: None,
            deletes_source_files: false,
        }
    }
}

/// Plan for the VMs of a drained node: the response to a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainPlan {
    /// Host name of the node.
    pub node: String,
    /// VMs of the node and their destinations.
    pub vms: Vec<VmDrainPlan>,
}

/// Planned destination of one VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "DrainedVm")]
#[schema(as = DrainedVm)]
pub struct VmDrainPlan {
    /// Name of the VM.
    pub vm: Name,
    /// Destination node; absent if the VM stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "to")]
    pub destination: Option<Name>,
    /// Reason why the VM stays; absent if it migrates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the VM is running and stays, so that the node does not become empty.
    #[serde(default)]
    pub blocks_drain: bool,
}

impl core::fmt::Display for VmDrainPlan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (&self.destination, &self.reason) {
            (Some(to), _) => write!(f, "{} migrates to {to}", self.vm),
            (None, Some(reason)) => write!(f, "{} stays: {reason}", self.vm),
            (None, None) => write!(f, "{} stays", self.vm),
        }
    }
}

/// State of a drained host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainStatus {
    /// Start of the drain, in milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: u64,
    /// True if every VM that was running at the start has left and no VM runs now.
    #[serde(rename = "is_empty")]
    pub is_drained: bool,
    /// Operation that migrates the VMs; absent after it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
}
