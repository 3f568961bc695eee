//! A batch of frames on their way through the switch.

use crate::Frame;

/// Most frames in one batch.
pub const BATCH_FRAMES_MAX: usize = 32;

/// A batch takes no further frame once it holds this many bytes, so that a batch
/// of large frames still fits a second-level cache.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Up to [`BATCH_FRAMES_MAX`] frames in buffers that are made once.
///
/// To receive: take [`FrameBatch::spare`], fill it, [`FrameBatch::commit`].
pub struct FrameBatch {
    slots: Vec<Frame>,
    filled: usize,
    bytes: usize,
    has_tails: bool,
}

impl FrameBatch {
    /// An empty batch; allocates all its buffers.
    pub fn new() -> Self {
        Self {
            slots: (0..BATCH_FRAMES_MAX).map(Frame::new).collect(),
            filled: 0,
            bytes: 0,
            has_tails: false,
        }
    }

    /// Empties the batch, and takes their tails from its frames.
    pub fn clear(&mut self) {
        if self.has_tails {
            self.has_tails = false;
            self.frames_mut().iter_mut().for_each(Frame::reset);
        }
        self.filled = 0;
        self.bytes = 0;
    }

    /// The next frame to fill, empty; `None` if the batch is full. It joins the
    /// batch with [`FrameBatch::commit`].
    #[inline]
    pub fn spare(&mut self) -> Option<&mut Frame> {
        if self.bytes >= BATCH_BYTES_MAX {
            return None;
        }
        let frame = self.slots.get_mut(self.filled)?;
        frame.reset();
        Some(frame)
    }

    /// Takes the frame that [`FrameBatch::spare`] gave out into the batch.
    #[inline]
    pub fn commit(&mut self) {
        if let Some(frame) = self.slots.get(self.filled) {
            self.bytes += frame.len();
            self.has_tails |= frame.has_tail();
            self.filled += 1;
        }
    }

    /// Frames in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether the batch holds no frame.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Bytes of all the frames when they were committed.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a frame had a tail when it was committed.
    #[inline]
    pub fn has_tails(&self) -> bool {
        self.has_tails
    }

    /// The frames, in the order of arrival.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        self.slots.get(..self.filled).unwrap_or_default()
    }

    /// The frames, to be changed in place or exchanged for others.
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
        while let Some(frame) = batch.spare() {
            frame.fill(&[0; 64]);
            batch.commit();
        }
        assert_eq!(batch.len(), BATCH_FRAMES_MAX);
        batch.clear();
        while let Some(frame) = batch.spare() {
            frame.fill(&[0; 65_000]);
            batch.commit();
        }
        assert_eq!(batch.len(), BATCH_BYTES_MAX.div_ceil(65_000));
    }
}
