//! Commands of a client, as parsed and validated by the server (NBD specification, section "Request
//! types").

use crate::reply::ReplyEncoder;

/// Range of an export: non-empty, within the export and aligned to its minimum block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportRange {
    /// Offset in the export, in bytes.
    pub offset: u64,
    /// Length in bytes; at least 1.
    pub length: u64,
}

/// Validated command. `fua` is true if its effect must be durable before the reply is sent
/// (`NBD_CMD_FLAG_FUA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdCommand {
    /// `NBD_CMD_READ`. The range does not exceed the maximum payload.
    Read {
        /// Range of the export to read.
        range: ExportRange,
        /// True to forbid splitting the reply into chunks (`NBD_CMD_FLAG_DF`).
        dont_fragment: bool,
    },
    /// `NBD_CMD_WRITE`. The data follows the header.
    Write {
        /// Range to write; its length equals that of the data.
        range: ExportRange,
        /// True if the data must be durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_FLUSH`: makes all writes with a reply durable.
    Flush,
    /// `NBD_CMD_TRIM`: discards a range that is no longer needed.
    Trim {
        /// Range of the export to discard.
        range: ExportRange,
        /// True if the effect must be durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_CACHE`: hints that a range will be read soon.
    Cache {
        /// Range of the export to prefetch.
        range: ExportRange,
    },
    /// `NBD_CMD_WRITE_ZEROES`: zeroes a range.
    WriteZeroes {
        /// Range to zero; may exceed the maximum payload.
        range: ExportRange,
        /// True if the zeroes must be durable before the reply.
        fua: bool,
        /// True if the range must stay allocated (`NBD_CMD_FLAG_NO_HOLE`).
        no_hole: bool,
        /// True if the command must fail immediately with
        /// [`NbdError::Notsup`](crate::NbdError::Notsup), without any change, unless it is faster
        /// than a write (`NBD_CMD_FLAG_FAST_ZERO`).
        fails_if_slow: bool,
    },
    /// `NBD_CMD_BLOCK_STATUS`: reports the allocation status of a range.
    BlockStatus {
        /// Range of the export to report on.
        range: ExportRange,
        /// True to report the first extent only (`NBD_CMD_FLAG_REQ_ONE`).
        first_only: bool,
    },
    /// `NBD_CMD_BLOCK_STATUS` with a payload that contains the length and selects metadata
    /// contexts. [`RequestParser::parse_contexts`](crate::RequestParser::parse_contexts) parses
    /// the payload.
    BlockStatusWithPayload {
        /// Start of the range in the export, in bytes.
        offset: u64,
        /// True to report the first extent only (`NBD_CMD_FLAG_REQ_ONE`).
        first_only: bool,
    },
}

/// Validated request with its reply encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Reply encoder for this request.
    pub reply_to: ReplyEncoder,
    /// Validated command to carry out.
    pub command: NbdCommand,
    /// Length in bytes of the payload that follows the header. The next header follows the payload.
    pub payload_bytes: u32,
}
