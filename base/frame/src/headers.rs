//! Locations of a frame's headers.

use crate::ETHERNET_HEADER_BYTES;
use crate::ethernet::{ethertype, innermost_type};
use crate::header_error::FrameHeaderError;
use crate::ip::{Fragment, Network, parse_ipv4, parse_ipv6, protocol};
use crate::tcp::parse_tcp;
use crate::udp::parse_udp;

/// Transport protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, with its header in this frame.
    Tcp,
    /// UDP, with its header in this frame.
    Udp,
    /// Another IP protocol, or a later fragment of any protocol.
    Other(u8),
    /// No transport protocol: not an IP packet.
    None,
}

/// Offsets of a frame's headers, in bytes from its first byte. Offsets do not exceed the parsed
/// bytes.
///
/// Length fields of the headers are not compared with the frame: receivers do that, and those of
/// large frames may be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Network protocol after the Ethernet header and tags.
    pub network: Network,
    /// Offset of the network header.
    pub network_at: usize,
    /// Transport protocol after the IP header and its extensions.
    pub transport: Transport,
    /// Offset of the transport header; `network_at` for frames other than IP.
    pub transport_at: usize,
    /// Offset of the TCP or UDP payload; `transport_at` for other protocols.
    pub payload_at: usize,
    /// Fragment type; `None` if the packet is not fragmented.
    pub fragment: Option<Fragment>,
}

impl Headers {
    /// Parses the headers of an Ethernet frame. Skips up to two VLAN tags in the bytes and up to
    /// eight IPv6 extension headers.
    ///
    /// # Errors
    /// Fails if a header is truncated or inconsistent.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, FrameHeaderError> {
        if bytes.len() < ETHERNET_HEADER_BYTES {
            return Err(FrameHeaderError::truncated("Ethernet", 0, bytes));
        }
        let (kind, network_at) =
            innermost_type(bytes).ok_or(FrameHeaderError::truncated("VLAN", 12, bytes))?;
        let (network, ip) = match kind {
            ethertype::IPV4 => (Network::Ipv4, parse_ipv4(bytes, network_at)?),
            ethertype::IPV6 => (Network::Ipv6, parse_ipv6(bytes, network_at)?),
            _ => return Ok(Self::not_ip(network_at)),
        };
        let has_transport = ip.fragment != Some(Fragment::Later);
        let (transport, payload_at) = match ip.protocol {
            protocol::TCP if has_transport => (Transport::Tcp, parse_tcp(bytes, ip.end)?),
            protocol::UDP if has_transport => (Transport::Udp, parse_udp(bytes, ip.end)?),
            other => (Transport::Other(other), ip.end),
        };
        Ok(Self {
            network,
            network_at,
            transport,
            transport_at: ip.end,
            payload_at,
            fragment: ip.fragment,
        })
    }

    fn not_ip(network_at: usize) -> Self {
        Self {
            network: Network::Other,
            network_at,
            transport: Transport::None,
            transport_at: network_at,
            payload_at: network_at,
            fragment: None,
        }
    }
}

#[cfg(test)]
mod tests;
