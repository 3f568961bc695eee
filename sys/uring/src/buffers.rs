//! Reused memory of operations: bounce buffers for misaligned payloads, and buffers for the
//! engine's own data.
//!
//! A buffer retains the bytes of its last use, so that no memory is zeroed per operation. Each
//! operation overwrites the bytes that it passes to the file or to its caller.

use crate::aligned::{AlignedBytes, PAGE_BYTES};

/// Largest class that is kept: class n has buffers of 2^n pages, so that the largest ones have 1
/// MiB.
const CLASS_MAX: usize = 8;
/// Maximum size of all kept buffers together, in bytes.
const POOLED_BYTES_MAX: usize = 8 << 20;

/// Unused buffers, by class (binary logarithm of their size in pages).
#[derive(Default)]
pub(crate) struct BufferPool {
    pooled: [Vec<AlignedBytes>; CLASS_MAX + 1],
    pooled_bytes: usize,
    /// Bytes of memory allocated so far because no kept buffer was large enough.
    #[cfg(test)]
    pub(crate) allocated_bytes: usize,
}

/// Returns the class of the buffers for `len` bytes; `None` if buffers of this size are not kept.
fn class(len: usize) -> Option<usize> {
    let pages = len.div_ceil(PAGE_BYTES).max(1).checked_next_power_of_two()?;
    Some(pages.trailing_zeros() as usize).filter(|class| *class <= CLASS_MAX)
}

impl BufferPool {
    /// Returns a buffer of `len` bytes with undefined contents.
    pub(crate) fn take(&mut self, len: usize) -> AlignedBytes {
        let pooled = class(len).and_then(|class| self.pooled.get_mut(class)?.pop());
        if let Some(mut buffer) = pooled {
            self.pooled_bytes -= buffer.capacity();
            buffer.set_len(len);
            return buffer;
        }
        let capacity = class(len).map_or(len, |class| PAGE_BYTES << class);
        #[cfg(test)]
        {
            self.allocated_bytes += capacity;
        }
        let mut buffer = AlignedBytes::zeroed(capacity);
        buffer.set_len(len);
        buffer
    }

    /// Keeps a buffer for later operations, or frees it if enough are kept.
    pub(crate) fn recycle(&mut self, buffer: AlignedBytes) {
        let capacity = buffer.capacity();
        let pool_class = class(capacity).filter(|class| PAGE_BYTES << class == capacity);
        let Some(pool) = pool_class.and_then(|class| self.pooled.get_mut(class)) else { return };
        if self.pooled_bytes + capacity <= POOLED_BYTES_MAX {
            self.pooled_bytes += capacity;
            pool.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_for_lengths_of_their_class() {
        let mut buffers = BufferPool::default();
        for len in [1, PAGE_BYTES, PAGE_BYTES / 2, 0] {
            let buffer = buffers.take(len);
            assert_eq!(buffer.as_slice().len(), len);
            buffers.recycle(buffer);
        }
        assert_eq!(buffers.allocated_bytes, PAGE_BYTES);
        for len in [3 * PAGE_BYTES, 4 * PAGE_BYTES, 2 * PAGE_BYTES + 1] {
            let buffer = buffers.take(len);
            buffers.recycle(buffer);
        }
        assert_eq!(
            (buffers.allocated_bytes, buffers.pooled_bytes),
            (5 * PAGE_BYTES, 5 * PAGE_BYTES)
        );
    }

    #[test]
    fn kept_buffers_are_bounded() {
        let mut buffers = BufferPool::default();
        let large = buffers.take(64 << 20);
        buffers.recycle(large);
        assert_eq!(buffers.pooled_bytes, 0, "too large to be kept");
        let list: Vec<_> = (0..20).map(|_| buffers.take(1 << 20)).collect();
        list.into_iter().for_each(|buffer| buffers.recycle(buffer));
        assert_eq!(buffers.pooled_bytes, POOLED_BYTES_MAX);
    }
}
