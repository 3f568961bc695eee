//! Classification of frames and header fields of TCP segments, for coalescing.

use crate::Frame;
use crate::checksum::{Sum, checksum_field};
use crate::headers::{Headers, Transport};
use crate::ip::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Network};
use crate::meta::{Checksum, EgressForm, Gso, GsoKind};
use crate::octets::{array_at, u8_at, u16_at, u32_at};
use crate::protocol;
use crate::tcp::{TCP_CHECKSUM_AT, TCP_FLAGS_AT, TCP_SEQUENCE_AT, tcp_flags};

/// Don't-fragment bit in IPv4's flags and offset word.
const FORBIDS_FRAGMENTS: u16 = 0x4000;
/// Control bits that exclude a segment from merging.
const UNMERGEABLE_FLAGS: u8 = tcp_flags::SYN | tcp_flags::RST | tcp_flags::URG;

/// Classification of a frame for coalescing.
pub(super) enum SegmentClass {
    /// Not TCP: belongs to no coalesced flow.
    NotTcp,
    /// Fragment, or frame with inconsistent headers: may belong to any flow.
    Unclassifiable,
    /// TCP segment that must not be merged, but ends the merge group of its flow.
    NotMergeable(SegmentView),
    /// One or more segments with payload, mergeable if the checksum is correct.
    Data(SegmentView),
}

/// Positions and values of the fields of a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentView {
    pub(super) is_ipv6: bool,
    pub(super) network_at: usize,
    pub(super) transport_at: usize,
    pub(super) payload_at: usize,
    pub(super) payload_bytes: usize,
    /// Payload of one segment in bytes. For a large frame, the last of its segments may be shorter.
    pub(super) segment_bytes: u16,
    pub(super) gso: Option<Gso>,
    pub(super) sequence: u32,
    pub(super) flags: u8,
    /// IPv4 identification; 0 for IPv6.
    pub(super) identification: u16,
    pub(super) forbids_fragments: bool,
    /// True if several segments have the same IPv4 identification, false if they are consecutive;
    /// `None` if the frame is a single segment.
    pub(super) has_fixed_identification: Option<bool>,
    /// Sum of the pseudo-header without the length field.
    pub(super) pseudo_header_sum: Sum,
}

/// Parses the headers of a frame and classifies it for coalescing.
pub(super) fn classify(frame: &Frame) -> SegmentClass {
    let Ok(headers) = Headers::parse(frame.head()) else { return SegmentClass::Unclassifiable };
    if headers.fragment.is_some() {
        return SegmentClass::Unclassifiable;
    }
    if headers.transport != Transport::Tcp {
        return SegmentClass::NotTcp;
    }
    let view = SegmentView::new(frame, &headers);
    if view.is_joinable(frame) {
        SegmentClass::Data(view)
    } else {
        SegmentClass::NotMergeable(view)
    }
}

impl SegmentView {
    fn new(frame: &Frame, headers: &Headers) -> Self {
        let bytes = frame.head();
        let Headers { network_at, transport_at, payload_at, .. } = *headers;
        let is_ipv6 = headers.network == Network::Ipv6;
        let identification = if is_ipv6 { 0 } else { checksum_field(bytes, network_at + 4) };
        let payload_bytes = frame.len() - payload_at;
        let gso = frame.meta.gso;
        let segment_bytes = gso.map_or(payload_bytes, |gso| usize::from(gso.segment_bytes));
        Self {
            is_ipv6,
            network_at,
            transport_at,
            payload_at,
            payload_bytes,
            // Segments with longer payload are not merged.
            segment_bytes: u16::try_from(segment_bytes).unwrap_or(0),
            gso,
            sequence: u32_at(bytes, transport_at + TCP_SEQUENCE_AT).unwrap_or_default(),
            flags: u8_at(bytes, transport_at + TCP_FLAGS_AT).unwrap_or_default(),
            identification,
            forbids_fragments: !is_ipv6
                && checksum_field(bytes, network_at + 6) & FORBIDS_FRAGMENTS != 0,
            has_fixed_identification: gso.map(|_| frame.meta.has_fixed_identification),
            pseudo_header_sum: pseudo(bytes, network_at, is_ipv6),
        }
    }

    /// Returns true if segmentation of a large frame could produce this segment, provided that its
    /// checksum is correct.
    fn is_joinable(&self, frame: &Frame) -> bool {
        // Merged frames leave as large frames with a partial checksum.
        frame.meta.egress_form == EgressForm::Any
            && self.segment_bytes > 0
            && self.payload_bytes > 0
            && self.flags & UNMERGEABLE_FLAGS == 0
            && self.flags & tcp_flags::ACK != 0
            && self.gso.is_none_or(|gso| gso.kind == self.kind())
            && self.is_network_plain(frame)
    }

    /// Returns true for a network header without options or extensions, with consistent lengths and
    /// a correct header checksum.
    fn is_network_plain(&self, frame: &Frame) -> bool {
        let bytes = frame.head();
        let offset = self.network_at;
        let stated = frame.len() - self.ip_length_base();
        if self.is_ipv6 {
            return self.transport_at == offset + IPV6_HEADER_BYTES
                && u16_at(bytes, offset + 4).map(usize::from) == Some(stated);
        }
        self.transport_at == offset + IPV4_HEADER_BYTES
            && u16_at(bytes, offset + 2).map(usize::from) == Some(stated)
            && Sum::from_bytes(bytes.get(offset..self.transport_at).unwrap_or_default()).word() == 0xffff
            // 0xffff, the alternative form of zero, which a computed checksum never has.
            && checksum_field(bytes, offset + 10) != 0xffff
    }

    /// Returns true if the transport checksum of `frame` is correct: known to be, or verified here.
    pub(super) fn has_correct_checksum(&self, frame: &Frame) -> bool {
        let bytes = frame.bytes();
        let stored = checksum_field(bytes, self.transport_at + TCP_CHECKSUM_AT);
        let transport = bytes.get(self.transport_at..).unwrap_or_default();
        let pseudo = self.pseudo_header_sum.add_word(transport.len() as u16);
        match frame.meta.checksum {
            Checksum::Partial { start, offset } => {
                usize::from(start) == self.transport_at
                    && usize::from(offset) == TCP_CHECKSUM_AT
                    && stored == pseudo.word()
            }
            Checksum::Verified => stored != 0xffff,
            Checksum::Unknown => {
                stored != 0xffff && pseudo.concat(Sum::from_bytes(transport)).word() == 0xffff
            }
        }
    }

    /// Returns the offset from which the length field of the IP header counts: the start of an IPv4
    /// header, or the end of an IPv6 header.
    pub(super) fn ip_length_base(&self) -> usize {
        if self.is_ipv6 { self.network_at + IPV6_HEADER_BYTES } else { self.network_at }
    }

    pub(super) fn kind(&self) -> GsoKind {
        if self.is_ipv6 { GsoKind::Tcp6 } else { GsoKind::Tcp4 }
    }

    /// Returns the number of segments of the frame; at most the number that
    /// [`Frame::validate_ingress`] permits.
    pub(super) fn segment_count(&self) -> u16 {
        let count = self.payload_bytes.div_ceil(usize::from(self.segment_bytes.max(1)));
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// Returns true if addresses and ports equal those of `other` in `frame_of_other`.
    pub(super) fn is_same_flow(&self, frame: &Frame, other: &Self, frame_of_other: &Frame) -> bool {
        let (bytes, other_bytes) = (frame.head(), frame_of_other.head());
        let are_equal = |from: usize, other_from: usize, len: usize| {
            bytes.get(from..from + len) == other_bytes.get(other_from..other_from + len)
        };
        let (offset, other_at) = (self.network_at, other.network_at);
        self.is_ipv6 == other.is_ipv6
            && are_equal(self.transport_at, other.transport_at, 4)
            && match self.is_ipv6 {
                true => are_equal(offset + 8, other_at + 8, 32),
                false => are_equal(offset + 12, other_at + 12, 8),
            }
    }

    /// Returns true if the headers equal those of `first` in the frame `head`, except for fields
    /// that differ between segments. The caller has compared addresses and ports already.
    pub(super) fn has_same_headers(&self, frame: &Frame, first: &Self, head: &Frame) -> bool {
        let (bytes, other_bytes) = (frame.head(), head.head());
        let are_equal = |from: usize, to: usize| bytes.get(from..to) == other_bytes.get(from..to);
        let (network, tcp) = (self.network_at, self.transport_at);
        let but_last_and_first = tcp_flags::CWR | tcp_flags::FIN | tcp_flags::PSH;
        (network, tcp, self.payload_at) == (first.network_at, first.transport_at, first.payload_at)
            && frame.meta.tag == head.meta.tag
            && are_equal(0, network)
            && match self.is_ipv6 {
                // Traffic class and flow label; next header and hop limit.
                true => are_equal(network, network + 4) && are_equal(network + 6, network + 8),
                // Type of service; don't-fragment; time to live and protocol.
                false => {
                    are_equal(network + 1, network + 2) && are_equal(network + 6, network + 10)
                }
            }
            // Acknowledgement, header length; window; urgent pointer, options.
            && are_equal(tcp + 8, tcp + TCP_FLAGS_AT)
            && (self.flags ^ first.flags) & !but_last_and_first == 0
            && are_equal(tcp + TCP_FLAGS_AT + 1, tcp + TCP_CHECKSUM_AT)
            && are_equal(tcp + TCP_CHECKSUM_AT + 2, self.payload_at)
    }
}

fn pseudo(bytes: &[u8], network_at: usize, is_ipv6: bool) -> Sum {
    let addresses = if is_ipv6 {
        array_at::<32>(bytes, network_at + 8).map(|addresses| Sum::from_bytes(addresses))
    } else {
        array_at::<8>(bytes, network_at + 12).map(|addresses| Sum::from_bytes(addresses))
    };
    addresses.unwrap_or_default().add_word(u16::from(protocol::TCP))
}
