//! Software segmentation of large frames: TCP (TSO) and UDP (USO) over IPv4 and IPv6, with the same
//! result as Linux' implementation.
//!
//! Every segment repeats the headers, with these changes:
//! - IPv4: total length, identification, header checksum. The identification is incremented per
//!   segment, whether or not fragmentation is forbidden, unless the frame was coalesced from
//!   segments with equal identifications. IPv6: payload length.
//! - TCP: sequence number; FIN and PSH on the last segment only, CWR on the first only. UDP:
//!   length.
//! - The TCP or UDP checksum. Its pseudo-header sum is derived from the sender's partial checksum
//!   instead of the addresses, because with an IPv6 routing header the visible addresses differ
//!   from the summed ones.
//!
//! Payload is not copied: a segment is a window of the large frame, with its headers written over
//! the end of the previous segment, which has been sent by then. The overwritten bytes are restored
//! before the next segment and at the end, so that the large frame is intact for the next egress.

use thiserror::Error;

use crate::checksum::{Sum, checksum_field};
use crate::header_error::FrameHeaderError;
use crate::headers::{Headers, Transport};
use crate::ip::{IPV6_HEADER_BYTES, Network};
use crate::meta::{Checksum, FrameMeta, Gso, GsoKind};
use crate::octets::{put, u8_at, u16_at, u32_at};
use crate::tcp::{TCP_CHECKSUM_AT, TCP_FLAGS_AT, TCP_SEQUENCE_AT, tcp_flags};
use crate::udp::{UDP_CHECKSUM_AT, UDP_LENGTH_AT};
use crate::{Frame, GSO_HEADER_BYTES_MAX};

/// Reason why a frame cannot be segmented. Does not occur for frames admitted by
/// [`Frame::validate_ingress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// The frame is not a large frame.
    #[error("the frame has no segment size, so it is not a large frame")]
    NotLarge,
    /// The metadata do not match the headers, or the headers exceed [`GSO_HEADER_BYTES_MAX`].
    #[error("the headers of the frame do not match its metadata: {headers:?}")]
    Headers {
        /// Headers found in the frame.
        headers: Headers,
    },
    /// A header of the frame is invalid.
    #[error("{0}")]
    Malformed(#[from] FrameHeaderError),
}

/// Segments the large frame `frame` within its own buffer, one segment at a time. Dropping the
/// [`Segments`] restores `frame`.
///
/// With `partial_checksum`, segments carry a partial transport checksum, for an egress that
/// completes it; otherwise a complete one. Each segment has the tag of the metadata.
///
/// # Errors
/// Fails if the metadata are inconsistent with the frame.
pub fn segment(frame: &mut Frame, partial_checksum: bool) -> Result<Segments<'_>, SegmentError> {
    frame.linearize();
    let bytes = frame.bytes();
    let gso = frame.meta.gso.filter(|gso| gso.segment_bytes > 0).ok_or(SegmentError::NotLarge)?;
    let headers = Headers::parse(bytes)?;
    let is_of_kind = match gso.kind {
        GsoKind::Tcp4 => (headers.network, headers.transport) == (Network::Ipv4, Transport::Tcp),
        GsoKind::Tcp6 => (headers.network, headers.transport) == (Network::Ipv6, Transport::Tcp),
        GsoKind::Udp => headers.transport == Transport::Udp,
    };
    let header_bytes = headers.payload_at;
    let mut front = [0; GSO_HEADER_BYTES_MAX];
    let (Some(target), Some(header)) = (front.get_mut(..header_bytes), bytes.get(..header_bytes))
    else {
        return Err(SegmentError::Headers { headers });
    };
    target.copy_from_slice(header);
    if !is_of_kind || bytes.len() == header_bytes {
        return Err(SegmentError::Headers { headers });
    }
    let sums = Sums::of(&front, &headers, bytes.len());
    let meta = frame.meta;
    let window = (frame.start_offset(), frame.len());
    let segments = Segments {
        large_frame: window,
        meta,
        frame,
        gso,
        headers,
        sums,
        partial_checksum,
        sent_bytes: 0,
        identification: u16_at(&front, headers.network_at + 4).unwrap_or_default(),
        sequence: u32_at(&front, headers.transport_at + TCP_SEQUENCE_AT).unwrap_or_default(),
        tcp_flags: u8_at(&front, headers.transport_at + TCP_FLAGS_AT).unwrap_or_default(),
        front,
        overwritten: [0; GSO_HEADER_BYTES_MAX],
        is_covering: false,
    };
    segments.frame.meta = segments.segment_meta();
    Ok(segments)
}

/// Sums of the parts that are equal in every segment.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// IPv4 header without total length, identification and checksum.
    network: Sum,
    /// Sum of the pseudo-header without the length.
    pseudo: Sum,
    /// Pseudo-header and transport header without the fields that change.
    transport: Sum,
}

impl Sums {
    fn of(front: &[u8], headers: &Headers, frame_bytes: usize) -> Self {
        let Headers { network_at, transport_at, payload_at, .. } = *headers;
        let sum_between = |from, to| Sum::from_bytes(front.get(from..to).unwrap_or_default());
        let network = match headers.network {
            Network::Ipv4 => {
                let header_bytes = usize::from(u8_at(front, network_at).unwrap_or_default() & 15);
                sum_between(network_at, network_at + header_bytes * 4)
                    .sub_word(checksum_field(front, network_at + 2))
                    .sub_word(checksum_field(front, network_at + 4))
                    .sub_word(checksum_field(front, network_at + 10))
            }
            _ => Sum::ZERO,
        };
        let checksum_at = transport_at + checksum_offset(headers);
        // Without the length, the sum of the pseudo-header is the same for each segment. IP limits
        // the packet length, so the cast does not truncate.
        let length = (frame_bytes - transport_at) as u16;
        let pseudo = Sum::from_word(checksum_field(front, checksum_at)).sub_word(length);
        let fixed =
            sum_between(transport_at, payload_at).sub_word(checksum_field(front, checksum_at));
        let fixed = match headers.transport {
            Transport::Udp => fixed.sub_word(checksum_field(front, transport_at + UDP_LENGTH_AT)),
            _ => fixed
                .sub_word(checksum_field(front, transport_at + TCP_SEQUENCE_AT))
                .sub_word(checksum_field(front, transport_at + TCP_SEQUENCE_AT + 2))
                .sub_word(checksum_field(front, transport_at + TCP_FLAGS_AT - 1)),
        };
        Self { network, pseudo, transport: pseudo.concat(fixed) }
    }
}

/// Segments of one large frame, created by [`segment`].
#[derive(Debug)]
pub struct Segments<'a> {
    frame: &'a mut Frame,
    /// Position and length of the large frame in its buffer.
    large_frame: (usize, usize),
    /// Metadata of the large frame.
    meta: FrameMeta,
    gso: Gso,
    headers: Headers,
    sums: Sums,
    partial_checksum: bool,
    sent_bytes: usize,
    identification: u16,
    sequence: u32,
    tcp_flags: u8,
    /// Headers of the current segment.
    front: [u8; GSO_HEADER_BYTES_MAX],
    /// Bytes of the large frame overwritten by the current segment's headers.
    overwritten: [u8; GSO_HEADER_BYTES_MAX],
    is_covering: bool,
}

impl Segments<'_> {
    /// Returns the number of remaining segments.
    pub fn remaining(&self) -> usize {
        self.payload_remaining().div_ceil(usize::from(self.gso.segment_bytes))
    }

    /// Returns the next segment; `None` after the last.
    pub fn next_segment(&mut self) -> Option<&Frame> {
        self.next_segment_timed(|| ())
    }

    /// Returns the next segment. `on_headers_built` is called before the transport checksum is
    /// computed, so that both phases can be timed.
    pub fn next_segment_timed(&mut self, on_headers_built: impl FnOnce()) -> Option<&Frame> {
        self.restore();
        let remaining = self.payload_remaining();
        if remaining == 0 {
            return None;
        }
        let payload_bytes = remaining.min(usize::from(self.gso.segment_bytes));
        let len = self.headers.payload_at + payload_bytes;
        self.write_network(len);
        self.write_transport(len, payload_bytes == remaining);
        on_headers_built();
        self.write_checksum(len, payload_bytes);
        self.write_headers(len);
        self.sent_bytes += payload_bytes;
        if !self.meta.has_fixed_identification {
            self.identification = self.identification.wrapping_add(1);
        }
        self.sequence = self.sequence.wrapping_add(payload_bytes as u32);
        Some(self.frame)
    }

    fn payload_remaining(&self) -> usize {
        self.large_frame.1 - self.headers.payload_at - self.sent_bytes
    }

    fn segment_meta(&self) -> FrameMeta {
        let checksum = if self.partial_checksum {
            // Both fit: headers are limited to GSO_HEADER_BYTES_MAX.
            let start = self.headers.transport_at as u16;
            Checksum::Partial { start, offset: checksum_offset(&self.headers) as u16 }
        } else {
            Checksum::Verified
        };
        FrameMeta { gso: None, checksum, has_fixed_identification: false, ..self.meta }
    }

    fn write_network(&mut self, len: usize) {
        let Headers { network, network_at: offset, .. } = self.headers;
        match network {
            Network::Ipv4 => {
                let total = length(len - offset);
                let identification = self.identification;
                put(&mut self.front, offset + 2, &total.to_be_bytes());
                put(&mut self.front, offset + 4, &identification.to_be_bytes());
                let checksum =
                    self.sums.network.add_word(total).add_word(identification).checksum();
                put(&mut self.front, offset + 10, &checksum.to_be_bytes());
            }
            Network::Ipv6 => {
                let payload = length(len - offset - IPV6_HEADER_BYTES);
                put(&mut self.front, offset + 4, &payload.to_be_bytes());
            }
            Network::Other => {}
        }
    }

    fn write_transport(&mut self, len: usize, is_last: bool) {
        let Headers { transport, transport_at: offset, .. } = self.headers;
        if transport == Transport::Udp {
            put(&mut self.front, offset + UDP_LENGTH_AT, &length(len - offset).to_be_bytes());
            return;
        }
        let mut flags = self.tcp_flags;
        if !is_last {
            flags &= !(tcp_flags::FIN | tcp_flags::PSH);
        }
        if self.sent_bytes > 0 {
            flags &= !tcp_flags::CWR;
        }
        put(&mut self.front, offset + TCP_SEQUENCE_AT, &self.sequence.to_be_bytes());
        put(&mut self.front, offset + TCP_FLAGS_AT, &[flags]);
    }

    fn write_checksum(&mut self, len: usize, payload_bytes: usize) {
        let Headers { transport, transport_at: offset, payload_at, .. } = self.headers;
        let transport_bytes = length(len - offset);
        let checksum = if self.partial_checksum {
            self.sums.pseudo.add_word(transport_bytes).word()
        } else {
            let header = self.sums.transport.add_word(transport_bytes);
            let start = payload_at + self.sent_bytes;
            let payload =
                self.frame.window_bytes(self.large_frame).get(start..start + payload_bytes);
            let payload = Sum::from_bytes(payload.unwrap_or_default());
            match transport {
                Transport::Udp => {
                    header.add_word(transport_bytes).concat(payload).checksum_nonzero()
                }
                _ => {
                    let flags_at = offset + TCP_FLAGS_AT - 1;
                    let [high, low] = [self.sequence >> 16, self.sequence].map(|word| word as u16);
                    let header = header
                        .add_word(high)
                        .add_word(low)
                        .add_word(checksum_field(&self.front, flags_at));
                    header.concat(payload).checksum()
                }
            }
        };
        put(&mut self.front, offset + checksum_offset(&self.headers), &checksum.to_be_bytes());
    }

    /// Turns the frame into the current segment: headers directly before its payload.
    fn write_headers(&mut self, len: usize) {
        let header_bytes = self.headers.payload_at;
        self.frame.set_window((self.large_frame.0 + self.sent_bytes, len));
        let target = self.frame.bytes_mut().get_mut(..header_bytes);
        if let (Some(target), Some(front), Some(covered)) =
            (target, self.front.get(..header_bytes), self.overwritten.get_mut(..header_bytes))
        {
            covered.copy_from_slice(target);
            target.copy_from_slice(front);
            self.is_covering = true;
        }
    }

    /// Restores bytes, position and length of the large frame.
    fn restore(&mut self) {
        let header_bytes = self.headers.payload_at;
        if self.is_covering {
            put(
                self.frame.bytes_mut(),
                0,
                self.overwritten.get(..header_bytes).unwrap_or_default(),
            );
            self.is_covering = false;
        }
        self.frame.set_window(self.large_frame);
    }
}

impl Drop for Segments<'_> {
    fn drop(&mut self) {
        self.restore();
        self.frame.meta = self.meta;
    }
}

/// Returns the offset of the checksum field in the transport header.
const fn checksum_offset(headers: &Headers) -> usize {
    match headers.transport {
        Transport::Udp => UDP_CHECKSUM_AT,
        _ => TCP_CHECKSUM_AT,
    }
}

/// Converts a length for an IP header; [`Frame::validate_ingress`] limits packets to that range.
const fn length(bytes: usize) -> u16 {
    bytes as u16
}

#[cfg(test)]
mod tests;
