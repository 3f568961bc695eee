//! Why an option is refused.

use thiserror::Error;

use super::code::OptionCode;

/// An option that is refused; the handshake goes on, with nothing changed by it but that
/// a refused `NBD_OPT_SET_META_CONTEXT` leaves no context selected. The client is told in
/// these words. Offsets are in bytes from the beginning of the option, whose data begins
/// at 16.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionError {
    /// Not one that this server knows.
    #[error("{option} at offset 8 is not known here; do without it")]
    Unsupported {
        /// The option.
        option: OptionCode,
    },
    /// TLS has to come first.
    #[error("{option} needs TLS here; send NBD_OPT_STARTTLS first")]
    TlsRequired {
        /// The option.
        option: OptionCode,
    },
    /// There is no TLS.
    #[error("NBD_OPT_STARTTLS: TLS is not set up here; go on without it, or leave")]
    TlsOff,
    /// There is TLS already.
    #[error("NBD_OPT_STARTTLS: TLS has started already; go on")]
    TlsStarted,
    /// The server is about to end.
    #[error("{option}: the server is being shut down; leave, and come back later")]
    ShuttingDown {
        /// The option.
        option: OptionCode,
    },
    /// Data with an option that has none.
    #[error("{option}: length at offset 12 is {bytes}; send it without data")]
    UnexpectedData {
        /// The option.
        option: OptionCode,
        /// Bytes of its data.
        bytes: usize,
    },
    /// The data ends before a field does.
    #[error(
        "{option}: {field} at offset {offset} is cut off, the option ends at {end}; send all of it"
    )]
    Truncated {
        /// The option.
        option: OptionCode,
        /// The first field that is not all there.
        field: &'static str,
        /// Where it begins.
        offset: usize,
        /// Where the option ends.
        end: usize,
    },
    /// The data goes on after its last field.
    #[error("{option}: {bytes} bytes from offset {offset} on belong to no field; leave them out")]
    Surplus {
        /// The option.
        option: OptionCode,
        /// Where the last field ends.
        offset: usize,
        /// How many bytes there are.
        bytes: usize,
    },
    /// A string that is longer than strings may be.
    #[error("{option}: {field} at offset {offset} has {bytes} bytes; send {max} or fewer")]
    StringTooLong {
        /// The option.
        option: OptionCode,
        /// Which string.
        field: &'static str,
        /// Where it begins.
        offset: usize,
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        max: usize,
    },
    /// A string that is not UTF-8 or holds a NUL.
    #[error("{option}: {field} at offset {offset} is no text; send UTF-8 without NUL")]
    NotText {
        /// The option.
        option: OptionCode,
        /// Which string.
        field: &'static str,
        /// Where it begins.
        offset: usize,
    },
    /// More queries than are looked at.
    #[error("{option}: number of queries at offset {offset} is {found}; send {max} or fewer")]
    TooManyQueries {
        /// The option.
        option: OptionCode,
        /// Where the number is.
        offset: usize,
        /// The number.
        found: u32,
        /// The most there may be.
        max: u32,
    },
    /// A query without a namespace.
    #[error("{option}: query at offset {offset} has no namespace; send one like base:allocation")]
    NoNamespace {
        /// The option.
        option: OptionCode,
        /// Where the query begins.
        offset: usize,
    },
    /// Metadata contexts before replies that could tell of them.
    #[error("{option} needs replies in chunks; send NBD_OPT_STRUCTURED_REPLY first")]
    NeedsChunks {
        /// The option.
        option: OptionCode,
    },
    /// Structured replies after extended headers, which include them.
    #[error("NBD_OPT_STRUCTURED_REPLY: extended headers are agreed on; go on with these")]
    ExtendedAlready,
    /// There is no such export.
    #[error("{option}: there is no export {name:?}; NBD_OPT_LIST tells which there are")]
    UnknownExport {
        /// The option.
        option: OptionCode,
        /// What was asked for.
        name: String,
    },
    /// The export's blocks are larger than those of a client that has not asked for them.
    #[error("{option}: the export has blocks of {min} bytes; ask for NBD_INFO_BLOCK_SIZE")]
    BlockSizeRequired {
        /// The option.
        option: OptionCode,
        /// Bytes of the smallest block.
        min: u32,
    },
}

impl OptionError {
    /// The type of the reply that says so (section "Option reply types").
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
            | Self::NeedsChunks { .. } => 3,
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
            Self::ExtendedAlready => 10,
        };
        1 << 31 | number
    }
}
