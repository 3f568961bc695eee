//! Observed state of other nodes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Condition, DrainStatus, NodeConfig};

/// `GET /1.0/nodes/{name}`: another node, asked when it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    /// As desired.
    pub config: NodeConfig,
    /// Up if it answers, down if it does not, failed if it refuses or cannot be asked.
    pub condition: Condition,
    /// The name that its host has there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The version of its daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// That it is drained, if it is: no VM can go to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
}
