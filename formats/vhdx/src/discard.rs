//! Discards of disk ranges.

use suimon_image::ByteRange;

use crate::Vhdx;
use crate::bat::{BatEntry, BlockState};

/// Appends a range, merging it with the last one if adjacent.
fn push_range(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    if let Some(last) = ranges.last_mut() {
        let joined = last.len().checked_add(range.len());
        if let (true, Some(len)) = (last.end() == range.offset(), joined) {
            *last = ByteRange::new(last.offset(), len).unwrap_or(*last);
            return;
        }
    }
    ranges.push(range);
}

impl Vhdx {
    pub(crate) fn discard_blocks(&mut self, range: ByteRange, retained: &mut Vec<ByteRange>) {
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            let entry = self.bat.payload_entry(block);
            let reads_as_zeros = match entry.state() {
                BlockState::FullyPresent | BlockState::PartiallyPresent => false,
                BlockState::NotPresent => !self.geometry.has_parent,
                BlockState::Undefined | BlockState::Zero | BlockState::Unmapped => true,
            };
            if reads_as_zeros {
                continue;
            }
            if self.metadata.leave_allocated || !self.covers_block(block, part) {
                push_range(retained, part);
                continue;
            }
            self.bat.set_payload_entry(block, BatEntry::UNMAPPED, &self.geometry);
            if entry.is_present() {
                self.free(entry.offset_mb());
            }
        }
    }

    fn free(&mut self, mb: u32) {
        if let Some(writing) = &mut self.write_state {
            writing.space.freed_offsets_mb.push(mb);
        }
    }
}
