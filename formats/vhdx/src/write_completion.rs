//! Completion of writes: changes of the metadata in memory.

use suimon_image::ByteRange;

use crate::Vhdx;
use crate::bat::{BatEntry, BlockState};
use crate::geometry::PAGE_SECTORS_SHIFT;

impl Vhdx {
    pub(crate) fn mark_written(&mut self, range: ByteRange) {
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            let entry = self.bat.payload_entry(block);
            let is_whole = self.covers_block(block, part);
            match entry.state() {
                BlockState::FullyPresent => self.bitmaps.unpin_all(block),
                BlockState::PartiallyPresent => {
                    if !is_whole {
                        self.set_sectors(part, true);
                        self.bitmaps.unpin(block);
                    }
                    if is_whole || self.has_all_sectors(block) {
                        self.set_present(block, BlockState::FullyPresent, entry.offset_mb());
                    }
                }
                BlockState::NotPresent if self.geometry.has_parent && !is_whole => {
                    let Some(mb) = self.take_pending(block) else { continue };
                    if let Some(block_range) = self.block_range(block) {
                        // The bits of a block that was not present are undefined.
                        self.set_sectors(block_range, false);
                    }
                    self.set_sectors(part, true);
                    self.bitmaps.unpin(block);
                    self.set_present(block, BlockState::PartiallyPresent, mb);
                }
                BlockState::NotPresent
                | BlockState::Undefined
                | BlockState::Zero
                | BlockState::Unmapped => {
                    let Some(mb) = self.take_pending(block) else { continue };
                    self.set_present(block, BlockState::FullyPresent, mb);
                }
            }
        }
    }

    /// Sets or clears the bits of the sectors in a range whose bitmap is cached, and records the
    /// change for the redo record.
    fn set_sectors(&mut self, range: ByteRange, is_present: bool) {
        if !self.bitmaps.set(range, is_present, &self.geometry) {
            return;
        }
        if let Some(mut changes) = self.bat.unrecorded_changes.take() {
            self.bitmaps.push_changes(range, &self.geometry, &self.bat, &mut changes);
            self.bat.unrecorded_changes = Some(changes);
        }
    }

    /// Implements [`Image::logged_changes_max`](suimon_image::Image::logged_changes_max) for one
    /// block.
    pub(crate) fn block_changes_max(&self, block: u64, part: ByteRange) -> u64 {
        let state = self.bat.payload_entry(block).state();
        if !self.geometry.has_parent {
            return u64::from(!matches!(state, BlockState::FullyPresent));
        }
        // There is one fill per page of bits, and one for each partial byte at the ends.
        let fills = |range: ByteRange| {
            let shift = self.geometry.sector_shift + PAGE_SECTORS_SHIFT;
            ((range.end() - 1) >> shift) - (range.offset() >> shift) + 3
        };
        match state {
            BlockState::FullyPresent => 0,
            BlockState::PartiallyPresent => fills(part) + 1,
            // The changes are the entries of the block and of its sector bitmap, and the
            // initialisation of undefined bits.
            _ => self.block_range(block).map_or(0, fills) + fills(part) + 2,
        }
    }

    /// Releases the space of a failed write if it was the first to its block.
    pub(crate) fn handle_failed_write(&mut self, range: ByteRange) {
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            let entry = self.bat.payload_entry(block);
            if self.changes_bitmap(block, entry, part) {
                self.bitmaps.unpin(block);
            }
            let Some(writing) = &mut self.write_state else { return };
            let Some(pending) = writing.pending_blocks.get_mut(&block) else { continue };
            pending.writes_in_flight = pending.writes_in_flight.saturating_sub(1);
            if pending.writes_in_flight == 0 {
                writing.space.unreferenced_offsets_mb.push(pending.offset_mb);
                writing.pending_blocks.remove(&block);
            }
        }
    }

    fn set_present(&mut self, block: u64, state: BlockState, mb: u32) {
        self.bat.set_payload_entry(block, BatEntry::present(state, mb), &self.geometry);
        if let Some(writing) = &mut self.write_state {
            writing.space.add_reference(mb, true);
        }
        if state == BlockState::FullyPresent {
            self.bitmaps.unpin_all(block);
        }
    }

    fn take_pending(&mut self, block: u64) -> Option<u32> {
        self.write_state.as_mut()?.pending_blocks.remove(&block).map(|pending| pending.offset_mb)
    }

    /// Returns true if every sector of a partially present block is in the file, as far as its
    /// bitmap is cached.
    fn has_all_sectors(&self, block: u64) -> bool {
        let Some(block_range) = self.block_range(block) else { return false };
        self.bitmaps.is_loaded(block_range, &self.geometry)
            && self.bitmaps.first_run(block_range, &self.geometry) == (true, block_range.len())
    }
}
