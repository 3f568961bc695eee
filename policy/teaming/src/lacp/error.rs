//! Errors of slow protocol frames.

use suimon_frame::MacAddr;
use thiserror::Error;

/// Reason for which a frame is rejected. A rejected frame changes only a counter. Offsets are in
/// bytes from the beginning of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PduError {
    /// The frame ends before the field does.
    #[error("{field} at offset {offset} is truncated: the frame has {bytes} bytes")]
    Truncated {
        /// Name of the first incomplete field.
        field: &'static str,
        /// Offset of the field in the frame, in bytes.
        offset: usize,
        /// Length of the received frame in bytes.
        bytes: usize,
    },
    /// The frame is longer than an untagged frame can be (IEEE 802.3, 57A.3).
    #[error("a frame of {bytes} bytes exceeds the {max} bytes of slow protocols")]
    Oversize {
        /// Length of the received frame in bytes.
        bytes: usize,
        /// Maximum frame length in bytes.
        max: usize,
    },
    /// The destination is not the slow protocols' group address.
    #[error("destination at offset 0 is {found} instead of the group address of slow protocols")]
    Destination {
        /// Destination address of the frame.
        found: MacAddr,
    },
    /// The EtherType is not that of the slow protocols.
    #[error("type at offset 12 is {found:#06x} instead of 0x8809 (slow protocols)")]
    EtherType {
        /// EtherType in the frame.
        found: u16,
    },
    /// The subtype is not assigned to a slow protocol (IEEE 802.3, Table 57A-3).
    #[error("subtype {found} at offset 14 is outside of 1 to 10")]
    Subtype {
        /// Slow protocol subtype in the frame.
        found: u8,
    },
    /// The TLV type differs from the one expected at this offset.
    #[error("{field} at offset {offset} is {found} instead of {expected}")]
    TlvType {
        /// Name of the field, for messages.
        field: &'static str,
        /// Offset of the field in the frame, in bytes.
        offset: usize,
        /// Value of the field in the frame.
        found: u8,
        /// Expected value; the lowest where several are valid.
        expected: u8,
    },
    /// The TLV length differs from the one expected at this offset.
    #[error("{field} at offset {offset} is {found} instead of {expected}")]
    TlvLength {
        /// Name of the field, for messages.
        field: &'static str,
        /// Offset of the field in the frame, in bytes.
        offset: usize,
        /// Value of the field in the frame.
        found: u8,
        /// Value expected at this offset.
        expected: u8,
    },
    /// The version is not 1. Reported by [`parse_exact`](super::parse_exact) only.
    #[error("version at offset 15 is {found} instead of 1")]
    Version {
        /// Version field of the received PDU.
        found: u8,
    },
    /// A reserved octet is not zero. Reported by [`parse_exact`](super::parse_exact) only.
    #[error("{field} at offset {offset} is not zero")]
    Reserved {
        /// Name of the field, for messages.
        field: &'static str,
        /// Offset of the octet in the frame, in bytes.
        offset: usize,
    },
}
