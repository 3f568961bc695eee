//! Fuzz oracle of packed virtio-net rings in arbitrary guest memory.
//!
//! The first four bytes select the ring; the others are the start of the guest's memory: descriptor
//! ring, then the driver's and the device's event suppression. Before each call a straightforward
//! parser of virtio 1.3, section 2.8, computes from the current memory the frames that a device
//! must receive. The oracle checks that the ring receives exactly these and fails only where the
//! driver violated the specification; that no other byte changes; and that every changed page is in
//! the dirty log.

use std::cell::RefCell;
use std::sync::Arc;

use suimon_frame::{FRAME_BYTES_MAX, Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource};
use suimon_ring::{OffloadMask, RingAddresses, RxRing, TxRing};

use crate::guest_image::{GuestImage, MEMORY_BYTES, Records};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;

const MERGEABLE: u64 = 1 << 15;
const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;
const RING_PACKED: u64 = 1 << 34;
const IN_ORDER: u64 = 1 << 35;
/// Number of entries of an indirect table that a device must accept in any ring.
const TABLE_ENTRIES_MAX: usize = 1024;

thread_local! {
    /// Batch shared by all runs of a thread, because its buffers are large.
    static BATCH: RefCell<FrameBatch> = RefCell::new(FrameBatch::new());
}

/// Runs a transmit and a receive ring over the guest memory described by `input`.
///
/// # Panics
///
/// A ring violates a rule above.
pub fn check(input: &[u8]) {
    let Some((choice, image)) = input.split_first_chunk::<4>() else { return };
    let [size, flags, base, mode] = *choice;
    let size = u16::from(size % 65);
    let bits = [EVENT_IDX, INDIRECT_DESC, MERGEABLE, IN_ORDER, 1, 2, 1 << 7, 1 << 11];
    let chosen = bits.iter().enumerate().filter(|(index, _)| flags >> index & 1 != 0);
    let features = chosen.fold(VERSION_1 | RING_PACKED, |features, (_, bit)| features | bit);
    let mut memory = GuestImage::new(image);
    // Random addresses are rarely in guest memory; move them there.
    if mode & 1 != 0 {
        memory.bring_near(16 * usize::from(size));
    }
    let base = u16::from(base & 0x7f) | u16::from(base & 0x80) << 8;
    let ring = Ring { size, features, base, records: Records::chosen_by(mode), memory };
    ring.check_transmit();
    ring.check_receive();
}

/// Descriptor as stored in guest memory.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    addr: u64,
    len: usize,
    flags: u16,
}

/// Chains available from some position of the ring.
#[derive(Debug, Default)]
struct Expected {
    /// Bytes of each chain, and the number of its descriptors.
    chains: Vec<(Vec<u8>, u16)>,
    /// True if the driver violated the specification after these chains.
    is_broken: bool,
}

struct Ring {
    size: u16,
    features: u64,
    base: u16,
    records: Records,
    memory: GuestImage,
}

impl Ring {
    fn events_at(&self) -> usize {
        16 * usize::from(self.size)
    }

    fn addresses(&self) -> RingAddresses {
        let offset = self.events_at() as u64;
        RingAddresses { descriptors: 0, available: offset, used: offset + 4 }
    }

    fn check_transmit(&self) {
        let guest = self.memory.open(self.size.into(), self.features, self.base, self.addresses());
        let records = guest.records(self.records, true, self.events_at() as u64 + 4);
        let Ok(mut ring) = TxRing::with_tracking(guest.memory.clone(), &guest.setup, records)
        else {
            return;
        };
        // The frames that a ring resubmits from an arbitrary in-flight region are not computed
        // here.
        let is_known = !self.records.has_inflight();
        BATCH.with_borrow_mut(|batch| {
            for _ in 0..8 {
                let (index, malformed_frames) =
                    (ring.state().next_avail(), ring.malformed_frames());
                let expected = self.read_ring(&guest.bytes(), index);
                batch.clear();
                let received = ring.receive(batch);
                batch.frames_mut().iter_mut().for_each(|frame| frame.linearize());
                ring.release();
                assert!(batch.frames().iter().all(|frame| frame.len() <= FRAME_BYTES_MAX));
                let used = batch.len() + (ring.malformed_frames() - malformed_frames) as usize;
                if is_known {
                    compare(&expected, batch.frames(), used, received.is_err());
                    assert_eq!(ring.state().next_avail(), self.position(index, &expected, used));
                }
                let _ = ring.arm();
                ring.disarm();
                if received.map_or(true, |count| count == 0) && used == 0 {
                    break;
                }
            }
        });
        drop(ring);
        guest.check_log(&self.memory);
        self.check_unchanged(&guest.bytes(), false);
    }

    /// Returns the ring position (index, wrap counter in bit 15) after `chains` chains from `from`.
    fn position(&self, from: u16, expected: &Expected, chains: usize) -> u16 {
        let steps: u32 =
            expected.chains[..chains].iter().map(|(_, descriptors)| u32::from(*descriptors)).sum();
        let index = u32::from(from & 0x7fff) + steps;
        let rounds = index / u32::from(self.size);
        (index % u32::from(self.size)) as u16 | (from & 0x8000) ^ ((rounds % 2) as u16) << 15
    }

    /// Parses the available chains from position `from`, at most one round of the ring.
    fn read_ring(&self, memory: &[u8], from: u16) -> Expected {
        let mut expected = Expected::default();
        let mut offset = from & 0x7fff;
        let mut wrap = from & 0x8000 != 0;
        let mut remaining = self.size;
        while remaining > 0 {
            let first = descriptor(memory, 16 * usize::from(offset));
            if (first.flags & AVAIL != 0) != wrap || (first.flags & USED != 0) == wrap {
                return expected;
            }
            let mut chain = vec![first];
            while chain[chain.len() - 1].flags & NEXT != 0 {
                if chain.len() == usize::from(remaining) {
                    expected.is_broken = true;
                    return expected;
                }
                let next = (usize::from(offset) + chain.len()) % usize::from(self.size);
                chain.push(descriptor(memory, 16 * next));
            }
            let Some(bytes) = self.read_chain(memory, &chain) else {
                expected.is_broken = true;
                return expected;
            };
            let descriptors = chain.len() as u16;
            expected.chains.push((bytes, descriptors));
            remaining -= descriptors;
            if offset + descriptors >= self.size {
                wrap = !wrap;
            }
            offset = (offset + descriptors) % self.size;
        }
        expected
    }

    /// Returns the bytes of a transmit chain; `None` if the driver violated the specification.
    fn read_chain(&self, memory: &[u8], chain: &[Descriptor]) -> Option<Vec<u8>> {
        let mut buffers = Vec::new();
        for part in chain {
            if part.flags & INDIRECT == 0 {
                buffers.push(*part);
                continue;
            }
            let entries = part.len / 16;
            let is_allowed = self.features & INDIRECT_DESC != 0
                && part.flags & NEXT == 0
                && part.len % 16 == 0
                && entries > 0
                && entries <= TABLE_ENTRIES_MAX.max(self.size.into());
            let table = part.addr;
            let end = table.checked_add(part.len as u64)?;
            if !is_allowed {
                return None;
            }
            // The table may exceed the memory after the descriptor at which the chain becomes too
            // long.
            let available = (end.min(MEMORY_BYTES as u64)).saturating_sub(table) / 16;
            for index in 0..available {
                buffers.push(descriptor(memory, (table + 16 * index) as usize));
            }
            if end > MEMORY_BYTES as u64 {
                return None;
            }
        }
        let mut bytes = Vec::new();
        for buffer in &buffers {
            let end = buffer.addr.checked_add(buffer.len as u64)?;
            // The address of an empty buffer is not used.
            if buffer.flags & WRITE != 0 || (end > MEMORY_BYTES as u64 && buffer.len > 0) {
                return None;
            }
            if buffer.len > 0 {
                bytes.extend_from_slice(&memory[buffer.addr as usize..end as usize]);
            }
            if bytes.len() > 12 + FRAME_BYTES_MAX {
                return None;
            }
        }
        Some(bytes)
    }

    fn check_receive(&self) {
        let guest = self.memory.open(self.size.into(), self.features, self.base, self.addresses());
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let records = guest.records(self.records, true, self.events_at() as u64 + 4);
        let result = RxRing::with_tracking(guest.memory.clone(), &guest.setup, records, mask);
        let Ok(mut ring) = result else { return };
        BATCH.with_borrow_mut(|batch| {
            batch.clear();
            let frame = batch.next_free_frame().expect("an empty batch has room");
            for len in [60, 1514, 9000, FRAME_BYTES_MAX, 60] {
                frame.reset();
                frame.set_len(len);
                frame.bytes_mut().fill(0xa5);
                if ring.transmit(frame).is_err() || ring.flush().is_err() {
                    break;
                }
            }
        });
        drop(ring);
        guest.check_log(&self.memory);
        self.check_unchanged(&guest.bytes(), true);
    }

    /// Checks that bytes changed only in the device's event suppression, in the last eight bytes of
    /// descriptors and in writable buffers. Rings with indirect tables or an in-flight region are
    /// not checked, because their buffers are not known here.
    fn check_unchanged(&self, after: &[u8], may_fill_buffers: bool) {
        let is_let_off = self.features & INDIRECT_DESC != 0 || self.records.has_inflight();
        if may_fill_buffers && is_let_off {
            return;
        }
        let events = self.events_at();
        let mut may_change: Vec<_> = std::iter::once(events + 4..events + 8).collect();
        for index in (0..events).step_by(16) {
            may_change.push(index + 8..index + 16);
            let described = descriptor(self.memory.bytes(), index);
            if !may_fill_buffers || described.flags & WRITE == 0 {
                continue;
            }
            let start = described.addr.min(MEMORY_BYTES as u64);
            let end = (start + described.len as u64).min(MEMORY_BYTES as u64);
            // A buffer that overlaps the ring changes its descriptors.
            if start < events as u64 + 8 {
                return;
            }
            may_change.push(start as usize..end as usize);
        }
        self.memory.check_unchanged(after, &may_change);
    }
}

/// Checks that the received frames are those of the expected chains in order, except for invalid
/// frames.
fn compare(expected: &Expected, frames: &[Frame], count: usize, failed: bool) {
    assert!(count <= expected.chains.len(), "{count} chains, more than are available");
    if failed {
        assert!(expected.is_broken, "a fault without a violation");
    } else if count == 0 {
        assert!(
            expected.chains.is_empty() && !expected.is_broken,
            "an available chain was not received"
        );
    }
    let mut chains = expected.chains[..count].iter();
    for frame in frames {
        let wire = frame.wire_format();
        let mut bytes = wire.before_tag.to_vec();
        bytes.extend(wire.tag.as_ref().map_or(&[][..], |tag| tag.as_slice()));
        bytes.extend(wire.after_tag);
        let is_expected = chains.any(|(chain, _)| chain.len() > 12 && chain[12..] == bytes[..]);
        assert!(is_expected, "a frame that was not sent");
    }
}

fn descriptor(memory: &[u8], offset: usize) -> Descriptor {
    let number = |start: usize, bytes: usize| {
        memory[offset + start..offset + start + bytes]
            .iter()
            .rev()
            .fold(0_u64, |sum, b| sum << 8 | u64::from(*b))
    };
    Descriptor { addr: number(0, 8), len: number(8, 4) as usize, flags: number(14, 2) as u16 }
}
