//! Observed state of a NIC's path in the kernel.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What of a NIC's traffic the kernel moves itself. Its frames are among those of the
/// NIC's counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KernelPathStatus {
    /// Whether frames between this NIC and others of its switch, VLAN and MTU that have
    /// theirs open may take it.
    pub open: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Frames that came in and took it; a large frame counts once.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that went out and took it; a large frame counts once.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
}
