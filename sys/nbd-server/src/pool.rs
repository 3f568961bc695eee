//! Free chunks of a connection's memory, and the count of the chunks that use memory.
//!
//! A chunk is cold until its first use: the kernel has allocated no pages for it. It is then warm
//! until its memory is returned to the system. The memory of warm chunks is counted, whether or not
//! they are free. Up to [`PAYLOAD_RESERVED_BYTES`] count towards the reservation of the connection.
//! Further bytes count towards the limits of its export, its peer and the host
//! ([`ConnectionAccount::try_charge`]).
//!
//! Invariant: if no chunk is in use, chunks for a payload of up to [`PAYLOAD_RESERVED_BYTES`] are
//! available, regardless of the memory use of other connections.

use core::ops::Range;
use std::sync::Arc;

use crate::accounting::ConnectionAccount;
use crate::limit_level::PAYLOAD_RESERVED_BYTES;
use crate::memory::{CHUNK_BYTES, CHUNKS, SMALL_CHUNK_BYTES, SMALL_CHUNKS};

/// Maximum number of empty lists that a pool keeps for reuse: the queue depth of most clients.
const SPARE_LISTS_MAX: usize = 64;

/// Maximum number of chunks that one call of [`Pool::release_unused`] returns to the system. This
/// limits the duration of the call.
const RELEASED_MAX: usize = 256;

/// Free chunks of one size, in a stack. The most recently freed chunk is reused first, because it
/// may still be in the CPU's cache. The memory of the others can be released.
struct Stack {
    /// Indices of free chunks, in the order in which they were freed.
    free: Vec<u32>,
    /// Number of cold chunks: not used since creation, or since their memory was last returned to
    /// the system. They are at the start of `free`.
    cold: usize,
    /// Smallest number of free chunks since memory was last released: so many chunks were not used
    /// in this time.
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

    /// Returns the memory in bytes that taking `chunks` more chunks would allocate.
    fn growth(&self, chunks: usize) -> u64 {
        chunks.saturating_sub(self.spare()) as u64 * self.bytes as u64
    }

    /// Moves `chunks` free chunks to `list`. At least so many must be free.
    fn take(&mut self, chunks: usize, list: &mut Vec<u32>) {
        let start = self.free.len().saturating_sub(chunks);
        list.extend(self.free.drain(start..).rev());
        self.cold = self.cold.min(start);
        self.unused = self.unused.min(start);
    }

    /// Makes the free warm chunks before position `end` cold. Calls `release` with each range of
    /// adjacent ones, whose memory the caller returns to the system.
    fn cool(&mut self, end: usize, release: &mut impl FnMut(Range<u32>)) {
        let Some(spare) = self.free.get_mut(self.cold..end) else { return };
        spare.sort_unstable_by(|a, b| b.cmp(a));
        for run in spare.chunk_by(|previous, next| *previous == *next + 1) {
            if let (Some(last), Some(first)) = (run.first(), run.last()) {
                release(*first..*last + 1);
            }
        }
        self.cold = end;
    }
}

/// Free chunks of a connection, large and small.
pub(crate) struct Pool {
    chunks: Stack,
    small: Stack,
    share: Arc<ConnectionAccount>,
    /// Bytes taken from the connection's account in excess of the reservation.
    surplus: u64,
    /// Empty lists for reuse: at most [`SPARE_LISTS_MAX`], each with capacity for at most
    /// [`CHUNKS`] indices.
    spare_lists: Vec<Vec<u32>>,
}

impl Pool {
    pub(crate) fn new(share: Arc<ConnectionAccount>) -> Self {
        Self {
            chunks: Stack::new(0..CHUNKS, CHUNK_BYTES),
            small: Stack::new(CHUNKS..CHUNKS + SMALL_CHUNKS, SMALL_CHUNK_BYTES),
            share,
            surplus: 0,
            spare_lists: Vec::new(),
        }
    }

    /// Takes chunks for `bytes` bytes. Returns `None`, and takes nothing, if too few are free or
    /// the limits permit no more memory. Calls `release` with chunks whose memory the caller must
    /// return to the system.
    pub(crate) fn take(
        &mut self,
        bytes: u64,
        release: &mut impl FnMut(Range<u32>),
    ) -> Option<Vec<u32>> {
        if bytes == 0 {
            return Some(Vec::new());
        }
        if bytes <= SMALL_CHUNK_BYTES as u64 && !self.small.free.is_empty() {
            let growth = self.small.growth(1);
            if self.may_grow(growth, 0) || (self.chunks.spare() == 0 && self.grow(growth)) {
                let mut list = self.spare_lists.pop().unwrap_or_default();
                self.small.take(1, &mut list);
                return Some(list);
            }
        }
        let count = chunks_for(bytes);
        if count > self.chunks.free.len() {
            return None;
        }
        let growth = self.chunks.growth(count);
        if !self.may_grow(growth, 0) && !self.grow(growth) {
            // The only other memory that can be returned is that of free small chunks.
            self.small.cool(self.small.free.len(), release);
            if !self.grow(growth) {
                return None;
            }
        }
        let mut list = self.spare_lists.pop().unwrap_or_default();
        self.chunks.take(count, &mut list);
        Some(list)
    }

    /// Returns true if [`Pool::take`] would succeed.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        let is_small = bytes <= SMALL_CHUNK_BYTES as u64 && !self.small.free.is_empty();
        if bytes == 0 || (is_small && self.may_reach(self.small.growth(1), 0)) {
            return true;
        }
        let count = chunks_for(bytes);
        let returned = self.small.spare() as u64 * SMALL_CHUNK_BYTES as u64;
        count <= self.chunks.free.len() && self.may_reach(self.chunks.growth(count), returned)
    }

    pub(crate) fn release(&mut self, mut chunks: Vec<u32>) {
        for chunk in chunks.drain(..) {
            let kind = if chunk < CHUNKS { &mut self.chunks } else { &mut self.small };
            kind.free.push(chunk);
        }
        // An empty list without capacity would save no allocation.
        if chunks.capacity() > 0 && self.spare_lists.len() < SPARE_LISTS_MAX {
            self.spare_lists.push(chunks);
        }
    }

    /// Returns true if no chunk is in use.
    pub(crate) fn is_unused(&self) -> bool {
        self.chunks.is_unused() && self.small.is_unused()
    }

    /// Makes chunks cold that were not used since the last call; calls `release` with those whose
    /// memory the caller must return to the system. Returns true if free warm chunks remain.
    pub(crate) fn release_unused(&mut self, release: &mut impl FnMut(Range<u32>)) -> bool {
        let mut remaining = RELEASED_MAX;
        for kind in [&mut self.chunks, &mut self.small] {
            let end = kind.unused.min(kind.cold + remaining);
            remaining -= end.saturating_sub(kind.cold);
            kind.cool(end, release);
            if kind.unused <= end {
                kind.unused = kind.free.len();
            }
        }
        let required = self.warm_bytes().saturating_sub(PAYLOAD_RESERVED_BYTES);
        let excess = self.surplus.saturating_sub(required);
        if excess > 0 {
            self.share.release(excess);
            self.surplus -= excess;
        }
        self.chunks.spare() > 0 || self.small.spare() > 0
    }

    /// Records that a request is delayed or processed in parts for lack of memory.
    pub(crate) fn record_shortage(&self) {
        self.share.record_shortage();
    }

    fn warm_bytes(&self) -> u64 {
        self.chunks.warm_bytes() + self.small.warm_bytes()
    }

    /// Returns the number of bytes that the connection must take from its account before it uses
    /// `growth` more bytes, if it first returns `returned` bytes.
    fn missing(&self, growth: u64, returned: u64) -> u64 {
        let warm = self.warm_bytes().saturating_sub(returned);
        (warm + growth).saturating_sub(PAYLOAD_RESERVED_BYTES + self.surplus)
    }

    /// Returns true if the connection may use `growth` more bytes, after it returns `returned`,
    /// without taking more from its account.
    fn may_grow(&self, growth: u64, returned: u64) -> bool {
        growth == 0 || self.missing(growth, returned) == 0
    }

    /// Returns true if the connection may use `growth` more bytes, after it returns `returned`,
    /// including bytes that it can take from its account.
    fn may_reach(&self, growth: u64, returned: u64) -> bool {
        self.may_grow(growth, returned) || self.share.can_charge(self.missing(growth, returned))
    }

    /// Takes from the account what the connection needs to use `growth` more bytes. Returns false,
    /// and takes nothing, if a limit is reached.
    fn grow(&mut self, growth: u64) -> bool {
        let missing = if growth == 0 { 0 } else { self.missing(growth, 0) };
        let is_taken = missing == 0 || self.share.try_charge(missing);
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

/// Returns the number of large chunks for a payload of `bytes` bytes.
fn chunks_for(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
