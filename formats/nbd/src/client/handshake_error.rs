//! Why a client does not use a server.

use thiserror::Error;

use crate::handshake::OptionCode;

/// Why a client does not use a server. The connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientHandshakeError {
    /// The name cannot be sent.
    #[error("the name of an export has {bytes} bytes, not {max} or fewer")]
    NameTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        max: usize,
    },
    /// What the server sent first is not NBD's greeting.
    #[error("greeting at offset {offset} is not that of an NBD server; connect to one")]
    Greeting {
        /// Where it differs, in bytes from the beginning.
        offset: usize,
    },
    /// The server is older than fixed newstyle negotiation.
    #[error("flags at offset 16 are {flags:#06x}, without fixed newstyle; use a newer server")]
    OldServer {
        /// What the server says of itself.
        flags: u16,
    },
    /// Something else is where a reply should begin.
    #[error("magic of a reply to {option} is {found:#018x}; close")]
    Magic {
        /// The option that awaits its reply.
        option: OptionCode,
        /// What there is.
        found: u64,
    },
    /// The reply is to another option.
    #[error("a reply to {option} names option {found}; close")]
    OtherOption {
        /// The option that awaits its reply.
        option: OptionCode,
        /// What it names.
        found: u32,
    },
    /// More bytes than any reply has.
    #[error("a reply to {option} has {bytes} bytes, not {max} or fewer; close")]
    ReplyTooLong {
        /// The option.
        option: OptionCode,
        /// How many bytes.
        bytes: u32,
        /// The most there may be.
        max: u32,
    },
    /// More replies than any option has.
    #[error("{option} has more than {max} replies; close")]
    TooManyReplies {
        /// The option.
        option: OptionCode,
        /// The most there may be.
        max: u32,
    },
    /// A reply is of no kind that the option has, or ends before it should.
    #[error("a reply of type {kind:#x} and {bytes} bytes to {option} makes no sense; close")]
    Reply {
        /// The option.
        option: OptionCode,
        /// The reply's type.
        kind: u32,
        /// Its bytes.
        bytes: usize,
    },
    /// The server cannot do what is needed.
    #[error("the server refuses {option} (error {kind:#x}): {message}")]
    Refused {
        /// The option.
        option: OptionCode,
        /// The number of the error.
        kind: u32,
        /// What the server says; may be empty.
        message: String,
    },
    /// It has agreed, and not said what the export is.
    #[error("the server has not said what the export is; close")]
    NoExport,
}
