//! What a server answers (sections "Simple reply message" and "Structured reply chunk
//! message"), to a client that has agreed on structured replies.

use thiserror::Error;

use crate::error_code::NbdError;
use crate::extent::{Extent, ExtentState};
use crate::octets::Reader;
use crate::reply::{DONE, MAGIC_SIMPLE, MAGIC_STRUCTURED, kind};
use crate::transmission::PAYLOAD_BYTES_MAX;

/// Bytes of the longest head of a reply, that of a chunk.
pub const REPLY_HEAD_BYTES: usize = 20;
/// Bytes of a simple reply.
const SIMPLE_BYTES: usize = 16;
/// Bytes of a chunk that is no data, at most: a list of extents. No server tells of more at
/// once that was asked with a 32-bit length.
pub const CHUNK_BYTES_MAX: u32 = 8 << 20;
/// Bytes before the data of a chunk.
const OFFSET_BYTES: u32 = 8;

/// Where the next reply begins is not known, or it is of nothing that was asked: the
/// connection has to be closed. Offsets are in bytes from the beginning of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LostReplies {
    /// Something else is where a reply should begin.
    #[error("magic of a reply at offset 0 is {found:#010x}; close")]
    Magic {
        /// What there is.
        found: u32,
    },
    /// More bytes than such a chunk has.
    #[error(
        "chunk of type {kind:#x} (length at offset 16) has {bytes} bytes, not {max} or fewer; close"
    )]
    TooLong {
        /// The chunk's type.
        kind: u16,
        /// How many bytes.
        bytes: u32,
        /// The most there may be.
        max: u32,
    },
    /// The chunk has not the bytes that one of its type has.
    #[error(
        "chunk of type {kind:#x} (length at offset 16) has {bytes} bytes, which makes no sense; close"
    )]
    Senseless {
        /// The chunk's type.
        kind: u16,
        /// How many bytes.
        bytes: u32,
    },
    /// The chunk is of a type that was not agreed on.
    #[error("chunk at offset 6 is of type {kind:#x}, which nobody asked for; close")]
    Kind {
        /// The chunk's type.
        kind: u16,
    },
}

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}{}{message}", if .message.is_empty() { "" } else { ": " })]
pub struct FarFailure {
    /// In the protocol's words; what it has no word for is [`NbdError::Io`].
    pub error: NbdError,
    /// In the server's; may be empty.
    pub message: String,
}

/// What is at the front of a server's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// It is not all there: at least so many bytes are needed.
    Incomplete {
        /// Bytes from the front on.
        needed: usize,
    },
    /// A reply, or a part of one.
    Part {
        /// Bytes of it that are used up.
        consumed: usize,
        /// What the client calls the request by.
        cookie: u64,
        /// Whether it completes the reply.
        is_last: bool,
        /// What it says.
        replied: Replied<'a>,
    },
}

/// What a reply, or a part of one, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replied<'a> {
    /// Nothing but that it is there; the last of such says that all has been done.
    Nothing,
    /// The request was not carried out.
    Failed(FarFailure),
    /// Bytes from `offset` on; they follow behind what is used up.
    Data {
        /// Where in the export they begin.
        offset: u64,
        /// How many bytes.
        length: u32,
    },
    /// Bytes from `offset` on are zeroes; none follow.
    Hole {
        /// Where in the export they begin.
        offset: u64,
        /// How many bytes.
        length: u32,
    },
    /// How the range that was asked for is allocated, from its beginning on.
    Extents {
        /// By which number the context was agreed on.
        context: u32,
        /// One after another.
        extents: FarExtents<'a>,
    },
}

/// Extents, as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarExtents<'a>(&'a [u8]);

impl Iterator for FarExtents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let (field, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        let mut fields = Reader::new(field);
        let (length, flags) = (fields.u32()?, fields.u32()?);
        Some(Extent { length: length.into(), state: ExtentState::from_bits(flags) })
    }
}

/// Reads a server's replies. Small, and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyReader;

impl ReplyReader {
    /// Reads what is at the front of `bytes`.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Result<Reply<'a>, LostReplies> {
        let mut fields = Reader::new(bytes);
        match fields.u32() {
            None => Ok(Reply::Incomplete { needed: SIMPLE_BYTES }),
            Some(MAGIC_SIMPLE) => Ok(simple(fields)),
            Some(MAGIC_STRUCTURED) => chunk(fields),
            Some(found) => Err(LostReplies::Magic { found }),
        }
    }
}

fn simple(mut fields: Reader<'_>) -> Reply<'_> {
    let Some((error, cookie)) = fields.u32().zip(fields.u64()) else {
        return Reply::Incomplete { needed: SIMPLE_BYTES };
    };
    let failure = || FarFailure { error: NbdError::of_code(error), message: String::new() };
    let replied = if error == 0 { Replied::Nothing } else { Replied::Failed(failure()) };
    Reply::Part { consumed: SIMPLE_BYTES, cookie, is_last: true, replied }
}

/// A chunk's head, and what of its payload says what it is.
fn chunk(mut fields: Reader<'_>) -> Result<Reply<'_>, LostReplies> {
    let head = fields.u16().zip(fields.u16()).zip(fields.u64()).zip(fields.u32());
    let Some((((flags, kind), cookie), bytes)) = head else {
        return Ok(Reply::Incomplete { needed: REPLY_HEAD_BYTES });
    };
    let is_last = flags & DONE != 0;
    let is_data = kind == kind::OFFSET_DATA;
    let max =
        if is_data { PAYLOAD_BYTES_MAX.saturating_add(OFFSET_BYTES) } else { CHUNK_BYTES_MAX };
    if bytes > max {
        return Err(LostReplies::TooLong { kind, bytes, max });
    }
    let read = if is_data { bytes.min(OFFSET_BYTES) } else { bytes } as usize;
    let needed = REPLY_HEAD_BYTES.saturating_add(read);
    let Some(payload) = fields.bytes(read) else { return Ok(Reply::Incomplete { needed }) };
    let replied = payload_of(kind, payload, bytes);
    let replied = replied.ok_or(LostReplies::Senseless { kind, bytes })??;
    Ok(Reply::Part { consumed: needed, cookie, is_last, replied })
}

/// What a chunk's payload says; `None`: it has not the bytes for it.
fn payload_of(kind: u16, payload: &[u8], bytes: u32) -> Option<Result<Replied<'_>, LostReplies>> {
    let mut fields = Reader::new(payload);
    Some(Ok(match kind {
        kind::NONE => (bytes == 0).then_some(Replied::Nothing)?,
        kind::OFFSET_DATA => {
            let offset = fields.u64()?;
            let length = bytes.checked_sub(OFFSET_BYTES).filter(|length| *length > 0)?;
            Replied::Data { offset, length }
        }
        kind::OFFSET_HOLE => {
            let (offset, length) = (fields.u64()?, fields.u32()?);
            (fields.remaining() == 0 && length > 0).then_some(Replied::Hole { offset, length })?
        }
        kind::BLOCK_STATUS => {
            let context = fields.u32()?;
            let extents = fields.bytes(fields.remaining())?;
            let is_sound = !extents.is_empty() && extents.len() % 8 == 0;
            is_sound.then_some(Replied::Extents { context, extents: FarExtents(extents) })?
        }
        // Any type with the highest bit is an error, known or not; its fields are these.
        kind if kind & kind::ERRORS != 0 => {
            let (error, length) = (NbdError::of_code(fields.u32()?), fields.u16()?);
            let message = String::from_utf8_lossy(fields.bytes(length.into())?).into_owned();
            Replied::Failed(FarFailure { error, message })
        }
        kind => return Some(Err(LostReplies::Kind { kind })),
    }))
}
