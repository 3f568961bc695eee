//! Why a request is refused.

use thiserror::Error;

use crate::error_code::NbdError;

/// A request that is refused. The connection goes on. The client is told in these words.
/// Offsets and lengths are in bytes of the export, as the request has them in the fields
/// of these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Not a command of the protocol.
    #[error("command {kind} is not known")]
    UnknownCommand {
        /// The number of the command.
        kind: u16,
    },
    /// A command that was not offered.
    #[error("command {kind} was not offered; send what the transmission flags offer")]
    NotOffered {
        /// The number of the command.
        kind: u16,
    },
    /// Flags that do not belong to the command, or were not offered.
    #[error("command {kind} does not take flags {flags:#x}; leave them out")]
    Flags {
        /// The number of the command.
        kind: u16,
        /// The flags that were too many.
        flags: u16,
    },
    /// A write to what is read-only.
    #[error("the export is read-only")]
    ReadOnly,
    /// Nothing to be done.
    #[error("length is 0; ask for one block or more")]
    Empty,
    /// A range where there is none.
    #[error("a flush has offset {offset} and length {length}; both have to be 0")]
    FlushRange {
        /// The offset.
        offset: u64,
        /// The length.
        length: u64,
    },
    /// Not on the export's blocks.
    #[error("offset {offset} and length {length} are not both multiples of {block}")]
    OffBlock {
        /// The offset.
        offset: u64,
        /// The length.
        length: u64,
        /// Bytes of the smallest block.
        block: u32,
    },
    /// Not inside of the export.
    #[error("{length} bytes from offset {offset} on exceed the export of {size}")]
    BeyondEnd {
        /// The offset.
        offset: u64,
        /// The length.
        length: u64,
        /// Bytes of the export.
        size: u64,
        /// Whether it would have been written to.
        writes: bool,
    },
    /// A longer read than one reply may have.
    #[error("a read of {length} bytes is longer than {max}; read in pieces")]
    ReadTooLong {
        /// Bytes to read.
        length: u64,
        /// The most there may be.
        max: u32,
        /// Whether the client knows of replies in chunks.
        chunks: bool,
    },
    /// A longer write than one request may have.
    #[error("a write of {length} bytes is longer than {max}; write in pieces")]
    WriteTooLong {
        /// Bytes to write.
        length: u64,
        /// The most there may be.
        max: u32,
    },
    /// Extents were asked for and no context was selected.
    #[error("no metadata context is selected; send NBD_OPT_SET_META_CONTEXT before")]
    NoContext,
    /// Contexts were named that were not selected, or twice, or none at all.
    #[error("{bytes} bytes of payload do not name the contexts that were selected, once each")]
    Contexts {
        /// Bytes of the payload.
        bytes: u64,
    },
}

impl RequestError {
    /// What is answered (section "Error values").
    pub const fn code(&self) -> NbdError {
        match self {
            Self::ReadOnly => NbdError::Perm,
            Self::BeyondEnd { writes: true, .. } => NbdError::Nospc,
            Self::ReadTooLong { chunks: true, .. } => NbdError::Overflow,
            _ => NbdError::Inval,
        }
    }
}
