//! Observed state of the NBD servers of the host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Connections and buffer memory of NBD clients, with their limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NbdStatus {
    /// Number of connections of clients to all disks.
    pub connections: u32,
    /// Maximum number of connections in effect.
    pub connections_max: u32,
    /// Buffer memory of all connections in bytes, reserved memory included.
    pub buffer_bytes: u64,
    /// Maximum buffer memory in effect, in bytes.
    pub buffer_max_bytes: u64,
    /// Maximum number of connections of a peer in effect.
    pub peer_connections_max: u32,
    /// Maximum buffer memory of the connections of a peer in effect, in bytes.
    pub peer_buffer_max_bytes: u64,
    /// Requests since the daemon started that were delayed or processed in parts, because a limit
    /// on buffer memory was reached.
    #[serde(rename = "shortages")]
    pub buffer_shortages: u64,
    /// Peers that have connections to the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<NbdPeerStatus>,
}

/// Connections and buffer memory of one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NbdPeerStatus {
    /// Peer: `user` and the user's number, an IPv4 address, or an IPv6 network of 64 bits.
    pub peer: String,
    /// Number of connections of the peer.
    pub connections: u32,
    /// Buffer memory of these connections in bytes.
    pub buffer_bytes: u64,
}
