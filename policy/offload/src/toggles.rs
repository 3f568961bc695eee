//! Offload switches set by the operator.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Switches of `[nic.offload]` and `[uplink.offload]`, all on by default. See [`OffloadToggle`] for
/// their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadToggles {
    /// State of the switch [`OffloadToggle::TxChecksum`].
    pub tx_checksum: bool,
    /// State of the switch [`OffloadToggle::RxChecksum`].
    pub rx_checksum: bool,
    /// State of the switch [`OffloadToggle::TxIpChecksum`].
    pub tx_ip_checksum: bool,
    /// State of the switch [`OffloadToggle::RxIpChecksum`].
    pub rx_ip_checksum: bool,
    /// State of the switch [`OffloadToggle::Segmentation`].
    pub segmentation: bool,
    /// State of the switch [`OffloadToggle::ReceiveCoalescing`].
    pub receive_coalescing: bool,
}

impl OffloadToggles {
    /// Returns true if `switch` is on.
    pub const fn is_on(&self, switch: OffloadToggle) -> bool {
        match switch {
            OffloadToggle::TxChecksum => self.tx_checksum,
            OffloadToggle::RxChecksum => self.rx_checksum,
            OffloadToggle::TxIpChecksum => self.tx_ip_checksum,
            OffloadToggle::RxIpChecksum => self.rx_ip_checksum,
            OffloadToggle::Segmentation => self.segmentation,
            OffloadToggle::ReceiveCoalescing => self.receive_coalescing,
        }
    }

    /// Returns the switches seen from the other end of the port, where transmission and reception
    /// are exchanged.
    #[must_use]
    pub const fn with_directions_swapped(self) -> Self {
        Self {
            tx_checksum: self.rx_checksum,
            rx_checksum: self.tx_checksum,
            tx_ip_checksum: self.rx_ip_checksum,
            rx_ip_checksum: self.tx_ip_checksum,
            ..self
        }
    }
}

impl Default for OffloadToggles {
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

/// Offload switch, named from the view of the port's user: the guest uses its NIC, the data plane
/// uses the uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffloadToggle {
    /// Partial TCP and UDP checksums on transmission. NIC: the guest may send frames with partial
    /// checksums. Uplink: the data plane may pass them to the device and the kernel. If off,
    /// checksums are completed before the frame is passed on: by the guest, or by the data plane.
    TxChecksum,
    /// Partial TCP and UDP checksums on reception. NIC: the guest may receive frames with partial
    /// checksums. Uplink: the device's checksum verification is trusted. If off, a partial checksum
    /// is completed before the frame is forwarded, and a verified one is left for the receiver to
    /// verify.
    RxChecksum,
    /// IPv4 header checksums on transmission. NIC: the guest may leave them to the data plane;
    /// uplink: the data plane may leave them to the device. The virtio-net header cannot express
    /// this, so they are always present in the frame.
    TxIpChecksum,
    /// IPv4 header checksums on reception. NIC: the guest may receive frames with unverified ones;
    /// uplink: the data plane may. The virtio-net header cannot express this either.
    RxIpChecksum,
    /// Large frames in both directions. They require the checksum of their direction too. If off at
    /// an uplink, no frame longer than its MTU is passed to the device, and large received frames
    /// are segmented before delivery to a guest.
    Segmentation,
    /// Coalesced frames on reception. NIC: segments coalesced by an uplink's device or the switch
    /// may be delivered coalesced. Uplink: received segments may be coalesced by its device or the
    /// switch. Both must be on.
    ReceiveCoalescing,
}

impl fmt::Display for OffloadToggle {
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
