//! Why a capability is in use or not.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Switch;

/// Something that a port may do in place of software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// TCP and UDP checksums.
    Checksum,
    /// IPv4 header checksums.
    IpChecksum,
    /// Large TCP/IPv4 frames.
    Tcp4Segmentation,
    /// Large TCP/IPv6 frames.
    Tcp6Segmentation,
    /// Large TCP frames with ECN's CWR set.
    TcpEcnSegmentation,
    /// Large UDP frames.
    UdpSegmentation,
    /// Received segments handed over joined. Egress only.
    ReceiveCoalescing,
}

impl fmt::Display for Capability {
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

/// Why a capability is in use or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// It is in use.
    On,
    /// The other side of the port does not do it.
    NotNegotiated,
    /// The operator does not want it.
    SwitchedOff {
        /// The switch that says so.
        switch: Switch,
    },
    /// It works only together with another that is not in use.
    Needs {
        /// The one it needs.
        other: Capability,
    },
    /// There is no such feature in virtio.
    NotInVirtio,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str("on"),
            Self::NotNegotiated => f.write_str("not negotiated by the guest"),
            Self::SwitchedOff { switch } => write!(f, "switched off by {switch}"),
            Self::Needs { other } => write!(f, "needs {other}, which is not in use"),
            Self::NotInVirtio => f.write_str("no virtio NIC offloads the IPv4 header checksum"),
        }
    }
}

/// One line of `suimon nic show`: a capability and why it is in use or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The capability.
    pub capability: Capability,
    /// Why it is in use or not.
    #[serde(flatten)]
    pub reason: Reason,
}

impl Finding {
    /// Whether it is in use.
    pub fn is_on(&self) -> bool {
        self.reason == Reason::On
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.capability, self.reason)
    }
}
