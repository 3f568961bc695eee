//! The TCP header (RFC 9293, section 3.1).

use crate::headers::HeaderError;
use crate::octets::u8_at;

/// Bytes of the header without options.
pub(crate) const TCP_HEADER_BYTES: usize = 20;
/// Where the sequence number lies.
pub(crate) const TCP_SEQUENCE_AT: usize = 4;
/// Where the flags lie.
pub(crate) const TCP_FLAGS_AT: usize = 13;
/// Where the checksum lies.
pub(crate) const TCP_CHECKSUM_AT: usize = 16;

/// Bits of the flags byte.
pub mod tcp_flags {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// The connection begins.
    pub const SYN: u8 = 0x02;
    /// The connection is broken off.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number holds.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer holds.
    pub const URG: u8 = 0x20;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// Where the payload of the TCP header at `at` begins.
#[inline]
pub(crate) fn parse_tcp(bytes: &[u8], at: usize) -> Result<usize, HeaderError> {
    if at + TCP_HEADER_BYTES > bytes.len() {
        return Err(HeaderError::truncated("TCP", at, bytes));
    }
    let header_bytes = usize::from(u8_at(bytes, at + 12).unwrap_or_default() >> 4) * 4;
    if header_bytes < TCP_HEADER_BYTES {
        return Err(HeaderError::HeaderLength { layer: "TCP", bytes: header_bytes });
    }
    if at + header_bytes > bytes.len() {
        return Err(HeaderError::truncated("TCP options", at, bytes));
    }
    Ok(at + header_bytes)
}
