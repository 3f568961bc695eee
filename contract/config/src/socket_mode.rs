//! Ends of vhost-user sockets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Role of the daemon on a vhost-user socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SocketMode {
    /// The daemon listens and the VMM connects.
    Server,
    /// The VMM listens. The daemon connects, and retries after failures.
    Client,
}
