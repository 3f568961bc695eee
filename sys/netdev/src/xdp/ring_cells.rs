//! Fields and entries of an AF_XDP ring in memory shared with the kernel.
#![allow(unsafe_code, reason = "rings are memory shared with the kernel")]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use std::io;

use super::memory::Mapping;

/// Access to the fields and entries of a ring in shared memory. Tests simulate it.
pub(super) trait RingCells<T> {
    /// Returns the number of entries, a power of two.
    fn len(&self) -> u32;
    /// Loads the producer's index, which is after the last entry, with acquire ordering: entries
    /// read afterwards are those that the producer wrote before.
    fn producer_index(&self) -> u32;
    /// Stores the producer's index with release ordering: a reader of the index sees entries
    /// written before.
    fn set_producer_index(&self, index: u32);
    /// Loads the consumer's index, which is that of the first entry not consumed, with acquire
    /// ordering: entries are overwritten only after the consumer has read them.
    fn consumer_index(&self) -> u32;
    /// Stores the consumer's index with release ordering: reads of entries before it precede writes
    /// of a reader of the index.
    fn set_consumer_index(&self, index: u32);
    /// Returns true if the kernel does not process this ring until a system call wakes it
    /// (`XDP_RING_NEED_WAKEUP`).
    fn is_wakeup_required(&self) -> bool;
    /// Executes a full memory barrier: earlier stores are visible before later loads are executed.
    fn full_barrier(&self);
    /// Reads the entry at an index, taken modulo the number of entries.
    fn read(&self, index: u32) -> T;
    /// Writes the entry at an index, taken modulo the number of entries.
    fn write(&mut self, index: u32, entry: T);
}

/// Type of a ring's entries. Any bytes are a valid value.
pub(super) trait Entry: Copy {}

/// Entry of the fill and completion rings: offset of a chunk in the UMEM.
impl Entry for u64 {}
/// Entry of the receive and transmit rings: descriptor of a part of a frame.
impl Entry for libc::xdp_desc {}

/// Ring of entries `T` in mapped memory.
#[derive(Debug)]
pub(super) struct MappedCells<T> {
    map: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// Mask of an entry's position in an index: the number of entries, which is a power of two,
    /// minus one.
    mask: u32,
    marker: PhantomData<T>,
}

impl<T: Entry> MappedCells<T> {
    /// Creates the ring from the mapping and the kernel's offsets of its fields.
    ///
    /// # Errors
    /// A field is not within the mapping or not aligned, or `entries` is not a power of two.
    pub(super) fn new(
        map: Mapping,
        offsets: &libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let check_offset = |offset: u64, bytes: usize, alignment: usize| {
            let offset = usize::try_from(offset).ok()?;
            let is_valid = offset.checked_add(bytes)? <= map.bytes() && offset % alignment == 0;
            is_valid.then_some(offset)
        };
        let word_offset = |offset| check_offset(offset, size_of::<u32>(), align_of::<u32>());
        let entry_bytes = (entries as usize).saturating_mul(size_of::<T>());
        let layout = (|| {
            let producer = word_offset(offsets.producer)?;
            let (consumer, flags) = (word_offset(offsets.consumer)?, word_offset(offsets.flags)?);
            Some((
                producer,
                consumer,
                flags,
                check_offset(offsets.desc, entry_bytes, align_of::<T>())?,
            ))
        })();
        let (Some((producer, consumer, flags, first)), true) = (layout, entries.is_power_of_two())
        else {
            return Err(io::Error::other("the kernel's ring does not fit its mapping"));
        };
        let mask = entries - 1;
        Ok(Self { map, producer, consumer, flags, entries: first, mask, marker: PhantomData })
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `new` saw that the word lies in the mapping, aligned; both sides of a
        // ring use it as an atomic only, and it lives as long as the mapping.
        unsafe { AtomicU32::from_ptr(self.map.start().as_ptr().add(offset).cast()) }
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut T {
        let cell = (index & self.mask) as usize;
        // SAFETY: `new` saw that all entries lie in the mapping, aligned.
        unsafe { self.map.start().as_ptr().add(self.entries).cast::<T>().add(cell) }
    }
}

impl<T: Entry> RingCells<T> for MappedCells<T> {
    #[inline]
    fn len(&self) -> u32 {
        self.mask + 1
    }

    #[inline]
    fn producer_index(&self) -> u32 {
        self.word(self.producer).load(Ordering::Acquire)
    }

    #[inline]
    fn set_producer_index(&self, index: u32) {
        self.word(self.producer).store(index, Ordering::Release);
    }

    #[inline]
    fn consumer_index(&self) -> u32 {
        self.word(self.consumer).load(Ordering::Acquire)
    }

    #[inline]
    fn set_consumer_index(&self, index: u32) {
        self.word(self.consumer).store(index, Ordering::Release);
    }

    #[inline]
    fn is_wakeup_required(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    #[inline]
    fn full_barrier(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn read(&self, index: u32) -> T {
        // SAFETY: the entry is in the ring, aligned, and any bytes are a valid entry. No code of
        // this process writes it while `self` is borrowed. A kernel that breaks the protocol may;
        // the result is then any value that was stored there.
        unsafe { self.entry(index).read_volatile() }
    }

    #[inline]
    fn write(&mut self, index: u32, entry: T) {
        // SAFETY: the entry is in the ring, aligned; no other code of this process accesses it,
        // because `self` is borrowed mutably.
        unsafe { self.entry(index).write_volatile(entry) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_with_invalid_offsets_are_refused() {
        const PLACES: libc::xdp_ring_offset =
            libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 8 };
        let refused = |offsets, entries| {
            let map = Mapping::anonymous(4096).unwrap();
            MappedCells::<u64>::new(map, &offsets, entries).is_err()
        };
        assert!(!refused(PLACES, 8));
        assert!(refused(PLACES, 7) && refused(PLACES, 0) && refused(PLACES, 1 << 20));
        for invalid in [2, 4093, 4096, u64::MAX, u64::MAX - 3] {
            assert!(refused(libc::xdp_ring_offset { producer: invalid, ..PLACES }, 8));
            assert!(refused(libc::xdp_ring_offset { desc: invalid, ..PLACES }, 8));
        }
    }
}
