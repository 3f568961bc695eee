//! User-space ends of the four rings of an AF_XDP socket (the kernel's `networking/af_xdp`,
//! "Rings").
//!
//! Each ring has one producer and one consumer, one of which is the kernel. Indices are
//! free-running 32-bit numbers; the position of an entry is its index modulo the number of entries.

use core::marker::PhantomData;

use super::ring_cells::{MappedCells, RingCells};

/// Producer end of a ring that the kernel consumes: fill or TX.
#[derive(Debug)]
pub(super) struct Producer<T, C = MappedCells<T>> {
    cells: C,
    /// Index of the next entry to write. Entries before it belong to the kernel after
    /// [`Producer::submit`].
    next: u32,
    marker: PhantomData<T>,
}

impl<T, C: RingCells<T>> Producer<T, C> {
    /// Creates the producer's end, which continues at the index in the ring.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.producer_index();
        Self { cells, next, marker: PhantomData }
    }

    /// Returns the number of entries that the kernel has not consumed, including those not
    /// submitted.
    #[inline]
    pub(super) fn unconsumed_count(&self) -> u32 {
        self.next.wrapping_sub(self.cells.consumer_index()).min(self.cells.len())
    }

    /// Returns the number of free entries.
    #[inline]
    pub(super) fn free_slots(&self) -> u32 {
        self.cells.len() - self.unconsumed_count()
    }

    /// Writes an entry, which [`Producer::submit`] will publish. Returns false, without writing, if
    /// the ring is full.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.free_slots() == 0 {
            return false;
        }
        // The kernel has taken the old entry; `submit` publishes the new one.
        self.cells.write(self.next, entry);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Submits the pushed entries to the kernel.
    #[inline]
    pub(super) fn submit(&mut self) {
        self.cells.set_producer_index(self.next);
    }

    /// Returns true if the kernel does not process this ring until a system call wakes it. The
    /// kernel sets the flag before it reads the ring for the last time, so that the caller must
    /// submit its entries before this call.
    #[inline]
    pub(super) fn requires_wakeup(&self) -> bool {
        self.cells.full_barrier();
        self.cells.is_wakeup_required()
    }
}

/// Consumer end of a ring that the kernel fills: RX or completion.
#[derive(Debug)]
pub(super) struct Consumer<T, C = MappedCells<T>> {
    cells: C,
    next: u32,
    /// Number of entries from `next` on that were filled at the last call of
    /// [`Consumer::available`].
    known: u32,
    marker: PhantomData<T>,
}

impl<T, C: RingCells<T>> Consumer<T, C> {
    /// Creates the consumer's end, which continues at the index in the ring.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.consumer_index();
        Self { cells, next, known: 0, marker: PhantomData }
    }

    /// Returns the number of filled entries; reads the producer's index.
    #[inline]
    pub(super) fn available(&mut self) -> u32 {
        self.known = self.cells.producer_index().wrapping_sub(self.next).min(self.cells.len());
        self.known
    }

    /// Returns the entry at position `index` of those counted by [`Consumer::available`]; `None`
    /// beyond these. The kernel does not overwrite them before [`Consumer::release`].
    #[inline]
    pub(super) fn peek(&self, index: u32) -> Option<T> {
        (index < self.known).then(|| self.cells.read(self.next.wrapping_add(index)))
    }

    /// Returns the first `count` entries counted by [`Consumer::available`] to the kernel.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        let count = count.min(self.known);
        self.known -= count;
        self.next = self.next.wrapping_add(count);
        self.cells.set_consumer_index(self.next);
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
