//! Observed state of a NIC's forwarding path in the kernel.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Traffic of a NIC that the kernel forwards directly. The NIC's counters include these frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KernelPathStatus {
    /// True if the kernel may forward frames between this NIC and others of its switch, VLAN and
    /// MTU whose paths are also open.
    pub open: bool,
    /// Reason why the path is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Frames received from the NIC over the path; a large frame (GSO) counts once.
    pub rx_frames: u64,
    /// Bytes of these frames.
    pub rx_bytes: u64,
    /// Frames sent to the NIC over the path; a large frame (GSO) counts once.
    pub tx_frames: u64,
    /// Bytes of these frames.
    pub tx_bytes: u64,
}
