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

    /// The header whose first eight and last four bytes are these, little-endian.
    /// Every pattern is one.
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

    /// The header's first eight and last four bytes, little-endian. Rings write
    /// these straight from registers: bytes put together in memory first would
    /// have to wait there for every store before them.
    #[inline(always)]
    pub const fn words(&self) -> (u64, u32) {
        let low = self.flags as u64
            | (self.gso_type as u64) << 8
            | (self.hdr_len as u64) << 16
            | (self.gso_size as u64) << 32
            | (self.csum_start as u64) << 48;
        (low, self.csum_offset as u32 | (self.num_buffers as u32) << 16)
    }

    /// The header in these bytes. Every byte pattern is one.
    #[inline]
    pub const fn decode(bytes: &[u8; VNET_HEADER_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Self::from_words(low, u32::from_le_bytes([i, j, k, l]))
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
        let (low, high) = self.words();
        let [a, b, c, d, e, f, g, h] = low.to_le_bytes();
        let [i, j, k, l] = high.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
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
