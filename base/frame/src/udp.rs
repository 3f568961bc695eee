//! The UDP header (RFC 768).

use crate::headers::HeaderError;
use crate::octets::u16_at;

/// Bytes of the header.
pub(crate) const UDP_HEADER_BYTES: usize = 8;
/// Where the length lies.
pub(crate) const UDP_LENGTH_AT: usize = 4;
/// Where the checksum lies.
pub(crate) const UDP_CHECKSUM_AT: usize = 6;

/// Where the payload of the UDP header at `at` begins.
#[inline]
pub(crate) fn parse_udp(bytes: &[u8], at: usize) -> Result<usize, HeaderError> {
    if at + UDP_HEADER_BYTES > bytes.len() {
        return Err(HeaderError::truncated("UDP", at, bytes));
    }
    Ok(at + UDP_HEADER_BYTES)
}

/// Ports of BOOTP and DHCP (RFC 2131, section 4.1) and of DHCPv6 (RFC 8415, section 7.2), servers and
/// clients.
const DHCP_PORTS: [u16; 4] = [67, 68, 546, 547];

/// Returns true if the UDP header at `at` is that of a DHCP or DHCPv6 message.
///
/// Clients of DHCP read frames from the link layer, because they have no address yet. Not all of them
/// can know that the kernel holds a checksum to be completed; such clients drop the message.
pub(crate) fn is_dhcp(bytes: &[u8], at: usize) -> bool {
    [at, at + 2].iter().any(|at| u16_at(bytes, *at).is_some_and(|port| DHCP_PORTS.contains(&port)))
}
