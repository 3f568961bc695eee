//! Driver side of a split virtqueue (virtio 1.3, section 2.7).

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

use anyhow::Result;
use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

use crate::memory::{
    DESCRIPTORS_AT, DEVICE_AREA_AT, DRIVER_AREA_AT, ENTRIES, GUEST_BASE, TABLE_BYTES, TABLES_AT,
};
use crate::requests::{RequestBuffer, RequestBufferKind, Requests, SlotRequest, to_usize};

const NO_INTERRUPT: u16 = 1;
const NO_NOTIFY: u16 = 1;

/// Writes a descriptor. The last two fields are flags and next (section 2.7.5), or id and flags
/// (section 2.8.13).
pub(crate) fn write_descriptor(
    slice: &VolatileSlice<'_>,
    offset: u64,
    (address, bytes): (u64, u32),
    [third, fourth]: [u16; 2],
) -> Result<()> {
    let word = u128::from(address)
        | u128::from(bytes) << 64
        | u128::from(third) << 96
        | u128::from(fourth) << 112;
    Ok(slice.write_slice(&word.to_le_bytes(), to_usize(offset))?)
}

/// Returns the descriptor flags (section 2.7.5) of a part of a request. Segments of reads are
/// device-writable.
pub(crate) fn flags_of(piece: &RequestBuffer, is_read: bool) -> u16 {
    match piece.kind {
        RequestBufferKind::Header => VRING_DESC_F_NEXT as u16,
        RequestBufferKind::Segment if is_read => (VRING_DESC_F_NEXT | VRING_DESC_F_WRITE) as u16,
        RequestBufferKind::Segment => VRING_DESC_F_NEXT as u16,
        RequestBufferKind::Status => VRING_DESC_F_WRITE as u16,
    }
}

/// Sets the flags of a request's segment descriptors: device-writable for a read, device-readable
/// for a write.
pub(crate) fn set_segment_flags(segment_flags: &[&AtomicU16], request: SlotRequest) {
    let segment = RequestBuffer { address: 0, bytes: 0, kind: RequestBufferKind::Segment };
    let flags = flags_of(&segment, request.is_read).to_le();
    segment_flags.iter().for_each(|cell| cell.store(flags, Ordering::Relaxed));
}

/// Split virtqueue, driver side.
pub(crate) struct SplitRing<'a> {
    has_event_index: bool,
    /// Index of the first descriptor of each slot.
    heads: Vec<u16>,
    /// Flags of the segment descriptors, by slot.
    segment_flags: Vec<Vec<&'a AtomicU16>>,
    available: Vec<&'a AtomicU16>,
    available_index: &'a AtomicU16,
    available_flags: &'a AtomicU16,
    used: Vec<&'a AtomicU32>,
    used_index: &'a AtomicU16,
    used_flags: &'a AtomicU16,
    /// `avail_event`: index at which the back-end requests a kick.
    kick_at: &'a AtomicU16,
    /// `used_event`: index at which the driver requests an interrupt.
    call_at: &'a AtomicU16,
    added: u16,
    seen: u16,
    /// Number of descriptors that a request occupies in the ring.
    step: u16,
}

impl<'a> SplitRing<'a> {
    /// Writes the descriptors of all slots to memory.
    pub(crate) fn new(
        slice: &'a VolatileSlice<'a>,
        requests: &Requests<'_>,
        (is_indirect, has_event_index): (bool, bool),
    ) -> Result<Self> {
        let word = |offset: u64| slice.get_atomic_ref::<AtomicU16>(to_usize(offset));
        let entries = u64::from(ENTRIES);
        let pieces = u16::try_from(requests.buffers(0).len())?;
        let step = if is_indirect { 1 } else { pieces };
        let mut heads = Vec::new();
        let mut segment_flags = Vec::new();
        for slot in 0..ENTRIES / step {
            let head = slot * step;
            let table = TABLES_AT + u64::from(slot) * TABLE_BYTES;
            let (first, base) = if is_indirect {
                let length = u32::from(pieces) * 16;
                let flags = [VRING_DESC_F_INDIRECT as u16, 0];
                let offset = DESCRIPTORS_AT + u64::from(head) * 16;
                write_descriptor(slice, offset, (GUEST_BASE + table, length), flags)?;
                (0, table)
            } else {
                (head, DESCRIPTORS_AT + u64::from(head) * 16)
            };
            let mut of_slot = Vec::new();
            for (piece, number) in requests.buffers(slot).iter().zip(0_u16..) {
                let offset = base + u64::from(number) * 16;
                let flags = [flags_of(piece, true), first + number + 1];
                write_descriptor(slice, offset, (piece.address, piece.bytes), flags)?;
                if piece.kind == RequestBufferKind::Segment {
                    of_slot.push(word(offset + 12)?);
                }
            }
            heads.push(head);
            segment_flags.push(of_slot);
        }
        let ring = |offset: u64, size: u64| move |entry: u64| to_usize(offset + 4 + entry * size);
        let (available, used) = (ring(DRIVER_AREA_AT, 2), ring(DEVICE_AREA_AT, 8));
        Ok(Self {
            has_event_index,
            heads,
            segment_flags,
            available: (0..entries)
                .map(|entry| slice.get_atomic_ref(available(entry)))
                .collect::<Result<_, _>>()?,
            available_flags: word(DRIVER_AREA_AT)?,
            available_index: word(DRIVER_AREA_AT + 2)?,
            call_at: word(DRIVER_AREA_AT + 4 + entries * 2)?,
            used: (0..entries)
                .map(|entry| slice.get_atomic_ref(used(entry)))
                .collect::<Result<_, _>>()?,
            used_flags: word(DEVICE_AREA_AT)?,
            used_index: word(DEVICE_AREA_AT + 2)?,
            kick_at: word(DEVICE_AREA_AT + 4 + entries * 8)?,
            added: 0,
            seen: 0,
            step,
        })
    }

    /// Returns the number of requests that can be in flight.
    pub(crate) fn slot_count(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn add(&mut self, slot: u16, request: SlotRequest) {
        let index = usize::from(slot);
        if !request.has_final_flags {
            set_segment_flags(&self.segment_flags[index], request);
        }
        let position = usize::from(self.added % ENTRIES);
        self.available[position].store(self.heads[index].to_le(), Ordering::Relaxed);
        self.added = self.added.wrapping_add(1);
    }

    /// Makes the added requests visible. Returns true if the back-end has to be kicked.
    pub(crate) fn publish(&mut self) -> bool {
        let old = u16::from_le(self.available_index.load(Ordering::Relaxed));
        if old == self.added {
            return false;
        }
        self.available_index.store(self.added.to_le(), Ordering::Release);
        fence(Ordering::SeqCst);
        if !self.has_event_index {
            return u16::from_le(self.used_flags.load(Ordering::Relaxed)) & NO_NOTIFY == 0;
        }
        let event_index = u16::from_le(self.kick_at.load(Ordering::Relaxed));
        let distance = self.added.wrapping_sub(event_index).wrapping_sub(1);
        distance < self.added.wrapping_sub(old)
    }

    /// Removes the next completion. Returns its slot; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<u16> {
        if u16::from_le(self.used_index.load(Ordering::Acquire)) == self.seen {
            return None;
        }
        let position = usize::from(self.seen % ENTRIES);
        let head = u32::from_le(self.used[position].load(Ordering::Relaxed));
        self.seen = self.seen.wrapping_add(1);
        // A head that was never submitted yields a slot out of range; the caller rejects it.
        let slot = head / u32::from(self.step);
        Some(u16::try_from(slot).unwrap_or(u16::MAX))
    }

    /// Enables an interrupt at the next completion, or disables interrupts.
    pub(crate) fn set_interrupt(&mut self, is_wanted: bool) {
        if self.has_event_index {
            // An index that has been passed already produces no interrupt.
            let event_index = if is_wanted { self.seen } else { self.seen.wrapping_sub(1) };
            self.call_at.store(event_index.to_le(), Ordering::Relaxed);
        } else {
            let flags = if is_wanted { 0 } else { NO_INTERRUPT };
            self.available_flags.store(flags.to_le(), Ordering::Relaxed);
        }
    }

    pub(crate) fn has_completion(&self) -> bool {
        u16::from_le(self.used_index.load(Ordering::Acquire)) != self.seen
    }
}
