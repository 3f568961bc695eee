//! Errors that reject an option.

use thiserror::Error;

use super::option_code::OptionCode;

/// Reason for which an option is rejected. The handshake continues with its state unchanged, except
/// that a rejected `NBD_OPT_SET_META_CONTEXT` deselects all contexts. The text is sent to the
/// client. Offsets are in bytes from the start of the option, whose data starts at 16.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The option is not supported.
    #[error("{option} at offset 8 is not supported; do not send it")]
    Unsupported {
        /// Code of the rejected option.
        option: OptionCode,
    },
    /// The option is not permitted before TLS has started.
    #[error("{option} requires TLS; send NBD_OPT_STARTTLS first")]
    TlsRequired {
        /// Code of the rejected option.
        option: OptionCode,
    },
    /// TLS is not configured on this server.
    #[error("NBD_OPT_STARTTLS: the server has no TLS; continue without it, or disconnect")]
    TlsOff,
    /// TLS has already started on this connection.
    #[error("NBD_OPT_STARTTLS: TLS is already active; continue without the option")]
    TlsStarted,
    /// The server is shutting down.
    #[error("{option}: the server is shutting down; disconnect, and connect again later")]
    ShuttingDown {
        /// Code of the rejected option.
        option: OptionCode,
    },
    /// The option does not permit data.
    #[error("{option}: length at offset 12 is {bytes}; send the option without data")]
    UnexpectedData {
        /// Code of the rejected option.
        option: OptionCode,
        /// Length of the data in bytes.
        bytes: usize,
    },
    /// The data ends within a field.
    #[error(
        "{option}: {field} at offset {offset} is truncated, the option ends at {end}; send all of \
         it"
    )]
    Truncated {
        /// Code of the rejected option.
        option: OptionCode,
        /// Name of the truncated field.
        field: &'static str,
        /// Offset of the truncated field, in bytes.
        offset: usize,
        /// Offset of the end of the option, in bytes.
        end: usize,
    },
    /// The data does not end after the last field.
    #[error(
        "{option}: {bytes} bytes from offset {offset} on are beyond the last field; do not send \
         them"
    )]
    Surplus {
        /// Code of the rejected option.
        option: OptionCode,
        /// Offset of the first surplus byte, in bytes.
        offset: usize,
        /// Number of bytes after the last field.
        bytes: usize,
    },
    /// A string exceeds the protocol's limit.
    #[error("{option}: {field} at offset {offset} has {bytes} bytes; send at most {max}")]
    StringTooLong {
        /// Code of the rejected option.
        option: OptionCode,
        /// Name of the field concerned.
        field: &'static str,
        /// Offset of the string, in bytes.
        offset: usize,
        /// Length of the string in bytes.
        bytes: usize,
        /// Maximum length permitted, in bytes.
        max: usize,
    },
    /// A string is not UTF-8 or contains a NUL.
    #[error("{option}: {field} at offset {offset} is not valid text; send UTF-8 without NUL")]
    NotText {
        /// Code of the rejected option.
        option: OptionCode,
        /// Name of the field concerned.
        field: &'static str,
        /// Offset of the string, in bytes.
        offset: usize,
    },
    /// The number of queries exceeds the limit.
    #[error("{option}: number of queries at offset {offset} is {found}; send at most {max}")]
    TooManyQueries {
        /// Code of the rejected option.
        option: OptionCode,
        /// Offset of the count field, in bytes.
        offset: usize,
        /// Number of queries in the option.
        found: u32,
        /// Maximum number of queries permitted.
        max: u32,
    },
    /// A metadata query has no namespace.
    #[error("{option}: query at offset {offset} has no namespace; send one like base:allocation")]
    NoNamespace {
        /// Code of the rejected option.
        option: OptionCode,
        /// Offset of the query, in bytes.
        offset: usize,
    },
    /// Metadata contexts require structured replies or extended headers, which were not negotiated.
    #[error("{option} requires structured replies; send NBD_OPT_STRUCTURED_REPLY first")]
    StructuredRepliesRequired {
        /// Code of the rejected option.
        option: OptionCode,
    },
    /// Structured replies were requested after extended headers, which include them.
    #[error(
        "NBD_OPT_STRUCTURED_REPLY: extended headers are already negotiated; continue without the \
         option"
    )]
    ExtendedHeadersAlreadyEnabled,
    /// The export does not exist.
    #[error("{option}: there is no export {name:?}; NBD_OPT_LIST lists the exports")]
    UnknownExport {
        /// Code of the rejected option.
        option: OptionCode,
        /// Export name that the client requested.
        name: String,
    },
    /// The export's minimum block size exceeds the default and the client did not request block
    /// sizes.
    #[error("{option}: the export has a block size of {min} bytes; request NBD_INFO_BLOCK_SIZE")]
    BlockSizeRequired {
        /// Code of the rejected option.
        option: OptionCode,
        /// Minimum block size in bytes.
        min: u32,
    },
}

impl OptionError {
    /// Returns the type of the error reply (section "Option reply types").
    pub const fn reply_type(&self) -> u32 {
        let number = match self {
            // NBD_REP_ERR_UNSUP.
            Self::Unsupported { .. } => 1,
            // NBD_REP_ERR_POLICY.
            Self::TlsOff => 2,
            // NBD_REP_ERR_INVALID.
            Self::TlsStarted
            | Self::UnexpectedData { .. }
            | Self::Truncated { .. }
            | Self::Surplus { .. }
            | Self::StringTooLong { .. }
            | Self::NotText { .. }
            | Self::NoNamespace { .. }
            | Self::StructuredRepliesRequired { .. } => 3,
            // NBD_REP_ERR_TLS_REQD.
            Self::TlsRequired { .. } => 5,
            // NBD_REP_ERR_UNKNOWN.
            Self::UnknownExport { .. } => 6,
            // NBD_REP_ERR_SHUTDOWN.
            Self::ShuttingDown { .. } => 7,
            // NBD_REP_ERR_BLOCK_SIZE_REQD.
            Self::BlockSizeRequired { .. } => 8,
            // NBD_REP_ERR_TOO_BIG.
            Self::TooManyQueries { .. } => 9,
            // NBD_REP_ERR_EXT_HEADER_REQD.
            Self::ExtendedHeadersAlreadyEnabled => 10,
        };
        1 << 31 | number
    }
}
