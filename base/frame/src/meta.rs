//! What is known of a frame beside its bytes.

use serde::{Deserialize, Serialize};

use crate::VlanTag;

/// What is known of a frame's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The bytes hold whatever the sender wrote; nobody here has checked it.
    #[default]
    Unknown,
    /// The bytes are known good: checked by the NIC, or they never left memory.
    Verified,
    /// The field holds the pseudo-header's sum only. To complete it, sum from
    /// `start` to the end of the frame and store the complement at
    /// `start + offset` (virtio 1.3, section 5.1.6.2, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    Partial {
        /// Where summing starts, in bytes from the frame's first byte.
        start: u16,
        /// Where the field lies, in bytes from `start`.
        offset: u16,
    },
}

/// What kind of large frame this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP, either IP version, segmented into datagrams of its own (USO).
    Udp,
}

/// A large frame that stands for several on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// What to segment.
    pub kind: GsoKind,
    /// Payload bytes per segment, at least 1.
    pub segment_bytes: u16,
    /// Whether the first segment alone carries CWR (RFC 3168, section 6.1.2).
    pub ecn: bool,
}

/// The forms in which a frame may leave, as far as the port it came in by has a say.
/// The later in this order, the fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeavesAs {
    /// Any form that its egress takes.
    #[default]
    Any,
    /// A large frame is cut into its segments.
    Segments,
    /// The same, and checksums are in the bytes, those of frames that are not large too.
    Plain,
}

/// What is known of a frame beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameMeta {
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// Set if the frame still has to be segmented. Then `checksum` is
    /// [`Checksum::Partial`].
    pub gso: Option<Gso>,
    /// Whether the large frame was joined from segments, by the device it came in
    /// on or by [`coalesce`](crate::coalesce), so that not every receiver wants it.
    pub is_coalesced: bool,
    /// What the port it came in by asks of the frame's form.
    pub leaves_as: LeavesAs,
    /// Whether the segments of the large frame all have its IPv4 identification,
    /// as those it was joined from had. Otherwise they count up from it.
    pub has_fixed_identification: bool,
    /// The 802.1Q tag, if the frame has one; the bytes never hold it while the
    /// frame is inside the switch.
    pub tag: Option<VlanTag>,
}

/// Which forms of frame one side of a port takes without software's help.
///
/// For an egress: what may be handed to it. For an ingress: what it may hand in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// Partial checksums.
    pub checksum: bool,
    /// Large TCP/IPv4 frames.
    pub tcp4_segmentation: bool,
    /// Large TCP/IPv6 frames.
    pub tcp6_segmentation: bool,
    /// Large TCP frames with ECN's CWR set.
    pub tcp_ecn_segmentation: bool,
    /// Large UDP frames.
    pub udp_segmentation: bool,
}

impl Offloads {
    /// Everything in software.
    pub const NONE: Self = Self {
        checksum: false,
        tcp4_segmentation: false,
        tcp6_segmentation: false,
        tcp_ecn_segmentation: false,
        udp_segmentation: false,
    };

    /// Checksum and TCP segmentation of both IP versions, with ECN.
    pub const TCP: Self = Self {
        checksum: true,
        tcp4_segmentation: true,
        tcp6_segmentation: true,
        tcp_ecn_segmentation: true,
        udp_segmentation: false,
    };

    /// The same without large frames.
    #[must_use]
    pub const fn without_segmentation(self) -> Self {
        Self { checksum: self.checksum, ..Self::NONE }
    }

    /// What both sides take.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            checksum: self.checksum && other.checksum,
            tcp4_segmentation: self.tcp4_segmentation && other.tcp4_segmentation,
            tcp6_segmentation: self.tcp6_segmentation && other.tcp6_segmentation,
            tcp_ecn_segmentation: self.tcp_ecn_segmentation && other.tcp_ecn_segmentation,
            udp_segmentation: self.udp_segmentation && other.udp_segmentation,
        }
    }

    /// One bit for each form, from the lowest in the order of the fields.
    pub const fn to_bits(self) -> u8 {
        self.checksum as u8
            | (self.tcp4_segmentation as u8) << 1
            | (self.tcp6_segmentation as u8) << 2
            | (self.tcp_ecn_segmentation as u8) << 3
            | (self.udp_segmentation as u8) << 4
    }

    /// The forms whose bits are set, as [`Offloads::to_bits`] sets them.
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

    /// Whether an egress with these offloads takes a frame with this `gso` as
    /// it is. Segmentation implies that the checksum is completed too.
    pub const fn takes(self, gso: Gso) -> bool {
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
    fn every_form_has_a_bit_of_its_own() {
        assert_eq!(Offloads::NONE.to_bits(), 0);
        assert_eq!(Offloads::TCP.to_bits().count_ones(), 4);
        for bits in 0..32 {
            assert_eq!(Offloads::from_bits(bits).to_bits(), bits);
        }
    }
}
