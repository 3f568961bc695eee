//! Batches of frames, the unit of work of the switch.

use crate::Frame;

/// Maximum number of frames in a batch.
pub const BATCH_FRAMES_MAX: usize = 32;

/// Number of bytes at which a batch accepts no further frame, so that a batch of large frames fits
/// a second-level cache.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Up to [`BATCH_FRAMES_MAX`] frames in preallocated buffers.
///
/// To receive: get [`FrameBatch::next_free_frame`], fill it, call [`FrameBatch::commit`].
pub struct FrameBatch {
    slots: Vec<Frame>,
    filled: usize,
    bytes: usize,
    has_tails: bool,
}

impl FrameBatch {
    /// Creates an empty batch and allocates its buffers.
    pub fn new() -> Self {
        Self {
            slots: (0..BATCH_FRAMES_MAX).map(Frame::new).collect(),
            filled: 0,
            bytes: 0,
            has_tails: false,
        }
    }

    /// Removes every frame and releases their tails.
    pub fn clear(&mut self) {
        if self.has_tails {
            self.has_tails = false;
            self.frames_mut().iter_mut().for_each(Frame::reset);
        }
        self.filled = 0;
        self.bytes = 0;
    }

    /// Returns the next empty frame to fill; `None` if the batch is full. [`FrameBatch::commit`]
    /// adds it to the batch.
    #[inline]
    pub fn next_free_frame(&mut self) -> Option<&mut Frame> {
        if self.bytes >= BATCH_BYTES_MAX {
            return None;
        }
        let frame = self.slots.get_mut(self.filled)?;
        frame.reset();
        Some(frame)
    }

    /// Adds the frame returned by [`FrameBatch::next_free_frame`] to the batch.
    #[inline]
    pub fn commit(&mut self) {
        if let Some(frame) = self.slots.get(self.filled) {
            self.bytes += frame.len();
            self.has_tails |= frame.has_tail();
            self.filled += 1;
        }
    }

    /// Returns the number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Returns true if the batch has no frame.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns the total length of the frames at the time of their commit, in bytes.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if any frame had a tail when it was committed.
    #[inline]
    pub fn has_tails(&self) -> bool {
        self.has_tails
    }

    /// Returns the frames in order of arrival.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        self.slots.get(..self.filled).unwrap_or_default()
    }

    /// Returns the frames for modification or replacement.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        self.slots.get_mut(..self.filled).unwrap_or_default()
    }
}

impl Default for FrameBatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_by_frames_or_by_bytes() {
        let mut batch = FrameBatch::new();
        while let Some(frame) = batch.next_free_frame() {
            frame.set_bytes(&[0; 64]);
            batch.commit();
        }
        assert_eq!(batch.len(), BATCH_FRAMES_MAX);
        batch.clear();
        while let Some(frame) = batch.next_free_frame() {
            frame.set_bytes(&[0; 65_000]);
            batch.commit();
        }
        assert_eq!(batch.len(), BATCH_BYTES_MAX.div_ceil(65_000));
    }
}
