//! Errors that end a handshake.

use thiserror::Error;

use super::option_code::OptionCode;
use super::option_error::OptionError;

/// Error that ends the connection, because the protocol has no error reply for it or the start of
/// the client's next message is unknown. Offsets are in bytes: of client flags from the start of
/// the connection, otherwise from the start of the option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The client set flags that were not offered (section "Client flags").
    #[error(
        "client flags at offset 0 are {found:#010x}, only bits of 0x3 were offered; use a client \
         with fixed newstyle"
    )]
    InvalidClientFlags {
        /// Client flags that were received.
        found: u32,
    },
    /// Wrong magic number at the start of an option.
    #[error(
        "magic of an option at offset 0 is {found:#018x} instead of 0x49484156454f5054; use a \
         client with fixed newstyle"
    )]
    OptionMagic {
        /// Magic number that was received.
        found: u64,
    },
    /// The option's data exceeds the limit.
    #[error("{option}: length at offset 12 is {bytes}; send at most {max} bytes of data")]
    OptionTooLong {
        /// Code of the rejected option.
        option: OptionCode,
        /// Length of the data in bytes.
        bytes: u32,
        /// Maximum length permitted, in bytes.
        max: u32,
    },
    /// The number of options exceeds the limit.
    #[error("the client sent more than {max} options; select an export with NBD_OPT_GO earlier")]
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
    #[error("{0}; use NBD_OPT_GO to get this as an error reply")]
    ExportUnavailable(OptionError),
    /// `NBD_OPT_EXPORT_NAME` is not permitted after `NBD_OPT_EXTENDED_HEADERS`.
    #[error("NBD_OPT_EXPORT_NAME is not permitted after NBD_OPT_EXTENDED_HEADERS; send NBD_OPT_GO")]
    NameWithExtendedHeaders,
    /// The caller passed input after [`ServerStep::StartTls`](super::ServerStep::StartTls), before
    /// TLS had started.
    #[error("TLS was negotiated and has not started; pass the decrypted bytes after it has")]
    TlsNotStarted,
    /// The caller reported the start of TLS although the client did not request it.
    #[error("TLS was started without NBD_OPT_STARTTLS; start it when the handshake requests it")]
    TlsNotRequested,
    /// The caller passed input after the end of the handshake.
    #[error(
        "the handshake has ended; pass the bytes to the transmission phase, or close the \
         connection"
    )]
    AlreadyEnded,
}
