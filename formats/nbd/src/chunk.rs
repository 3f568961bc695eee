//! What a read is answered with, piece by piece (section "Request types",
//! `NBD_CMD_READ`).

use crate::command::ByteRange;
use crate::extent::{Extent, ExtentState};
use crate::octets::NoRoom;
use crate::reply::{ReplyTo, kind};

/// What a piece of a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Bytes, which follow its head.
    Data,
    /// Zeroes, which are not sent.
    Hole,
}

/// A piece of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    reply_to: ReplyTo,
    kind: ChunkKind,
    offset: u64,
    length: u32,
    is_last: bool,
}

impl Chunk {
    /// What it is.
    pub const fn kind(&self) -> ChunkKind {
        self.kind
    }

    /// Where it begins, in bytes from the export's beginning.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes it stands for.
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Whether it completes the reply.
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Encodes its head; [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX) bytes are enough.
    /// Returns how many it has. The bytes of a [`ChunkKind::Data`] are to be sent behind.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn encode_head(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        if !self.reply_to.framing.has_chunks() {
            return Ok(self.reply_to.simple(0, out)?.written());
        }
        let length = self.length as usize;
        let writer = match self.kind {
            ChunkKind::Data => {
                let payload = length.saturating_add(8);
                let mut writer =
                    self.reply_to.chunk(kind::OFFSET_DATA, self.is_last, payload, 8, out)?;
                writer.u64(self.offset);
                writer
            }
            ChunkKind::Hole => {
                let mut writer =
                    self.reply_to.chunk(kind::OFFSET_HOLE, self.is_last, 12, 12, out)?;
                writer.u64(self.offset);
                writer.u32(self.length);
                writer
            }
        };
        Ok(writer.written())
    }
}

/// The pieces that answer a read, in the order of their offsets: extents that read as
/// zeroes become holes, neighbours of one kind become one. Made by
/// [`Transmission::read_chunks`](crate::Transmission::read_chunks).
#[derive(Clone, Debug)]
pub struct ReadChunks<I: Iterator<Item = Extent>> {
    reply_to: ReplyTo,
    /// What is left of the range.
    rest: ByteRange,
    in_one: bool,
    extents: I,
    /// What is left of the extent at hand, which the range has reached.
    at_hand: Option<(ChunkKind, u64)>,
}

impl<I: Iterator<Item = Extent>> ReadChunks<I> {
    pub(crate) fn new(
        reply_to: ReplyTo,
        range: ByteRange,
        dont_fragment: bool,
        extents: I,
    ) -> Self {
        let in_one = dont_fragment || !reply_to.framing.has_chunks();
        Self { reply_to, rest: range, in_one, extents, at_hand: None }
    }

    /// The kind and the length of the bytes that come next: of as many extents as are of
    /// one kind, within the range. What no extent tells of is data.
    fn run(&mut self) -> (ChunkKind, u64) {
        if self.in_one {
            return (ChunkKind::Data, self.rest.length);
        }
        let (kind, mut length) = self
            .at_hand
            .take()
            .or_else(|| self.next_extent())
            .unwrap_or((ChunkKind::Data, u64::MAX));
        while length < self.rest.length {
            let next = self.next_extent().unwrap_or((ChunkKind::Data, u64::MAX));
            if next.0 != kind {
                self.at_hand = Some(next);
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

impl<I: Iterator<Item = Extent>> Iterator for ReadChunks<I> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if self.rest.length == 0 {
            return None;
        }
        let (kind, length) = self.run();
        // No read is longer than the longest payload.
        let length = u32::try_from(length.min(self.rest.length)).unwrap_or(u32::MAX);
        let (offset, reply_to) = (self.rest.offset, self.reply_to);
        self.rest.offset = offset.saturating_add(length.into());
        self.rest.length = self.rest.length.saturating_sub(length.into());
        Some(Chunk { reply_to, kind, offset, length, is_last: self.rest.length == 0 })
    }
}
