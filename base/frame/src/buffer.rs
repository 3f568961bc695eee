//! Frame buffers.

use core::fmt;
use std::sync::Arc;

use crate::FrameMeta;
use crate::tail::{Span, Tail, TailMemory, TailReader};

/// Maximum length in bytes of an untagged frame inside the switch: an Ethernet header and the
/// largest IPv6 packet without jumbo option (14 + 40 + 65 535), rounded up.
pub const FRAME_BYTES_MAX: usize = 65_600;

/// Space behind the longest frame, so that an overlong frame is detected instead of truncated.
const OVERRUN_BYTES: usize = 64;

/// Offset between the start positions of successive buffers. Otherwise the first cache lines of
/// equally sized buffers map to the same cache set.
const STAGGER_BYTES: usize = 128;
const STAGGER_STEPS: usize = 32;

/// Frame: bytes without VLAN tag and FCS, and metadata.
///
/// The buffer is allocated once and reused: `reset`, write into [`Frame::space_mut`], then
/// [`Frame::set_len`].
///
/// A large frame may have a *tail*: the buffer contains its first bytes, including all headers, and
/// the rest remains in the memory of its source ([`Frame::set_tail`]). The length includes the
/// tail. Code that needs more than the headers calls [`Frame::linearize`] first;
/// [`Frame::copy_from`], [`segment`](crate::segment()) and
/// [`complete_checksum`](crate::complete_checksum) do so themselves.
pub struct Frame {
    store: Box<[u8]>,
    headroom: usize,
    start: usize,
    len: usize,
    /// Number of bytes in the buffer; equals `len` without a tail.
    filled: usize,
    tail: Tail,
    /// Metadata beside the frame's bytes.
    pub meta: FrameMeta,
}

impl Frame {
    /// Creates an empty frame. `position`: index among the frames of a batch, which staggers the
    /// start position.
    pub fn new(position: usize) -> Self {
        let headroom = (position % STAGGER_STEPS) * STAGGER_BYTES;
        Self {
            store: vec![0; headroom + FRAME_BYTES_MAX + OVERRUN_BYTES].into_boxed_slice(),
            headroom,
            start: headroom,
            len: 0,
            filled: 0,
            tail: Tail::default(),
            meta: FrameMeta::default(),
        }
    }

    /// Clears bytes, tail and metadata.
    #[inline]
    pub fn reset(&mut self) {
        self.start = self.headroom;
        self.len = 0;
        self.filled = 0;
        if self.has_tail() {
            self.tail.clear();
        }
        self.meta = FrameMeta::default();
    }

    /// Returns all bytes, starting with the destination address. Must not be called on a frame with
    /// a tail, which the result would lack; see [`Frame::head`] and [`Frame::linearize`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(!self.has_tail(), "a frame's tail was forgotten");
        self.head()
    }

    /// Returns all bytes for modification; restrictions as [`Frame::bytes`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        debug_assert!(!self.has_tail(), "a frame's tail was forgotten");
        self.head_mut()
    }

    /// Returns the bytes in the buffer: all bytes, or those before the tail. Contains the headers
    /// of an admitted frame.
    #[inline]
    pub fn head(&self) -> &[u8] {
        self.store.get(self.start..self.start + self.filled).unwrap_or_default()
    }

    /// Returns the bytes in the buffer, without the tail, for modification.
    #[inline]
    pub(crate) fn head_mut(&mut self) -> &mut [u8] {
        self.store.get_mut(self.start..self.start + self.filled).unwrap_or_default()
    }

    /// Returns true if a part of the frame remains in the memory of its source.
    #[inline(always)]
    pub fn has_tail(&self) -> bool {
        !self.tail.is_none()
    }

    /// Sets the tail: the bytes after those of [`Frame::set_len`] are in `spans` of `memory`, in
    /// this order. `memory` must remain readable until the frame is reset. The frame is truncated
    /// at the capacity, as by [`Frame::set_len`].
    pub fn set_tail(&mut self, memory: Arc<dyn TailMemory>, spans: &[Span]) {
        let bytes = self.tail.set(memory, spans);
        self.len = self.filled.saturating_add(bytes).min(self.store.len() - self.start);
    }

    /// Returns a reader of the bytes behind [`Frame::head`].
    pub fn tail(&self) -> TailReader<'_> {
        self.tail.reader(self.len - self.filled)
    }

    /// Copies the tail into the buffer. No-op without a tail.
    #[inline]
    pub fn linearize(&mut self) {
        if self.has_tail() {
            self.gather_tail();
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_tail(&mut self) {
        let (start, end) = (self.start + self.filled, self.start + self.len);
        let mut tail = self.tail.reader(self.len - self.filled);
        let count = self.store.get_mut(start..end).map_or(0, |space| tail.read(space));
        // A reader returns the announced number of bytes. If fewer were read, stale bytes of the
        // buffer must not be exposed.
        self.len = self.filled + count;
        self.filled = self.len;
        self.tail.clear();
    }

    /// Returns the buffer from the frame's first byte on, with stale contents. Sources write into
    /// it before [`Frame::set_len`].
    #[inline]
    pub fn space_mut(&mut self) -> &mut [u8] {
        self.store.get_mut(self.start..).unwrap_or_default()
    }

    /// Returns the length in bytes, including the tail.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the number of bytes of [`Frame::space_mut`] that form the frame. Truncated at the
    /// capacity, which exceeds [`FRAME_BYTES_MAX`], so that [`Frame::validate_ingress`] rejects
    /// such a frame. A tail is set afterwards.
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        debug_assert!(!self.has_tail(), "the length of a frame that has a tail");
        self.len = len.min(self.store.len() - self.start);
        self.filled = self.len;
    }

    /// Copies `other`, including metadata, into a contiguous frame.
    pub fn copy_from(&mut self, other: &Self) {
        self.reset();
        self.set_len(other.len);
        if let Some((front, rest)) = self.head_mut().split_at_mut_checked(other.filled) {
            front.copy_from_slice(other.head());
            other.tail().read(rest);
        }
        self.meta = other.meta;
    }

    /// Replaces the frame by these bytes, truncated to [`FRAME_BYTES_MAX`], and resets the
    /// metadata.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.reset();
        let bytes = bytes.get(..FRAME_BYTES_MAX).unwrap_or(bytes);
        self.set_len(bytes.len());
        self.bytes_mut().copy_from_slice(bytes);
    }

    /// Returns the position of the frame's first byte in the buffer.
    pub(crate) fn start_offset(&self) -> usize {
        self.start
    }

    /// Returns `len` bytes of the buffer from position `start`, the current or a former position of
    /// the frame; empty if they exceed the buffer.
    #[inline]
    pub(crate) fn window_bytes(&self, (start, len): (usize, usize)) -> &[u8] {
        self.store.get(start..start + len).unwrap_or_default()
    }

    /// Sets position and length of the frame in the buffer, in bytes. The bytes are unchanged.
    #[inline]
    pub(crate) fn set_window(&mut self, (start, len): (usize, usize)) {
        self.start = start.min(self.store.len());
        self.set_len(len);
    }

    /// Removes up to `count` bytes from the front of the frame.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.start += count;
        self.len -= count;
        self.filled -= count;
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
        assert_eq!(
            frame.validate_ingress_plain(),
            Err(crate::IngressError::TooLong { len: frame.len() })
        );
        frame.reset();
        frame.set_len(FRAME_BYTES_MAX);
        assert_eq!(frame.validate_ingress_plain(), Ok(()));
        assert_eq!(frame.bytes().len(), frame.len());
        frame.reset();
        assert!(frame.is_empty());
    }
}
