//! The header that travels beside a frame between a virtio driver and its device.

/// Bytes of the header with `num_buffers`, as every virtio 1.x ring carries it.
pub const VNET_HEADER_BYTES: usize = 12;

/// Bytes of the header without `num_buffers`, as packet sockets carry it.
pub const VNET_HEADER_SHORT_BYTES: usize = 10;

/// `struct virtio_net_hdr`, little-endian on every transport used here (virtio
/// 1.3, section 5.1.6). TAP and packet sockets use the same layout; a packet
/// socket leaves `num_buffers` away unless it is asked for the longer form.
///
/// Plain numbers as the other side wrote them: nothing here is validated. See
/// [`Frame::admit`](crate::Frame::admit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`VnetHeader::NEEDS_CSUM`], [`VnetHeader::DATA_VALID`].
    pub flags: u8,
    /// One of the `GSO_*` values, plus [`VnetHeader::GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of all headers, as a hint; never to be trusted on the way in.
    pub hdr_len: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// Where summing starts, in bytes from the frame's first byte on the wire,
    /// so a tag in the frame counts.
    pub csum_start: u16,
    /// Where the checksum field lies, in bytes from `csum_start`.
    pub csum_offset: u16,
    /// Buffers the frame is spread over. The ring sets it; 1 otherwise.
    pub num_buffers: u16,
}

impl VnetHeader {
    /// `flags`: the checksum is partial, `csum_start` and `csum_offset` hold.
    pub const NEEDS_CSUM: u8 = 1;
    /// `flags`: the checksum was verified.
    pub const DATA_VALID: u8 = 2;
    /// `gso_type`: not a large frame.
    pub const GSO_NONE: u8 = 0;
    /// `gso_type`: TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// `gso_type`: UDP to be fragmented (UFO). Never taken nor made here.
    pub const GSO_UDP: u8 = 3;
    /// `gso_type`: TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// `gso_type`: UDP to be segmented into datagrams (USO).
    pub const GSO_UDP_L4: u8 = 5;
    /// Bit in `gso_type`: the first segment alone carries CWR.
    pub const GSO_ECN: u8 = 0x80;

    /// The header in these bytes. Every byte pattern is one.
    #[inline]
    pub const fn decode(bytes: &[u8; VNET_HEADER_BYTES]) -> Self {
        let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1, n0, n1] = *bytes;
        Self {
            flags,
            gso_type,
            hdr_len: u16::from_le_bytes([h0, h1]),
            gso_size: u16::from_le_bytes([g0, g1]),
            csum_start: u16::from_le_bytes([s0, s1]),
            csum_offset: u16::from_le_bytes([o0, o1]),
            num_buffers: u16::from_le_bytes([n0, n1]),
        }
    }

    /// The header in these bytes, of the form without `num_buffers` (taken as 1).
    #[inline]
    pub const fn decode_short(bytes: &[u8; VNET_HEADER_SHORT_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = *bytes;
        Self::decode(&[a, b, c, d, e, f, g, h, i, j, 1, 0])
    }

    /// The header's bytes.
    #[inline]
    pub const fn encode(&self) -> [u8; VNET_HEADER_BYTES] {
        let [h0, h1] = self.hdr_len.to_le_bytes();
        let [g0, g1] = self.gso_size.to_le_bytes();
        let [s0, s1] = self.csum_start.to_le_bytes();
        let [o0, o1] = self.csum_offset.to_le_bytes();
        let [n0, n1] = self.num_buffers.to_le_bytes();
        [self.flags, self.gso_type, h0, h1, g0, g1, s0, s1, o0, o1, n0, n1]
    }

    /// The header's bytes in the form without `num_buffers`.
    #[inline]
    pub const fn encode_short(&self) -> [u8; VNET_HEADER_SHORT_BYTES] {
        let [a, b, c, d, e, f, g, h, i, j, _, _] = self.encode();
        [a, b, c, d, e, f, g, h, i, j]
    }

    /// The same header without [`VnetHeader::DATA_VALID`], for a driver that did
    /// not negotiate `VIRTIO_NET_F_GUEST_CSUM` (virtio 1.3, section 5.1.6.4.1).
    #[inline]
    #[must_use]
    pub const fn without_data_valid(mut self) -> Self {
        self.flags &= !Self::DATA_VALID;
        self
    }
}

#[cfg(test)]
mod tests;
