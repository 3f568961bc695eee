//! IPv4 header (RFC 791) and IPv6 header with extensions (RFC 8200).

use crate::ethernet::{ethertype, innermost_type};
use crate::header_error::FrameHeaderError;
use crate::octets::{array_at, u8_at, u16_at};

/// Length of an IPv4 header without options, in bytes.
pub(crate) const IPV4_HEADER_BYTES: usize = 20;
/// Length of an IPv6 header without extensions, in bytes.
pub(crate) const IPV6_HEADER_BYTES: usize = 40;
/// Maximum number of extension headers parsed. RFC 8200, section 4.1 expects each type once, which
/// makes seven.
const EXTENSIONS_MAX: usize = 8;

/// IP protocol numbers (IANA registry).
pub mod protocol {
    /// IGMP (RFC 9776).
    pub const IGMP: u8 = 2;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// IPv6: no next header.
    pub const NONE: u8 = 59;
}

/// Network protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 (EtherType 0x0800).
    Ipv4,
    /// IPv6 (EtherType 0x86dd).
    Ipv6,
    /// Any network protocol other than IP.
    Other,
}

/// Position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// First fragment, with the transport header.
    First,
    /// Later fragment: only payload follows the IP header.
    Later,
}

/// Decoded IP header, including extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    /// Number of the protocol after the header.
    pub(crate) protocol: u8,
    /// Offset of the end of the header, in bytes from the frame's first byte.
    pub(crate) end: usize,
    /// Fragment type; `None` if the packet is not fragmented.
    pub(crate) fragment: Option<Fragment>,
}

/// IP packet in a frame, decoded as far as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpPacket {
    /// IP version; never [`Network::Other`].
    pub(crate) network: Network,
    /// Offset of the packet, in bytes from the frame's first byte.
    pub(crate) offset: usize,
    /// Decoded header; `None` if options or extensions are invalid.
    pub(crate) header: Option<IpHeader>,
}

/// Locates the IP packet in an Ethernet frame; `None` if there is none with complete addresses.
/// Unlike [`Headers::parse`](crate::Headers::parse), ignores the transport header, so that the
/// fragments of a datagram have the same result.
#[inline]
pub(crate) fn locate_ip_packet(bytes: &[u8]) -> Option<IpPacket> {
    let (kind, offset) = innermost_type(bytes)?;
    let (network, header) = match kind {
        ethertype::IPV4 => (Network::Ipv4, parse_ipv4(bytes, offset)),
        ethertype::IPV6 => (Network::Ipv6, parse_ipv6(bytes, offset)),
        _ => return None,
    };
    let has_addresses = match header {
        Ok(_) => true,
        Err(FrameHeaderError::Version { .. }) => false,
        Err(_) if network == Network::Ipv4 => bytes.len() >= offset + IPV4_HEADER_BYTES,
        Err(_) => bytes.len() >= offset + IPV6_HEADER_BYTES,
    };
    has_addresses.then_some(IpPacket { network, offset, header: header.ok() })
}

/// Parses the IPv4 header at `offset`. Fails if it is truncated, or its version or length is
/// invalid.
#[inline]
pub(crate) fn parse_ipv4(bytes: &[u8], offset: usize) -> Result<IpHeader, FrameHeaderError> {
    let header: &[u8; IPV4_HEADER_BYTES] =
        array_at(bytes, offset).ok_or(FrameHeaderError::truncated("IPv4", offset, bytes))?;
    let [version_ihl, _, _, _, _, _, fragment_high, fragment_low, _, protocol, ..] = *header;
    if version_ihl >> 4 != 4 {
        return Err(FrameHeaderError::Version { expected: 4, found: version_ihl >> 4 });
    }
    let header_bytes = usize::from(version_ihl & 0x0f) * 4;
    if header_bytes < IPV4_HEADER_BYTES {
        return Err(FrameHeaderError::HeaderLength { layer: "IPv4", bytes: header_bytes });
    }
    let end = offset + header_bytes;
    if end > bytes.len() {
        return Err(FrameHeaderError::truncated("IPv4 options", offset, bytes));
    }
    let word = u16::from_be_bytes([fragment_high, fragment_low]);
    Ok(IpHeader {
        protocol,
        end,
        fragment: fragment_position(word & 0x1fff != 0, word & 0x2000 != 0),
    })
}

/// Parses the IPv6 header at `offset` and its extension headers. Fails if one is truncated, the
/// version is wrong, or there are more than [`EXTENSIONS_MAX`] extension headers.
#[inline]
pub(crate) fn parse_ipv6(bytes: &[u8], offset: usize) -> Result<IpHeader, FrameHeaderError> {
    let header: &[u8; IPV6_HEADER_BYTES] =
        array_at(bytes, offset).ok_or(FrameHeaderError::truncated("IPv6", offset, bytes))?;
    let [version, _, _, _, _, _, next, ..] = *header;
    if version >> 4 != 6 {
        return Err(FrameHeaderError::Version { expected: 6, found: version >> 4 });
    }
    walk_extensions(bytes, offset + IPV6_HEADER_BYTES, next)
}

fn walk_extensions(bytes: &[u8], start: usize, first: u8) -> Result<IpHeader, FrameHeaderError> {
    let mut header = IpHeader { protocol: first, end: start, fragment: None };
    for _ in 0..EXTENSIONS_MAX {
        // Data after a later fragment's header is payload, whatever the header announces.
        if header.fragment == Some(Fragment::Later) {
            return Ok(header);
        }
        let offset = header.end;
        let length = || u8_at(bytes, offset + 1).map(usize::from);
        let extension_bytes = match header.protocol {
            // Hop-by-hop, routing, destination, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => length().map(|units| (units + 1) * 8),
            44 => {
                let word = u16_at(bytes, offset + 2);
                header.fragment =
                    word.and_then(|word| fragment_position(word & 0xfff8 != 0, word & 1 != 0));
                word.map(|_| 8)
            }
            // The authentication header has 4-byte units (RFC 4302).
            51 => length().map(|units| (units + 2) * 4),
            _ => return Ok(header),
        };
        let end = extension_bytes.map_or(usize::MAX, |extension| offset + extension);
        let next = u8_at(bytes, offset).filter(|_| end <= bytes.len());
        header.protocol =
            next.ok_or(FrameHeaderError::truncated("IPv6 extension", offset, bytes))?;
        header.end = end;
    }
    match header.protocol {
        0 | 43 | 44 | 51 | 60 | 135 | 139 | 140 if header.fragment != Some(Fragment::Later) => {
            Err(FrameHeaderError::TooManyExtensions { parsed_count: EXTENSIONS_MAX })
        }
        _ => Ok(header),
    }
}

fn fragment_position(has_offset: bool, has_more: bool) -> Option<Fragment> {
    match (has_offset, has_more) {
        (true, _) => Some(Fragment::Later),
        (false, true) => Some(Fragment::First),
        (false, false) => None,
    }
}
