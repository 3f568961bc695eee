//! Free chunks of a connection's memory, and the account of the chunks that use memory.
//!
//! A chunk is cold until its first use, and warm until its memory is returned to the system. Memory
//! of warm chunks, free or not, counts: up to [`PAYLOAD_RESERVED_BYTES`] towards the reservation of
//! the connection, and beyond towards the limits of its export, its peer and the host
//! ([`Share::take`]).
//!
//! Invariant: if no chunk is in use, a payload of [`PAYLOAD_RESERVED_BYTES`] or less gets chunks,
//! whatever other connections hold.

use core::ops::Range;
use std::sync::Arc;

use crate::budgets::Share;
use crate::level::PAYLOAD_RESERVED_BYTES;
use crate::memory::{CHUNK_BYTES, CHUNKS, SMALL_BYTES, SMALL_CHUNKS};

/// Maximum number of empty lists that a pool keeps, so that requests rarely allocate one: the queue
/// depth of most clients.
const SPARE_LISTS_MAX: usize = 64;

/// Maximum number of chunks whose memory one call of [`Pool::release_unused`] returns, which limits
/// the duration of the call.
const RELEASED_MAX: usize = 256;

/// Free chunks of one size. The most recently freed one is reused first, because it may still be in
/// the CPU's cache, and because the others can be released.
struct Stack {
    /// Free chunks, the most recently freed one last.
    free: Vec<u32>,
    /// Number of chunks that have not been used since creation, or since their memory was last
    /// returned to the system. They are at the start of `free`.
    cold: usize,
    /// Least number of free chunks since memory was last released: this many were not used.
    unused: usize,
    /// Number of chunks, free or not.
    count: usize,
    /// Size of a chunk in bytes.
    bytes: usize,
}

impl Stack {
    fn new(chunks: Range<u32>, bytes: usize) -> Self {
        let free: Vec<u32> = chunks.rev().collect();
        let count = free.len();
        Self { free, cold: count, unused: count, count, bytes }
    }

    fn is_unused(&self) -> bool {
        self.free.len() == self.count
    }

    /// Returns the memory of warm chunks in bytes.
    fn warm_bytes(&self) -> u64 {
        (self.count - self.cold) as u64 * self.bytes as u64
    }

    /// Returns the number of free warm chunks.
    fn spare(&self) -> usize {
        self.free.len() - self.cold
    }

    /// Returns the additional memory that this number of chunks needs, in bytes.
    fn growth(&self, chunks: usize) -> u64 {
        chunks.saturating_sub(self.spare()) as u64 * self.bytes as u64
    }

    /// Moves chunks to `taken`; there must be as many.
    fn take(&mut self, chunks: usize, taken: &mut Vec<u32>) {
        let from = self.free.len().saturating_sub(chunks);
        taken.extend(self.free.drain(from..).rev());
        self.cold = self.cold.min(from);
        self.unused = self.unused.min(from);
    }

    /// Makes the spare chunks up to position `end` cold. `release` receives adjacent ones.
    fn cool(&mut self, end: usize, release: &mut impl FnMut(Range<u32>)) {
        let Some(spare) = self.free.get_mut(self.cold..end) else { return };
        spare.sort_unstable_by(|a, b| b.cmp(a));
        for run in spare.chunk_by(|above, below| *above == *below + 1) {
            if let (Some(last), Some(first)) = (run.first(), run.last()) {
                release(*first..*last + 1);
            }
        }
        self.cold = end;
    }
}

/// Free chunks of a connection.
pub(crate) struct Pool {
    chunks: Stack,
    small: Stack,
    share: Arc<Share>,
    /// Bytes taken from the share beyond the reservation.
    surplus: u64,
    /// At most [`SPARE_LISTS_MAX`], each with capacity for at most [`CHUNKS`] indices.
    spare_lists: Vec<Vec<u32>>,
}

impl Pool {
    pub(crate) fn new(share: Arc<Share>) -> Self {
        Self {
            chunks: Stack::new(0..CHUNKS, CHUNK_BYTES),
            small: Stack::new(CHUNKS..CHUNKS + SMALL_CHUNKS, SMALL_BYTES),
            share,
            surplus: 0,
            spare_lists: Vec::new(),
        }
    }

    /// Takes chunks for this number of bytes; `None` if there are too few or the limits permit no
    /// more memory, in which case none is taken. `release` receives chunks whose memory must be
    /// returned to the system.
    pub(crate) fn take(
        &mut self,
        bytes: u64,
        release: &mut impl FnMut(Range<u32>),
    ) -> Option<Vec<u32>> {
        if bytes == 0 {
            return Some(Vec::new());
        }
        if bytes <= SMALL_BYTES as u64 && !self.small.free.is_empty() {
            let growth = self.small.growth(1);
            if self.may_grow(growth, 0) || (self.chunks.spare() == 0 && self.grow(growth)) {
                let mut taken = self.spare_lists.pop().unwrap_or_default();
                self.small.take(1, &mut taken);
                return Some(taken);
            }
        }
        let count = chunks_for(bytes);
        if count > self.chunks.free.len() {
            return None;
        }
        let growth = self.chunks.growth(count);
        if !self.may_grow(growth, 0) && !self.grow(growth) {
            // Spare small chunks are the only other memory of which something can be returned.
            self.small.cool(self.small.free.len(), release);
            if !self.grow(growth) {
                return None;
            }
        }
        let mut taken = self.spare_lists.pop().unwrap_or_default();
        self.chunks.take(count, &mut taken);
        Some(taken)
    }

    /// Returns true if [`Pool::take`] would succeed.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        let is_small = bytes <= SMALL_BYTES as u64 && !self.small.free.is_empty();
        if bytes == 0 || (is_small && self.may_reach(self.small.growth(1), 0)) {
            return true;
        }
        let count = chunks_for(bytes);
        let returned = self.small.spare() as u64 * SMALL_BYTES as u64;
        count <= self.chunks.free.len() && self.may_reach(self.chunks.growth(count), returned)
    }

    pub(crate) fn release(&mut self, mut chunks: Vec<u32>) {
        for chunk in chunks.drain(..) {
            let kind = if chunk < CHUNKS { &mut self.chunks } else { &mut self.small };
            kind.free.push(chunk);
        }
        // A list without memory saves no allocation.
        if chunks.capacity() > 0 && self.spare_lists.len() < SPARE_LISTS_MAX {
            self.spare_lists.push(chunks);
        }
    }

    /// Returns true if no chunk is in use.
    pub(crate) fn is_unused(&self) -> bool {
        self.chunks.is_unused() && self.small.is_unused()
    }

    /// Releases chunks that were not used since the last call. `release` receives chunks whose
    /// memory must be returned to the system. Returns true if spare chunks remain.
    pub(crate) fn release_unused(&mut self, release: &mut impl FnMut(Range<u32>)) -> bool {
        let mut left = RELEASED_MAX;
        for kind in [&mut self.chunks, &mut self.small] {
            let end = kind.unused.min(kind.cold + left);
            left -= end.saturating_sub(kind.cold);
            kind.cool(end, release);
            if kind.unused <= end {
                kind.unused = kind.free.len();
            }
        }
        let needed = self.warm_bytes().saturating_sub(PAYLOAD_RESERVED_BYTES);
        let over = self.surplus.saturating_sub(needed);
        if over > 0 {
            self.share.release(over);
            self.surplus -= over;
        }
        self.chunks.spare() > 0 || self.small.spare() > 0
    }

    /// Records that a request is delayed or processed in parts for lack of memory.
    pub(crate) fn note_shortage(&self) {
        self.share.note_shortage();
    }

    fn warm_bytes(&self) -> u64 {
        self.chunks.warm_bytes() + self.small.warm_bytes()
    }

    /// Returns the memory that must be taken from the share for `growth` more bytes, if `returned`
    /// bytes are returned before.
    fn missing(&self, growth: u64, returned: u64) -> u64 {
        let warm = self.warm_bytes().saturating_sub(returned);
        (warm + growth).saturating_sub(PAYLOAD_RESERVED_BYTES + self.surplus)
    }

    /// Returns true if the connection may use `growth` more bytes without taking any of the share.
    fn may_grow(&self, growth: u64, returned: u64) -> bool {
        growth == 0 || self.missing(growth, returned) == 0
    }

    /// Returns true if the connection may use `growth` more bytes, with what the share has.
    fn may_reach(&self, growth: u64, returned: u64) -> bool {
        self.may_grow(growth, returned) || self.share.has(self.missing(growth, returned))
    }

    /// Takes from the share what `growth` more bytes need. Returns false if a limit is reached.
    fn grow(&mut self, growth: u64) -> bool {
        let missing = if growth == 0 { 0 } else { self.missing(growth, 0) };
        let is_taken = missing == 0 || self.share.take(missing);
        self.surplus += if is_taken { missing } else { 0 };
        is_taken
    }

    /// Returns the number of empty lists that are kept.
    #[cfg(test)]
    pub(crate) fn spare_lists(&self) -> usize {
        self.spare_lists.len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.share.release(self.surplus);
    }
}

/// Returns the number of chunks for a payload.
fn chunks_for(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
