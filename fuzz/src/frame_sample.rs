//! Frames as guests and hosts send them, for fuzz seeds and property tests.

use suimon_frame::VnetHeader;

use super::frame_oracle::naive_sum;

/// Parameters of a frame with a virtio-net header.
#[derive(Clone, Debug)]
pub struct Sample {
    /// True for IPv6, false for IPv4.
    pub is_ipv6: bool,
    /// True for UDP, false for TCP.
    pub is_udp: bool,
    /// VLAN tags in the frame, outermost first: TPID and TCI.
    pub tags: Vec<(u16, u16)>,
    /// Length of the IPv4 options in 4-byte units.
    pub option_words: usize,
    /// IPv6 extension headers: type, and length in 8-byte units after the first eight bytes.
    pub extensions: Vec<(u8, u8)>,
    /// Length of the TCP options in 4-byte units.
    pub tcp_option_words: usize,
    /// Flags byte of the TCP header.
    pub tcp_flags: u8,
    /// TCP or UDP source port.
    pub source_port: u16,
    /// TCP sequence number.
    pub sequence: u32,
    /// IPv4 identification.
    pub identification: u16,
    /// Payload bytes per segment; `None` if the frame is not to be segmented.
    pub segment_bytes: Option<u16>,
    /// Transport payload.
    pub payload: Vec<u8>,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            is_ipv6: false,
            is_udp: false,
            tags: Vec::new(),
            option_words: 0,
            extensions: Vec::new(),
            tcp_option_words: 3,
            tcp_flags: 0x18,
            source_port: 12_345,
            sequence: 1,
            identification: 1,
            segment_bytes: None,
            payload: (0..100).collect(),
        }
    }
}

impl Sample {
    /// Returns the virtio-net header of the frame.
    pub fn header(&self) -> VnetHeader {
        let ecn = if !self.is_udp && self.tcp_flags & 0x80 != 0 { VnetHeader::GSO_ECN } else { 0 };
        let kind = match (self.is_udp, self.is_ipv6) {
            (true, _) => VnetHeader::GSO_UDP_L4,
            (false, false) => VnetHeader::GSO_TCPV4 | ecn,
            (false, true) => VnetHeader::GSO_TCPV6 | ecn,
        };
        VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: self.segment_bytes.map_or(VnetHeader::GSO_NONE, |_| kind),
            hdr_len: 0xbad,
            gso_size: self.segment_bytes.unwrap_or(0),
            csum_start: self.transport_at() as u16,
            csum_offset: if self.is_udp { 6 } else { 16 },
            num_buffers: 1,
        }
    }

    /// Returns the input of `frame_oracle`: control byte, virtio-net header, frame.
    pub fn input(&self, control: u8) -> Vec<u8> {
        [&[control], &self.header().encode()[..], &self.bytes()].concat()
    }

    /// Returns the frame's bytes, with the sum of the pseudo-header in the checksum field.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1];
        for (kind, tci) in &self.tags {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(tci.to_be_bytes());
        }
        let transport = self.transport();
        if self.is_ipv6 {
            self.push_ipv6(&mut bytes, transport.len());
        } else {
            self.push_ipv4(&mut bytes, transport.len());
        }
        bytes.extend(transport);
        bytes
    }

    fn transport_at(&self) -> usize {
        let network_bytes = match self.is_ipv6 {
            true => 40 + self.extensions.iter().map(extension_bytes).sum::<usize>(),
            false => 20 + 4 * self.option_words,
        };
        14 + 4 * self.tags.len() + network_bytes
    }

    fn protocol(&self) -> u8 {
        if self.is_udp { 17 } else { 6 }
    }

    fn addresses(&self) -> Vec<u8> {
        match self.is_ipv6 {
            true => (0..32).map(|octet| octet * 7 + 3).collect(),
            false => vec![10, 0, 0, 1, 10, 0, 0, 2],
        }
    }

    fn push_ipv4(&self, bytes: &mut Vec<u8>, transport_bytes: usize) {
        let header_bytes = 20 + 4 * self.option_words;
        let mut header = vec![0x40 | (header_bytes / 4) as u8, 0];
        header.extend(((header_bytes + transport_bytes) as u16).to_be_bytes());
        header.extend(self.identification.to_be_bytes());
        header.extend([0x40, 0, 64, self.protocol(), 0, 0]);
        header.extend(self.addresses());
        header.resize(header_bytes, 1);
        let checksum = !naive_sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend([0x08, 0x00]);
        bytes.extend(header);
    }

    fn push_ipv6(&self, bytes: &mut Vec<u8>, transport_bytes: usize) {
        let extensions_bytes: usize = self.extensions.iter().map(extension_bytes).sum();
        let kinds: Vec<u8> = self.extensions.iter().map(|(kind, _)| *kind).collect();
        let mut next = kinds.iter().copied().chain([self.protocol()]);
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(((extensions_bytes + transport_bytes) as u16).to_be_bytes());
        bytes.extend([next.next().unwrap_or(59), 64]);
        bytes.extend(self.addresses());
        for (extension, next) in self.extensions.iter().zip(next) {
            let mut header = vec![next, extension.1];
            header.resize(extension_bytes(extension), 0);
            bytes.extend(header);
        }
    }

    fn transport(&self) -> Vec<u8> {
        let [high, low] = self.source_port.to_be_bytes();
        let mut header = vec![high, low, 0, 80];
        let offset = if self.is_udp {
            header.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            header.extend([0, 0]);
            6
        } else {
            header.extend(self.sequence.to_be_bytes());
            header.extend([1, 2, 3, 4]);
            header.extend([(5 + self.tcp_option_words as u8) << 4, self.tcp_flags]);
            header.extend([0xff, 0xff, 0, 0, 0, 0]);
            header.resize(20 + 4 * self.tcp_option_words, 1);
            16
        };
        let transport_bytes = (header.len() + self.payload.len()) as u32;
        let pseudo =
            [&self.addresses()[..], &transport_bytes.to_be_bytes(), &[0, 0, 0, self.protocol()]];
        header[offset..offset + 2].copy_from_slice(&naive_sum(&pseudo.concat()).to_be_bytes());
        [header, self.payload.clone()].concat()
    }
}

fn extension_bytes((kind, units): &(u8, u8)) -> usize {
    match kind {
        44 => 8,
        51 => 4 * (usize::from(*units) + 2),
        _ => 8 * (usize::from(*units) + 1),
    }
}
