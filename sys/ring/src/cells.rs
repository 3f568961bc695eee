//! Descriptor table, available ring and used ring of a split virtqueue in shared memory (virtio
//! 1.3, section 2.7).
#![allow(unsafe_code, reason = "reads and writes rings that the guest changes at the same time")]

use core::sync::atomic::{AtomicU16, Ordering, fence};
use std::sync::Arc;

use virtio_bindings::virtio_ring::{
    VRING_AVAIL_F_NO_INTERRUPT, VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE,
    VRING_USED_F_NO_NOTIFY,
};

use crate::addresses::{QUEUE_SIZE_MAX, RingAddresses};
use crate::fault::{RingArea, RingFault};
use crate::memory::GuestMemory;
use crate::notification::NotificationFields;
use crate::prefetch::prefetch;

/// Size of a descriptor in bytes.
pub(crate) const DESCRIPTOR_BYTES: usize = 16;

/// Copy of a descriptor at the time of reading (virtio 1.3, section 2.7.5).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Descriptor {
    pub(crate) addr: u64,
    pub(crate) len: u32,
    pub(crate) flags: u16,
    pub(crate) next: u16,
}

impl Descriptor {
    pub(crate) const NEXT: u16 = VRING_DESC_F_NEXT as u16;
    pub(crate) const WRITE: u16 = VRING_DESC_F_WRITE as u16;
    pub(crate) const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;
    const KNOWN: u16 = Self::NEXT | Self::WRITE | Self::INDIRECT;

    /// Returns the defined flags: `NEXT`, `WRITE` and `INDIRECT`.
    #[inline(always)]
    pub(crate) fn known_flags(self) -> u16 {
        self.flags & Self::KNOWN
    }

    /// Decodes a descriptor of a split ring or of its indirect table.
    #[inline(always)]
    pub(crate) fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let value = u128::from_le_bytes(*bytes);
        Self::from_words(value as u64, (value >> 64) as u64)
    }

    /// Decodes a descriptor of a packed ring; `next` becomes its buffer id (virtio 1.3, section
    /// 2.8.14).
    #[inline(always)]
    pub(crate) fn decode_packed(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let Self { addr, len, flags: id, next: flags } = Self::decode(bytes);
        Self { addr, len, flags, next: id }
    }

    #[inline(always)]
    fn from_words(addr: u64, second: u64) -> Self {
        Self { addr, len: second as u32, flags: (second >> 32) as u16, next: (second >> 48) as u16 }
    }
}

/// Pointers to the three areas of a ring. Each area is in one region of `memory`, is aligned, and
/// is long enough for `mask + 1` entries. Indices are reduced modulo this number before use.
pub(crate) struct RingCells {
    descriptors: *const u8,
    avail: *mut u8,
    used: *mut u8,
    mask: u16,
    /// Keeps the mapping of the areas alive.
    _memory: Arc<GuestMemory>,
}

// SAFETY: the pointers refer to mappings that `_memory` keeps alive, and no thread owns them.
unsafe impl Send for RingCells {}

const AVAIL_RING_AT: usize = 4;
const USED_RING_AT: usize = 4;
/// Size of a used entry in bytes.
pub(crate) const USED_ENTRY_BYTES: usize = 8;
/// Offset of the used index in the used ring.
pub(crate) const USED_IDX_AT: usize = 2;

impl RingCells {
    /// Locates the areas of a ring of `size` entries. `queue` is named in errors.
    ///
    /// # Errors
    /// The size is not valid for a split ring, or an area is misaligned or not inside one memory
    /// region.
    pub(crate) fn locate(
        memory: &Arc<GuestMemory>,
        queue: u16,
        size: u32,
        addresses: RingAddresses,
    ) -> Result<Self, RingFault> {
        if !size.is_power_of_two() || size > u32::from(QUEUE_SIZE_MAX) {
            return Err(RingFault::Size { queue, size, max: QUEUE_SIZE_MAX });
        }
        let entries = u64::from(size);
        let locate_area = |area, address: u64, alignment: u64, bytes: u64| {
            let area_at = memory
                .user_pointer(address, bytes)
                .ok_or(RingFault::AreaOutsideMemory { queue, area, address, bytes })?;
            // Regions start at page boundaries in both processes, but a front-end may claim
            // otherwise. Both addresses therefore have to be aligned.
            if address % alignment != 0 || area_at as u64 % alignment != 0 {
                return Err(RingFault::Alignment { queue, area, address, alignment });
            }
            Ok(area_at)
        };
        // The event fields after the rings are reserved even without EVENT_IDX (section 2.7), so
        // they are part of the areas.
        Ok(Self {
            descriptors: locate_area(
                RingArea::Descriptors,
                addresses.descriptors,
                16,
                16 * entries,
            )?,
            avail: locate_area(RingArea::Available, addresses.available, 2, 6 + 2 * entries)?,
            used: locate_area(RingArea::Used, addresses.used, 4, 6 + 8 * entries)?,
            mask: (size - 1) as u16,
            _memory: Arc::clone(memory),
        })
    }

    /// Returns the number of entries of the ring.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.mask + 1
    }

    #[inline(always)]
    fn avail_cell(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: callers pass even offsets inside the available ring, which is mapped and aligned;
        // this process accesses the field only as an atomic, and the guest's accesses are those of
        // another thread.
        unsafe { AtomicU16::from_ptr(self.avail.add(offset).cast()) }
    }

    #[inline(always)]
    fn used_cell(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as for the available ring.
        unsafe { AtomicU16::from_ptr(self.used.add(offset).cast()) }
    }

    #[inline(always)]
    fn used_event_at(&self) -> usize {
        AVAIL_RING_AT + 2 * usize::from(self.size())
    }

    /// Returns the offset in bytes of used entry `index` in the used ring.
    pub(crate) fn used_entry_at(&self, index: u16) -> usize {
        USED_RING_AT + USED_ENTRY_BYTES * usize::from(index & self.mask)
    }

    /// Returns the offset in bytes of `avail_event` in the used ring.
    #[inline(always)]
    pub(crate) fn avail_event_at(&self) -> usize {
        USED_RING_AT + USED_ENTRY_BYTES * usize::from(self.size())
    }

    /// Returns the available entry at `index`: the index of the head descriptor of a chain.
    #[inline(always)]
    pub(crate) fn avail_entry(&self, index: u16) -> u16 {
        let offset = AVAIL_RING_AT + 2 * usize::from(index & self.mask);
        u16::from_le(self.avail_cell(offset).load(Ordering::Relaxed))
    }

    /// Reads descriptor `index` once, so that later changes by the driver have no effect.
    #[inline(always)]
    pub(crate) fn descriptor(&self, index: u16) -> Descriptor {
        let offset = DESCRIPTOR_BYTES * usize::from(index & self.mask);
        // SAFETY: the table is mapped, and aligned to 16 bytes.
        let [addr, second] =
            unsafe { self.descriptors.add(offset).cast::<[u64; 2]>().read_volatile() };
        Descriptor::from_words(u64::from_le(addr), u64::from_le(second))
    }

    /// Prefetches the cache line of descriptor `index`.
    #[inline(always)]
    pub(crate) fn prefetch_descriptor(&self, index: u16) {
        let offset = DESCRIPTOR_BYTES * usize::from(index & self.mask);
        // SAFETY: inside the table.
        prefetch::<false>(unsafe { self.descriptors.add(offset) });
    }

    /// Writes used entry `index`: the chain's head, and the number of bytes written to the chain.
    /// The driver sees it after [`RingCells::publish_used`].
    #[inline(always)]
    pub(crate) fn write_used(&self, index: u16, head: u16, written: u32) {
        let offset = USED_RING_AT + USED_ENTRY_BYTES * usize::from(index & self.mask);
        let entry = u64::from(head) | (u64::from(written) << 32);
        // SAFETY: the entry lies in the used ring. Its alignment is 4.
        unsafe { self.used.add(offset).cast::<u64>().write_unaligned(entry.to_le()) }
    }

    /// Prefetches the cache lines of `count` used entries from `index` on, for writing.
    #[inline(always)]
    pub(crate) fn prefetch_used(&self, index: u16, count: usize) {
        const ENTRIES_PER_LINE: usize = 64 / USED_ENTRY_BYTES;
        for distance in (0..=count).step_by(ENTRIES_PER_LINE) {
            let offset =
                USED_ENTRY_BYTES * usize::from(index.wrapping_add(distance as u16) & self.mask);
            // SAFETY: the entry lies in the used ring.
            prefetch::<true>(unsafe { self.used.add(USED_RING_AT + offset) });
        }
    }

    /// Returns the used index that is published in shared memory.
    pub(crate) fn used_idx(&self) -> u16 {
        u16::from_le(self.used_cell(2).load(Ordering::Relaxed))
    }

    /// Publishes all used entries before `index`.
    #[inline(always)]
    pub(crate) fn publish_used(&self, index: u16) {
        self.used_cell(2).store(index.to_le(), Ordering::Release);
    }
}

impl NotificationFields for RingCells {
    #[inline(always)]
    fn avail_idx(&self) -> u16 {
        u16::from_le(self.avail_cell(2).load(Ordering::Acquire))
    }

    #[inline(always)]
    fn store_avail_event(&self, index: u16) {
        self.used_cell(self.avail_event_at()).store(index.to_le(), Ordering::Relaxed);
    }

    #[inline(always)]
    fn set_kicks_enabled(&self, enabled: bool) {
        let flags = if enabled { 0 } else { VRING_USED_F_NO_NOTIFY as u16 };
        self.used_cell(0).store(flags.to_le(), Ordering::Relaxed);
    }

    #[inline(always)]
    fn used_event(&self) -> u16 {
        u16::from_le(self.avail_cell(self.used_event_at()).load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn interrupts_enabled(&self) -> bool {
        let flags = u16::from_le(self.avail_cell(0).load(Ordering::Relaxed));
        flags & VRING_AVAIL_F_NO_INTERRUPT as u16 == 0
    }

    #[inline(always)]
    fn full_barrier(&self) {
        fence(Ordering::SeqCst);
    }
}
