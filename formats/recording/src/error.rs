//! Errors while reading recordings.

use thiserror::Error;

use crate::{BLOCK_BYTES_MAX, VERSION};

/// Reason for which a recording cannot be read. Offsets are in bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file does not start with the magic number.
    #[error("the file does not begin like a recording; name a file written by `suimond --record`")]
    NotARecording,
    /// The format version is not supported.
    #[error(
        "the recording has format version {version}, and this program reads version {VERSION}; \
         use the `sim` of the release that recorded it"
    )]
    OtherVersion {
        /// Version number of the file.
        version: u32,
    },
    /// The length of a block exceeds the limit.
    #[error(
        "recording, block at offset {offset}: {length} bytes exceed the maximum of {BLOCK_BYTES_MAX}"
    )]
    BlockTooLong {
        /// Offset of the block, in bytes.
        offset: u64,
        /// Length in the block's header, in bytes.
        length: u32,
    },
    /// The checksum of a block does not match its body.
    #[error(
        "recording, block at offset {offset}: checksum {stored:08x} instead of {computed:08x}; the block \
         was changed after it was recorded"
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
    #[error("recording, record at offset {offset}: {fault}")]
    InvalidRecord {
        /// Offset of the record, in bytes.
        offset: u64,
        /// Reason why the record is invalid.
        fault: RecordError,
    },
}

/// Reason for which a record is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record extends beyond the end of its block.
    #[error("a record extends beyond the end of its block")]
    Truncated,
    /// A number exceeds the range of its field.
    #[error("a number exceeds the 64 bits of its field")]
    NumberTooLarge,
    /// The record type is unknown. Contains its number.
    #[error("unknown kind of record {0}")]
    UnknownRecord(u8),
    /// The policy kind is unknown. Contains its number.
    #[error("unknown kind of policy {0}")]
    UnknownPolicy(u8),
    /// The reason of a loss record is unknown. Contains its number.
    #[error("unknown kind of loss {0}")]
    UnknownLossReason(u8),
    /// A name or text is not valid UTF-8.
    #[error("a name is not valid UTF-8")]
    NotText,
    /// An input or initial state is not valid for its policy. Contains the decoder's description.
    #[error("the body of a record is not an input of its policy: {0}")]
    InvalidBody(String),
    /// The policy rejects its recorded initial state. Contains the policy's reason.
    #[error("the first record is not an initial state of its policy: {0}")]
    RejectedInitialState(String),
    /// The stream with this number has a second begin record.
    #[error("stream {0} begins twice")]
    DuplicateBegin(u32),
    /// A step belongs to the stream with this number, which has no begin record.
    #[error("a record belongs to stream {0}, which has not begun")]
    MissingBegin(u32),
}

impl RecordError {
    /// Returns the error for a record at this file offset.
    pub const fn at_offset(self, offset: u64) -> RecordingError {
        RecordingError::InvalidRecord { offset, fault: self }
    }
}

impl From<serde_json::Error> for RecordError {
    fn from(error: serde_json::Error) -> Self {
        Self::InvalidBody(error.to_string())
    }
}
