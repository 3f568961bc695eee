//! Errors that end a handshake.

use thiserror::Error;

use super::code::OptionCode;
use super::option_error::OptionError;

/// Error that ends the connection, because the protocol has no error reply for it or the client is
/// out of synchronization. Offsets are in bytes: of client flags from the start of the connection,
/// otherwise from the start of the option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Client flags that were not offered (section "Client flags").
    #[error(
        "client flags at offset 0 are {found:#010x}, of which 0x3 were offered; use a client that speaks fixed newstyle"
    )]
    ClientFlags {
        /// Client flags that were received.
        found: u32,
    },
    /// Wrong magic number at the start of an option.
    #[error(
        "magic of an option at offset 0 is {found:#018x}, not 0x49484156454f5054; use a client that speaks fixed newstyle"
    )]
    OptionMagic {
        /// Magic number that was received.
        found: u64,
    },
    /// The option's data exceeds the limit.
    #[error("{option}: length at offset 12 is {bytes}; send {max} bytes of data or fewer")]
    OptionTooLong {
        /// Code of the rejected option.
        option: OptionCode,
        /// Length of the data in bytes.
        bytes: u32,
        /// Maximum length permitted, in bytes.
        max: u32,
    },
    /// The number of options exceeds the limit.
    #[error("more than {max} options; choose an export with NBD_OPT_GO before")]
    TooManyOptions {
        /// Maximum number of options permitted.
        max: u32,
    },
    /// The option requires fixed newstyle negotiation, which the client did not enable.
    #[error("{option} needs NBD_FLAG_C_FIXED_NEWSTYLE; set it in the client flags")]
    NotFixedNewstyle {
        /// Code of the rejected option.
        option: OptionCode,
    },
    /// The export requested by `NBD_OPT_EXPORT_NAME` cannot be used; this option has no error
    /// reply.
    #[error("{0}; NBD_OPT_GO would have been told")]
    Export(OptionError),
    /// `NBD_OPT_EXPORT_NAME` is not permitted after `NBD_OPT_EXTENDED_HEADERS`.
    #[error("NBD_OPT_EXPORT_NAME after NBD_OPT_EXTENDED_HEADERS; send NBD_OPT_GO")]
    NameWithExtendedHeaders,
    /// The caller passed input before TLS had started.
    #[error("TLS was agreed on and has not started; hand over what it decrypts, once it has")]
    TlsNotStarted,
    /// The caller reported TLS although the client did not request it.
    #[error("TLS was started without NBD_OPT_STARTTLS; start it when the handshake says so")]
    TlsNotAskedFor,
    /// The caller passed input after the end of the handshake.
    #[error("the handshake has ended; hand the bytes over to what follows, or close")]
    Ended,
}
