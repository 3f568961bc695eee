//! Errors of the client handshake.

use thiserror::Error;

use crate::handshake::OptionCode;

/// Reason for which the client handshake failed. The connection must be closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientHandshakeError {
    /// The export name exceeds the protocol's limit.
    #[error("the name of an export has {bytes} bytes, at most {max} are possible")]
    NameTooLong {
        /// Length of the name in bytes.
        bytes: usize,
        /// Maximum length permitted, in bytes.
        max: usize,
    },
    /// The greeting is not that of an NBD server.
    #[error("the greeting at offset {offset} is not that of an NBD server; check address and port")]
    Greeting {
        /// Offset of the first wrong byte from the start of the connection, in bytes.
        offset: usize,
    },
    /// The server does not support fixed newstyle negotiation.
    #[error("flags at offset 16 are {flags:#06x}, without fixed newstyle; use a newer server")]
    FixedNewstyleUnsupported {
        /// Handshake flags of the server.
        flags: u16,
    },
    /// Wrong magic number at the start of a reply.
    #[error("magic of a reply to {option} is {found:#018x}; close the connection")]
    Magic {
        /// Option with an outstanding reply.
        option: OptionCode,
        /// Magic number that was received.
        found: u64,
    },
    /// The reply names another option than the outstanding one.
    #[error("the reply to {option} names option {found}; close the connection")]
    UnexpectedOption {
        /// Option with an outstanding reply.
        option: OptionCode,
        /// Code of the option that the reply names.
        found: u32,
    },
    /// The reply exceeds the length limit.
    #[error(
        "a reply to {option} has {bytes} bytes, at most {max} are accepted; close the connection"
    )]
    ReplyTooLong {
        /// Option with an outstanding reply.
        option: OptionCode,
        /// Length of the reply in bytes.
        bytes: u32,
        /// Maximum length permitted, in bytes.
        max: u32,
    },
    /// The number of replies to one option exceeds the limit.
    #[error("{option} has more than {max} replies; close the connection")]
    TooManyReplies {
        /// Option with an outstanding reply.
        option: OptionCode,
        /// Maximum number of replies permitted.
        max: u32,
    },
    /// The reply has an unexpected type or is truncated.
    #[error(
        "a reply of type {kind:#x} with {bytes} bytes to {option} is invalid; close the \
         connection"
    )]
    InvalidReply {
        /// Option with an outstanding reply.
        option: OptionCode,
        /// Type of the invalid reply.
        kind: u32,
        /// Length of the reply in bytes.
        bytes: usize,
    },
    /// The server rejected a required option.
    #[error("the server rejected {option} (error {kind:#x}): {message}")]
    OptionRejected {
        /// Option that the server rejected.
        option: OptionCode,
        /// Type of the error reply.
        kind: u32,
        /// Message of the server; may be empty.
        message: String,
    },
    /// The server acknowledged the export without sending `NBD_INFO_EXPORT`.
    #[error("the server did not describe the export; close the connection")]
    MissingExportInfo,
}
