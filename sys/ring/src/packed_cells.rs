//! The three areas of a packed virtqueue in shared memory (virtio 1.3, section
//! 2.8).
#![allow(unsafe_code, reason = "reads and writes rings that the guest changes at the same time")]

use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::Arc;

use virtio_bindings::virtio_ring::{VRING_PACKED_DESC_F_AVAIL, VRING_PACKED_DESC_F_USED};

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::fault::{RingArea, RingFault};
use crate::inflight_packed::ChainEntries;
use crate::memory::GuestMemory;
use crate::packed_arming::PackedNotifyCells;
use crate::prefetch::prefetch;
use crate::setup::{QUEUE_SIZE_MAX, RingAddresses};

const AVAIL: u16 = 1 << VRING_PACKED_DESC_F_AVAIL;
const USED: u16 = 1 << VRING_PACKED_DESC_F_USED;
/// Bytes of an event suppression structure.
const EVENT_BYTES: u64 = 4;
/// Where a descriptor has its length, id and flags.
const TAIL_AT: usize = 8;

/// A position in a descriptor ring: an index, and the wrap counter, which changes
/// each time the index passes the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: u16,
    pub(crate) wrap: bool,
}

impl Place {
    /// The position in this number: the index with the wrap counter as bit 15.
    pub(crate) fn from_number(number: u16) -> Self {
        Self { index: number & 0x7fff, wrap: number & 0x8000 != 0 }
    }

    /// The number of this position.
    #[inline(always)]
    pub(crate) fn number(self) -> u16 {
        self.index | if self.wrap { 0x8000 } else { 0 }
    }

    /// The position `descriptors` further on in a ring of `size`, at most once
    /// around.
    #[inline(always)]
    pub(crate) fn ahead(self, descriptors: u16, size: u16) -> Self {
        let left = size - self.index.min(size);
        if descriptors < left {
            Self { index: self.index + descriptors, wrap: self.wrap }
        } else {
            Self { index: descriptors - left, wrap: !self.wrap }
        }
    }
}

/// A chain that was completed and is to be returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Where its first descriptor is: there it is returned.
    pub(crate) place: Place,
    pub(crate) id: u16,
    pub(crate) descriptors: u16,
    pub(crate) written: u32,
    /// Where it stands in the in-flight region, if it does.
    pub(crate) entries: Option<ChainEntries>,
}

/// The ring's three areas. Each lies in one region of `memory` and is aligned.
pub(crate) struct PackedCells {
    ring: *mut u8,
    driver_event: *mut u8,
    device_event: *mut u8,
    size: u16,
    /// Keeps the mapping alive.
    _memory: Arc<GuestMemory>,
}

// SAFETY: the pointers lead into memory that is held beside them.
unsafe impl Send for PackedCells {}

impl PackedCells {
    /// Finds the areas of a ring of `size` entries, any number of them (section
    /// 2.8.10.1).
    ///
    /// # Errors
    /// A size that no packed ring has, or an area misaligned or outside memory.
    pub(crate) fn locate(
        memory: &Arc<GuestMemory>,
        queue: u16,
        size: u32,
        at: RingAddresses,
    ) -> Result<Self, RingFault> {
        let max = QUEUE_SIZE_MAX;
        let entries = u16::try_from(size).ok().filter(|entries| (1..=max).contains(entries));
        let entries = entries.ok_or(RingFault::PackedSize { queue, size, max })?;
        let place = |area, address: u64, alignment: u64, bytes: u64| {
            let area_at = memory.user_pointer(address, bytes).ok_or(RingFault::Area {
                queue,
                area,
                address,
                bytes,
            })?;
            if address % alignment != 0 || area_at as u64 % alignment != 0 {
                return Err(RingFault::Alignment { queue, area, address, alignment });
            }
            Ok(area_at)
        };
        let bytes = DESCRIPTOR_BYTES as u64 * u64::from(entries);
        Ok(Self {
            ring: place(RingArea::DescriptorRing, at.descriptors, 16, bytes)?,
            driver_event: place(RingArea::DriverEvents, at.available, 4, EVENT_BYTES)?,
            device_event: place(RingArea::DeviceEvents, at.used, 4, EVENT_BYTES)?,
            size: entries,
            _memory: Arc::clone(memory),
        })
    }

    /// Entries of the ring.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Where a descriptor starts. An index outside the ring, which only an error
    /// of ours could make, leads to its first.
    #[inline(always)]
    fn at(&self, index: u16) -> *mut u8 {
        let index = if index < self.size { index } else { 0 };
        self.ring.wrapping_add(DESCRIPTOR_BYTES * usize::from(index))
    }

    /// Length, id and flags of a descriptor, in one word.
    #[inline(always)]
    fn tail(&self, index: u16) -> &AtomicU64 {
        // SAFETY: the descriptor lies in the ring, which is mapped and aligned;
        // the guest's side is as good as another atomic.
        unsafe { AtomicU64::from_ptr(self.at(index).add(TAIL_AT).cast()) }
    }

    /// Reads descriptor `index` once. What the driver wrote before it made the
    /// descriptor available is visible if the flags say that it is.
    #[inline(always)]
    pub(crate) fn descriptor(&self, index: u16) -> Descriptor {
        let tail = u64::from_le(self.tail(index).load(Ordering::Acquire));
        // SAFETY: as for the tail.
        let addr = unsafe { self.at(index).cast::<u64>().read_volatile() };
        Descriptor {
            addr: u64::from_le(addr),
            len: tail as u32,
            next: (tail >> 32) as u16,
            flags: (tail >> 48) as u16,
        }
    }

    /// Asks for the lines of `count` descriptors from `index` on.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: u16, count: u16) {
        const PER_LINE: usize = 64 / DESCRIPTOR_BYTES;
        for ahead in (0..count).step_by(PER_LINE) {
            prefetch::<false>(self.at(index.wrapping_add(ahead)));
        }
    }

    /// Returns a chain. The driver sees it and all stores before if `is_last`;
    /// otherwise it may see it later.
    #[inline(always)]
    pub(crate) fn write_used(&self, place: Place, id: u16, written: u32, is_last: bool) {
        let turn = if place.wrap { AVAIL | USED } else { 0 };
        let flags = turn | if written != 0 { Descriptor::WRITE } else { 0 };
        let word = u64::from(written) | u64::from(id) << 32 | u64::from(flags) << 48;
        let ordering = if is_last { Ordering::Release } else { Ordering::Relaxed };
        self.tail(place.index).store(word.to_le(), ordering);
    }
}

/// Whether a descriptor with these flags is available to a device whose wrap
/// counter is `wrap` (section 2.8.1).
#[inline(always)]
pub(crate) fn says_available(flags: u16, wrap: bool) -> bool {
    (flags & AVAIL != 0) == wrap && (flags & USED != 0) != wrap
}

impl PackedNotifyCells for PackedCells {
    #[inline(always)]
    fn is_available(&self, place: Place) -> bool {
        // SAFETY: the flags lie in the ring and are aligned.
        let flags = unsafe { AtomicU16::from_ptr(self.at(place.index).add(14).cast()) };
        says_available(u16::from_le(flags.load(Ordering::Acquire)), place.wrap)
    }

    #[inline(always)]
    fn store_device_event(&self, event: u32) {
        // SAFETY: the structure is mapped and aligned.
        let cell = unsafe { AtomicU32::from_ptr(self.device_event.cast()) };
        cell.store(event.to_le(), Ordering::Relaxed);
    }

    #[inline(always)]
    fn driver_event(&self) -> u32 {
        // SAFETY: the structure is mapped and aligned.
        let cell = unsafe { AtomicU32::from_ptr(self.driver_event.cast()) };
        u32::from_le(cell.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn full_barrier(&self) {
        fence(Ordering::SeqCst);
    }
}
