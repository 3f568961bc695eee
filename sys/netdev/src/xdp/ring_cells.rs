//! AF_XDP ring in memory shared with the kernel.
#![allow(unsafe_code, reason = "rings are memory shared with the kernel")]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use std::io;

use super::memory::Mapping;

/// Shared memory fields of a ring.
pub(super) trait RingCells<T> {
    /// Returns the number of entries, a power of two.
    fn len(&self) -> u32;
    /// Returns the index behind the last entry (acquire): entries read afterwards were written
    /// before the producer set it.
    fn producer(&self) -> u32;
    /// Sets the index behind the last entry (release): earlier writes are visible to a reader of
    /// the index.
    fn set_producer(&self, index: u32);
    /// Returns the index of the first entry not taken (acquire): entries written afterwards are
    /// written after the consumer read the old ones.
    fn consumer(&self) -> u32;
    /// Sets the index of the first entry not taken (release): earlier reads precede later writes of
    /// a reader of the index.
    fn set_consumer(&self, index: u32);
    /// True if the kernel does not process this ring until it is woken by a system call.
    fn is_wakeup_required(&self) -> bool;
    /// Makes earlier stores visible before later loads are executed.
    fn full_barrier(&self);
    /// Reads the entry at an index, whose upper bits are ignored.
    fn read(&self, index: u32) -> T;
    /// Writes the entry at an index, whose upper bits are ignored.
    fn write(&mut self, index: u32, entry: T);
}

/// Entry of a ring, for which any bytes are a valid value.
pub(super) trait Entry: Copy {}

/// Entry of the fill and completion rings: address of a chunk.
impl Entry for u64 {}
/// Entry of the receive and transmit rings: descriptor of a part of a frame.
impl Entry for libc::xdp_desc {}

/// Mapped ring of entries `T`.
#[derive(Debug)]
pub(super) struct MappedCells<T> {
    map: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// Number of entries less one; a mask, because the number is a power of two.
    mask: u32,
    marker: PhantomData<T>,
}

impl<T: Entry> MappedCells<T> {
    /// Creates the ring over a mapping.
    ///
    /// # Errors
    /// The kernel's offsets of the ring are not within the mapping or not aligned, or `entries` is
    /// not a power of two.
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
    fn producer(&self) -> u32 {
        self.word(self.producer).load(Ordering::Acquire)
    }

    #[inline]
    fn set_producer(&self, index: u32) {
        self.word(self.producer).store(index, Ordering::Release);
    }

    #[inline]
    fn consumer(&self) -> u32 {
        self.word(self.consumer).load(Ordering::Acquire)
    }

    #[inline]
    fn set_consumer(&self, index: u32) {
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
