//! Locations in memory of the payloads of a queue's requests.
#![allow(unsafe_code, reason = "holds pointers into memory that is shared with a client")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::Arc;

use crate::aligned::{PAGE_BYTES, Page};
use crate::copy::{gather, scatter};

/// Contiguous part of a payload's memory.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Address of the first byte.
    pub pointer: *mut u8,
    /// Length of the segment in bytes.
    pub len: usize,
}

/// Direction in which a payload is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadUse {
    /// The payload is read from memory: a write to the disk.
    Source,
    /// The payload is written to memory: a read from the disk.
    Destination,
}

struct Slot {
    usage: PayloadUse,
    segments: Vec<Segment>,
}

/// Memory of a table, accessed only through pointers.
struct OwnPages(Vec<UnsafeCell<Page>>);

// SAFETY: no reference to the contents of the cells is created.
unsafe impl Sync for OwnPages {}

/// Location in memory of the payload of each request (tag) of a queue: the type of
/// [`DiskQueue::payloads`](suimon_ports::DiskQueue::payloads) for every queue of the sys layer.
pub struct PayloadTable {
    memory_owner: Arc<dyn Any + Send + Sync>,
    slots: Vec<Slot>,
}

// SAFETY: the pointers are valid in any thread while `memory` is held, as `PayloadTable::set`
// requires, and the table holds it.
unsafe impl Send for PayloadTable {}

impl PayloadTable {
    /// Creates a table for `tags` requests of at most `pieces_max` segments each. `memory` owns the
    /// memory of the segments; operations hold it while they use a payload.
    #[must_use]
    pub fn new(tags: u32, pieces_max: usize, memory: Arc<dyn Any + Send + Sync>) -> Self {
        let slot = || Slot { usage: PayloadUse::Source, segments: Vec::with_capacity(pieces_max) };
        Self { memory_owner: memory, slots: (0..tags).map(|_| slot()).collect() }
    }

    /// Creates a table that owns its memory, for queues with a client in this process. The payload
    /// of each tag has `bytes` zeros, starts at a page, and has the direction that `usage` returns.
    #[must_use]
    pub fn with_memory(tags: u32, bytes: usize, usage: impl Fn(u32) -> PayloadUse) -> Self {
        let pages_each = bytes.div_ceil(PAGE_BYTES);
        let page = || UnsafeCell::new(Page::ZEROS);
        let pages: Vec<_> = (0..tags as usize * pages_each).map(|_| page()).collect();
        let memory = Arc::new(OwnPages(pages));
        let start = memory.0.as_ptr().cast::<u8>().cast_mut();
        let mut table = Self::new(tags, 1, memory);
        for (tag, index) in (0..tags).zip(0..) {
            // SAFETY: there are that many pages for each tag.
            let pointer = unsafe { start.add(index * pages_each * PAGE_BYTES) };
            // SAFETY: the bytes are in the pages of this tag, which the table holds and which are
            // in cells.
            unsafe { table.set(tag, usage(tag), [Segment { pointer, len: bytes }]) };
        }
        table
    }

    /// Sets the location of a request's payload. If the table has no space for all segments, it
    /// allocates memory. A tag out of range is ignored.
    ///
    /// # Safety
    /// While the table's memory is held, each segment must be valid for reads, and for writes if
    /// `usage` is [`PayloadUse::Destination`]. Guests or other processes may access it
    /// concurrently. No reference into it may exist.
    pub unsafe fn set(
        &mut self,
        tag: u32,
        usage: PayloadUse,
        segments: impl IntoIterator<Item = Segment>,
    ) {
        if let Some(slot) = self.slots.get_mut(tag as usize) {
            slot.usage = usage;
            slot.segments.clear();
            for segment in segments {
                if segment.len > 0 {
                    slot.segments.push(segment);
                }
            }
        }
    }

    /// Records that the request has no payload.
    pub fn clear(&mut self, tag: u32) {
        if let Some(slot) = self.slots.get_mut(tag as usize) {
            slot.segments.clear();
        }
    }

    /// Returns the length of a payload in bytes.
    #[must_use]
    pub fn bytes(&self, tag: u32) -> u64 {
        let segments = self.slots.get(tag as usize).map_or(&[][..], |slot| &slot.segments);
        segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.len as u64))
    }

    /// Fills a range of a payload (bytes) with zeros, if it is a destination.
    pub fn zero(&self, tag: u32, offset: u64, len: u64) {
        self.each(tag, PayloadUse::Destination, offset, len, |segment| {
            // SAFETY: a destination is valid for writes while its memory is held by the table; no
            // reference into it exists.
            unsafe { segment.pointer.write_bytes(0, segment.len) };
        });
    }

    /// Copies bytes of a source payload, from `offset` on, to `buffer`. Returns false if the
    /// payload is shorter or a destination; the existing bytes were copied.
    #[must_use]
    pub fn copy_out(&self, tag: u32, offset: u64, buffer: &mut [u8]) -> bool {
        let mut iovecs = Vec::new();
        let is_whole =
            self.append_iovecs(tag, PayloadUse::Source, offset, buffer.len() as u64, &mut iovecs);
        gather(&iovecs, buffer);
        is_whole
    }

    /// Copies `bytes` to a destination payload, from `offset` on. Returns false if the payload is
    /// shorter or a source; the existing range was written.
    #[must_use]
    pub fn copy_in(&self, tag: u32, offset: u64, bytes: &[u8]) -> bool {
        let mut iovecs = Vec::new();
        let len = bytes.len() as u64;
        let is_whole = self.append_iovecs(tag, PayloadUse::Destination, offset, len, &mut iovecs);
        scatter(bytes, &iovecs);
        is_whole
    }

    /// Returns the owner of the payloads' memory. While a clone of it exists, their addresses are
    /// valid.
    pub(crate) fn memory_owner(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.memory_owner
    }

    /// Appends the segments of a range of a payload (bytes) to `iovecs`. Returns false if the
    /// payload is shorter or is not used as `usage`; the segments that exist were appended.
    pub(crate) fn append_iovecs(
        &self,
        tag: u32,
        usage: PayloadUse,
        offset: u64,
        len: u64,
        iovecs: &mut Vec<libc::iovec>,
    ) -> bool {
        let covered = self.each(tag, usage, offset, len, |segment| {
            iovecs.push(libc::iovec { iov_base: segment.pointer.cast(), iov_len: segment.len });
        });
        covered == len
    }

    /// Calls `visit` with the segments of a range of a payload (bytes), in order. Returns the
    /// number of bytes.
    fn each(
        &self,
        tag: u32,
        usage: PayloadUse,
        offset: u64,
        len: u64,
        mut visit: impl FnMut(Segment),
    ) -> u64 {
        let Some(slot) = self.slots.get(tag as usize).filter(|slot| slot.usage == usage) else {
            return 0;
        };
        let (mut skip, mut remaining) = (offset, len);
        for segment in &slot.segments {
            let segment_len = segment.len as u64;
            if skip >= segment_len {
                skip -= segment_len;
                continue;
            }
            let now = remaining.min(segment_len - skip);
            if now == 0 {
                break;
            }
            // SAFETY: `skip` is less than the segment's length.
            let pointer = unsafe { segment.pointer.add(skip as usize) };
            visit(Segment { pointer, len: now as usize });
            remaining -= now;
            skip = 0;
        }
        len - remaining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(bytes: &mut [u8], usage: PayloadUse, lens: &[usize]) -> PayloadTable {
        let mut table = PayloadTable::new(2, 4, Arc::new(()));
        let start = bytes.as_mut_ptr();
        let mut offset = 0;
        let segments = lens.iter().map(|&len| {
            // SAFETY: tests use lengths within `bytes`.
            let pointer = unsafe { start.add(offset) };
            offset += len;
            Segment { pointer, len }
        });
        // SAFETY: `bytes` outlives the table in every test of this module, and is accessed again
        // only after the table's last use.
        unsafe { table.set(1, usage, segments) };
        table
    }

    #[test]
    fn a_range_of_a_payload_never_exceeds_its_segments() {
        let mut bytes = [7; 10];
        let start = bytes.as_mut_ptr() as usize;
        let table = table(&mut bytes, PayloadUse::Source, &[3, 0, 5]);
        let part = |offset, len| {
            let mut iovecs = Vec::new();
            let is_whole = table.append_iovecs(1, PayloadUse::Source, offset, len, &mut iovecs);
            let locations: Vec<_> = iovecs
                .iter()
                .map(|iovec| (iovec.iov_base as usize - start, iovec.iov_len))
                .collect();
            (is_whole, locations)
        };
        assert_eq!(table.bytes(1), 8);
        assert_eq!(part(0, 8), (true, vec![(0, 3), (3, 5)]));
        assert_eq!(part(2, 2), (true, vec![(2, 1), (3, 1)]));
        assert_eq!(part(3, 5), (true, vec![(3, 5)]));
        assert_eq!(part(6, 3), (false, vec![(6, 2)]));
        assert_eq!(part(u64::MAX, 1), (false, vec![]));
        let mut none = Vec::new();
        assert!(!table.append_iovecs(1, PayloadUse::Destination, 0, 1, &mut none));
        assert!(!table.append_iovecs(9, PayloadUse::Source, 0, 1, &mut none) && none.is_empty());
    }

    #[test]
    fn bytes_are_copied_through_the_segments_in_the_direction_of_the_payload() {
        let mut bytes = *b"0123456789";
        let source = table(&mut bytes, PayloadUse::Source, &[3, 0, 5]);
        let mut buffer = [0; 4];
        assert!(source.copy_out(1, 2, &mut buffer));
        assert_eq!(&buffer, b"2345");
        assert!(!source.copy_out(1, 6, &mut buffer), "it has 8 bytes");
        assert_eq!(&buffer, b"6745");
        assert!(!source.copy_in(1, 0, b"xy"), "it is read only");
        drop(source);
        let destination = table(&mut bytes, PayloadUse::Destination, &[3, 0, 5]);
        assert!(destination.copy_in(1, 2, b"abc"));
        assert!(!destination.copy_in(1, 7, b"de"));
        assert!(!destination.copy_out(1, 0, &mut buffer));
        drop(destination);
        assert_eq!(&bytes, b"01abc56d89");
    }

    #[test]
    fn payloads_of_a_table_with_memory_start_at_separate_pages() {
        let table = PayloadTable::with_memory(3, 5000, |_| PayloadUse::Destination);
        let address = |tag| {
            let mut iovecs = Vec::new();
            assert!(table.append_iovecs(tag, PayloadUse::Destination, 0, 5000, &mut iovecs));
            let [iovec] = iovecs[..] else { panic!("{} pieces", iovecs.len()) };
            iovec.iov_base as usize
        };
        let first = address(0);
        assert_eq!(first % PAGE_BYTES, 0);
        assert_eq!([address(1) - first, address(2) - first], [2 * PAGE_BYTES, 4 * PAGE_BYTES]);
        assert_eq!((table.bytes(2), table.bytes(3)), (5000, 0));
        assert!(table.copy_in(2, 0, &[7; 5000]) && !table.copy_in(2, 1, &[7; 5000]));
        assert!(PayloadTable::with_memory(1, 8, |_| PayloadUse::Source).copy_out(
            0,
            0,
            &mut [7; 8]
        ));
    }

    #[test]
    fn zeros_go_to_destinations_and_to_no_byte_beside_the_part() {
        let mut bytes = [7; 6];
        table(&mut bytes, PayloadUse::Destination, &[2, 4]).zero(1, 1, 3);
        assert_eq!(bytes, [7, 0, 0, 0, 7, 7]);
        table(&mut bytes, PayloadUse::Source, &[6]).zero(1, 0, 6);
        assert_eq!(bytes, [7, 0, 0, 0, 7, 7]);
    }
}
