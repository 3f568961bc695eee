//! Observed state of other nodes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Condition, DrainStatus, NodeConfig};

/// Response of `GET /1.0/nodes/{name}`: state of another node, requested from it at the time of the
/// response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    /// Desired state of the node.
    pub config: NodeConfig,
    /// `up` if the node responds, `down` if it does not, `failed` if it rejects the request or
    /// cannot be contacted.
    pub condition: Condition,
    /// Host name of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "host")]
    pub host_name: Option<String>,
    /// Version of the node's daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// State of the node's drain; absent unless the node is drained. A drained node admits no VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
}
