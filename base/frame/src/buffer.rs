//! The buffer a frame lives in.

use core::fmt;
use std::sync::Arc;

use crate::FrameMeta;
use crate::tail::{Span, Tail, TailMemory, TailReader};

/// The longest frame inside the switch, untagged: an Ethernet header and the
/// largest IPv6 packet without a jumbo option (14 + 40 + 65 535), rounded up.
pub const FRAME_BYTES_MAX: usize = 65_600;

/// Room behind the longest frame, so that a longer one is seen to be longer
/// instead of being cut.
const OVERRUN_BYTES: usize = 64;

/// Start positions differ from buffer to buffer by this much, because buffers
/// of one size otherwise put every frame's first line into the same cache set.
const STAGGER_BYTES: usize = 128;
const STAGGER_STEPS: usize = 32;

/// One frame: its bytes, without VLAN tag and FCS, and what is known of them.
///
/// The buffer is made once and filled again and again; `reset`, write into
/// [`Frame::space_mut`], then [`Frame::set_len`].
///
/// A large frame may have a *tail*: its first bytes are in the buffer, all headers
/// among them, and the rest still lies with its source ([`Frame::set_tail`]). Its
/// length is that of the whole. Who needs more than the headers calls
/// [`Frame::gather`] first; [`Frame::copy_from`], [`segment`](crate::segment()) and
/// [`complete_checksum`](crate::complete_checksum) do so themselves.
pub struct Frame {
    store: Box<[u8]>,
    headroom: usize,
    start: usize,
    len: usize,
    /// Bytes in the buffer: all of them, if there is no tail.
    held: usize,
    tail: Tail,
    /// What is known beside the bytes.
    pub meta: FrameMeta,
}

impl Frame {
    /// An empty frame. `position` is its place among its fellows and staggers
    /// its start in memory.
    pub fn new(position: usize) -> Self {
        let headroom = (position % STAGGER_STEPS) * STAGGER_BYTES;
        Self {
            store: vec![0; headroom + FRAME_BYTES_MAX + OVERRUN_BYTES].into_boxed_slice(),
            headroom,
            start: headroom,
            len: 0,
            held: 0,
            tail: Tail::default(),
            meta: FrameMeta::default(),
        }
    }

    /// Empties the frame and forgets what was known of it.
    #[inline]
    pub fn reset(&mut self) {
        self.start = self.headroom;
        self.len = 0;
        self.held = 0;
        if self.has_tail() {
            self.tail.forget();
        }
        self.meta = FrameMeta::default();
    }

    /// The frame's bytes, from the destination address on, all of them. Not to be
    /// asked of a frame with a tail, which it would be without: see [`Frame::front`]
    /// and [`Frame::gather`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(!self.has_tail(), "a frame's tail was forgotten");
        self.front()
    }

    /// The frame's bytes, to be changed in place; as [`Frame::bytes`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        debug_assert!(!self.has_tail(), "a frame's tail was forgotten");
        self.front_mut()
    }

    /// The bytes before the tail, which are all if there is none. An admitted frame
    /// has all its headers here.
    #[inline]
    pub fn front(&self) -> &[u8] {
        self.store.get(self.start..self.start + self.held).unwrap_or_default()
    }

    /// The same, to be changed in place.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> &mut [u8] {
        self.store.get_mut(self.start..self.start + self.held).unwrap_or_default()
    }

    /// Whether a part of the frame still lies with its source.
    #[inline(always)]
    pub fn has_tail(&self) -> bool {
        !self.tail.is_none()
    }

    /// Says that the bytes behind those of [`Frame::set_len`] lie in these pieces of
    /// `memory`. They are to be readable until the frame is reset. A frame that grows
    /// longer than there is room for is cut to the room, as by [`Frame::set_len`].
    pub fn set_tail(&mut self, memory: Arc<dyn TailMemory>, spans: &[Span]) {
        let bytes = self.tail.set(memory, spans);
        self.len = self.held.saturating_add(bytes).min(self.store.len() - self.start);
    }

    /// The bytes behind [`Frame::front`], to be read.
    pub fn tail(&self) -> TailReader<'_> {
        self.tail.reader(self.len - self.held)
    }

    /// Reads the tail into the buffer, if there is one. Then the frame has none.
    #[inline]
    pub fn gather(&mut self) {
        if self.has_tail() {
            self.gather_tail();
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_tail(&mut self) {
        let (held, end) = (self.start + self.held, self.start + self.len);
        let mut tail = self.tail.reader(self.len - self.held);
        let count = self.store.get_mut(held..end).map_or(0, |room| tail.read(room));
        // It has as many bytes as it said; what was not read must not be shown.
        self.len = self.held + count;
        self.held = self.len;
        self.tail.forget();
    }

    /// All the room from the frame's first byte on, holding stale bytes; to be
    /// written by whoever receives, before [`Frame::set_len`].
    #[inline]
    pub fn space_mut(&mut self) -> &mut [u8] {
        self.store.get_mut(self.start..).unwrap_or_default()
    }

    /// Length in bytes, tail included.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the frame has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Declares how many bytes of [`Frame::space_mut`] are the frame; more than
    /// there is room for is cut to the room, which is more than [`FRAME_BYTES_MAX`],
    /// so that [`Frame::admit`] refuses such a frame. A tail is set behind it.
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        debug_assert!(!self.has_tail(), "the length of a frame that has a tail");
        self.len = len.min(self.store.len() - self.start);
        self.held = self.len;
    }

    /// Makes this a copy of `other`, metadata included, without a tail.
    pub fn copy_from(&mut self, other: &Self) {
        self.reset();
        self.set_len(other.len);
        if let Some((front, rest)) = self.front_mut().split_at_mut_checked(other.held) {
            front.copy_from_slice(other.front());
            other.tail().read(rest);
        }
        self.meta = other.meta;
    }

    /// Makes this a frame of these bytes, cut to [`FRAME_BYTES_MAX`].
    pub fn fill(&mut self, bytes: &[u8]) {
        self.reset();
        let bytes = bytes.get(..FRAME_BYTES_MAX).unwrap_or(bytes);
        self.set_len(bytes.len());
        self.bytes_mut().copy_from_slice(bytes);
    }

    /// Where the frame's first byte lies in its buffer.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The bytes of the buffer from `start` on, `len` of them, which is where the
    /// frame lies or lay.
    #[inline]
    pub(crate) fn bytes_of(&self, (start, len): (usize, usize)) -> &[u8] {
        self.store.get(start..start + len).unwrap_or_default()
    }

    /// Makes the frame begin at `start` of its buffer and have `len` bytes.
    #[inline]
    pub(crate) fn set_window(&mut self, (start, len): (usize, usize)) {
        self.start = start.min(self.store.len());
        self.set_len(len);
    }

    /// Moves the first byte `count` bytes towards the end; the bytes before it
    /// are no longer part of the frame.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let count = count.min(self.held);
        self.start += count;
        self.len -= count;
        self.held -= count;
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("len", &self.len).field("meta", &self.meta).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_never_grows_past_its_buffer() {
        let mut frame = Frame::new(31);
        frame.set_len(usize::MAX);
        assert_eq!(frame.admit_plain(), Err(crate::MalformedFrame::TooLong { len: frame.len() }));
        frame.reset();
        frame.set_len(FRAME_BYTES_MAX);
        assert_eq!(frame.admit_plain(), Ok(()));
        assert_eq!(frame.bytes().len(), frame.len());
        frame.reset();
        assert!(frame.is_empty());
    }
}
