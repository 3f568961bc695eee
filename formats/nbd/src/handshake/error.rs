//! Why a handshake cannot go on.

use thiserror::Error;

use super::code::OptionCode;
use super::option_error::OptionError;

/// What ends a connection, because the protocol has no way to refuse it or because the
/// client is not to be followed any more. Offsets are in bytes, the client's flags from
/// the beginning of the connection, all others from the beginning of the option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Flags that were not offered (section "Client flags").
    #[error(
        "client flags at offset 0 are {found:#010x}, of which 0x3 were offered; use a client that speaks fixed newstyle"
    )]
    ClientFlags {
        /// The flags.
        found: u32,
    },
    /// Where an option should begin there is something else.
    #[error(
        "magic of an option at offset 0 is {found:#018x}, not 0x49484156454f5054; use a client that speaks fixed newstyle"
    )]
    OptionMagic {
        /// What there is.
        found: u64,
    },
    /// More data than any option has.
    #[error("{option}: length at offset 12 is {bytes}; send {max} bytes of data or fewer")]
    OptionTooLong {
        /// The option.
        option: OptionCode,
        /// Bytes of its data.
        bytes: u32,
        /// The most there may be.
        max: u32,
    },
    /// The client haggles without end.
    #[error("more than {max} options; choose an export with NBD_OPT_GO before")]
    TooManyOptions {
        /// How many are taken.
        max: u32,
    },
    /// An option of fixed newstyle from a client that does not speak it.
    #[error("{option} needs NBD_FLAG_C_FIXED_NEWSTYLE; set it in the client flags")]
    NotFixedNewstyle {
        /// The option.
        option: OptionCode,
    },
    /// The export that was asked for by its name only cannot be used, and this option
    /// has no answer that says so.
    #[error("{0}; NBD_OPT_GO would have been told")]
    Export(OptionError),
    /// `NBD_OPT_EXPORT_NAME` after extended headers, where it is forbidden.
    #[error("NBD_OPT_EXPORT_NAME after NBD_OPT_EXTENDED_HEADERS; send NBD_OPT_GO")]
    NameWithExtendedHeaders,
    /// Bytes were handed over while TLS was to begin.
    #[error("TLS was agreed on and has not started; hand over what it decrypts, once it has")]
    TlsNotStarted,
    /// TLS was started that nobody had asked for.
    #[error("TLS was started without NBD_OPT_STARTTLS; start it when the handshake says so")]
    TlsNotAskedFor,
    /// Bytes were handed over after the end.
    #[error("the handshake has ended; hand the bytes over to what follows, or close")]
    Ended,
}
