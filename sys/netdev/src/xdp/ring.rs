//! Our ends of the four rings of an AF_XDP socket (the kernel's `networking/af_xdp`,
//! "Rings").
//!
//! Each has one producer and one consumer, one of which is the kernel. Indices run on
//! freely; an entry's place is its index without the upper bits.

use core::marker::PhantomData;

use super::ring_cells::MappedCells;

/// What both sides of a ring read and write.
pub(super) trait RingCells<T> {
    /// Entries, a power of two.
    fn len(&self) -> u32;
    /// The index behind the last entry. What is read after this was written before the
    /// producer set it.
    fn producer(&self) -> u32;
    /// What was written before this is seen by whoever sees the index.
    fn set_producer(&self, index: u32);
    /// The index of the first entry that was not taken. What is written after this is
    /// written after the consumer read what was there.
    fn consumer(&self) -> u32;
    /// What was read before this was read before whoever sees the index writes.
    fn set_consumer(&self, index: u32);
    /// Whether the kernel sleeps over this ring until it is woken by a call.
    fn wants_wakeup(&self) -> bool;
    /// What is read after this is read after all that was written before is seen.
    fn full_barrier(&self);
    /// The entry at an index without its upper bits.
    fn read(&self, index: u32) -> T;
    /// Writes the entry at an index without its upper bits.
    fn write(&mut self, index: u32, entry: T);
}

/// Our end of a ring that the kernel takes from: fill or TX.
#[derive(Debug)]
pub(super) struct Producer<T, C = MappedCells<T>> {
    cells: C,
    /// The next to be written; those below it are the kernel's after
    /// [`Producer::submit`].
    next: u32,
    of: PhantomData<T>,
}

impl<T, C: RingCells<T>> Producer<T, C> {
    /// Goes on where the ring stands.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.producer();
        Self { cells, next, of: PhantomData }
    }

    /// Entries that were submitted and that the kernel has not taken yet, with those that
    /// were not submitted.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.cells.consumer()).min(self.cells.len())
    }

    /// Room for entries.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.cells.len() - self.waiting()
    }

    /// Adds an entry, for which there must be room; without room it is not added.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // The kernel has taken what was there, and is told of the new one by `submit`.
        self.cells.write(self.next, entry);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Gives the kernel what was pushed.
    #[inline]
    pub(super) fn submit(&mut self) {
        self.cells.set_producer(self.next);
    }

    /// Whether the kernel sleeps over this ring until it is woken by a call. It says so
    /// before it looks for entries the last time: who asks must have shown his before.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.cells.full_barrier();
        self.cells.wants_wakeup()
    }
}

/// Our end of a ring that the kernel fills: RX or completion.
#[derive(Debug)]
pub(super) struct Consumer<T, C = MappedCells<T>> {
    cells: C,
    next: u32,
    /// Entries from `next` on that are known to be there.
    known: u32,
    of: PhantomData<T>,
}

impl<T, C: RingCells<T>> Consumer<T, C> {
    /// Goes on where the ring stands.
    pub(super) fn new(cells: C) -> Self {
        let next = cells.consumer();
        Self { cells, next, known: 0, of: PhantomData }
    }

    /// Looks how many entries are there.
    #[inline]
    pub(super) fn look(&mut self) -> u32 {
        self.known = self.cells.producer().wrapping_sub(self.next).min(self.cells.len());
        self.known
    }

    /// The entry so many places on, of those that [`Consumer::look`] counted: the kernel
    /// does not write them again before [`Consumer::release`].
    #[inline]
    pub(super) fn peek(&self, nth: u32) -> Option<T> {
        (nth < self.known).then(|| self.cells.read(self.next.wrapping_add(nth)))
    }

    /// Gives so many places back to the kernel, of those that [`Consumer::look`] counted.
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
