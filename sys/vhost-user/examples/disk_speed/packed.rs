//! Driver side of a packed virtqueue (virtio 1.3, section 2.8).

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use anyhow::Result;
use virtio_bindings::virtio_ring::VRING_DESC_F_INDIRECT;
use vm_memory::{VolatileMemory, VolatileSlice};

use crate::memory::{
    DESCRIPTORS_AT, DEVICE_AREA_AT, DRIVER_AREA_AT, ENTRIES, GUEST_BASE, TABLE_BYTES, TABLES_AT,
};
use crate::requests::{RequestBuffer, RequestBufferKind, Requests, SlotRequest, to_usize};
use crate::split::{flags_of, set_segment_flags, write_descriptor};

const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;
/// Event suppression flag (section 2.8.14): always notify.
const EVENT_ENABLE: u16 = 0;
/// Event suppression flag: never notify.
const EVENT_DISABLE: u16 = 1;
/// Event suppression flag: notify at one descriptor.
const EVENT_DESCRIPTOR: u16 = 2;

/// Initial position of a ring: first descriptor, both wrap counters set (vhost-user,
/// `VHOST_USER_SET_VRING_BASE`).
pub(crate) const INITIAL_POSITION: u32 = 0x8000_8000;

/// Fields of one descriptor of the ring.
struct Place<'a> {
    address: &'a AtomicU64,
    bytes: &'a AtomicU32,
    id: &'a AtomicU16,
    flags: &'a AtomicU16,
}

/// Index of a descriptor with its wrap counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    at: u16,
    wrap: bool,
}

impl Position {
    const FIRST: Self = Self { at: 0, wrap: true };

    fn after(self, count: u16) -> Self {
        let index = self.at + count;
        if index >= ENTRIES {
            Self { at: index - ENTRIES, wrap: !self.wrap }
        } else {
            Self { at: index, ..self }
        }
    }
}

/// Packed virtqueue, driver side.
pub(crate) struct PackedRing<'a> {
    places: Vec<Place<'a>>,
    /// Descriptors that submit the request of each slot: one for its indirect table, or one per
    /// segment, header and status.
    chains: Vec<Vec<RequestBuffer>>,
    /// Flags of the segment descriptors in the indirect tables, by slot.
    segment_flags: Vec<Vec<&'a AtomicU16>>,
    is_indirect: bool,
    driver_flags: &'a AtomicU16,
    device_event: &'a AtomicU16,
    device_flags: &'a AtomicU16,
    next: Position,
    seen: Position,
    /// Descriptors added since the last kick decision.
    added: u16,
}

impl<'a> PackedRing<'a> {
    /// Writes the descriptors of all slots to memory.
    pub(crate) fn new(
        slice: &'a VolatileSlice<'a>,
        requests: &Requests<'_>,
        is_indirect: bool,
    ) -> Result<Self> {
        let descriptor_at = |entry: u16| -> Result<Place<'a>> {
            let offset = to_usize(DESCRIPTORS_AT + u64::from(entry) * 16);
            Ok(Place {
                address: slice.get_atomic_ref(offset)?,
                bytes: slice.get_atomic_ref(offset + 8)?,
                id: slice.get_atomic_ref(offset + 12)?,
                flags: slice.get_atomic_ref(offset + 14)?,
            })
        };
        let length = requests.buffers(0).len();
        let slots = if is_indirect { ENTRIES } else { ENTRIES / u16::try_from(length)? };
        let (mut chains, mut segment_flags) = (Vec::new(), Vec::new());
        for slot in 0..slots {
            let pieces = requests.buffers(slot);
            let mut of_slot = Vec::new();
            if is_indirect {
                let table = TABLES_AT + u64::from(slot) * TABLE_BYTES;
                for (piece, number) in pieces.iter().zip(0_u64..) {
                    let offset = table + number * 16;
                    // In an indirect table, all flags except WRITE are ignored (section 2.8.8).
                    let flags = [0, flags_of(piece, true)];
                    write_descriptor(slice, offset, (piece.address, piece.bytes), flags)?;
                    if piece.kind == RequestBufferKind::Segment {
                        of_slot.push(slice.get_atomic_ref(to_usize(offset + 14))?);
                    }
                }
                let bytes = u32::try_from(length * 16)?;
                let table = RequestBuffer {
                    address: GUEST_BASE + table,
                    bytes,
                    kind: RequestBufferKind::Header,
                };
                chains.push(vec![table]);
            } else {
                chains.push(pieces);
            }
            segment_flags.push(of_slot);
        }
        let word = |offset: u64| slice.get_atomic_ref::<AtomicU16>(to_usize(offset));
        Ok(Self {
            places: (0..ENTRIES).map(descriptor_at).collect::<Result<_>>()?,
            chains,
            segment_flags,
            is_indirect,
            driver_flags: word(DRIVER_AREA_AT + 2)?,
            device_event: word(DEVICE_AREA_AT)?,
            device_flags: word(DEVICE_AREA_AT + 2)?,
            next: Position::FIRST,
            seen: Position::FIRST,
            added: 0,
        })
    }

    /// Returns the number of requests that can be in flight.
    pub(crate) fn slot_count(&self) -> usize {
        self.chains.len()
    }

    pub(crate) fn add(&mut self, slot: u16, request: SlotRequest) {
        if !request.has_final_flags {
            set_segment_flags(&self.segment_flags[usize::from(slot)], request);
        }
        let chain = &self.chains[usize::from(slot)];
        let start = self.next;
        let mut head_flags = 0;
        for (piece, number) in chain.iter().zip(0_u16..) {
            let position = start.after(number);
            let kind = if self.is_indirect {
                VRING_DESC_F_INDIRECT as u16
            } else {
                flags_of(piece, request.is_read)
            };
            let flags = kind | if position.wrap { AVAILABLE } else { USED };
            let descriptor = &self.places[usize::from(position.at)];
            descriptor.address.store(piece.address.to_le(), Ordering::Relaxed);
            descriptor.bytes.store(piece.bytes.to_le(), Ordering::Relaxed);
            descriptor.id.store(slot.to_le(), Ordering::Relaxed);
            if number == 0 {
                head_flags = flags;
            } else {
                descriptor.flags.store(flags.to_le(), Ordering::Relaxed);
            }
        }
        let length = chain.len() as u16;
        // The release store of the head's flags makes the whole chain visible.
        self.places[usize::from(start.at)].flags.store(head_flags.to_le(), Ordering::Release);
        self.next = start.after(length);
        self.added += length;
    }

    /// Returns true if the back-end has to be kicked for the added descriptors.
    pub(crate) fn publish(&mut self) -> bool {
        let added = std::mem::take(&mut self.added);
        if added == 0 {
            return false;
        }
        fence(Ordering::SeqCst);
        match u16::from_le(self.device_flags.load(Ordering::Relaxed)) {
            EVENT_DISABLE => false,
            EVENT_DESCRIPTOR => {
                let event = u16::from_le(self.device_event.load(Ordering::Relaxed));
                let (index, wrap) = (event & 0x7fff, event & 0x8000 != 0);
                let index =
                    if wrap == self.next.wrap { index } else { index.wrapping_sub(ENTRIES) };
                self.next.at.wrapping_sub(index).wrapping_sub(1) < added
            }
            _ => true,
        }
    }

    /// Removes the next completion. Returns its slot; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<u16> {
        if !self.has_completion() {
            return None;
        }
        let slot = u16::from_le(self.places[usize::from(self.seen.at)].id.load(Ordering::Relaxed));
        // An id that was never submitted is returned unchanged; the caller rejects the slot.
        let length = self.chains.get(usize::from(slot)).map_or(1, Vec::len) as u16;
        self.seen = self.seen.after(length);
        Some(slot)
    }

    /// Enables an interrupt at the next completion, or disables interrupts.
    pub(crate) fn set_interrupt(&mut self, is_wanted: bool) {
        let flags = if is_wanted { EVENT_ENABLE } else { EVENT_DISABLE };
        self.driver_flags.store(flags.to_le(), Ordering::Relaxed);
    }

    pub(crate) fn has_completion(&self) -> bool {
        let descriptor = &self.places[usize::from(self.seen.at)];
        let flags = u16::from_le(descriptor.flags.load(Ordering::Acquire));
        let (is_available, is_used) = (flags & AVAILABLE != 0, flags & USED != 0);
        is_available == is_used && is_used == self.seen.wrap
    }
}
