//! Wire representation of frames.

use crate::ethernet::{ADDRESSES_BYTES, VLAN_TAG_BYTES, ethertype};
use crate::headers::Headers;
use crate::meta::{Checksum, Gso, GsoKind};
use crate::{Frame, VlanTag, VnetHeader};

/// Frame in the form that a sink writes: `front`, then `tag` if present, then `rest`. `header` is
/// transferred beside the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame<'a> {
    /// virtio-net header; offsets include the tag. `num_buffers` is 1 and is overwritten by rings.
    pub header: VnetHeader,
    /// Complete bytes of an untagged frame; the two addresses of a tagged one.
    pub before_tag: &'a [u8],
    /// 802.1Q tag in wire format.
    pub tag: Option<[u8; VLAN_TAG_BYTES]>,
    /// Bytes after the tag; empty without a tag.
    pub after_tag: &'a [u8],
}

impl WireFrame<'_> {
    /// Returns the length on the wire in bytes, without header and FCS.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.before_tag.len() + self.tag.map_or(0, |_| VLAN_TAG_BYTES) + self.after_tag.len()
    }
}

impl Frame {
    /// Returns the wire representation. Must not be called on a frame with a tail, see
    /// [`Frame::bytes`].
    ///
    /// A verified checksum is represented by [`VnetHeader::DATA_VALID`]; rings without
    /// `VIRTIO_NET_F_GUEST_CSUM` remove it with [`VnetHeader::without_data_valid`].
    #[inline]
    pub fn wire_format(&self) -> WireFrame<'_> {
        debug_assert!(!self.has_tail(), "a frame's tail was forgotten");
        self.wire_head()
    }

    /// Returns the wire representation without the tail, for a sink that writes [`Frame::tail`]
    /// itself.
    #[inline]
    pub fn wire_head(&self) -> WireFrame<'_> {
        let bytes = self.head();
        match self.meta.tag {
            None => {
                WireFrame { header: self.header(0), before_tag: bytes, tag: None, after_tag: &[] }
            }
            Some(tag) => {
                let (front, rest) = bytes.split_at_checked(ADDRESSES_BYTES).unwrap_or((bytes, &[]));
                let header = self.header(VLAN_TAG_BYTES as u16);
                WireFrame { header, before_tag: front, tag: Some(tag_bytes(tag)), after_tag: rest }
            }
        }
    }

    /// Returns the virtio-net header as [`VnetHeader::words`] for a frame that is not large and has
    /// neither tag nor tail; `None` for others. Avoids a round trip through memory, see there.
    #[inline(always)]
    pub fn plain_vnet_header_words(&self) -> Option<(u64, u32)> {
        if self.meta.gso.is_some() || self.meta.tag.is_some() || self.has_tail() {
            return None;
        }
        let (flags, start, offset) = match self.meta.checksum {
            Checksum::Unknown => (0, 0, 0),
            Checksum::Verified => (VnetHeader::DATA_VALID, 0, 0),
            Checksum::Partial { start, offset } => (VnetHeader::NEEDS_CSUM, start, offset),
        };
        Some((flags as u64 | (start as u64) << 48, offset as u32 | 1 << 16))
    }

    #[inline]
    fn header(&self, tag_bytes: u16) -> VnetHeader {
        let plain = VnetHeader { num_buffers: 1, ..VnetHeader::default() };
        match self.meta.checksum {
            Checksum::Unknown => plain,
            Checksum::Verified => VnetHeader { flags: VnetHeader::DATA_VALID, ..plain },
            Checksum::Partial { start, offset } => {
                let header = VnetHeader {
                    flags: VnetHeader::NEEDS_CSUM,
                    csum_start: start.saturating_add(tag_bytes),
                    csum_offset: offset,
                    ..plain
                };
                self.meta.gso.map_or(header, |gso| self.large_header(header, gso, tag_bytes))
            }
        }
    }

    fn large_header(&self, header: VnetHeader, gso: Gso, tag_bytes: u16) -> VnetHeader {
        let kind = match gso.kind {
            GsoKind::Tcp4 => VnetHeader::GSO_TCPV4,
            GsoKind::Tcp6 => VnetHeader::GSO_TCPV6,
            GsoKind::Udp => VnetHeader::GSO_UDP_L4,
        };
        let header_bytes = Headers::parse(self.head()).map_or(0, |headers| headers.payload_at);
        VnetHeader {
            gso_type: if gso.ecn { kind | VnetHeader::GSO_ECN } else { kind },
            gso_size: gso.segment_bytes,
            hdr_len: u16::try_from(header_bytes).unwrap_or(0).saturating_add(tag_bytes),
            ..header
        }
    }
}

#[inline]
fn tag_bytes(tag: VlanTag) -> [u8; VLAN_TAG_BYTES] {
    let [type_high, type_low] = ethertype::VLAN.to_be_bytes();
    let [high, low] = tag.tci().to_be_bytes();
    [type_high, type_low, high, low]
}

#[cfg(test)]
mod tests;
