//! Encoding of replies (NBD specification, sections "Simple reply message", "Structured reply chunk
//! message" and "Extended reply chunk message").

use crate::error_code::NbdError;
use crate::field_codec::{BufferTooShort, FieldWriter};
use crate::framing::Framing;
use crate::text::truncate;

/// Maximum length in bytes of a reply without read data and lists of extents: that of an extended
/// error chunk with the longest message.
pub const REPLY_BYTES_MAX: usize = EXTENDED_HEAD_BYTES + 6 + MESSAGE_BYTES_MAX + 8;

/// Maximum length in bytes of an error message; longer messages are truncated.
const MESSAGE_BYTES_MAX: usize = 256;

/// `NBD_SIMPLE_REPLY_MAGIC`.
pub(crate) const MAGIC_SIMPLE: u32 = 0x6744_6698;
/// `NBD_STRUCTURED_REPLY_MAGIC`.
pub(crate) const MAGIC_STRUCTURED: u32 = 0x668e_33ef;
/// `NBD_EXTENDED_REPLY_MAGIC`.
const MAGIC_EXTENDED: u32 = 0x6e8a_278c;

const SIMPLE_BYTES: usize = 16;
const STRUCTURED_HEAD_BYTES: usize = 20;
const EXTENDED_HEAD_BYTES: usize = 32;

/// `NBD_REPLY_FLAG_DONE`.
pub(crate) const FLAG_DONE: u16 = 1;

/// Chunk types (section "Structured reply types").
pub(crate) mod kind {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXT: u16 = 6;
    /// Bit that is set in every error type.
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
    pub(crate) const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

/// Encoder of the reply to one request: the client's identifier of the request and the message
/// format. Each request gets one reply: [`ReplyEncoder::encode_success`], an error, the chunks of a
/// read or a list of extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyEncoder {
    pub(crate) framing: Framing,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
}

impl ReplyEncoder {
    /// Returns the client's identifier of the request.
    pub const fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Encodes success of a request other than a read or block status into `out`. Returns the
    /// length in bytes.
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub fn encode_success(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        if self.framing.is_extended() {
            return Ok(self.encode_chunk_head(kind::NONE, true, 0, 0, out)?.written());
        }
        Ok(self.encode_simple_reply(0, out)?.written())
    }

    /// Encodes failure of the whole request into `out`. Chunks of the reply that were sent before
    /// become void. Chunked replies carry the first 256 bytes of `message`, simple replies no
    /// message. Returns the length in bytes, at most [`REPLY_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub fn encode_error(
        &self,
        error: NbdError,
        message: &str,
        out: &mut [u8],
    ) -> Result<usize, BufferTooShort> {
        self.failed(kind::ERROR, error, message, &[], out)
    }

    /// Encodes failure at byte `offset` of the export, which is within the range of the request.
    /// Otherwise as [`ReplyEncoder::error`], except that chunks of a read sent for earlier offsets
    /// remain valid.
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub fn encode_error_at(
        &self,
        error: NbdError,
        message: &str,
        offset: u64,
        out: &mut [u8],
    ) -> Result<usize, BufferTooShort> {
        self.failed(kind::ERROR_OFFSET, error, message, &offset.to_be_bytes(), out)
    }

    fn failed(
        &self,
        kind: u16,
        error: NbdError,
        message: &str,
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<usize, BufferTooShort> {
        if !self.framing.has_chunks() {
            return Ok(self.encode_simple_reply(error.code(), out)?.written());
        }
        let message = truncate(message, MESSAGE_BYTES_MAX).as_bytes();
        let payload = 6 + message.len() + tail.len();
        let mut writer = self.encode_chunk_head(kind, true, payload, payload, out)?;
        writer.put_u32(error.code());
        writer.put_u16(u16::try_from(message.len()).unwrap_or_default());
        writer.put(message);
        writer.put(tail);
        Ok(writer.written())
    }

    /// Encodes a simple reply without data into `out`.
    pub(crate) fn encode_simple_reply<'a>(
        &self,
        error: u32,
        out: &'a mut [u8],
    ) -> Result<FieldWriter<'a>, BufferTooShort> {
        let mut writer = FieldWriter::new(out, SIMPLE_BYTES)?;
        writer.put_u32(MAGIC_SIMPLE);
        writer.put_u32(error);
        writer.put_u64(self.cookie);
        Ok(writer)
    }

    /// Encodes the head of a chunk with a payload of `payload` bytes. The returned writer has room
    /// for the first `own_bytes` bytes of the payload.
    pub(crate) fn encode_chunk_head<'a>(
        &self,
        kind: u16,
        is_last: bool,
        payload: usize,
        own_bytes: usize,
        out: &'a mut [u8],
    ) -> Result<FieldWriter<'a>, BufferTooShort> {
        let mut writer = FieldWriter::new(out, self.head_bytes().saturating_add(own_bytes))?;
        let flags = if is_last { FLAG_DONE } else { 0 };
        let extended = self.framing.is_extended();
        writer.put_u32(if extended { MAGIC_EXTENDED } else { MAGIC_STRUCTURED });
        writer.put_u16(flags);
        writer.put_u16(kind);
        writer.put_u64(self.cookie);
        // The payload is bounded by the maximum payload of a request plus some fields.
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        if extended {
            writer.put_u64(self.offset);
            writer.put_u64(payload.into());
        } else {
            writer.put_u32(payload);
        }
        Ok(writer)
    }

    /// Returns the length of a chunk's head in bytes.
    pub(crate) const fn head_bytes(&self) -> usize {
        if self.framing.is_extended() { EXTENDED_HEAD_BYTES } else { STRUCTURED_HEAD_BYTES }
    }
}
