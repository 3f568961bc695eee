//! The operator's switches.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The switches of `[nic.offload]` and `[uplink.offload]`. All on by default. What
/// each one governs is said at [`Switch`].
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

    /// The same switches as the other end of the port sees them: what is sent at
    /// one end is received at the other.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self {
            tx_checksum: self.rx_checksum,
            rx_checksum: self.tx_checksum,
            tx_ip_checksum: self.rx_ip_checksum,
            rx_ip_checksum: self.tx_ip_checksum,
            ..self
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

/// One switch, seen from who uses the port: the guest uses its NIC, we use an
/// uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// NIC: the guest may leave TCP and UDP checksums of what it sends to us.
    /// Uplink: we may leave those of what we send to the device and the kernel.
    /// Off, they are in the bytes before the frame changes hands: the guest computes
    /// them, or we do.
    TxChecksum,
    /// NIC: the guest may be given frames whose TCP or UDP checksum is not in the
    /// bytes. Uplink: what the device says of a received frame's checksum is
    /// believed. Off, a checksum that is left to us is completed before the frame goes
    /// on, and one that is said to be good is left for the receiver to check.
    RxChecksum,
    /// NIC: the guest may leave IPv4 header checksums to us; uplink: we may leave
    /// them to the device. No virtio-net header can say so: they are always in the
    /// bytes.
    TxIpChecksum,
    /// NIC: the guest may be given frames with unchecked IPv4 header checksums;
    /// uplink: we may be. As above.
    RxIpChecksum,
    /// Large frames, both ways. They need the checksum of their direction too. Off at
    /// an uplink, no frame longer than its MTU is handed to the device, and large ones
    /// that come in are cut before a guest is given them.
    Segmentation,
    /// NIC: segments of a stream that an uplink's device or the switch joined may reach
    /// the guest joined. Uplink: what it received may go on joined, by its device or
    /// here. Both must be on.
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
