//! Where a frame's headers lie.

use thiserror::Error;

use crate::ETHERNET_HEADER_BYTES;
use crate::ethernet::{ethertype, innermost_type};
use crate::ip::{Fragment, Network, parse_ipv4, parse_ipv6, protocol};
use crate::tcp::parse_tcp;
use crate::udp::parse_udp;

/// The transport protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, with its header in this frame.
    Tcp,
    /// UDP, with its header in this frame.
    Udp,
    /// Another IP protocol, or a later fragment of any.
    Other(u8),
    /// Not an IP packet.
    None,
}

/// Where a frame's headers lie, in bytes from its first byte. All offsets are
/// inside the bytes they were read from, or at their end.
///
/// Lengths that the headers state for the packet are not checked against the
/// frame: receivers do that, and large frames may state none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// What follows the Ethernet header and any tags in the bytes.
    pub network: Network,
    /// Where it begins.
    pub network_at: usize,
    /// What follows the IP header and its extensions.
    pub transport: Transport,
    /// Where it begins; `network_at` if the frame is not IP.
    pub transport_at: usize,
    /// Where the payload of TCP or UDP begins; `transport_at` for others.
    pub payload_at: usize,
    /// Set if the packet is a fragment.
    pub fragment: Option<Fragment>,
}

/// Why a frame's headers cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The frame ends inside a header.
    #[error("the frame ends inside its {layer} header: it has {len} bytes, the header is at {at}")]
    Truncated {
        /// Which header.
        layer: &'static str,
        /// Where it begins.
        at: usize,
        /// The frame's length.
        len: usize,
    },
    /// The type field and the IP version disagree.
    #[error("the type field announces IP version {expected}, the header says {found}")]
    Version {
        /// The version of the type field.
        expected: u8,
        /// The version in the header.
        found: u8,
    },
    /// A header says that it is shorter than the shortest.
    #[error("the {layer} header says it has {bytes} bytes, fewer than the smallest has")]
    HeaderLength {
        /// Which header.
        layer: &'static str,
        /// What it says.
        bytes: usize,
    },
    /// More IPv6 extension headers than anyone sends.
    #[error("more than {walked} IPv6 extension headers")]
    TooManyExtensions {
        /// How many were walked.
        walked: usize,
    },
}

impl HeaderError {
    #[inline]
    pub(crate) fn truncated(layer: &'static str, at: usize, bytes: &[u8]) -> Self {
        Self::Truncated { layer, at, len: bytes.len() }
    }
}

impl Headers {
    /// Reads the headers of an Ethernet frame. Up to two VLAN tags in the bytes
    /// are skipped, up to eight IPv6 extension headers walked.
    ///
    /// # Errors
    /// A header is cut off or contradicts itself.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.len() < ETHERNET_HEADER_BYTES {
            return Err(HeaderError::truncated("Ethernet", 0, bytes));
        }
        let (kind, network_at) =
            innermost_type(bytes).ok_or(HeaderError::truncated("VLAN", 12, bytes))?;
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
