//! What is wrong with a recording.

use thiserror::Error;

use crate::{BLOCK_BYTES_MAX, VERSION};

/// Why a file is not read, or not further. Offsets count bytes from the file's beginning.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It begins with something else.
    #[error("it does not begin as a recording does; give a file that `suimond --record` wrote")]
    NotARecording,
    /// It is one that this program does not know.
    #[error(
        "it is of version {version}, and {VERSION} is known here; use the `sim` of the release \
         that recorded it"
    )]
    OtherVersion {
        /// Which.
        version: u32,
    },
    /// A block that nobody writes.
    #[error("at {offset}: a block of {length} bytes; there are none above {BLOCK_BYTES_MAX}")]
    BlockTooLong {
        /// Where it begins.
        offset: u64,
        /// How long it says it is.
        length: u32,
    },
    /// A block was changed after it was written.
    #[error(
        "at {offset}: the block's checksum is {stored:08x}, and its bytes give {computed:08x}: \
         they were changed after they were recorded"
    )]
    Checksum {
        /// Where it begins.
        offset: u64,
        /// What it says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// A record that is none.
    #[error("at {offset}: {fault}")]
    Record {
        /// Where it begins.
        offset: u64,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// It goes on behind its block.
    #[error("the record goes on behind its end")]
    Ends,
    /// A number that does not fit.
    #[error("a number is too large for what it counts")]
    NumberTooLarge,
    /// No kind of record.
    #[error("there is no record of kind {0}")]
    UnknownRecord(u8),
    /// No policy.
    #[error("there is no policy of kind {0}")]
    UnknownPolicy(u8),
    /// No loss.
    #[error("there is no loss of kind {0}")]
    UnknownLoss(u8),
    /// A name that is no text.
    #[error("a name is no text")]
    NotText,
    /// A body that says nothing.
    #[error("a body is not what its policy is told: {0}")]
    Body(String),
    /// A policy that cannot begin so.
    #[error("the policy does not begin with that: {0}")]
    Birth(String),
    /// A stream that begins twice.
    #[error("stream {0} begins twice")]
    BeginsTwice(u32),
    /// A step of a stream that has not begun.
    #[error("stream {0} has not begun")]
    NotBegun(u32),
}

impl Fault {
    /// At a record.
    pub const fn at(self, offset: u64) -> RecordingError {
        RecordingError::Record { offset, fault: self }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Body(error.to_string())
    }
}
