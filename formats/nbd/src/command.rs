//! What a client wants done (section "Request types").

use crate::reply::ReplyTo;

/// Bytes of an export, inside of it and on its blocks. At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it begins, in bytes from the export's beginning.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// What is to be done. `fua` asks for it to be durable before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `NBD_CMD_READ`. The range is not longer than the longest payload.
    Read {
        /// What to read.
        range: ByteRange,
        /// In one piece, zeroes and all (`NBD_CMD_FLAG_DF`).
        dont_fragment: bool,
    },
    /// `NBD_CMD_WRITE`; the data follows the header.
    Write {
        /// Where to: as many bytes as follow.
        range: ByteRange,
        /// Durable before it is answered.
        fua: bool,
    },
    /// `NBD_CMD_FLUSH`: every write that was answered becomes durable.
    Flush,
    /// `NBD_CMD_TRIM`: what is there is not needed any more.
    Trim {
        /// Where.
        range: ByteRange,
        /// Durable before it is answered.
        fua: bool,
    },
    /// `NBD_CMD_CACHE`: what is there will be needed.
    Cache {
        /// Where.
        range: ByteRange,
    },
    /// `NBD_CMD_WRITE_ZEROES`.
    WriteZeroes {
        /// Where. It may be longer than the longest payload.
        range: ByteRange,
        /// Durable before it is answered.
        fua: bool,
        /// Allocated afterwards (`NBD_CMD_FLAG_NO_HOLE`).
        no_hole: bool,
        /// Fails with [`NbdError::Notsup`](crate::NbdError::Notsup), at once and with
        /// nothing changed, where it is not faster than a write
        /// (`NBD_CMD_FLAG_FAST_ZERO`).
        fast: bool,
    },
    /// `NBD_CMD_BLOCK_STATUS`: how the range is allocated.
    BlockStatus {
        /// What to tell of.
        range: ByteRange,
        /// Of the first extent only (`NBD_CMD_FLAG_REQ_ONE`).
        one: bool,
    },
    /// `NBD_CMD_BLOCK_STATUS` of the contexts that the payload names
    /// ([`Transmission::handle_contexts`](crate::Transmission::handle_contexts)).
    BlockStatusOf {
        /// Where to begin; how much, the payload says.
        offset: u64,
        /// Of the first extent only.
        one: bool,
    },
}

/// A request that may be carried out, and what its reply refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where its reply goes.
    pub reply_to: ReplyTo,
    /// What is to be done.
    pub command: Command,
    /// Bytes that follow the header and belong to the request; the next header comes
    /// behind them.
    pub payload_bytes: u32,
}
