//! Reasons for which capabilities are in use or not.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::OffloadToggle;

/// Offload capability of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffloadCapability {
    /// TCP and UDP checksum offload.
    Checksum,
    /// IPv4 header checksum offload.
    IpChecksum,
    /// Segmentation of large TCP/IPv4 frames.
    Tcp4Segmentation,
    /// Segmentation of large TCP/IPv6 frames.
    Tcp6Segmentation,
    /// Segmentation of large TCP frames with the CWR flag (ECN).
    TcpEcnSegmentation,
    /// Segmentation of large UDP frames.
    UdpSegmentation,
    /// Delivery of frames that were coalesced on reception. Only for the direction in which the
    /// port's user receives.
    ReceiveCoalescing,
}

impl fmt::Display for OffloadCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checksum => "checksum",
            Self::IpChecksum => "ip checksum",
            Self::Tcp4Segmentation => "TCP/IPv4 segmentation",
            Self::Tcp6Segmentation => "TCP/IPv6 segmentation",
            Self::TcpEcnSegmentation => "TCP segmentation with ECN",
            Self::UdpSegmentation => "UDP segmentation",
            Self::ReceiveCoalescing => "receive coalescing",
        })
    }
}

/// Reason for which a capability is in use or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum OffloadReason {
    /// The capability is in use.
    On,
    /// The guest or device at the port does not support the capability.
    NotNegotiated,
    /// The operator has switched the capability off.
    SwitchedOff {
        /// Switch that controls the capability.
        #[serde(rename = "switch")]
        toggle: OffloadToggle,
    },
    /// The capability requires another capability, which is not in use.
    #[serde(rename = "needs")]
    RequiresOther {
        /// Required capability that is not in use.
        #[serde(rename = "other")]
        required: OffloadCapability,
    },
    /// The virtio specification has no such feature.
    NotInVirtio,
}

impl fmt::Display for OffloadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str("on"),
            Self::NotNegotiated => f.write_str("not negotiated by the guest"),
            Self::SwitchedOff { toggle: switch } => write!(f, "switched off by {switch}"),
            Self::RequiresOther { required: other } => {
                write!(f, "needs {other}, which is not in use")
            }
            Self::NotInVirtio => {
                f.write_str("virtio-net has no offload of the IPv4 header checksum")
            }
        }
    }
}

/// Offload capability with the reason for which it is in use or not; one line of `suimon nic show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityStatus {
    /// Capability that the line is about.
    pub capability: OffloadCapability,
    /// Reason for which it is in use or not.
    #[serde(flatten)]
    pub reason: OffloadReason,
}

impl CapabilityStatus {
    /// Returns true if the capability is in use.
    pub fn is_on(&self) -> bool {
        self.reason == OffloadReason::On
    }
}

impl fmt::Display for CapabilityStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.capability, self.reason)
    }
}
