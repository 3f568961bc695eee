//! TCP header (RFC 9293, section 3.1).

use crate::header_error::FrameHeaderError;
use crate::octets::u8_at;

/// Length of the header without options, in bytes.
pub(crate) const TCP_HEADER_BYTES: usize = 20;
/// Offset of the sequence number.
pub(crate) const TCP_SEQUENCE_AT: usize = 4;
/// Offset of the flags byte.
pub(crate) const TCP_FLAGS_AT: usize = 13;
/// Offset of the checksum field.
pub(crate) const TCP_CHECKSUM_AT: usize = 16;

/// Bits of the flags byte.
pub mod tcp_flags {
    /// FIN: no more data from the sender.
    pub const FIN: u8 = 0x01;
    /// SYN: synchronizes sequence numbers at connection setup.
    pub const SYN: u8 = 0x02;
    /// RST: resets the connection immediately.
    pub const RST: u8 = 0x04;
    /// PSH: pushes data to the application.
    pub const PSH: u8 = 0x08;
    /// ACK: the acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// URG: the urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// CWR: congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// Returns the offset of the payload after the TCP header at `offset`.
#[inline]
pub(crate) fn parse_tcp(bytes: &[u8], offset: usize) -> Result<usize, FrameHeaderError> {
    if offset + TCP_HEADER_BYTES > bytes.len() {
        return Err(FrameHeaderError::truncated("TCP", offset, bytes));
    }
    let header_bytes = usize::from(u8_at(bytes, offset + 12).unwrap_or_default() >> 4) * 4;
    if header_bytes < TCP_HEADER_BYTES {
        return Err(FrameHeaderError::HeaderLength { layer: "TCP", bytes: header_bytes });
    }
    if offset + header_bytes > bytes.len() {
        return Err(FrameHeaderError::truncated("TCP options", offset, bytes));
    }
    Ok(offset + header_bytes)
}
