//! Fuzz oracle of a single untrusted frame (`suimon-frame`).
//!
//! Input: one control byte, twelve bytes of virtio-net header, the frame. Control bits: 0 checksum,
//! 1 TCP/IPv4, 2 TCP/IPv6, 3 ECN, 4 UDP are permitted offloads; 5 creates segments with partial
//! checksums.

use suimon_frame::{
    Checksum, Frame, Gso, GsoKind, Offloads, VNET_HEADER_BYTES, VnetHeader, complete_checksum,
    flow_hash, segment,
};

/// Length of the control byte and virtio-net header before the frame, in bytes.
pub const PREFIX_BYTES: usize = 1 + VNET_HEADER_BYTES;
/// Control byte with all offloads permitted.
pub const ALLOW_ALL: u8 = 0x1f;
/// Control bit that creates segments with partial checksums.
pub const PARTIAL_SEGMENTS: u8 = 0x20;

/// Result of ingress validation of the input's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The frame was rejected.
    Refused,
    /// The frame was admitted without offload metadata.
    Plain,
    /// The frame was admitted with a partial checksum.
    Partial,
    /// The frame was admitted as a large frame of this many segments.
    Large(usize),
}

/// Applies ingress validation, wire format, segmentation and checksum completion to one input.
///
/// # Panics
///
/// A result differs from the oracle's.
pub fn check(input: &[u8]) -> Outcome {
    let Some((prefix, bytes)) = input.split_first_chunk::<PREFIX_BYTES>() else {
        return Outcome::Refused;
    };
    let [control, raw_header @ ..] = *prefix;
    let header = VnetHeader::decode(&raw_header);
    assert_eq!(header.encode(), raw_header);
    let allowed = Offloads {
        checksum: control & 1 != 0,
        tcp4_segmentation: control & 2 != 0,
        tcp6_segmentation: control & 4 != 0,
        tcp_ecn_segmentation: control & 8 != 0,
        udp_segmentation: control & 16 != 0,
    };
    let mut frame = Frame::new(usize::from(control));
    frame.set_bytes(bytes);
    let bytes = frame.bytes().to_vec();
    let is_plain_header = header.flags & 3 == 0 && header.gso_type == 0;
    if frame.validate_ingress(&header, allowed).is_err() {
        let tagged = bytes.len() >= 14 && bytes[12..14] == [0x81, 0];
        let is_long_enough = bytes.len() >= if tagged { 18 } else { 14 };
        assert!(!is_plain_header || !is_long_enough, "a plain frame was refused");
        return Outcome::Refused;
    }
    check_wire(&frame, &header, &bytes);
    check_readmission(&frame, allowed);
    match (frame.meta.gso, frame.meta.checksum) {
        (Some(gso), Checksum::Partial { start, offset }) => {
            assert!(allowed.accepts(gso), "a large frame that was not allowed");
            let checksum_fields = (usize::from(start), usize::from(offset));
            check_segments(&mut frame, gso, checksum_fields, control & PARTIAL_SEGMENTS != 0)
        }
        (Some(_), _) => panic!("a large frame without partial checksum"),
        (None, Checksum::Partial { start, offset }) => {
            assert!(allowed.checksum, "a partial checksum that was not allowed");
            check_completion(&mut frame, usize::from(start), usize::from(offset));
            Outcome::Partial
        }
        (None, _) => Outcome::Plain,
    }
}

/// Checks that the wire format contains the original bytes and an equivalent virtio-net header.
fn check_wire(frame: &Frame, expected: &VnetHeader, bytes: &[u8]) {
    let wire = frame.wire_format();
    let mut actual = wire.before_tag.to_vec();
    actual.extend(wire.tag.iter().flatten());
    actual.extend(wire.after_tag);
    assert_eq!(actual, bytes, "the wire does not show what came in");
    assert_eq!(wire.wire_len(), bytes.len());
    assert_eq!(wire.tag.is_some(), bytes[12..14] == [0x81, 0]);
    if let Checksum::Partial { .. } = frame.meta.checksum {
        assert_eq!(wire.header.flags, VnetHeader::NEEDS_CSUM);
        assert_eq!(wire.header.csum_start, expected.csum_start);
        assert_eq!(wire.header.csum_offset, expected.csum_offset);
    } else {
        assert_eq!(wire.header.csum_start, 0);
    }
    if frame.meta.gso.is_some() {
        assert_eq!(wire.header.gso_type, expected.gso_type);
        assert_eq!(wire.header.gso_size, expected.gso_size);
        let field_end = wire.header.csum_start + wire.header.csum_offset + 2;
        assert!(wire.header.hdr_len >= field_end && usize::from(wire.header.hdr_len) < bytes.len());
    } else {
        assert_eq!((wire.header.gso_type, wire.header.gso_size), (0, 0));
    }
}

/// Checks that a frame in wire format passes ingress validation and remains equal.
fn check_readmission(frame: &Frame, allowed: Offloads) {
    let wire = frame.wire_format();
    let mut readmitted = Frame::new(0);
    let complete = [wire.before_tag, &wire.tag.unwrap_or_default()[..], wire.after_tag].concat();
    let complete = if wire.tag.is_some() { complete } else { wire.before_tag.to_vec() };
    readmitted.set_bytes(&complete);
    readmitted.validate_ingress(&wire.header, allowed).expect("what went out is not admitted");
    assert_eq!(readmitted.bytes(), frame.bytes());
    assert_eq!(readmitted.meta, frame.meta);
}

/// Checks that completion writes the complement of the sum into the checksum field, and changes no
/// other byte.
fn check_completion(frame: &mut Frame, start: usize, offset: usize) {
    let mut expected = frame.bytes().to_vec();
    let checksum = match !naive_sum(&expected[start..]) {
        0 => 0xffff,
        checksum => checksum,
    };
    expected[start + offset..start + offset + 2].copy_from_slice(&checksum.to_be_bytes());
    complete_checksum(frame);
    assert_eq!(frame.bytes(), expected, "completed checksum");
    assert_eq!(frame.meta.checksum, Checksum::Verified);
}

fn check_segments(
    frame: &mut Frame,
    gso: Gso,
    (start, offset): (usize, usize),
    partial: bool,
) -> Outcome {
    let layout = Layout::find(frame.bytes(), gso.kind);
    assert_eq!(layout.transport_at, start, "the checksum starts elsewhere");
    // A sender stores the sum of the pseudo-header in the field; random bytes do not contain it.
    let transport_bytes = frame.len() - start;
    let pseudo = naive_sum(&layout.pseudo_header(frame.bytes(), transport_bytes));
    frame.bytes_mut()[start + offset..start + offset + 2].copy_from_slice(&pseudo.to_be_bytes());

    let original = frame.bytes().to_vec();
    let payload = &original[layout.payload_at..];
    let step = usize::from(gso.segment_bytes);
    assert!(payload.len() > step, "a large frame that fits one segment");
    let hash = flow_hash(frame);
    let meta = frame.meta;
    let mut segments = segment(frame, partial).expect("segmentation");
    let count = payload.len().div_ceil(step);
    assert_eq!(segments.remaining(), count);
    for (index, part) in payload.chunks(step).enumerate() {
        let segment = segments.next_segment().expect("too few segments");
        let expected = layout.expected(&original, index, part, index + 1 == count, step, partial);
        assert_eq!(segment.bytes(), expected, "segment {index} of {count}");
        assert_eq!(segment.meta.tag, meta.tag);
        assert_eq!(segment.meta.gso, None);
        assert_eq!(flow_hash(segment), hash, "segment {index} belongs to another flow");
        let checksum = if partial {
            Checksum::Partial { start: start as u16, offset: offset as u16 }
        } else {
            Checksum::Verified
        };
        assert_eq!(segment.meta.checksum, checksum);
    }
    assert!(segments.next_segment().is_none(), "too many segments");
    drop(segments);
    assert_eq!((frame.bytes(), frame.meta), (&original[..], meta), "the large frame was changed");
    Outcome::Large(count)
}

/// Offsets of the headers of a large frame, parsed straightforwardly.
struct Layout {
    network_at: usize,
    is_ipv6: bool,
    transport_at: usize,
    is_udp: bool,
    payload_at: usize,
}

impl Layout {
    fn find(bytes: &[u8], kind: GsoKind) -> Self {
        let mut network_at = 14;
        while matches!(bytes[network_at - 2..network_at], [0x81, 0x00] | [0x88, 0xa8]) {
            network_at += 4;
        }
        let is_ipv6 = bytes[network_at] >> 4 == 6;
        let is_udp = kind == GsoKind::Udp;
        let mut protocol = bytes[network_at + if is_ipv6 { 6 } else { 9 }];
        let mut transport_at = network_at + 40;
        if !is_ipv6 {
            transport_at = network_at + 4 * usize::from(bytes[network_at] & 15);
        }
        while is_ipv6 && protocol != 6 && protocol != 17 {
            let length = usize::from(bytes[transport_at + 1]);
            let extension_bytes = match protocol {
                44 => 8,
                51 => 4 * (length + 2),
                _ => 8 * (length + 1),
            };
            protocol = bytes[transport_at];
            transport_at += extension_bytes;
        }
        assert_eq!(protocol, if is_udp { 17 } else { 6 });
        assert_eq!(is_ipv6, kind == GsoKind::Tcp6 || (is_udp && is_ipv6));
        let transport_bytes =
            if is_udp { 8 } else { 4 * usize::from(bytes[transport_at + 12] >> 4) };
        let payload_at = transport_at + transport_bytes;
        Self { network_at, is_ipv6, transport_at, is_udp, payload_at }
    }

    fn pseudo_header(&self, bytes: &[u8], transport_bytes: usize) -> Vec<u8> {
        let addresses = match self.is_ipv6 {
            true => &bytes[self.network_at + 8..self.network_at + 40],
            false => &bytes[self.network_at + 12..self.network_at + 20],
        };
        let protocol = if self.is_udp { 17 } else { 6 };
        let length = (transport_bytes as u32).to_be_bytes();
        [addresses, &length, &[0, 0, 0, protocol]].concat()
    }

    /// Returns the expected segment, with each header field computed from its definition.
    fn expected(
        &self,
        original: &[u8],
        index: usize,
        part: &[u8],
        is_last: bool,
        step: usize,
        partial: bool,
    ) -> Vec<u8> {
        let mut bytes = [&original[..self.payload_at], part].concat();
        let (network, transport) = (self.network_at, self.transport_at);
        let len = bytes.len();
        if self.is_ipv6 {
            set(&mut bytes, network + 4, len - network - 40);
        } else {
            set(&mut bytes, network + 2, len - network);
            let id =
                usize::from(u16::from_be_bytes([original[network + 4], original[network + 5]]));
            set(&mut bytes, network + 4, (id + index) % 65536);
            set(&mut bytes, network + 10, 0);
            let header_bytes = 4 * usize::from(bytes[network] & 15);
            let checksum = !naive_sum(&bytes[network..network + header_bytes]);
            set(&mut bytes, network + 10, usize::from(checksum));
        }
        let field = if self.is_udp {
            set(&mut bytes, transport + 4, len - transport);
            transport + 6
        } else {
            let sequence: [u8; 4] = original[transport + 4..transport + 8].try_into().expect("4");
            let sequence = u64::from(u32::from_be_bytes(sequence)) + (index * step) as u64;
            let sequence = (sequence % (1 << 32)) as u32;
            bytes[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                bytes[transport + 13] &= !0x09;
            }
            if index > 0 {
                bytes[transport + 13] &= !0x80;
            }
            transport + 16
        };
        let pseudo = self.pseudo_header(&bytes, len - transport);
        set(&mut bytes, field, 0);
        let value = if partial {
            naive_sum(&pseudo)
        } else {
            match !naive_sum(&[&pseudo, &bytes[transport..]].concat()) {
                0 if self.is_udp => 0xffff,
                checksum => checksum,
            }
        };
        set(&mut bytes, field, usize::from(value));
        bytes
    }
}

fn set(bytes: &mut [u8], offset: usize, value: usize) {
    let value = u16::try_from(value).expect("a 16-bit field");
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

/// Returns the Internet checksum's one's complement sum (RFC 1071): 16-bit words, carries added
/// back, an odd last byte padded with zero.
pub fn naive_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) * 256 + u32::from(word.get(1).copied().unwrap_or(0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    sum as u16
}
