//! Where the buffers of a disk's requests lie: found in memory once, when a chain is taken,
//! and used from there until it is answered.
#![allow(unsafe_code, reason = "reads and writes memory that is shared with a VM, by pointers")]

use std::any::Any;
use std::sync::Arc;

use suimon_uring::{PayloadTable, PayloadUse, Piece};

use crate::chain::{Buffer, Buffers};
use crate::copy::copy;
use crate::disk_request::HEADER_BYTES;
use crate::memory::{GuestMemory, OutOfRange};
use crate::memory_view::MemoryView;

/// Pieces for which there is room at once. What a request has beyond that costs an
/// allocation, once.
const PIECES: usize = 16;
/// The most pieces of a request: every buffer that a chain can have, and some that lie in
/// two regions of memory.
const PIECES_MAX: usize = 2048;

/// A piece of a buffer that lies in one region of memory.
#[derive(Clone, Copy)]
struct Place {
    addr: u64,
    piece: Piece,
}

/// Bytes of guest memory, by guest address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) addr: u64,
    pub(crate) len: usize,
}

/// The buffers of the chain at hand, and by tag where the payload and the status of each
/// request are.
pub(crate) struct RequestBuffers {
    memory: Arc<GuestMemory>,
    table: PayloadTable,
    /// By tag: where the status goes. Null before the first request.
    statuses: Vec<*mut u8>,
    /// The header of the chain at hand, as far as it is not missing.
    header: [u8; HEADER_BYTES],
    missing: usize,
    /// Behind the header.
    readable: Vec<Place>,
    /// Before the status.
    writable: Vec<Place>,
    readable_bytes: u64,
    writable_bytes: u64,
}

// SAFETY: the pointers lead into `memory`, which is `Send` and held beside them.
unsafe impl Send for RequestBuffers {}

impl RequestBuffers {
    pub(crate) fn new(tags: u16, memory: Arc<GuestMemory>) -> Self {
        let held: Arc<dyn Any + Send + Sync> = Arc::clone(&memory) as _;
        Self {
            table: PayloadTable::new(u32::from(tags), PIECES, held),
            memory,
            statuses: vec![core::ptr::null_mut(); usize::from(tags)],
            header: [0; HEADER_BYTES],
            missing: HEADER_BYTES,
            readable: Vec::with_capacity(PIECES),
            writable: Vec::with_capacity(PIECES),
            readable_bytes: 0,
            writable_bytes: 0,
        }
    }

    pub(crate) fn table(&self) -> &PayloadTable {
        &self.table
    }

    /// Forgets the chain at hand.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.missing = HEADER_BYTES;
        self.readable.clear();
        self.writable.clear();
        self.readable_bytes = 0;
        self.writable_bytes = 0;
    }

    /// Adds a piece. Its parts come one by one, so that they stay in registers: a structure
    /// that is put together in memory and copied at once has to wait for itself.
    #[inline(always)]
    fn push(&mut self, addr: u64, pointer: *mut u8, len: usize, is_writable: bool) {
        if is_writable && len > 0 {
            self.writable_bytes += len as u64;
            self.writable.push(Place { addr, piece: Piece { pointer, len } });
        } else if self.missing == HEADER_BYTES && len == HEADER_BYTES {
            // SAFETY: so many bytes are mapped there.
            unsafe { copy(pointer, self.header.as_mut_ptr(), HEADER_BYTES) };
            self.missing = 0;
        } else if len > 0 {
            self.push_readable(addr, pointer, len);
        }
    }

    /// Adds a piece to be read, wherever the header is cut into buffers (section 2.7.4.1).
    #[inline(never)]
    fn push_readable(&mut self, addr: u64, pointer: *mut u8, len: usize) {
        let from = HEADER_BYTES - self.missing;
        let part = self.header.get_mut(from..).unwrap_or_default();
        let bytes = part.len().min(len);
        // SAFETY: `bytes` bytes are mapped there, and the part is as long.
        unsafe { copy(pointer, part.as_mut_ptr(), bytes) };
        self.missing -= bytes;
        if len > bytes {
            let (addr, pointer) = (addr.wrapping_add(bytes as u64), pointer.wrapping_add(bytes));
            self.readable_bytes += (len - bytes) as u64;
            self.readable.push(Place { addr, piece: Piece { pointer, len: len - bytes } });
        }
    }

    /// Adds a buffer that does not lie in the region at hand.
    #[cold]
    fn add_parts(
        &mut self,
        view: &mut MemoryView,
        addr: u64,
        len: usize,
        is_writable: bool,
    ) -> Result<(), OutOfRange> {
        view.each_part(addr, len, |pointer, before, len| {
            self.push(addr.wrapping_add(before as u64), pointer, len, is_writable);
        })
    }

    /// The header, if all of it was there.
    #[inline(always)]
    pub(crate) fn header(&self) -> Option<&[u8; HEADER_BYTES]> {
        (self.missing == 0).then_some(&self.header)
    }

    /// Bytes to be read, behind the header.
    #[inline(always)]
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Bytes to be written, before the status if it was taken off.
    #[inline(always)]
    pub(crate) fn writable_bytes(&self) -> u64 {
        self.writable_bytes
    }

    /// Takes the status off the buffers to be written: it is their last byte, and a
    /// request's with this tag from now on. Returns its guest address; `None` if there is
    /// none.
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

    /// Writes the status of a request that was taken.
    #[inline(always)]
    pub(crate) fn write_status(&self, tag: u32, status: u8) {
        if let Some(pointer) = self.statuses.get(tag as usize).filter(|of| !of.is_null()) {
            // SAFETY: the byte is mapped while the memory is held, and nobody has a
            // reference to it.
            unsafe { pointer.write_volatile(status) };
        }
    }

    /// Reads the first bytes behind the header, as far as there are any.
    pub(crate) fn read_front(&self, into: &mut [u8]) {
        let mut rest = into;
        for Place { piece, .. } in &self.readable {
            let bytes = rest.len().min(piece.len);
            let (part, later) = rest.split_at_mut(bytes);
            // SAFETY: the piece is mapped for that long, and the part is as long.
            unsafe { copy(piece.pointer, part.as_mut_ptr(), bytes) };
            rest = later;
        }
    }

    /// Writes to the first bytes of the chain at hand, as far as there is room, and tells
    /// `each` where. Returns how many bytes that were.
    pub(crate) fn write_front(&self, bytes: &[u8], mut each: impl FnMut(Span)) -> usize {
        let mut rest = bytes;
        for Place { addr, piece } in &self.writable {
            let (part, later) = rest.split_at(rest.len().min(piece.len));
            // SAFETY: the piece is mapped for at least as long as the part.
            unsafe { copy(part.as_ptr(), piece.pointer, part.len()) };
            each(Span { addr: *addr, len: part.len() });
            rest = later;
        }
        bytes.len() - rest.len()
    }

    /// Where bytes of the chain at hand may be written.
    pub(crate) fn destination(&self) -> impl Iterator<Item = Span> {
        self.writable.iter().map(|place| Span { addr: place.addr, len: place.piece.len })
    }

    /// The payload of a request is in the chain at hand. `false` if it is in too many pieces.
    #[inline(always)]
    pub(crate) fn place_payload(&mut self, tag: u32, usage: PayloadUse) -> bool {
        let places = match usage {
            PayloadUse::Destination => &self.writable,
            PayloadUse::Source => &self.readable,
        };
        if places.len() > PIECES_MAX {
            return false;
        }
        // SAFETY: guest memory stays mapped, readable and writable, while it is held; the
        // table holds it. There are no references into it.
        unsafe { self.table.set(tag, usage, places.iter().map(|place| place.piece)) };
        true
    }

    /// The request has no payload, or has no longer one.
    #[inline(always)]
    pub(crate) fn clear_payload(&mut self, tag: u32) {
        self.table.clear(tag);
    }
}

impl Buffers for RequestBuffers {
    /// Reads what the buffer has of the header, and finds the rest of it in memory.
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
