//! UDP header (RFC 768).

use crate::header_error::FrameHeaderError;
use crate::octets::u16_at;

/// Length of the header in bytes.
pub(crate) const UDP_HEADER_BYTES: usize = 8;
/// Offset of the length field.
pub(crate) const UDP_LENGTH_AT: usize = 4;
/// Offset of the checksum field.
pub(crate) const UDP_CHECKSUM_AT: usize = 6;

/// Returns the offset of the payload after the UDP header at `offset`.
#[inline]
pub(crate) fn parse_udp(bytes: &[u8], offset: usize) -> Result<usize, FrameHeaderError> {
    if offset + UDP_HEADER_BYTES > bytes.len() {
        return Err(FrameHeaderError::truncated("UDP", offset, bytes));
    }
    Ok(offset + UDP_HEADER_BYTES)
}

/// Server and client ports of BOOTP and DHCP (RFC 2131, section 4.1) and of DHCPv6 (RFC 8415,
/// section 7.2).
const DHCP_PORTS: [u16; 4] = [67, 68, 546, 547];

/// Returns true if the UDP header at `offset` belongs to a DHCP or DHCPv6 message.
///
/// DHCP clients read frames from the link layer, because they have no address yet. Some do not
/// receive the information that a checksum is partial, and drop such messages.
pub(crate) fn is_dhcp(bytes: &[u8], offset: usize) -> bool {
    [offset, offset + 2].iter().any(|port_offset| {
        u16_at(bytes, *port_offset).is_some_and(|port| DHCP_PORTS.contains(&port))
    })
}
