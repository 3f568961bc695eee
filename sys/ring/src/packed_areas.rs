//! Descriptor ring and event suppression structures of a packed virtqueue in shared memory (virtio
//! 1.3, section 2.8).
#![allow(unsafe_code, reason = "reads and writes rings that the guest changes at the same time")]

use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::Arc;

use virtio_bindings::virtio_ring::{VRING_PACKED_DESC_F_AVAIL, VRING_PACKED_DESC_F_USED};

use crate::addresses::{QUEUE_SIZE_MAX, RingAddresses};
use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::fault::{RingArea, RingFault};
use crate::inflight_layout::ChainEntries;
use crate::memory::GuestMemory;
use crate::packed_arming::PackedNotificationFields;
use crate::prefetch::prefetch;
use crate::ring_position::RingPosition;

const AVAIL: u16 = 1 << VRING_PACKED_DESC_F_AVAIL;
const USED: u16 = 1 << VRING_PACKED_DESC_F_USED;
/// Size in bytes of an event suppression structure.
const EVENT_BYTES: u64 = 4;
/// Offset in a descriptor of the word with length, id and flags.
const TAIL_AT: usize = 8;

/// Completed chain whose used element is not written yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedChain {
    /// Position of the chain's first descriptor.
    pub(crate) position: RingPosition,
    pub(crate) id: u16,
    pub(crate) descriptor_count: u16,
    pub(crate) written_bytes: u32,
    /// Entries of the chain in the in-flight region; `None` if it is not recorded.
    pub(crate) entries: Option<ChainEntries>,
}

/// Pointers to the three areas of a ring. Each area is in one region of `memory` and is aligned.
pub(crate) struct PackedCells {
    ring: *mut u8,
    driver_event: *mut u8,
    device_event: *mut u8,
    size: u16,
    /// Keeps the mapping of the areas alive.
    _memory: Arc<GuestMemory>,
}

// SAFETY: the pointers refer to mappings that `_memory` keeps alive, and no thread owns them.
unsafe impl Send for PackedCells {}

impl PackedCells {
    /// Locates the areas of a ring of `size` entries, which need not be a power of two (section
    /// 2.8.10.1). `queue` is named in errors.
    ///
    /// # Errors
    /// The size is not valid for a packed ring, or an area is misaligned or not inside one memory
    /// region.
    pub(crate) fn locate(
        memory: &Arc<GuestMemory>,
        queue: u16,
        size: u32,
        addresses: RingAddresses,
    ) -> Result<Self, RingFault> {
        let max = QUEUE_SIZE_MAX;
        let entries = u16::try_from(size).ok().filter(|entries| (1..=max).contains(entries));
        let entries = entries.ok_or(RingFault::PackedSize { queue, size, max })?;
        let locate_area = |area, address: u64, alignment: u64, bytes: u64| {
            let area_at = memory
                .user_pointer(address, bytes)
                .ok_or(RingFault::AreaOutsideMemory { queue, area, address, bytes })?;
            if address % alignment != 0 || area_at as u64 % alignment != 0 {
                return Err(RingFault::Alignment { queue, area, address, alignment });
            }
            Ok(area_at)
        };
        let bytes = DESCRIPTOR_BYTES as u64 * u64::from(entries);
        Ok(Self {
            ring: locate_area(RingArea::DescriptorRing, addresses.descriptors, 16, bytes)?,
            driver_event: locate_area(RingArea::DriverEvents, addresses.available, 4, EVENT_BYTES)?,
            device_event: locate_area(RingArea::DeviceEvents, addresses.used, 4, EVENT_BYTES)?,
            size: entries,
            _memory: Arc::clone(memory),
        })
    }

    /// Returns the number of entries of the ring.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Returns the location of a descriptor. An index outside the ring, possible only through an
    /// error in this crate, yields the first descriptor.
    #[inline(always)]
    fn at(&self, index: u16) -> *mut u8 {
        let index = if index < self.size { index } else { 0 };
        self.ring.wrapping_add(DESCRIPTOR_BYTES * usize::from(index))
    }

    /// Returns the word with length, id and flags of a descriptor, for atomic access.
    #[inline(always)]
    fn tail(&self, index: u16) -> &AtomicU64 {
        // SAFETY: the descriptor is in the ring, which is mapped and aligned; this process accesses
        // the field only as an atomic, and the guest's accesses are those of another thread.
        unsafe { AtomicU64::from_ptr(self.at(index).add(TAIL_AT).cast()) }
    }

    /// Reads descriptor `index` once. If its flags state that it is available, the driver's earlier
    /// writes are visible.
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

    /// Prefetches the cache lines of `count` descriptors from `index` on.
    #[inline(always)]
    pub(crate) fn prefetch_descriptors(&self, index: u16, count: u16) {
        const PER_LINE: usize = 64 / DESCRIPTOR_BYTES;
        for distance in (0..count).step_by(PER_LINE) {
            prefetch::<false>(self.at(index.wrapping_add(distance)));
        }
    }

    /// Writes the used element of a chain: its id, and the number of bytes written to it. If
    /// `is_last` is true, publishes the element and all earlier stores to the driver; otherwise
    /// they may become visible later.
    #[inline(always)]
    pub(crate) fn write_used(&self, position: RingPosition, id: u16, written: u32, is_last: bool) {
        let wrap_flags = if position.wrap_counter { AVAIL | USED } else { 0 };
        let flags = wrap_flags | if written != 0 { Descriptor::WRITE } else { 0 };
        let word = u64::from(written) | u64::from(id) << 32 | u64::from(flags) << 48;
        let ordering = if is_last { Ordering::Release } else { Ordering::Relaxed };
        self.tail(position.index).store(word.to_le(), ordering);
    }
}

/// Returns true if a descriptor with these flags is available to a device whose wrap counter is
/// `wrap` (section 2.8.1).
#[inline(always)]
pub(crate) fn is_available(flags: u16, wrap: bool) -> bool {
    (flags & AVAIL != 0) == wrap && (flags & USED != 0) != wrap
}

impl PackedNotificationFields for PackedCells {
    #[inline(always)]
    fn is_available(&self, position: RingPosition) -> bool {
        // SAFETY: the flags lie in the ring and are aligned.
        let flags = unsafe { AtomicU16::from_ptr(self.at(position.index).add(14).cast()) };
        is_available(u16::from_le(flags.load(Ordering::Acquire)), position.wrap_counter)
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
