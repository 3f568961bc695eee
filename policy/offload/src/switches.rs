//! The operator's switches.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The switches of `[nic.offload]`. All on by default. What each one governs is
/// said at [`Switch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadSwitches {
    /// [`Switch::TxChecksum`].
    pub tx_checksum: bool,
    /// [`Switch::RxChecksum`].
    pub rx_checksum: bool,
    /// [`Switch::TxIpChecksum`].
    pub tx_ip_checksum: bool,
    /// [`Switch::RxIpChecksum`].
    pub rx_ip_checksum: bool,
    /// [`Switch::Segmentation`].
    pub segmentation: bool,
    /// [`Switch::ReceiveCoalescing`].
    pub receive_coalescing: bool,
}

impl OffloadSwitches {
    /// Whether `switch` is on.
    pub const fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::TxChecksum => self.tx_checksum,
            Switch::RxChecksum => self.rx_checksum,
            Switch::TxIpChecksum => self.tx_ip_checksum,
            Switch::RxIpChecksum => self.rx_ip_checksum,
            Switch::Segmentation => self.segmentation,
            Switch::ReceiveCoalescing => self.receive_coalescing,
        }
    }
}

impl Default for OffloadSwitches {
    fn default() -> Self {
        Self {
            tx_checksum: true,
            rx_checksum: true,
            tx_ip_checksum: true,
            rx_ip_checksum: true,
            segmentation: true,
            receive_coalescing: true,
        }
    }
}

/// One switch of `[nic.offload]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The guest may leave TCP and UDP checksums of what it sends to us.
    TxChecksum,
    /// The guest may be given frames whose TCP or UDP checksum is not in the bytes.
    RxChecksum,
    /// The guest may leave IPv4 header checksums to us.
    TxIpChecksum,
    /// The guest may be given frames with unchecked IPv4 header checksums.
    RxIpChecksum,
    /// Large frames, both ways.
    Segmentation,
    /// Segments of a stream that an uplink's device or the switch joined may reach
    /// the guest joined.
    ReceiveCoalescing,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TxChecksum => "tx_checksum",
            Self::RxChecksum => "rx_checksum",
            Self::TxIpChecksum => "tx_ip_checksum",
            Self::RxIpChecksum => "rx_ip_checksum",
            Self::Segmentation => "segmentation",
            Self::ReceiveCoalescing => "receive_coalescing",
        })
    }
}
