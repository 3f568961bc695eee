//! Tails of large frames: bytes that stay in the sender's guest memory, and are copied from there
//! to the receiver's.
//!
//! A tail is copied once, from one mapping to the other. Both may be the same memory or the same
//! bytes, because a guest may use any of its memory in any of its rings. The copies therefore
//! permit overlapping ranges.
#![allow(unsafe_code, reason = "copies between memories that are shared with VMs")]

use core::any::Any;

use suimon_frame::{Span, TailMemory};

use crate::copy::{copy, copy_within};
use crate::memory::{GuestMemory, OutOfRange};
use crate::memory_view::MemoryView;

/// Size in bytes of the buffer through which tails that are not in guest memory are copied.
const TAIL_BUFFER_BYTES: usize = 2048;

/// Tail whose spans are guest-physical addresses.
impl TailMemory for GuestMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) {
        let read = self.for_each_range(address, buffer.len(), |src, offset, bytes| {
            // SAFETY: `for_each_range` stays inside the mapping and inside `buffer`; our own
            // memory and the guest's do not overlap.
            unsafe { copy(src, buffer.as_mut_ptr().add(offset), bytes) }
        });
        if read.is_err() {
            buffer.fill(0);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl MemoryView {
    /// Copies a span of a tail in `memory` to the guest-physical address `addr`.
    pub(crate) fn write_span(
        &mut self,
        addr: u64,
        memory: &dyn TailMemory,
        span: Span,
    ) -> Result<(), OutOfRange> {
        match memory.as_any().downcast_ref() {
            Some(memory) => self.write_from_guest(addr, memory, span),
            None => self.write_piecewise(addr, memory, span),
        }
    }

    fn write_from_guest(
        &mut self,
        addr: u64,
        memory: &GuestMemory,
        span: Span,
    ) -> Result<(), OutOfRange> {
        self.for_each_range(addr, span.bytes, |dst, before, bytes| {
            let source = span.address.wrapping_add(before as u64);
            let copied = memory.for_each_range(source, bytes, |src, offset, bytes| {
                // SAFETY: both walks stay inside their mappings, and this one inside
                // the part of the other.
                unsafe { copy_within(src, dst.add(offset), bytes) }
            });
            if copied.is_err() {
                // SAFETY: `for_each_range` stays inside the mapping.
                unsafe { dst.write_bytes(0, bytes) }
            }
        })
    }

    fn write_piecewise(
        &mut self,
        addr: u64,
        memory: &dyn TailMemory,
        span: Span,
    ) -> Result<(), OutOfRange> {
        let mut buffer = [0; TAIL_BUFFER_BYTES];
        let mut copied = 0;
        while let Some(part) = buffer.get_mut(..TAIL_BUFFER_BYTES.min(span.bytes - copied)) {
            if part.is_empty() {
                break;
            }
            memory.read(span.address.wrapping_add(copied as u64), part);
            self.write(addr.checked_add(copied as u64).ok_or(OutOfRange)?, part)?;
            copied += part.len();
        }
        Ok(())
    }
}
