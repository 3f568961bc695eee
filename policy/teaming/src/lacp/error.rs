//! Why a frame is no PDU of ours.

use suimon_frame::MacAddr;
use thiserror::Error;

/// Why a frame was refused. Nothing was changed by it but a counter. Offsets
/// are in bytes from the beginning of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PduError {
    /// The frame ends before the field does.
    #[error("{field} at offset {offset} is cut off: the frame has {bytes} bytes")]
    Truncated {
        /// The first field that is not all there.
        field: &'static str,
        /// Where it begins.
        offset: usize,
        /// Bytes of the frame.
        bytes: usize,
    },
    /// Longer than an untagged frame can be (IEEE 802.3, 57A.3).
    #[error("a frame of {bytes} bytes is longer than the {max} of a slow protocol")]
    Oversize {
        /// Bytes of the frame.
        bytes: usize,
        /// The most there can be.
        max: usize,
    },
    /// Not to the group of the slow protocols.
    #[error("destination at offset 0 is {found}, not the slow protocols' group")]
    Destination {
        /// Where it was sent to.
        found: MacAddr,
    },
    /// Not of the slow protocols' type.
    #[error("type at offset 12 is {found:#06x}, not the slow protocols' 0x8809")]
    EtherType {
        /// The type.
        found: u16,
    },
    /// A subtype that no slow protocol can have (IEEE 802.3, Table 57A-3).
    #[error("subtype {found} at offset 14 is not one of 1 to 10")]
    Subtype {
        /// The subtype.
        found: u8,
    },
    /// A type other than the one that belongs there.
    #[error("{field} at offset {offset} is {found}, not {expected}")]
    TlvType {
        /// The field.
        field: &'static str,
        /// Where it is.
        offset: usize,
        /// What it says.
        found: u8,
        /// What belongs there; the lower one where two do.
        expected: u8,
    },
    /// A length other than the one that belongs there.
    #[error("{field} at offset {offset} is {found}, not {expected}")]
    TlvLength {
        /// The field.
        field: &'static str,
        /// Where it is.
        offset: usize,
        /// What it says.
        found: u8,
        /// What belongs there.
        expected: u8,
    },
    /// Only of [`parse_exact`](super::parse_exact): a version other than 1.
    #[error("version at offset 15 is {found}, not 1")]
    Version {
        /// The version.
        found: u8,
    },
    /// Only of [`parse_exact`](super::parse_exact): a reserved octet is set.
    #[error("{field} at offset {offset} is not zero")]
    Reserved {
        /// The field.
        field: &'static str,
        /// Where the octet is.
        offset: usize,
    },
}
