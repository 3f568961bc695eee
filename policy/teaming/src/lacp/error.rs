//! Errors of slow protocol frames.

use suimon_frame::MacAddr;
use thiserror::Error;

/// Reason for which a slow protocol frame is rejected. A rejected frame changes only a counter.
/// Offsets are in bytes from the beginning of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PduError {
    /// The frame ends before the field does.
    #[error(
        "slow protocol frame: {field} at offset {offset} is truncated, the frame has {bytes} bytes"
    )]
    Truncated {
        /// Name of the first incomplete field.
        field: &'static str,
        /// Offset of the field in the frame, in bytes.
        offset: usize,
        /// Length of the received frame in bytes.
        bytes: usize,
    },
    /// The frame is longer than an untagged frame can be (IEEE 802.3, 57A.3).
    #[error("slow protocol frame: {bytes} bytes exceed the maximum of {max}")]
    Oversize {
        /// Length of the received frame in bytes.
        bytes: usize,
        /// Maximum frame length in bytes.
        max: usize,
    },
    /// The destination is not the slow protocols' group address.
    #[error(
        "slow protocol frame: destination {found} at offset 0 instead of the group address \
         01:80:c2:00:00:02"
    )]
    Destination {
        /// Destination address of the frame.
        found: MacAddr,
    },
    /// The EtherType is not that of the slow protocols.
    #[error("slow protocol frame: EtherType {found:#06x} at offset 12 instead of 0x8809")]
    EtherType {
        /// EtherType in the frame.
        found: u16,
    },
    /// The subtype is not assigned to a slow protocol (IEEE 802.3, Table 57A-3).
    #[error("slow protocol frame: subtype {found} at offset 14 is outside of 1 to 10")]
    Subtype {
        /// Slow protocol subtype in the frame.
        found: u8,
    },
    /// The TLV type differs from the one expected at this offset.
    #[error("LACPDU or marker PDU: {field} {found} at offset {offset} instead of {expected}")]
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
    #[error("LACPDU or marker PDU: {field} {found} at offset {offset} instead of {expected}")]
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
    #[error("LACPDU or marker PDU: version {found} at offset 15 instead of 1")]
    Version {
        /// Version field of the received PDU.
        found: u8,
    },
    /// A reserved octet is not zero. Reported by [`parse_exact`](super::parse_exact) only.
    #[error("LACPDU or marker PDU: {field}: octet at offset {offset} is not zero")]
    Reserved {
        /// Name of the field, for messages.
        field: &'static str,
        /// Offset of the octet in the frame, in bytes.
        offset: usize,
    },
}
