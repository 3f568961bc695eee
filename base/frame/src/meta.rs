//! Metadata of frames.

use serde::{Deserialize, Serialize};

use crate::VlanTag;

/// State of a frame's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Not checked: the bytes contain the sender's checksum.
    #[default]
    Unknown,
    /// Known to be correct: checked by the NIC, or the data never left memory.
    Verified,
    /// Partial: the field contains the sum of the pseudo-header only. To complete it, sum from
    /// `start` to the end of the frame and store the complement at `start + offset` (virtio 1.3,
    /// section 5.1.6.2, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    Partial {
        /// Start of the sum, in bytes from the frame's first byte.
        start: u16,
        /// Position of the field, in bytes from `start`.
        offset: u16,
    },
}

/// Type of a large frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4 (TSO).
    Tcp4,
    /// TCP over IPv6 (TSO).
    Tcp6,
    /// UDP over either IP version, segmented into separate datagrams (USO).
    Udp,
}

/// Segmentation parameters of a large frame (GSO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Type of the large frame.
    pub kind: GsoKind,
    /// Payload bytes per segment, at least 1.
    pub segment_bytes: u16,
    /// True if only the first segment carries CWR (RFC 3168, section 6.1.2).
    pub ecn: bool,
}

/// Forms in which a frame may leave, as required by its ingress port, in order of increasing
/// restriction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EgressForm {
    /// Any form that the egress accepts.
    #[default]
    Any,
    /// Large frames are segmented before egress.
    Segmented,
    /// Large frames are segmented, and the checksums of all frames are completed.
    Complete,
}

/// Metadata that accompanies a frame's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameMeta {
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// Segmentation parameters if the frame is large; `checksum` is then [`Checksum::Partial`].
    pub gso: Option<Gso>,
    /// True if the large frame was coalesced from segments by the ingress device or by
    /// [`coalesce`](crate::coalesce); some receivers do not accept such frames.
    pub is_coalesced: bool,
    /// Form required by the ingress port.
    pub egress_form: EgressForm,
    /// True if all segments of the large frame have the same IPv4 identification, like the segments
    /// it was coalesced from. Otherwise they are consecutive.
    pub has_fixed_identification: bool,
    /// 802.1Q tag; inside the switch the bytes never contain it.
    pub tag: Option<VlanTag>,
}

/// Forms of frames that one side of a port supports without software processing.
///
/// For an egress: forms that it accepts. For an ingress: forms that it may deliver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// Partial transport checksums (TCP and UDP).
    pub checksum: bool,
    /// Large TCP/IPv4 frames (TSO4).
    pub tcp4_segmentation: bool,
    /// Large TCP/IPv6 frames (TSO6).
    pub tcp6_segmentation: bool,
    /// Large TCP frames with ECN's CWR flag.
    pub tcp_ecn_segmentation: bool,
    /// Large UDP frames over IPv4 and IPv6 (USO).
    pub udp_segmentation: bool,
}

impl Offloads {
    /// No offloads: all processing in software.
    pub const NONE: Self = Self {
        checksum: false,
        tcp4_segmentation: false,
        tcp6_segmentation: false,
        tcp_ecn_segmentation: false,
        udp_segmentation: false,
    };

    /// Checksum and TCP segmentation for both IP versions, with ECN.
    pub const TCP: Self = Self {
        checksum: true,
        tcp4_segmentation: true,
        tcp6_segmentation: true,
        tcp_ecn_segmentation: true,
        udp_segmentation: false,
    };

    /// Returns the offloads without large frames.
    #[must_use]
    pub const fn without_segmentation(self) -> Self {
        Self { checksum: self.checksum, ..Self::NONE }
    }

    /// Returns the offloads that both sides support.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            checksum: self.checksum && other.checksum,
            tcp4_segmentation: self.tcp4_segmentation && other.tcp4_segmentation,
            tcp6_segmentation: self.tcp6_segmentation && other.tcp6_segmentation,
            tcp_ecn_segmentation: self.tcp_ecn_segmentation && other.tcp_ecn_segmentation,
            udp_segmentation: self.udp_segmentation && other.udp_segmentation,
        }
    }

    /// Returns one bit per offload, in field order from the lowest bit.
    pub const fn to_bits(self) -> u8 {
        self.checksum as u8
            | (self.tcp4_segmentation as u8) << 1
            | (self.tcp6_segmentation as u8) << 2
            | (self.tcp_ecn_segmentation as u8) << 3
            | (self.udp_segmentation as u8) << 4
    }

    /// Returns the offloads of a bit mask from [`Offloads::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self {
            checksum: bits & 1 != 0,
            tcp4_segmentation: bits & 2 != 0,
            tcp6_segmentation: bits & 4 != 0,
            tcp_ecn_segmentation: bits & 8 != 0,
            udp_segmentation: bits & 16 != 0,
        }
    }

    /// Returns true if an egress with these offloads accepts a frame with this `gso` unchanged.
    /// Segmentation includes completing the checksum.
    pub const fn accepts(self, gso: Gso) -> bool {
        self.checksum
            && (!gso.ecn || self.tcp_ecn_segmentation)
            && match gso.kind {
                GsoKind::Tcp4 => self.tcp4_segmentation,
                GsoKind::Tcp6 => self.tcp6_segmentation,
                GsoKind::Udp => self.udp_segmentation,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offload_bits_round_trip() {
        assert_eq!(Offloads::NONE.to_bits(), 0);
        assert_eq!(Offloads::TCP.to_bits().count_ones(), 4);
        for bits in 0..32 {
            assert_eq!(Offloads::from_bits(bits).to_bits(), bits);
        }
    }
}
