//! The UDP header (RFC 768).

use crate::headers::HeaderError;

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
