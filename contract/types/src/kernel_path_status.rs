//! Observed state of a NIC's forwarding path in the kernel.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Traffic of a NIC that the kernel forwards directly. The NIC's counters include these frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KernelPathStatus {
    /// True if the kernel may forward frames between this NIC and others with an open path in its
    /// switch and VLAN and with the same MTU.
    pub open: bool,
    /// Reason why the path is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Frames received from the NIC over the path; a large frame (GSO) counts once.
    pub rx_frames: u64,
    /// Bytes received from the NIC over the path.
    pub rx_bytes: u64,
    /// Frames sent to the NIC over the path; a large frame (GSO) counts once.
    pub tx_frames: u64,
    /// Bytes sent to the NIC over the path.
    pub tx_bytes: u64,
}
