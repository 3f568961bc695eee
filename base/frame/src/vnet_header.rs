//! virtio-net header, transferred with each frame between a virtio driver and its device.

/// Length of the header with `num_buffers` in bytes, used by virtio 1.x rings.
pub const VNET_HEADER_BYTES: usize = 12;

/// Length of the header without `num_buffers` in bytes, used by packet sockets.
pub const VNET_HEADER_SHORT_BYTES: usize = 10;

/// `struct virtio_net_hdr`, little-endian on every transport used here (virtio 1.3, section 5.1.6).
/// TAP and packet sockets use the same layout; packet sockets omit `num_buffers` unless configured
/// otherwise.
///
/// Values as received from the peer, not validated; see
/// [`Frame::validate_ingress`](crate::Frame::validate_ingress).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Flags: [`VnetHeader::NEEDS_CSUM`], [`VnetHeader::DATA_VALID`].
    pub flags: u8,
    /// Type of a large frame: one of the `GSO_*` values, optionally with [`VnetHeader::GSO_ECN`].
    pub gso_type: u8,
    /// Length of the headers in bytes; a hint that is untrusted on ingress.
    pub hdr_len: u16,
    /// Payload bytes per segment of a large frame.
    pub gso_size: u16,
    /// Start of the sum, in bytes from the frame's first byte on the wire, including a tag.
    pub csum_start: u16,
    /// Position of the checksum field, in bytes from `csum_start`.
    pub csum_offset: u16,
    /// Number of buffers that contain the frame; set by the ring, otherwise 1.
    pub num_buffers: u16,
}

impl VnetHeader {
    /// `flags`: the checksum is partial; `csum_start` and `csum_offset` are valid.
    pub const NEEDS_CSUM: u8 = 1;
    /// `flags`: the checksum was verified.
    pub const DATA_VALID: u8 = 2;
    /// `gso_type`: not a large frame.
    pub const GSO_NONE: u8 = 0;
    /// `gso_type`: TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// `gso_type`: UDP to be fragmented (UFO). Neither accepted nor generated.
    pub const GSO_UDP: u8 = 3;
    /// `gso_type`: TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// `gso_type`: UDP to be segmented into datagrams (USO).
    pub const GSO_UDP_L4: u8 = 5;
    /// Bit in `gso_type`: only the first segment carries CWR.
    pub const GSO_ECN: u8 = 0x80;

    /// Creates a header from its first eight and last four bytes, little-endian. Every pattern is
    /// valid.
    #[inline(always)]
    pub const fn from_words(low: u64, high: u32) -> Self {
        Self {
            flags: low as u8,
            gso_type: (low >> 8) as u8,
            hdr_len: (low >> 16) as u16,
            gso_size: (low >> 32) as u16,
            csum_start: (low >> 48) as u16,
            csum_offset: high as u16,
            num_buffers: (high >> 16) as u16,
        }
    }

    /// Returns the header's first eight and last four bytes, little-endian. Rings store these from
    /// registers: bytes assembled in memory first would be delayed by store forwarding.
    #[inline(always)]
    pub const fn words(&self) -> (u64, u32) {
        let low = self.flags as u64
            | (self.gso_type as u64) << 8
            | (self.hdr_len as u64) << 16
            | (self.gso_size as u64) << 32
            | (self.csum_start as u64) << 48;
        (low, self.csum_offset as u32 | (self.num_buffers as u32) << 16)
    }

    /// Decodes a header. Every byte pattern is valid.
    #[inline]
    pub const fn decode(bytes: &[u8; VNET_HEADER_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Self::from_words(low, u32::from_le_bytes([i, j, k, l]))
    }

    /// Decodes a header without `num_buffers`, which becomes 1.
    #[inline]
    pub const fn decode_short(bytes: &[u8; VNET_HEADER_SHORT_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = *bytes;
        Self::decode(&[a, b, c, d, e, f, g, h, i, j, 1, 0])
    }

    /// Encodes the header with `num_buffers`.
    #[inline]
    pub const fn encode(&self) -> [u8; VNET_HEADER_BYTES] {
        let (low, high) = self.words();
        let [a, b, c, d, e, f, g, h] = low.to_le_bytes();
        let [i, j, k, l] = high.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// Encodes the header without `num_buffers`.
    #[inline]
    pub const fn encode_short(&self) -> [u8; VNET_HEADER_SHORT_BYTES] {
        let [a, b, c, d, e, f, g, h, i, j, _, _] = self.encode();
        [a, b, c, d, e, f, g, h, i, j]
    }

    /// Returns the header without [`VnetHeader::DATA_VALID`], for a driver that did not negotiate
    /// `VIRTIO_NET_F_GUEST_CSUM` (virtio 1.3, section 5.1.6.4.1).
    #[inline]
    #[must_use]
    pub const fn without_data_valid(mut self) -> Self {
        self.flags &= !Self::DATA_VALID;
        self
    }
}

#[cfg(test)]
mod tests;
