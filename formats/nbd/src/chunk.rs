//! Reply chunks of a read (NBD specification, section "Request types", `NBD_CMD_READ`).

use crate::command::ExportRange;
use crate::extent::{ExtentState, StatusExtent};
use crate::field_codec::BufferTooShort;
use crate::reply::{ReplyEncoder, kind};

/// Content type of a read chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Data, which the server sends after the chunk's head.
    Data,
    /// Zeroes, represented by the head only.
    Hole,
}

/// One chunk of the reply to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    reply_to: ReplyEncoder,
    kind: ChunkKind,
    offset: u64,
    length: u32,
    is_last: bool,
}

impl Chunk {
    /// Returns whether the chunk carries data or represents a hole.
    pub const fn kind(&self) -> ChunkKind {
        self.kind
    }

    /// Returns the offset of the chunk in the export, in bytes.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes that the chunk covers.
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Returns true for the last chunk of the reply (`NBD_REPLY_FLAG_DONE`).
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Encodes the head into `out` and returns its length;
    /// [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX) bytes of room suffice. The caller sends the data
    /// of a [`ChunkKind::Data`] chunk after the head.
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub fn encode_head(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        if !self.reply_to.framing.has_chunks() {
            return Ok(self.reply_to.encode_simple_reply(0, out)?.written());
        }
        let length = self.length as usize;
        let writer = match self.kind {
            ChunkKind::Data => {
                let payload = length.saturating_add(8);
                let mut writer = self.reply_to.encode_chunk_head(
                    kind::OFFSET_DATA,
                    self.is_last,
                    payload,
                    8,
                    out,
                )?;
                writer.put_u64(self.offset);
                writer
            }
            ChunkKind::Hole => {
                let mut writer = self.reply_to.encode_chunk_head(
                    kind::OFFSET_HOLE,
                    self.is_last,
                    12,
                    12,
                    out,
                )?;
                writer.put_u64(self.offset);
                writer.put_u32(self.length);
                writer
            }
        };
        Ok(writer.written())
    }
}

/// Iterator over the chunks of the reply to a read, in ascending order of offsets. Extents that
/// read as zeroes become holes; adjacent extents of one kind are merged. Created by
/// [`RequestParser::split_read_reply`](crate::RequestParser::split_read_reply).
#[derive(Clone, Debug)]
pub struct ReadChunks<I: Iterator<Item = StatusExtent>> {
    reply_to: ReplyEncoder,
    /// Part of the range that no chunk covers yet.
    remaining: ExportRange,
    in_one: bool,
    extents: I,
    /// Kind of the current extent and the length of its part that no chunk covers yet, in bytes.
    current: Option<(ChunkKind, u64)>,
}

impl<I: Iterator<Item = StatusExtent>> ReadChunks<I> {
    pub(crate) fn new(
        reply_to: ReplyEncoder,
        range: ExportRange,
        dont_fragment: bool,
        extents: I,
    ) -> Self {
        let in_one = dont_fragment || !reply_to.framing.has_chunks();
        Self { reply_to, remaining: range, in_one, extents, current: None }
    }

    /// Returns kind and length in bytes of the next chunk: adjacent extents of one kind, merged.
    /// The length may exceed the range. Bytes not covered by an extent are data.
    fn run(&mut self) -> (ChunkKind, u64) {
        if self.in_one {
            return (ChunkKind::Data, self.remaining.length);
        }
        let (kind, mut length) = self
            .current
            .take()
            .or_else(|| self.next_extent())
            .unwrap_or((ChunkKind::Data, u64::MAX));
        while length < self.remaining.length {
            let next = self.next_extent().unwrap_or((ChunkKind::Data, u64::MAX));
            if next.0 != kind {
                self.current = Some(next);
                break;
            }
            length = length.saturating_add(next.1);
        }
        (kind, length)
    }

    fn next_extent(&mut self) -> Option<(ChunkKind, u64)> {
        let extent = self.extents.find(|extent| extent.length > 0)?;
        let is_hole = extent.state.has(ExtentState::ZERO);
        Some((if is_hole { ChunkKind::Hole } else { ChunkKind::Data }, extent.length))
    }
}

impl<I: Iterator<Item = StatusExtent>> Iterator for ReadChunks<I> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if self.remaining.length == 0 {
            return None;
        }
        let (kind, length) = self.run();
        // The range of a read does not exceed the maximum payload, which fits into 32 bits.
        let length = u32::try_from(length.min(self.remaining.length)).unwrap_or(u32::MAX);
        let (offset, reply_to) = (self.remaining.offset, self.reply_to);
        self.remaining.offset = offset.saturating_add(length.into());
        self.remaining.length = self.remaining.length.saturating_sub(length.into());
        Some(Chunk { reply_to, kind, offset, length, is_last: self.remaining.length == 0 })
    }
}
