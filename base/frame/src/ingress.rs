//! Admission: validation of frames from outside the switch.

use thiserror::Error;

use crate::ethernet::{ADDRESSES_BYTES, ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES, ethertype};
use crate::header_error::FrameHeaderError;
use crate::headers::{Headers, Transport};
use crate::ip::Network;
use crate::meta::{Checksum, Gso, GsoKind, Offloads};
use crate::octets::u16_at;
use crate::tcp::TCP_CHECKSUM_AT;
use crate::udp::{UDP_CHECKSUM_AT, is_dhcp};
use crate::{FRAME_BYTES_MAX, Frame, VlanTag, VnetHeader, complete_checksum};

/// Maximum number of segments of a large frame, which bounds the work per frame: 64 KB with the
/// smallest segments Linux sends, 8 bytes.
pub const GSO_SEGMENTS_MAX: usize = 8192;

/// Maximum header length of a large frame in bytes; bounds the work per frame, because each segment
/// repeats the headers.
pub const GSO_HEADER_BYTES_MAX: usize = 512;

/// Maximum start of a partial checksum, so that a tag can still be inserted before it.
const CHECKSUM_START_MAX: u16 = u16::MAX - VLAN_TAG_BYTES as u16;

/// Reason why a frame was not admitted. The frame must be dropped and counted; the text is used in
/// events that name the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IngressError {
    /// Shorter than an Ethernet header, including the tag.
    #[error("the frame has {len} bytes, less than an Ethernet header")]
    TooShort {
        /// Length of the frame in bytes.
        len: usize,
    },
    /// Longer than [`FRAME_BYTES_MAX`].
    #[error("the frame has {len} bytes, more than {FRAME_BYTES_MAX}")]
    TooLong {
        /// Length of the frame in bytes.
        len: usize,
    },
    /// A header that the requested offload concerns is invalid.
    #[error("{0}")]
    Headers(#[from] FrameHeaderError),
    /// The sender requests an offload that was not negotiated.
    #[error("{field} {value:#x} requests an offload that was not negotiated")]
    OffloadNotNegotiated {
        /// Field of the virtio-net header.
        field: &'static str,
        /// Value of the field, as received.
        value: u8,
    },
    /// The value of `gso_type` is undefined.
    #[error("gso_type {value:#x} is not defined by virtio")]
    GsoType {
        /// Value of `gso_type`.
        value: u8,
    },
    /// Large frame without a partial checksum.
    #[error("gso_type {gso_type:#x} without NEEDS_CSUM in flags")]
    GsoWithoutChecksum {
        /// Value of `gso_type`.
        gso_type: u8,
    },
    /// `gso_size` is zero or results in more than [`GSO_SEGMENTS_MAX`] segments.
    #[error("gso_size {gso_size} is invalid for {payload_bytes} bytes of payload")]
    GsoSize {
        /// Value of `gso_size`.
        gso_size: u16,
        /// Length of the payload to segment, in bytes.
        payload_bytes: usize,
    },
    /// The headers do not match `gso_type`, or the packet is a fragment.
    #[error("gso_type {gso_type:#x} does not match the headers of the frame: {headers:?}")]
    GsoHeaders {
        /// Value of `gso_type`.
        gso_type: u8,
        /// Headers found in the frame.
        headers: Headers,
    },
    /// The headers of a large frame exceed [`GSO_HEADER_BYTES_MAX`], or the packet exceeds the
    /// length limit of IP.
    #[error("a large frame has {len} bytes, of which {header_bytes} bytes are headers")]
    GsoLength {
        /// Length of the frame in bytes.
        len: usize,
        /// Length of the headers in bytes.
        header_bytes: usize,
    },
    /// The checksum field or the start of the sum lies outside the frame.
    #[error("csum_start {csum_start} and csum_offset {csum_offset} exceed a frame of {len} bytes")]
    ChecksumOutside {
        /// Value of `csum_start` from the sender.
        csum_start: u16,
        /// Value of `csum_offset` from the sender.
        csum_offset: u16,
        /// Length of the frame without tag, in bytes.
        len: usize,
    },
    /// The checksum requested is not that of the transport header.
    #[error(
        "csum_start {csum_start} and csum_offset {csum_offset} are not those of the transport \
         checksum (header at {transport_at})"
    )]
    ChecksumPosition {
        /// Value of `csum_start` from the sender.
        csum_start: u16,
        /// Value of `csum_offset` from the sender.
        csum_offset: u16,
        /// Offset of the transport header in the frame without tag.
        transport_at: usize,
    },
    /// Partial checksum on an IP fragment, which lacks a part of the bytes to sum.
    #[error("NEEDS_CSUM on an IP fragment")]
    ChecksumOnFragment,
}

impl Frame {
    /// Admits bytes from outside to the switch: moves an 802.1Q tag from the bytes to the metadata,
    /// validates `header`, and sets [`FrameMeta::checksum`](crate::FrameMeta) and
    /// [`FrameMeta::gso`](crate::FrameMeta) accordingly. Completes partial checksums of DHCP
    /// messages, because clients may read raw frames without this information. Every source calls
    /// it after [`Frame::set_len`]. `allowed`: offloads that the sender may request.
    ///
    /// A tag already in the metadata (packet sockets deliver it separately) is kept and the bytes
    /// are unchanged. Offsets in `header` count from the first byte delivered in both cases.
    ///
    /// `hdr_len` and `num_buffers` are ignored. A large frame that fits into one segment becomes a
    /// normal one.
    ///
    /// A tail is kept for frames announced as large: their headers must lie before it, or the frame
    /// is rejected. For other frames the tail is linearized.
    ///
    /// # Errors
    /// Fails if the frame or the header is malformed; the frame must be dropped.
    #[inline]
    pub fn validate_ingress(
        &mut self,
        header: &VnetHeader,
        allowed: Offloads,
    ) -> Result<(), IngressError> {
        if header.gso_type == VnetHeader::GSO_NONE {
            self.linearize();
        }
        let popped_bytes = self.admit_bytes()?;
        if header.flags == 0 && header.gso_type == VnetHeader::GSO_NONE {
            return Ok(());
        }
        self.admit_header(header, allowed, popped_bytes)
    }

    /// Admits a frame from a source without virtio-net headers, as [`Frame::validate_ingress`].
    ///
    /// # Errors
    /// Fails if the frame is too short or too long.
    #[inline]
    pub fn validate_ingress_plain(&mut self) -> Result<(), IngressError> {
        self.linearize();
        self.admit_bytes().map(|_| ())
    }

    /// Checks the length and removes the tag; returns the number of bytes removed from the front.
    #[inline]
    fn admit_bytes(&mut self) -> Result<u16, IngressError> {
        let len = self.len();
        if len > FRAME_BYTES_MAX {
            return Err(IngressError::TooLong { len });
        }
        if len < ETHERNET_HEADER_BYTES {
            return Err(IngressError::TooShort { len });
        }
        self.meta.checksum = Checksum::Unknown;
        self.meta.gso = None;
        if self.ethertype() == ethertype::VLAN && self.meta.tag.is_none() {
            return self.pop_tag();
        }
        Ok(0)
    }

    fn pop_tag(&mut self) -> Result<u16, IngressError> {
        let len = self.len();
        let tci = u16_at(self.head(), ADDRESSES_BYTES + 2);
        let Some(tci) = tci.filter(|_| len >= ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES) else {
            return Err(IngressError::TooShort { len });
        };
        self.head_mut().copy_within(..ADDRESSES_BYTES, VLAN_TAG_BYTES);
        self.drop_front(VLAN_TAG_BYTES);
        self.meta.tag = Some(VlanTag::from_tci(tci));
        Ok(VLAN_TAG_BYTES as u16)
    }

    fn admit_header(
        &mut self,
        header: &VnetHeader,
        allowed: Offloads,
        popped_bytes: u16,
    ) -> Result<(), IngressError> {
        if header.flags & VnetHeader::NEEDS_CSUM == 0 {
            if header.gso_type != VnetHeader::GSO_NONE {
                return Err(IngressError::GsoWithoutChecksum { gso_type: header.gso_type });
            }
            if header.flags & VnetHeader::DATA_VALID != 0 {
                self.meta.checksum = Checksum::Verified;
            }
            return Ok(());
        }
        if !allowed.checksum {
            return Err(IngressError::OffloadNotNegotiated { field: "flags", value: header.flags });
        }
        let start = self.checksum_start(header, popped_bytes)?;
        let headers = Headers::parse(self.head())?;
        if header.gso_type == VnetHeader::GSO_NONE {
            check_checksum_position(header, start, &headers)?;
        } else {
            self.meta.gso = admit_gso(header, allowed, start, &headers, self.len())?;
        }
        self.meta.checksum = Checksum::Partial { start, offset: header.csum_offset };
        let is_udp = headers.transport == Transport::Udp && headers.transport_at == start.into();
        if is_udp && self.meta.gso.is_none() && is_dhcp(self.head(), headers.transport_at) {
            complete_checksum(self);
        }
        Ok(())
    }

    /// Returns the start of the sum in the frame without tag. Fails unless start and checksum field
    /// lie within the frame after the Ethernet header.
    fn checksum_start(&self, header: &VnetHeader, popped_bytes: u16) -> Result<u16, IngressError> {
        let VnetHeader { csum_start, csum_offset, .. } = *header;
        let is_inside = |start: &u16| {
            let start_at = usize::from(*start);
            start_at >= ETHERNET_HEADER_BYTES
                && *start <= CHECKSUM_START_MAX
                && start_at + usize::from(csum_offset) + 2 <= self.len()
        };
        csum_start
            .checked_sub(popped_bytes)
            .filter(is_inside)
            .ok_or(IngressError::ChecksumOutside { csum_start, csum_offset, len: self.len() })
    }
}

/// Checks that a partial checksum of a frame that is not large is plausible: the field of the TCP
/// or UDP header, one within a UDP payload (inner checksum of a tunnel), or one after the headers
/// known here.
fn check_checksum_position(
    header: &VnetHeader,
    start: u16,
    headers: &Headers,
) -> Result<(), IngressError> {
    if headers.fragment.is_some() {
        return Err(IngressError::ChecksumOnFragment);
    }
    let start = usize::from(start);
    let offset = usize::from(header.csum_offset);
    let is_meant = match headers.transport {
        Transport::Tcp => start == headers.transport_at && offset == TCP_CHECKSUM_AT,
        Transport::Udp => {
            (start == headers.transport_at && offset == UDP_CHECKSUM_AT)
                || start >= headers.payload_at
        }
        Transport::Other(_) | Transport::None => start >= headers.transport_at,
    };
    if is_meant { Ok(()) } else { Err(misplaced(header, headers)) }
}

fn misplaced(header: &VnetHeader, headers: &Headers) -> IngressError {
    IngressError::ChecksumPosition {
        csum_start: header.csum_start,
        csum_offset: header.csum_offset,
        transport_at: headers.transport_at,
    }
}

/// Validates the header fields of a large frame; returns `None` if it fits into one segment.
fn admit_gso(
    header: &VnetHeader,
    allowed: Offloads,
    start: u16,
    headers: &Headers,
    len: usize,
) -> Result<Option<Gso>, IngressError> {
    let gso = requested_gso(header)?;
    if !allowed.accepts(gso) {
        return Err(IngressError::OffloadNotNegotiated {
            field: "gso_type",
            value: header.gso_type,
        });
    }
    let (has_headers, checksum_at) = match gso.kind {
        GsoKind::Tcp4 => (has_protocols(headers, Network::Ipv4, Transport::Tcp), TCP_CHECKSUM_AT),
        GsoKind::Tcp6 => (has_protocols(headers, Network::Ipv6, Transport::Tcp), TCP_CHECKSUM_AT),
        GsoKind::Udp => (headers.transport == Transport::Udp, UDP_CHECKSUM_AT),
    };
    if !has_headers || headers.fragment.is_some() {
        return Err(IngressError::GsoHeaders { gso_type: header.gso_type, headers: *headers });
    }
    if usize::from(start) != headers.transport_at || usize::from(header.csum_offset) != checksum_at
    {
        return Err(misplaced(header, headers));
    }
    // IPv6 lengths exclude the fixed header, so the packet may be longer than with IPv4.
    let counted_from = match headers.network {
        Network::Ipv6 => headers.network_at + crate::ip::IPV6_HEADER_BYTES,
        _ => headers.network_at,
    };
    let header_bytes = headers.payload_at;
    if header_bytes > GSO_HEADER_BYTES_MAX || len - counted_from > usize::from(u16::MAX) {
        return Err(IngressError::GsoLength { len, header_bytes });
    }
    let payload_bytes = len - header_bytes;
    if gso.segment_bytes == 0
        || payload_bytes.div_ceil(usize::from(gso.segment_bytes)) > GSO_SEGMENTS_MAX
    {
        return Err(IngressError::GsoSize { gso_size: gso.segment_bytes, payload_bytes });
    }
    Ok((payload_bytes > usize::from(gso.segment_bytes)).then_some(gso))
}

fn has_protocols(headers: &Headers, network: Network, transport: Transport) -> bool {
    headers.network == network && headers.transport == transport
}

/// Decodes `gso_type` and `gso_size`. Fails if the type is undefined.
fn requested_gso(header: &VnetHeader) -> Result<Gso, IngressError> {
    let ecn = header.gso_type & VnetHeader::GSO_ECN != 0;
    let kind = match header.gso_type & !VnetHeader::GSO_ECN {
        VnetHeader::GSO_TCPV4 => GsoKind::Tcp4,
        VnetHeader::GSO_TCPV6 => GsoKind::Tcp6,
        VnetHeader::GSO_UDP_L4 if !ecn => GsoKind::Udp,
        VnetHeader::GSO_UDP => {
            return Err(IngressError::OffloadNotNegotiated {
                field: "gso_type",
                value: header.gso_type,
            });
        }
        _ => return Err(IngressError::GsoType { value: header.gso_type }),
    };
    Ok(Gso { kind, segment_bytes: header.gso_size, ecn })
}

#[cfg(test)]
mod tests;
