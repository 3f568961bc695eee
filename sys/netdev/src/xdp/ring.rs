//! User-space ends of the four rings of an AF_XDP socket (the kernel's `networking/af_xdp`,
//! "Rings").
//!
//! Each ring has one producer and one consumer, one of which is the kernel. Indices are
//! free-running; an entry's position is its index without the upper bits.

use core::marker::PhantomData;

use super::ring_cells::{MappedCells, RingCells};

/// Producer end of a ring that the kernel consumes: fill or TX.
#[derive(Debug)]
pub(super) struct Producer<T, C = MappedCells<T>> {
    cells: C,
    /// Index of the next entry to write; entries before it belong to the kernel after
    /// [`Producer::submit`].
    next: u32,
    marker: PhantomData<T>,
}

impl<T, C: RingCells<T>> Producer<T, C> {
    /// Continues at the present position of the ring.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.producer();
        Self { cells, next, marker: PhantomData }
    }

    /// Returns the number of entries that the kernel has not taken yet, including those not
    /// submitted.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.cells.consumer()).min(self.cells.len())
    }

    /// Returns the number of free entries.
    #[inline]
    pub(super) fn free_slots(&self) -> u32 {
        self.cells.len() - self.waiting()
    }

    /// Adds an entry. Returns `false` without adding it if the ring is full.
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
        self.cells.set_producer(self.next);
    }

    /// True if the kernel does not process this ring until it is woken by a system call. The kernel
    /// sets the flag before it reads the ring for the last time, so the caller must submit its
    /// entries before this call.
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
    /// Number of entries from `next` on that are known to be filled.
    known: u32,
    marker: PhantomData<T>,
}

impl<T, C: RingCells<T>> Consumer<T, C> {
    /// Continues at the present position of the ring.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.consumer();
        Self { cells, next, known: 0, marker: PhantomData }
    }

    /// Reads the number of filled entries.
    #[inline]
    pub(super) fn available(&mut self) -> u32 {
        self.known = self.cells.producer().wrapping_sub(self.next).min(self.cells.len());
        self.known
    }

    /// Returns entry `index` of those counted by [`Consumer::available`]. The kernel does not
    /// overwrite them before [`Consumer::release`].
    #[inline]
    pub(super) fn peek(&self, index: u32) -> Option<T> {
        (index < self.known).then(|| self.cells.read(self.next.wrapping_add(index)))
    }

    /// Returns the first `count` of the entries counted by [`Consumer::available`] to the kernel.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        let count = count.min(self.known);
        self.known -= count;
        self.next = self.next.wrapping_add(count);
        self.cells.set_consumer(self.next);
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
