//! Reasons for which requests are rejected.

use thiserror::Error;

use crate::error_code::NbdError;

/// Reason for which a request is rejected. The connection continues; the text is sent to the
/// client. Offsets and lengths are the request's fields of these names, in bytes of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The command is not part of the protocol.
    #[error("command {kind} is not defined")]
    UnknownCommand {
        /// Number of the rejected command.
        kind: u16,
    },
    /// The command requires a feature that was not offered to the client.
    #[error("command {kind} was not offered; send only commands of the transmission flags")]
    NotNegotiated {
        /// Number of the rejected command.
        kind: u16,
    },
    /// The flags are not valid for the command or were not offered.
    #[error("command {kind} does not support flags {flags:#x}; clear them")]
    InvalidFlags {
        /// Number of the rejected command.
        kind: u16,
        /// The flags that are not permitted.
        flags: u16,
    },
    /// Write to a read-only export.
    #[error("the export is read-only")]
    ReadOnly,
    /// The request requires a range but its length is 0.
    #[error("length is 0; request one block or more")]
    ZeroLength,
    /// A flush has a range.
    #[error("a flush has offset {offset} and length {length}; both must be 0")]
    FlushWithRange {
        /// Offset in the request's header.
        offset: u64,
        /// Length in the request's header.
        length: u64,
    },
    /// The range is not aligned to the minimum block size.
    #[error("offset {offset} and length {length} are not both multiples of {block_min}")]
    Unaligned {
        /// Offset in the request's header.
        offset: u64,
        /// Length in the request's header.
        length: u64,
        /// Minimum block size in bytes.
        block_min: u32,
    },
    /// The range exceeds the export.
    #[error("a range of {length} bytes at offset {offset} exceeds the export of {size} bytes")]
    OutOfRange {
        /// Offset in the request's header.
        offset: u64,
        /// Length in the request's header.
        length: u64,
        /// Size of the export in bytes.
        size: u64,
        /// True for writing commands, which fail with `NBD_ENOSPC`.
        is_write: bool,
    },
    /// The read exceeds the maximum payload.
    #[error("a read of {length} bytes exceeds the limit of {max}; split it")]
    ReadTooLong {
        /// Length of the read in bytes.
        length: u64,
        /// Maximum payload of the export, in bytes.
        max: u32,
        /// True if chunked replies are negotiated, which permit `NBD_EOVERFLOW`.
        has_chunked_replies: bool,
    },
    /// The write exceeds the maximum payload.
    #[error("a write of {length} bytes exceeds the limit of {max}; split it")]
    WriteTooLong {
        /// Length of the write in bytes.
        length: u64,
        /// Maximum payload of the export, in bytes.
        max: u32,
    },
    /// Block status was requested without a selected metadata context.
    #[error("no metadata context is selected; send NBD_OPT_SET_META_CONTEXT first")]
    NoContext,
    /// The payload does not select the negotiated contexts, each exactly once.
    #[error("a payload of {bytes} bytes does not name each selected context once")]
    Contexts {
        /// Length of the payload in bytes.
        bytes: u64,
    },
}

impl RequestError {
    /// Returns the error code of the reply (section "Error values").
    pub const fn code(&self) -> NbdError {
        match self {
            Self::ReadOnly => NbdError::Perm,
            Self::OutOfRange { is_write: true, .. } => NbdError::Nospc,
            Self::ReadTooLong { has_chunked_replies: true, .. } => NbdError::Overflow,
            _ => NbdError::Inval,
        }
    }
}
