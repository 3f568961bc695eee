//! Where the payloads of a ring's requests lie, for those who do the I/O.
#![allow(unsafe_code, reason = "hands out pointers into memory that is shared with a VM")]

use std::any::Any;
use std::sync::Arc;

use suimon_uring::{PayloadTable, PayloadUse, Piece};

use crate::chain::Buffer;
use crate::memory::{GuestMemory, OutOfRange};
use crate::memory_view::MemoryView;

/// Pieces for which there is room at once. What a request has beyond that costs an
/// allocation, once.
const PIECES: usize = 16;
/// The most pieces of a request: every buffer that a chain can have, and some that lie in
/// two regions of memory.
const PIECES_MAX: usize = 2048;

/// The payloads of one ring's requests.
pub(crate) struct Payloads {
    memory: Arc<GuestMemory>,
    table: PayloadTable,
    /// Pieces of the request at hand.
    pieces: Vec<Piece>,
}

// SAFETY: the pointers lead into `memory`, which is `Send` and held beside them.
unsafe impl Send for Payloads {}

impl Payloads {
    pub(crate) fn new(tags: u16, memory: Arc<GuestMemory>) -> Self {
        let held: Arc<dyn Any + Send + Sync> = Arc::clone(&memory) as _;
        let table = PayloadTable::new(u32::from(tags), PIECES, held);
        Self { memory, table, pieces: Vec::with_capacity(PIECES) }
    }

    pub(crate) fn table(&self) -> &PayloadTable {
        &self.table
    }

    /// The payload of a request is in these buffers. `false` if it is in too many pieces.
    ///
    /// # Errors
    /// A buffer is not in memory, or `view` is of another one.
    pub(crate) fn set(
        &mut self,
        view: &mut MemoryView,
        tag: u32,
        usage: PayloadUse,
        buffers: &[Buffer],
    ) -> Result<bool, OutOfRange> {
        if !Arc::ptr_eq(view.memory(), &self.memory) {
            return Err(OutOfRange);
        }
        self.pieces.clear();
        for buffer in buffers {
            view.each_pointer(buffer.addr, buffer.len, |pointer, len| {
                self.pieces.push(Piece { pointer, len });
            })?;
            if self.pieces.len() > PIECES_MAX {
                return Ok(false);
            }
        }
        // SAFETY: guest memory stays mapped, readable and writable, while it is held; the
        // table holds it. There are no references into it.
        unsafe { self.table.set(tag, usage, self.pieces.iter().copied()) };
        Ok(true)
    }

    /// The request has no payload, or has no longer one.
    pub(crate) fn clear(&mut self, tag: u32) {
        self.table.clear(tag);
    }
}
