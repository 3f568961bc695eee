//! The four rings of an AF_XDP socket (the kernel's `networking/af_xdp`, "Rings").
//!
//! Each has one producer and one consumer, one of which is the kernel. Indices run on
//! freely; an entry's place is its index without the upper bits.
#![allow(unsafe_code, reason = "rings are memory shared with the kernel")]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

use super::memory::Mapping;

/// What rings carry.
pub(super) trait Entry: Copy {}

/// The address of a chunk.
impl Entry for u64 {}
/// A piece of a frame.
impl Entry for libc::xdp_desc {}

/// A mapped ring.
#[derive(Debug)]
struct Ring<T> {
    map: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// Entries, less one: a power of two, less one.
    mask: u32,
    of: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    /// # Errors
    /// What the kernel says of the ring's places does not fit the mapping.
    fn new(map: Mapping, places: &libc::xdp_ring_offset, entries: u32) -> io::Result<Self> {
        let place = |at: u64, bytes: usize, alignment: usize| {
            let at = usize::try_from(at).ok()?;
            let fits = at.checked_add(bytes)? <= map.bytes() && at % alignment == 0;
            fits.then_some(at)
        };
        let word = |at| place(at, size_of::<u32>(), align_of::<u32>());
        let entry_bytes = (entries as usize).saturating_mul(size_of::<T>());
        let found = (|| {
            let producer = word(places.producer)?;
            let (consumer, flags) = (word(places.consumer)?, word(places.flags)?);
            Some((producer, consumer, flags, place(places.desc, entry_bytes, align_of::<T>())?))
        })();
        let (Some((producer, consumer, flags, first)), true) = (found, entries.is_power_of_two())
        else {
            return Err(io::Error::other("the kernel's ring is not where it says it is"));
        };
        let mask = entries - 1;
        Ok(Self { map, producer, consumer, flags, entries: first, mask, of: PhantomData })
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `new` saw that the word lies in the mapping, aligned; both sides of a
        // ring use it as an atomic only, and it lives as long as the mapping.
        unsafe { AtomicU32::from_ptr(self.map.start().as_ptr().add(at).cast()) }
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut T {
        let place = (index & self.mask) as usize;
        // SAFETY: `new` saw that all entries lie in the mapping, aligned.
        unsafe { self.map.start().as_ptr().add(self.entries).cast::<T>().add(place) }
    }

    fn len(&self) -> u32 {
        self.mask + 1
    }

    /// Whether the kernel sleeps over this ring until it is woken by a call.
    #[inline]
    fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// Our end of a ring that the kernel takes from: fill or TX.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The next to be written; those below it are the kernel's after
    /// [`Producer::submit`].
    next: u32,
}

impl<T: Entry> Producer<T> {
    /// # Errors
    /// As [`Ring::new`].
    pub(super) fn new(
        map: Mapping,
        places: &libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let ring = Ring::new(map, places, entries)?;
        let next = ring.word(ring.producer).load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Entries that were submitted and that the kernel has not taken yet, with those that
    /// were not submitted.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        let taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        self.next.wrapping_sub(taken).min(self.ring.len())
    }

    /// Room for entries.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.ring.len() - self.waiting()
    }

    /// Adds an entry, for which there must be room; without room it is not added.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: the place lies in the ring, and the kernel does not look at it: it has
        // taken what was there, and it is told of the new one by `submit`.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Gives the kernel what was pushed.
    #[inline]
    pub(super) fn submit(&mut self) {
        self.ring.word(self.ring.producer).store(self.next, Ordering::Release);
    }

    /// Whether the kernel sleeps over this ring until it is woken by a call.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// Our end of a ring that the kernel fills: RX or completion.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    next: u32,
    /// Entries from `next` on that are known to be there.
    known: u32,
}

impl<T: Entry> Consumer<T> {
    /// # Errors
    /// As [`Ring::new`].
    pub(super) fn new(
        map: Mapping,
        places: &libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let ring = Ring::new(map, places, entries)?;
        let next = ring.word(ring.consumer).load(Ordering::Relaxed);
        Ok(Self { ring, next, known: 0 })
    }

    /// Looks how many entries are there.
    #[inline]
    pub(super) fn look(&mut self) -> u32 {
        let there = self.ring.word(self.ring.producer).load(Ordering::Acquire);
        self.known = there.wrapping_sub(self.next).min(self.ring.len());
        self.known
    }

    /// The entry so many places on, of those that [`Consumer::look`] counted.
    #[inline]
    pub(super) fn peek(&self, nth: u32) -> Option<T> {
        if nth >= self.known {
            return None;
        }
        let entry = self.ring.entry(self.next.wrapping_add(nth));
        // SAFETY: the place lies in the ring; the kernel has written it, which `look` saw
        // with an acquiring load, and does not write it again before `release`. Any bytes
        // are a valid entry.
        Some(unsafe { entry.read() })
    }

    /// Gives so many places back to the kernel, of those that [`Consumer::look`] counted.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        let count = count.min(self.known);
        self.known -= count;
        self.next = self.next.wrapping_add(count);
        self.ring.word(self.ring.consumer).store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: u32 = 8;
    const PLACES: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 8 };

    fn map() -> Mapping {
        Mapping::anonymous(4096).unwrap()
    }

    #[test]
    fn rings_whose_places_are_wrong_are_refused() {
        let refused = |places, entries| Consumer::<u64>::new(map(), &places, entries).is_err();
        assert!(!refused(PLACES, ENTRIES));
        assert!(refused(PLACES, 7) && refused(PLACES, 0) && refused(PLACES, 1 << 20));
        for wrong in [2, 4093, 4096, u64::MAX, u64::MAX - 3] {
            assert!(refused(libc::xdp_ring_offset { producer: wrong, ..PLACES }, ENTRIES));
            assert!(refused(libc::xdp_ring_offset { desc: wrong, ..PLACES }, ENTRIES));
        }
    }

    #[test]
    fn a_full_ring_takes_nothing_and_indices_run_over() {
        let mut ring = Producer::<u64>::new(map(), &PLACES, ENTRIES).unwrap();
        let start = u32::MAX - 3;
        ring.next = start;
        ring.ring.word(ring.ring.consumer).store(start, Ordering::Relaxed);
        for entry in 0..u64::from(ENTRIES) {
            assert!(ring.push(entry));
        }
        assert!(!ring.push(99));
        ring.submit();
        assert_eq!(ring.ring.word(ring.ring.producer).load(Ordering::Relaxed), 4);
        // The kernel takes three.
        ring.ring.word(ring.ring.consumer).store(start.wrapping_add(3), Ordering::Relaxed);
        assert_eq!((ring.waiting(), ring.room()), (5, 3));
        assert!(!ring.needs_wakeup());
        ring.ring.word(ring.ring.flags).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(ring.needs_wakeup());
    }

    #[test]
    fn entries_are_seen_once_they_are_counted_and_no_more_than_a_ring_holds() {
        let mut ring = Consumer::<u64>::new(map(), &PLACES, ENTRIES).unwrap();
        ring.next = u32::MAX;
        for nth in 0..ENTRIES {
            // SAFETY: the memory is this test's own.
            unsafe { ring.ring.entry(u32::MAX.wrapping_add(nth)).write(nth.into()) };
        }
        ring.ring.word(ring.ring.producer).store(4, Ordering::Relaxed);
        assert_eq!((ring.peek(0), ring.look()), (None, 5));
        let seen: Vec<_> = (0..6).map_while(|nth| ring.peek(nth)).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        ring.release(2);
        assert_eq!((ring.peek(0), ring.peek(3)), (Some(2), None));
        ring.release(100);
        assert_eq!(ring.ring.word(ring.ring.consumer).load(Ordering::Relaxed), 4);
        // An index that no kernel would write.
        ring.ring.word(ring.ring.producer).store(4_000_000, Ordering::Relaxed);
        assert_eq!(ring.look(), ENTRIES);
    }
}
