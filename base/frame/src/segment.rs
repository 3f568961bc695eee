//! Segmentation of large frames in software: TCP (TSO) and UDP (USO), IPv4 and
//! IPv6, so that the result is what Linux' own engine makes of the same frame.
//!
//! Every segment repeats the headers, with these changes:
//! - IPv4: total length, identification counting up by one per segment whether
//!   or not fragmentation is forbidden, header checksum. IPv6: payload length.
//! - TCP: the sequence number; FIN and PSH on the last segment only, CWR on the
//!   first only. UDP: the length.
//! - The checksum of TCP or UDP. Its pseudo-header sum is derived from the one
//!   the sender left in the field, not from the addresses, because with an IPv6
//!   routing header the addresses in sight are not those that are summed.

use thiserror::Error;

use crate::Frame;
use crate::checksum::{Sum, field, ipv4_header_checksum};
use crate::headers::{HeaderError, Headers, Transport};
use crate::ip::{IPV6_HEADER_BYTES, Network};
use crate::meta::{Checksum, GsoKind};
use crate::octets::{put, u8_at, u16_at, u32_at};
use crate::tcp::{TCP_CHECKSUM_AT, TCP_FLAGS_AT, TCP_SEQUENCE_AT, tcp_flags};
use crate::udp::{UDP_CHECKSUM_AT, UDP_LENGTH_AT};

/// Why a frame cannot be segmented. None of this happens to frames that
/// [`Frame::admit`] let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// The frame is not a large one.
    #[error("the frame has no segment size: it is not a large frame")]
    NotLarge,
    /// The metadata announce other headers than the frame has.
    #[error("the frame is not what its metadata call it: {headers:?}")]
    Headers {
        /// What the frame holds.
        headers: Headers,
    },
    /// A header cannot be read.
    #[error("{0}")]
    Malformed(#[from] HeaderError),
}

/// Cuts the large frame `frame` into segments, one at a time, in `scratch`.
///
/// With `partial_checksum`, segments carry a partial transport checksum, for an
/// egress that completes it; otherwise a full one. The tag in the metadata stays
/// on every segment.
///
/// # Errors
/// The metadata are not true of the frame.
pub fn segment<'a>(
    frame: &'a Frame,
    scratch: &'a mut Frame,
    partial_checksum: bool,
) -> Result<Segments<'a>, SegmentError> {
    let bytes = frame.bytes();
    let gso = frame.meta.gso.filter(|gso| gso.segment_bytes > 0).ok_or(SegmentError::NotLarge)?;
    let headers = Headers::parse(bytes)?;
    let is_of_kind = match gso.kind {
        GsoKind::Tcp4 => (headers.network, headers.transport) == (Network::Ipv4, Transport::Tcp),
        GsoKind::Tcp6 => (headers.network, headers.transport) == (Network::Ipv6, Transport::Tcp),
        GsoKind::Udp => headers.transport == Transport::Udp,
    };
    let (front, payload) = bytes.split_at_checked(headers.payload_at).unwrap_or((bytes, &[]));
    if !is_of_kind || payload.is_empty() {
        return Err(SegmentError::Headers { headers });
    }
    let (checksum_at, offset) = match gso.kind {
        GsoKind::Udp => (headers.transport_at + UDP_CHECKSUM_AT, UDP_CHECKSUM_AT),
        _ => (headers.transport_at + TCP_CHECKSUM_AT, TCP_CHECKSUM_AT),
    };
    scratch.fill(front);
    scratch.meta = frame.meta;
    scratch.meta.gso = None;
    scratch.meta.checksum = if partial_checksum {
        Checksum::Partial { start: headers.transport_at as u16, offset: offset as u16 }
    } else {
        Checksum::Verified
    };
    // Without its own length the pseudo-header's sum is the same for each segment.
    let transport_bytes = bytes.len() - headers.transport_at;
    let pseudo = Sum::of_word(field(bytes, checksum_at)).minus(transport_bytes as u16);
    Ok(Segments {
        scratch,
        rest: payload,
        segment_bytes: usize::from(gso.segment_bytes),
        headers,
        checksum_at,
        partial_checksum,
        pseudo,
        is_first: true,
        identification: u16_at(front, headers.network_at + 4).unwrap_or_default(),
        sequence: u32_at(front, headers.transport_at + TCP_SEQUENCE_AT).unwrap_or_default(),
        tcp_flags: u8_at(front, headers.transport_at + TCP_FLAGS_AT).unwrap_or_default(),
    })
}

/// The segments of one large frame; see [`segment`].
#[derive(Debug)]
pub struct Segments<'a> {
    scratch: &'a mut Frame,
    rest: &'a [u8],
    segment_bytes: usize,
    headers: Headers,
    checksum_at: usize,
    partial_checksum: bool,
    pseudo: Sum,
    is_first: bool,
    identification: u16,
    sequence: u32,
    tcp_flags: u8,
}

impl Segments<'_> {
    /// How many segments are still to come.
    pub fn remaining(&self) -> usize {
        self.rest.len().div_ceil(self.segment_bytes)
    }

    /// The next segment; `None` after the last.
    pub fn next_segment(&mut self) -> Option<&Frame> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.rest.len().min(self.segment_bytes);
        let (payload, rest) = self.rest.split_at_checked(taken)?;
        self.rest = rest;
        let len = self.headers.payload_at + taken;
        self.scratch.set_len(len);
        put(self.scratch.bytes_mut(), self.headers.payload_at, payload);
        self.write_network(len);
        self.write_transport(len);
        self.write_checksum(len, payload);
        self.is_first = false;
        self.identification = self.identification.wrapping_add(1);
        self.sequence = self.sequence.wrapping_add(taken as u32);
        Some(self.scratch)
    }

    fn write_network(&mut self, len: usize) {
        let Headers { network, network_at: at, .. } = self.headers;
        let bytes = self.scratch.bytes_mut();
        match network {
            Network::Ipv4 => {
                put(bytes, at + 2, &length(len - at));
                put(bytes, at + 4, &self.identification.to_be_bytes());
                put(bytes, at + 10, &[0, 0]);
                let header_bytes = usize::from(u8_at(bytes, at).unwrap_or_default() & 0x0f) * 4;
                let header = bytes.get(at..at + header_bytes).unwrap_or_default();
                let checksum = ipv4_header_checksum(header);
                put(bytes, at + 10, &checksum.to_be_bytes());
            }
            Network::Ipv6 => {
                put(bytes, at + 4, &length(len - at - IPV6_HEADER_BYTES));
            }
            Network::Other => {}
        }
    }

    fn write_transport(&mut self, len: usize) {
        let Headers { transport, transport_at: at, .. } = self.headers;
        let bytes = self.scratch.bytes_mut();
        if transport == Transport::Udp {
            put(bytes, at + UDP_LENGTH_AT, &length(len - at));
            return;
        }
        let mut flags = self.tcp_flags;
        if !self.rest.is_empty() {
            flags &= !(tcp_flags::FIN | tcp_flags::PSH);
        }
        if !self.is_first {
            flags &= !tcp_flags::CWR;
        }
        put(bytes, at + TCP_SEQUENCE_AT, &self.sequence.to_be_bytes());
        put(bytes, at + TCP_FLAGS_AT, &[flags]);
    }

    fn write_checksum(&mut self, len: usize, payload: &[u8]) {
        let Headers { transport, transport_at, payload_at, .. } = self.headers;
        let pseudo = self.pseudo.plus((len - transport_at) as u16);
        let bytes = self.scratch.bytes_mut();
        // The field takes part in the sum with the pseudo-header's.
        put(bytes, self.checksum_at, &pseudo.word().to_be_bytes());
        if self.partial_checksum {
            return;
        }
        let header = Sum::of(bytes.get(transport_at..payload_at).unwrap_or_default());
        let sum = header.then(Sum::of(payload));
        let checksum = match transport {
            Transport::Udp => sum.checksum_nonzero(),
            _ => sum.checksum(),
        };
        put(bytes, self.checksum_at, &checksum.to_be_bytes());
    }
}

/// A length that IP can state. [`Frame::admit`] lets no longer packet in.
fn length(bytes: usize) -> [u8; 2] {
    (bytes as u16).to_be_bytes()
}

#[cfg(test)]
mod tests;
