//! Parsing of a server's replies (NBD specification, sections "Simple reply message" and
//! "Structured reply chunk message"). Structured replies must have been negotiated.

use thiserror::Error;

use crate::error_code::NbdError;
use crate::extent::{ExtentState, StatusExtent};
use crate::field_codec::FieldReader;
use crate::header::PAYLOAD_BYTES_MAX;
use crate::reply::{FLAG_DONE, MAGIC_SIMPLE, MAGIC_STRUCTURED, kind};

/// Maximum length of a reply head in bytes: that of a structured chunk.
pub const REPLY_HEAD_BYTES_MAX: usize = 20;
/// Length of a simple reply in bytes.
const SIMPLE_BYTES: usize = 16;
/// Maximum length in bytes of a chunk's payload without data, such as a list of extents. Suffices
/// for the status of a request with a 32-bit length.
pub const NON_DATA_CHUNK_BYTES_MAX: u32 = 8 << 20;
/// Length of the offset field before the data of a chunk, in bytes.
const OFFSET_BYTES: u32 = 8;

/// Invalid or unexpected reply of the server. The connection must be closed. Offsets are in bytes
/// from the start of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// Wrong magic number at the start of a reply.
    #[error("magic of a reply at offset 0 is {found:#010x}; close the connection")]
    Magic {
        /// Magic number that was received.
        found: u32,
    },
    /// The chunk exceeds the length limit of its type.
    #[error(
        "chunk of type {kind:#x} (length at offset 16) has {bytes} bytes, at most {max} are \
         accepted; close the connection"
    )]
    ChunkTooLong {
        /// Type of the invalid chunk.
        kind: u16,
        /// Length of the chunk in bytes.
        bytes: u32,
        /// Maximum length permitted, in bytes.
        max: u32,
    },
    /// The length is invalid for the type of the chunk.
    #[error(
        "chunk of type {kind:#x} (length at offset 16) has an invalid length of {bytes} bytes; \
         close the connection"
    )]
    InvalidLength {
        /// Type of the invalid chunk.
        kind: u16,
        /// Length of the chunk in bytes.
        bytes: u32,
    },
    /// The chunk type was not negotiated.
    #[error("chunk at offset 6 has type {kind:#x}, which was not negotiated; close the connection")]
    UnexpectedType {
        /// Type of the invalid chunk.
        kind: u16,
    },
}

/// Error that the server reports for a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}{}{message}", if .message.is_empty() { "" } else { ": " })]
pub struct ErrorReply {
    /// Error code; unknown codes map to [`NbdError::Io`].
    pub error: NbdError,
    /// Message of the server; may be empty.
    pub message: String,
}

/// Result of parsing the start of a server's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedReply<'a> {
    /// The reply has not been received completely.
    Incomplete {
        /// Minimum number of bytes required, from the start of the reply.
        required: usize,
    },
    /// A simple reply or one chunk of a structured reply.
    Chunk {
        /// Number of bytes consumed from the start of the input.
        consumed: usize,
        /// Client's identifier of the request.
        cookie: u64,
        /// True if this is the last part of the reply to the request.
        is_last: bool,
        /// Content of this part of the reply.
        content: ReplyContent<'a>,
    },
}

/// Content of a simple reply or of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyContent<'a> {
    /// No content. In the last part of a reply, it reports success of the request.
    Empty,
    /// The server reports failure of the request.
    Error(ErrorReply),
    /// Data, which follows the consumed bytes in the input.
    Data {
        /// Offset of the data in the export, in bytes.
        offset: u64,
        /// Length of the data in bytes.
        length: u32,
    },
    /// Range of zeroes; no data follows.
    Hole {
        /// Offset of the hole in the export, in bytes.
        offset: u64,
        /// Length of the hole in bytes.
        length: u32,
    },
    /// Allocation status from the start of the requested range.
    Extents {
        /// Id of the metadata context that the status belongs to.
        context_id: u32,
        /// Extents in ascending order, the first one at the start of the requested range.
        extents: ExtentsReply<'a>,
    },
}

/// Iterator over the extents of a block status chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentsReply<'a>(&'a [u8]);

impl Iterator for ExtentsReply<'_> {
    type Item = StatusExtent;

    fn next(&mut self) -> Option<StatusExtent> {
        let (field, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        let mut fields = FieldReader::new(field);
        let (length, flags) = (fields.u32()?, fields.u32()?);
        Some(StatusExtent { length: length.into(), state: ExtentState::from_bits(flags) })
    }
}

/// Parser of a server's replies. It has no state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyReader;

impl ReplyReader {
    /// Parses the simple reply or chunk at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// The reply is invalid; the connection must be closed.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedReply<'a>, ReplyError> {
        let mut fields = FieldReader::new(bytes);
        match fields.u32() {
            None => Ok(ParsedReply::Incomplete { required: SIMPLE_BYTES }),
            Some(MAGIC_SIMPLE) => Ok(simple(fields)),
            Some(MAGIC_STRUCTURED) => chunk(fields),
            Some(found) => Err(ReplyError::Magic { found }),
        }
    }
}

fn simple(mut fields: FieldReader<'_>) -> ParsedReply<'_> {
    let Some((error, cookie)) = fields.u32().zip(fields.u64()) else {
        return ParsedReply::Incomplete { required: SIMPLE_BYTES };
    };
    let failure = || ErrorReply { error: NbdError::from_code(error), message: String::new() };
    let replied = if error == 0 { ReplyContent::Empty } else { ReplyContent::Error(failure()) };
    ParsedReply::Chunk { consumed: SIMPLE_BYTES, cookie, is_last: true, content: replied }
}

/// Parses the structured chunk at the start of `fields`: its head, and its payload except data.
fn chunk(mut fields: FieldReader<'_>) -> Result<ParsedReply<'_>, ReplyError> {
    let header = fields.u16().zip(fields.u16()).zip(fields.u64()).zip(fields.u32());
    let Some((((flags, kind), cookie), bytes)) = header else {
        return Ok(ParsedReply::Incomplete { required: REPLY_HEAD_BYTES_MAX });
    };
    let is_last = flags & FLAG_DONE != 0;
    let is_data = kind == kind::OFFSET_DATA;
    let max = if is_data {
        PAYLOAD_BYTES_MAX.saturating_add(OFFSET_BYTES)
    } else {
        NON_DATA_CHUNK_BYTES_MAX
    };
    if bytes > max {
        return Err(ReplyError::ChunkTooLong { kind, bytes, max });
    }
    let read = if is_data { bytes.min(OFFSET_BYTES) } else { bytes } as usize;
    let required = REPLY_HEAD_BYTES_MAX.saturating_add(read);
    let Some(payload) = fields.bytes(read) else {
        return Ok(ParsedReply::Incomplete { required });
    };
    let replied = parse_payload(kind, payload, bytes);
    let replied = replied.ok_or(ReplyError::InvalidLength { kind, bytes })??;
    Ok(ParsedReply::Chunk { consumed: required, cookie, is_last, content: replied })
}

/// Parses a chunk's payload; `None` if its length is invalid for the type. `bytes` is the length of
/// the payload in the chunk's head.
fn parse_payload(
    kind: u16,
    payload: &[u8],
    bytes: u32,
) -> Option<Result<ReplyContent<'_>, ReplyError>> {
    let mut fields = FieldReader::new(payload);
    Some(Ok(match kind {
        kind::NONE => (bytes == 0).then_some(ReplyContent::Empty)?,
        kind::OFFSET_DATA => {
            let offset = fields.u64()?;
            let length = bytes.checked_sub(OFFSET_BYTES).filter(|length| *length > 0)?;
            ReplyContent::Data { offset, length }
        }
        kind::OFFSET_HOLE => {
            let (offset, length) = (fields.u64()?, fields.u32()?);
            (fields.remaining() == 0 && length > 0)
                .then_some(ReplyContent::Hole { offset, length })?
        }
        kind::BLOCK_STATUS => {
            let context = fields.u32()?;
            let extents = fields.bytes(fields.remaining())?;
            let is_sound = !extents.is_empty() && extents.len() % 8 == 0;
            is_sound.then_some(ReplyContent::Extents {
                context_id: context,
                extents: ExtentsReply(extents),
            })?
        }
        // Every type with the highest bit set is an error with these fields, including unknown
        // types.
        kind if kind & kind::ERROR_BIT != 0 => {
            let (error, length) = (NbdError::from_code(fields.u32()?), fields.u16()?);
            let message = String::from_utf8_lossy(fields.bytes(length.into())?).into_owned();
            ReplyContent::Error(ErrorReply { error, message })
        }
        kind => return Some(Err(ReplyError::UnexpectedType { kind })),
    }))
}
