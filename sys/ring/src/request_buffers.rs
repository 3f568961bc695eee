//! Buffers of a disk's requests: located in guest memory once, when a chain is taken, and accessed
//! by pointer until the request is completed.
#![allow(unsafe_code, reason = "reads and writes memory that is shared with a VM, by pointers")]

use std::any::Any;
use std::sync::Arc;

use suimon_uring::{PayloadTable, PayloadUse, Segment};

use crate::chain::{Buffer, BufferSink};
use crate::copy::copy;
use crate::disk_request::HEADER_BYTES;
use crate::memory::{GuestMemory, OutOfRange};
use crate::memory_view::MemoryView;

/// Number of segments per request for which memory is allocated in advance. A request with more
/// segments causes one allocation.
const SEGMENTS_RESERVED: usize = 16;
/// Maximum number of segments per request: every buffer of the longest chain, and some that cross a
/// region boundary.
const SEGMENTS_MAX: usize = 2048;

/// Part of a buffer that is in one memory region.
#[derive(Clone, Copy)]
struct GuestSegment {
    addr: u64,
    piece: Segment,
}

/// Range of guest memory: guest-physical address, and length in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuestRange {
    pub(crate) addr: u64,
    pub(crate) len: usize,
}

/// Buffers of the current chain, and the locations of payload and status of each tag.
pub(crate) struct RequestBuffers {
    memory: Arc<GuestMemory>,
    table: PayloadTable,
    /// Location of the status byte, indexed by tag. Null before the tag's first request.
    statuses: Vec<*mut u8>,
    /// Header of the current chain; its last `missing` bytes were not read yet.
    header: [u8; HEADER_BYTES],
    missing: usize,
    /// Device-readable segments after the header.
    readable: Vec<GuestSegment>,
    /// Device-writable segments, without the status once it was removed.
    writable: Vec<GuestSegment>,
    readable_bytes: u64,
    writable_bytes: u64,
}

// SAFETY: the pointers refer to `memory`, which is `Send` and kept alive by this value.
unsafe impl Send for RequestBuffers {}

impl RequestBuffers {
    pub(crate) fn new(tags: u16, memory: Arc<GuestMemory>) -> Self {
        let owner: Arc<dyn Any + Send + Sync> = Arc::clone(&memory) as _;
        Self {
            table: PayloadTable::new(u32::from(tags), SEGMENTS_RESERVED, owner),
            memory,
            statuses: vec![core::ptr::null_mut(); usize::from(tags)],
            header: [0; HEADER_BYTES],
            missing: HEADER_BYTES,
            readable: Vec::with_capacity(SEGMENTS_RESERVED),
            writable: Vec::with_capacity(SEGMENTS_RESERVED),
            readable_bytes: 0,
            writable_bytes: 0,
        }
    }

    pub(crate) fn payload_table(&self) -> &PayloadTable {
        &self.table
    }

    /// Discards the buffers of the previous chain.
    #[inline(always)]
    pub(crate) fn begin_chain(&mut self) {
        self.missing = HEADER_BYTES;
        self.readable.clear();
        self.writable.clear();
        self.readable_bytes = 0;
        self.writable_bytes = 0;
    }

    /// Adds a segment. The fields are passed individually, so that they stay in registers: copying
    /// a structure directly after its fields were stored would stall on store forwarding.
    #[inline(always)]
    fn push(&mut self, addr: u64, pointer: *mut u8, len: usize, is_writable: bool) {
        if is_writable && len > 0 {
            self.writable_bytes += len as u64;
            self.writable.push(GuestSegment { addr, piece: Segment { pointer, len } });
        } else if self.missing == HEADER_BYTES && len == HEADER_BYTES {
            // SAFETY: `len` bytes, the length of the header, are mapped at `pointer`.
            unsafe { copy(pointer, self.header.as_mut_ptr(), HEADER_BYTES) };
            self.missing = 0;
        } else if len > 0 {
            self.push_readable(addr, pointer, len);
        }
    }

    /// Adds a device-readable segment. The header may be split across buffers at any byte (section
    /// 2.7.4.1).
    #[inline(never)]
    fn push_readable(&mut self, addr: u64, pointer: *mut u8, len: usize) {
        let start = HEADER_BYTES - self.missing;
        let part = self.header.get_mut(start..).unwrap_or_default();
        let bytes = part.len().min(len);
        // SAFETY: `bytes` bytes are mapped there, and the part of the header is as long.
        unsafe { copy(pointer, part.as_mut_ptr(), bytes) };
        self.missing -= bytes;
        if len > bytes {
            let (addr, pointer) = (addr.wrapping_add(bytes as u64), pointer.wrapping_add(bytes));
            self.readable_bytes += (len - bytes) as u64;
            self.readable.push(GuestSegment { addr, piece: Segment { pointer, len: len - bytes } });
        }
    }

    /// Adds a buffer that is not inside one region, as one segment per region.
    #[cold]
    fn add_parts(
        &mut self,
        view: &mut MemoryView,
        addr: u64,
        len: usize,
        is_writable: bool,
    ) -> Result<(), OutOfRange> {
        view.for_each_range(addr, len, |pointer, before, len| {
            self.push(addr.wrapping_add(before as u64), pointer, len, is_writable);
        })
    }

    /// Returns the header; `None` if it is incomplete.
    #[inline(always)]
    pub(crate) fn header(&self) -> Option<&[u8; HEADER_BYTES]> {
        (self.missing == 0).then_some(&self.header)
    }

    /// Returns the number of device-readable bytes after the header.
    #[inline(always)]
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Returns the number of device-writable bytes, without the status once it was removed.
    #[inline(always)]
    pub(crate) fn writable_bytes(&self) -> u64 {
        self.writable_bytes
    }

    /// Removes the status, the last device-writable byte, from the buffers, and records its
    /// location for `tag`. Returns its guest-physical address; `None` if there is no
    /// device-writable byte.
    #[inline(always)]
    pub(crate) fn take_status(&mut self, tag: u32) -> Option<u64> {
        let last = self.writable.last_mut()?;
        let before = last.piece.len - 1;
        let (addr, pointer) =
            (last.addr.wrapping_add(before as u64), last.piece.pointer.wrapping_add(before));
        last.piece.len = before;
        if before == 0 {
            self.writable.pop();
        }
        self.writable_bytes -= 1;
        *self.statuses.get_mut(tag as usize)? = pointer;
        Some(addr)
    }

    /// Writes the status byte of a request.
    #[inline(always)]
    pub(crate) fn write_status(&self, tag: u32, status: u8) {
        if let Some(pointer) =
            self.statuses.get(tag as usize).filter(|status_pointer| !status_pointer.is_null())
        {
            // SAFETY: the byte is mapped while the memory is held, and there are no references to
            // it.
            unsafe { pointer.write_volatile(status) };
        }
    }

    /// Copies the first device-readable bytes after the header to `buffer`; fewer if there are
    /// fewer.
    pub(crate) fn read_data_prefix(&self, buffer: &mut [u8]) {
        let mut remaining = buffer;
        for GuestSegment { piece, .. } in &self.readable {
            let bytes = remaining.len().min(piece.len);
            let (part, rest) = remaining.split_at_mut(bytes);
            // SAFETY: the segment is mapped for that long, and the part of `buffer` is as long.
            unsafe { copy(piece.pointer, part.as_mut_ptr(), bytes) };
            remaining = rest;
        }
    }

    /// Writes `bytes` to the first device-writable bytes of the current chain; fewer if there are
    /// fewer. Calls `visit` for every range written. Returns the number of bytes written.
    pub(crate) fn write_data_prefix(
        &self,
        bytes: &[u8],
        mut visit: impl FnMut(GuestRange),
    ) -> usize {
        let mut remaining = bytes;
        for GuestSegment { addr, piece } in &self.writable {
            let (part, rest) = remaining.split_at(remaining.len().min(piece.len));
            // SAFETY: the segment is mapped for at least as long as the part of `bytes`.
            unsafe { copy(part.as_ptr(), piece.pointer, part.len()) };
            visit(GuestRange { addr: *addr, len: part.len() });
            remaining = rest;
        }
        bytes.len() - remaining.len()
    }

    /// Returns the device-writable ranges of the current chain.
    pub(crate) fn writable_ranges(&self) -> impl Iterator<Item = GuestRange> {
        self.writable
            .iter()
            .map(|segment| GuestRange { addr: segment.addr, len: segment.piece.len })
    }

    /// Records the location of the current chain's payload for `tag`. Returns false if the payload
    /// has too many segments.
    #[inline(always)]
    pub(crate) fn assign_payload(&mut self, tag: u32, usage: PayloadUse) -> bool {
        let segments = match usage {
            PayloadUse::Destination => &self.writable,
            PayloadUse::Source => &self.readable,
        };
        if segments.len() > SEGMENTS_MAX {
            return false;
        }
        // SAFETY: guest memory stays mapped, readable and writable, while it is held; the
        // table holds it. There are no references into it.
        unsafe { self.table.set(tag, usage, segments.iter().map(|segment| segment.piece)) };
        true
    }

    /// Removes the payload of `tag`.
    #[inline(always)]
    pub(crate) fn clear_payload(&mut self, tag: u32) {
        self.table.clear(tag);
    }
}

impl BufferSink for RequestBuffers {
    /// Reads the bytes of the buffer that belong to the header, and locates the remaining ones.
    #[inline(always)]
    fn add(&mut self, view: &mut MemoryView, buffer: Buffer) -> Result<(), OutOfRange> {
        if !Arc::ptr_eq(view.memory(), &self.memory) {
            return Err(OutOfRange);
        }
        let Buffer { addr, len, is_writable } = buffer;
        match view.pointer(addr, len) {
            Some(pointer) => {
                self.push(addr, pointer, len, is_writable);
                Ok(())
            }
            None => self.add_parts(view, addr, len, is_writable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver may build chains of buffers that each cross several memory regions.
    #[test]
    fn a_payload_of_too_many_pieces_is_not_placed() {
        let memory = GuestMemory::new(Vec::new()).unwrap();
        let mut buffers = RequestBuffers::new(1, Arc::new(memory));
        let mut byte = 0_u8;
        for (segments, is_placed) in [(SEGMENTS_MAX, true), (SEGMENTS_MAX + 1, false), (1, true)] {
            buffers.begin_chain();
            (0..segments).for_each(|_| buffers.push(0, &raw mut byte, 1, true));
            assert_eq!(buffers.assign_payload(0, PayloadUse::Destination), is_placed, "{segments}");
        }
        assert_eq!(buffers.payload_table().bytes(0), 1);
    }
}
