//! Fuzz oracle of virtio-blk rings: rings in arbitrary guest memory.
//!
//! The first four bytes select the ring; the others are the start of the guest's memory. A
//! straightforward parser of virtio 1.3, sections 2.7, 2.8 and 5.2.6, computes from that memory the
//! requests that the ring must pass to the disk, up to the first chain that the ring completes
//! itself. The oracle checks that the ring passes exactly these requests and fails where the driver
//! violated the specification; that later requests are within the disk and no tag is used twice;
//! and that every changed page is in the dirty log.

use std::sync::Arc;

use suimon_ports::{DiskOp, DiskOutcome, DiskQueue, DiskRequest};
use suimon_ring::{DiskDescription, DiskProperties, DiskRing, RingAddresses};

use crate::guest_image::{GuestImage, MEMORY_BYTES, Records};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;

const FLUSH: u64 = 1 << 9;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;
const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;
const RING_PACKED: u64 = 1 << 34;

/// Number of entries of an indirect table that a device must accept in any ring.
const TABLE_ENTRIES_MAX: usize = 1024;
const DISK_SECTORS: u64 = 64;
const CALLS: usize = 6;

/// Runs a ring over the guest memory described by `input`.
///
/// # Panics
///
/// The ring violates a rule above.
pub fn check(input: &[u8]) {
    let Some((choice, image)) = input.split_first_chunk::<4>() else { return };
    let [size, flags, base, mode] = *choice;
    let bits = [RING_PACKED, EVENT_IDX, INDIRECT_DESC, FLUSH, DISCARD, WRITE_ZEROES];
    let chosen = bits.iter().enumerate().filter(|(index, _)| flags >> index & 1 != 0);
    let features = chosen.fold(VERSION_1, |sum, (_, bit)| sum | bit);
    let is_packed = features & RING_PACKED != 0;
    let size = if is_packed { u16::from(size % 65) } else { 1 << (size % 7) };
    let mut memory = GuestImage::new(image);
    // Random addresses are rarely in guest memory; move them there.
    if mode & 1 != 0 {
        memory.bring_near(16 * usize::from(size));
    }
    let base =
        if is_packed { u16::from(base & 0x7f) | u16::from(base & 0x80) << 8 } else { base.into() };
    Ring { size, features, base, records: Records::chosen_by(mode), memory }.check();
}

/// Reason why the expected requests end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// No further chain is available.
    Empty,
    /// The driver violated the specification.
    Broken,
    /// The ring completes a chain itself, which may change the memory of all later chains.
    Inside,
}

/// Request to the disk: virtio-blk request type, offset and length in bytes.
type DriverRequest = (u32, u64, u64);

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    addr: u64,
    len: u64,
    flags: u16,
    /// `next` field of a split descriptor, or buffer ID of a packed one.
    next: u16,
}

struct Ring {
    size: u16,
    features: u64,
    base: u16,
    records: Records,
    memory: GuestImage,
}

impl Ring {
    fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    fn addresses(&self) -> RingAddresses {
        let available = 16 * u64::from(self.size);
        let used = if self.has(RING_PACKED) {
            available + 4
        } else {
            (18 * u64::from(self.size) + 6).next_multiple_of(4)
        };
        RingAddresses { descriptors: 0, available, used }
    }

    fn check(&self) {
        let addresses = self.addresses();
        let guest = self.memory.open(self.size.into(), self.features, self.base, addresses);
        let records = guest.records(self.records, self.has(RING_PACKED), addresses.used);
        let disk = DiskDescription {
            bytes: DISK_SECTORS * 512,
            sector_bytes: 512,
            is_read_only: false,
            serial: "fuzz".into(),
        };
        let facts = Arc::new(DiskProperties::new(&disk));
        let result = DiskRing::with_tracking(guest.memory.clone(), &guest.setup, records, facts);
        let Ok(ring) = result else { return };
        let mut queue = ring.into_queue();
        let (expected, end) = self.read_ring(&guest.bytes());
        let mut under_way = Vec::new();
        for call in 0..CALLS {
            let before = under_way.len();
            let received = queue.receive(1000, &mut under_way);
            assert_eq!(
                received.as_ref().map_or(under_way.len() - before, |count| *count),
                under_way.len() - before
            );
            // The requests that a ring resubmits from an arbitrary in-flight region are not
            // computed here.
            if call == 0 && !self.records.has_inflight() {
                compare(&expected, end, &under_way, received.is_err());
            }
            check_requests(&*queue, &under_way);
            if received.is_err() {
                break;
            }
            let _ = queue.arm();
            queue.disarm();
            answer_some(&mut *queue, &mut under_way, call);
            let _ = queue.flush();
        }
        drop(queue);
        guest.check_log(&self.memory);
    }

    /// Returns the expected requests in order, and why they end there.
    fn read_ring(&self, memory: &[u8]) -> (Vec<DriverRequest>, End) {
        let (chains, mut end) = if self.has(RING_PACKED) {
            self.packed_chains(memory)
        } else {
            self.split_chains(memory)
        };
        let mut requests = Vec::new();
        for chain in chains {
            let Some(parts) = chain.and_then(|chain| read_parts(memory, &chain)) else {
                end = End::Broken;
                break;
            };
            let Some(request) = self.judge(&parts) else {
                end = End::Inside;
                break;
            };
            requests.push(request);
        }
        (requests, end)
    }

    /// Returns the descriptors of each available chain of a split ring, `None` for an invalid one,
    /// and why the list ends there.
    fn split_chains(&self, memory: &[u8]) -> (Vec<Option<Vec<Descriptor>>>, End) {
        let addresses = self.addresses();
        let available = addresses.available as usize;
        let size = usize::from(self.size);
        let pending = (number(memory, available + 2, 2) as u16).wrapping_sub(self.base);
        if pending > self.size {
            return (vec![], End::Broken);
        }
        let (mut chains, mut heads) = (Vec::new(), Vec::new());
        for index in 0..pending {
            let entry = usize::from(self.base.wrapping_add(index)) % size;
            let head = number(memory, available + 4 + 2 * entry, 2) as usize;
            if head >= size || heads.contains(&head) {
                return (chains, End::Broken);
            }
            heads.push(head);
            let mut next = Some(head);
            let mut chain = Vec::new();
            let mut is_whole = true;
            while let Some(index) = next {
                if index >= size || chain.len() == size {
                    is_whole = false;
                    break;
                }
                let descriptor = descriptor(memory, 16 * index, false);
                next = (descriptor.flags & (NEXT | INDIRECT) == NEXT)
                    .then_some(usize::from(descriptor.next));
                chain.push(descriptor);
            }
            chains.push(
                Some(chain).filter(|_| is_whole).and_then(|chain| self.resolve(memory, chain)),
            );
        }
        (chains, End::Empty)
    }

    fn packed_chains(&self, memory: &[u8]) -> (Vec<Option<Vec<Descriptor>>>, End) {
        let (mut offset, mut wrap) = (self.base & 0x7fff, self.base & 0x8000 != 0);
        let (mut remaining, mut chains) = (self.size, Vec::new());
        while remaining > 0 {
            let mut chain: Vec<Descriptor> = Vec::new();
            loop {
                let descriptor = descriptor(memory, 16 * usize::from(offset), true);
                let is_available = (descriptor.flags & AVAIL != 0) == wrap
                    && (descriptor.flags & USED != 0) != wrap;
                if chain.is_empty() && !is_available {
                    return (chains, End::Empty);
                }
                if chain.len() == usize::from(remaining) {
                    return (chains, End::Broken);
                }
                offset += 1;
                if offset == self.size {
                    (offset, wrap) = (0, !wrap);
                }
                chain.push(descriptor);
                if descriptor.flags & NEXT == 0 {
                    break;
                }
            }
            remaining -= chain.len() as u16;
            chains.push(self.resolve(memory, chain));
        }
        (chains, End::Empty)
    }

    /// Replaces an indirect descriptor by its table's descriptors; `None` if the table is invalid.
    fn resolve(&self, memory: &[u8], mut chain: Vec<Descriptor>) -> Option<Vec<Descriptor>> {
        let Some(index) = chain.iter().position(|entry| entry.flags & INDIRECT != 0) else {
            return Some(chain);
        };
        let (table, is_packed) = (chain[index], self.has(RING_PACKED));
        let entries = table.len / 16;
        let max = TABLE_ENTRIES_MAX.max(self.size.into()) as u64;
        let is_allowed = self.has(INDIRECT_DESC)
            && table.flags & NEXT == 0
            && table.len % 16 == 0
            && (1..=max).contains(&entries);
        if !is_allowed {
            return None;
        }
        chain.truncate(index);
        let (mut index, mut count) = (0, 0);
        loop {
            let address = table.addr.checked_add(16 * index)?;
            if address.checked_add(16)? > MEMORY_BYTES as u64
                || index >= entries
                || count == entries
            {
                return None;
            }
            let descriptor = descriptor(memory, address as usize, is_packed);
            if !is_packed && descriptor.flags & INDIRECT != 0 {
                return None;
            }
            chain.push(descriptor);
            count += 1;
            let has_next =
                if is_packed { index + 1 < entries } else { descriptor.flags & NEXT != 0 };
            if !has_next {
                return Some(chain);
            }
            index = if is_packed { index + 1 } else { descriptor.next.into() };
        }
    }

    /// Returns the request of a chain with these readable bytes and this many writable bytes before
    /// the status; `None` if the ring rejects it.
    fn judge(&self, (readable, space): &(Vec<u8>, u64)) -> Option<DriverRequest> {
        let kind = number(readable, 0, 4) as u32;
        let payload = &readable[16..];
        let (sector, bytes) = match kind {
            0 => (number(readable, 8, 8), *space),
            1 => (number(readable, 8, 8), payload.len() as u64),
            4 => return Some((kind, 0, 0)),
            11 | 13 => {
                let feature = if kind == 11 { DISCARD } else { WRITE_ZEROES };
                let known_flags = u64::from(kind == 13);
                if !self.has(feature)
                    || payload.len() != 16
                    || number(payload, 12, 4) & !known_flags != 0
                {
                    return None;
                }
                (number(payload, 0, 8), number(payload, 8, 4) * 512)
            }
            _ => return None,
        };
        let from = sector.checked_mul(512)?;
        let end = from.checked_add(bytes)?;
        let is_sound = bytes > 0 && bytes % 512 == 0 && end <= DISK_SECTORS * 512;
        is_sound.then_some((kind, from, bytes))
    }
}

/// Returns the readable bytes of a chain, and the number of writable bytes before the status byte;
/// `None` if the chain is invalid.
fn read_parts(memory: &[u8], chain: &[Descriptor]) -> Option<(Vec<u8>, u64)> {
    let (mut readable, mut writable, mut was_writable) = (Vec::new(), 0_u64, false);
    for buffer in chain {
        let is_writable = buffer.flags & WRITE != 0;
        if was_writable && !is_writable {
            return None;
        }
        was_writable = is_writable;
        if buffer.len == 0 {
            continue;
        }
        let end = buffer.addr.checked_add(buffer.len)?;
        if end > MEMORY_BYTES as u64 {
            return None;
        }
        if is_writable {
            writable += buffer.len;
        } else {
            readable.extend_from_slice(&memory[buffer.addr as usize..end as usize]);
        }
    }
    (readable.len() >= 16).then_some((readable, writable.checked_sub(1)?))
}

fn compare(expected: &[DriverRequest], end: End, actual: &[DiskRequest], has_failed: bool) {
    let actual: Vec<DriverRequest> = actual
        .iter()
        .map(|request| {
            let kind = match request.op {
                DiskOp::Read => 0,
                DiskOp::Write { .. } => 1,
                DiskOp::Flush => 4,
                DiskOp::Discard => 11,
                DiskOp::WriteZeroes { .. } => 13,
                DiskOp::AllocationStatus { .. } => unreachable!("a ring requests no status"),
            };
            (kind, request.range.offset(), request.range.len())
        })
        .collect();
    match end {
        End::Empty => assert_eq!((&actual[..], has_failed), (expected, false)),
        // The ring parses several chains before it passes on the first of them, so requests before
        // the invalid chain may be missing.
        End::Broken => {
            assert!(has_failed && expected.starts_with(&actual), "{expected:?} {actual:?}");
        }
        End::Inside => {
            let common = expected.len().min(actual.len());
            assert_eq!(expected[..common], actual[..common]);
            assert!(common == expected.len() || has_failed);
        }
    }
}

fn check_requests(queue: &dyn DiskQueue, under_way: &[DiskRequest]) {
    assert!(under_way.len() <= queue.in_flight_max() as usize);
    for (index, request) in under_way.iter().enumerate() {
        assert!(request.tag < queue.in_flight_max());
        assert!(under_way[..index].iter().all(|other| other.tag != request.tag));
        assert!(request.range.is_within(DISK_SECTORS * 512) && request.range.is_aligned(512));
    }
}

/// Completes every second request in flight, newest first; in the last call all of them.
fn answer_some(queue: &mut dyn DiskQueue, under_way: &mut Vec<DiskRequest>, call: usize) {
    for index in (0..under_way.len()).rev() {
        if index % 2 == call % 2 || call + 1 == CALLS {
            let request = under_way.remove(index);
            queue.zero_payload(request.tag, 0, request.range.len());
            let outcome = if index % 3 == 0 { DiskOutcome::Failed } else { DiskOutcome::Done };
            queue.complete(request.tag, outcome);
        }
    }
}

fn descriptor(memory: &[u8], offset: usize, is_packed: bool) -> Descriptor {
    let (third, fourth) =
        (number(memory, offset + 12, 2) as u16, number(memory, offset + 14, 2) as u16);
    let (flags, next) = if is_packed { (fourth, third) } else { (third, fourth) };
    Descriptor { addr: number(memory, offset, 8), len: number(memory, offset + 8, 4), flags, next }
}

/// Returns the little-endian number of `bytes` bytes at `offset`.
fn number(memory: &[u8], offset: usize, bytes: usize) -> u64 {
    memory[offset..offset + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
