//! Errors of recordings.

use thiserror::Error;

use crate::{BLOCK_BYTES_MAX, VERSION};

/// Failure to read a recording. Offsets are in bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file does not start with the magic number.
    #[error("it does not begin as a recording does; give a file that `suimond --record` wrote")]
    NotARecording,
    /// The format version is not supported.
    #[error(
        "it is of version {version}, and {VERSION} is known here; use the `sim` of the release \
         that recorded it"
    )]
    OtherVersion {
        /// Version number of the file.
        version: u32,
    },
    /// The length of a block exceeds the limit.
    #[error("at {offset}: a block of {length} bytes; there are none above {BLOCK_BYTES_MAX}")]
    BlockTooLong {
        /// Offset of the block, in bytes.
        offset: u64,
        /// Length in the block's header, in bytes.
        length: u32,
    },
    /// The checksum of a block does not match its body.
    #[error(
        "at {offset}: the block's checksum is {stored:08x}, and its bytes give {computed:08x}: \
         they were changed after they were recorded"
    )]
    Checksum {
        /// Offset of the block, in bytes.
        offset: u64,
        /// Checksum in the block's header (CRC-32C).
        stored: u32,
        /// Checksum computed over the body (CRC-32C).
        computed: u32,
    },
    /// A record of a block is invalid.
    #[error("at {offset}: {fault}")]
    Record {
        /// Offset of the record, in bytes.
        offset: u64,
        /// Reason why the record is invalid.
        fault: Fault,
    },
}

/// Reason why a record is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record extends beyond its block.
    #[error("the record goes on behind its end")]
    Ends,
    /// A number exceeds the range of its field.
    #[error("a number is too large for what it counts")]
    NumberTooLarge,
    /// The record type is unknown.
    #[error("there is no record of kind {0}")]
    UnknownRecord(u8),
    /// The policy kind is unknown.
    #[error("there is no policy of kind {0}")]
    UnknownPolicy(u8),
    /// The loss reason is unknown.
    #[error("there is no loss of kind {0}")]
    UnknownLoss(u8),
    /// A name is not valid UTF-8.
    #[error("a name is no text")]
    NotText,
    /// A body is not a valid input of its policy.
    #[error("a body is not what its policy is told: {0}")]
    Body(String),
    /// The policy rejects its recorded initial state.
    #[error("the policy does not begin with that: {0}")]
    Birth(String),
    /// A stream has a second begin record.
    #[error("stream {0} begins twice")]
    BeginsTwice(u32),
    /// A step belongs to a stream without a begin record.
    #[error("stream {0} has not begun")]
    NotBegun(u32),
}

impl Fault {
    /// Returns the error for a record at this file offset.
    pub const fn at(self, offset: u64) -> RecordingError {
        RecordingError::Record { offset, fault: self }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Body(error.to_string())
    }
}
