//! Metadata changes of an open image that are not durable yet.

use std::collections::BTreeSet;

/// Number of block allocation table entries per sector.
pub(crate) const ENTRIES_PER_SECTOR: u32 = 128;

/// Metadata changes that no commit includes yet.
#[derive(Debug, Default)]
pub(crate) struct UncommittedChanges {
    /// Numbers of the changed sectors of the block allocation table.
    pub(crate) table_sectors: BTreeSet<u32>,
    /// Blocks that were allocated since the last commit. No part of their bitmap is in the file,
    /// and no table in the file refers to them.
    pub(crate) new_blocks: BTreeSet<u32>,
    /// Blocks with a changed bitmap, except those in `new_blocks`.
    pub(crate) changed_bitmaps: BTreeSet<u32>,
    /// First sectors, in the file, of blocks that were freed.
    pub(crate) freed_sectors: Vec<u32>,
    /// Number of blocks that need space beyond the end of the file.
    pub(crate) blocks_beyond_end: u64,
}

impl UncommittedChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.table_sectors.is_empty()
            && self.new_blocks.is_empty()
            && self.changed_bitmaps.is_empty()
            && self.freed_sectors.is_empty()
            && self.blocks_beyond_end == 0
    }

    /// Records that `block` was allocated.
    pub(crate) fn record_allocated(&mut self, block: u32) {
        self.table_sectors.insert(block / ENTRIES_PER_SECTOR);
        self.changed_bitmaps.remove(&block);
        self.new_blocks.insert(block);
    }

    /// Records that `block`, which begins at `sector` of the file, was freed.
    pub(crate) fn record_freed(&mut self, block: u32, sector: u32) {
        self.table_sectors.insert(block / ENTRIES_PER_SECTOR);
        self.new_blocks.remove(&block);
        self.changed_bitmaps.remove(&block);
        self.freed_sectors.push(sector);
    }

    /// Records that the bitmap of `block` changed.
    pub(crate) fn record_bitmap_changed(&mut self, block: u32) {
        if !self.new_blocks.contains(&block) {
            self.changed_bitmaps.insert(block);
        }
    }

    /// Returns true if a commit must write the bitmap of `block`.
    pub(crate) fn needs_bitmap_write(&self, block: u32) -> bool {
        self.new_blocks.contains(&block) || self.changed_bitmaps.contains(&block)
    }

    /// Returns the number of bitmaps that a commit must write.
    pub(crate) fn bitmap_write_count(&self) -> usize {
        self.new_blocks.len() + self.changed_bitmaps.len()
    }

    /// Adds the changes of a failed commit back. The file may contain a table that refers to its
    /// new blocks, so these are no longer counted as fresh. Space for blocks is no longer
    /// requested: a write that needs space is translated again, and must not cause the failure of
    /// commits for other writes.
    pub(crate) fn merge_failed(&mut self, failed: Self, has_place: impl Fn(u32) -> bool) {
        self.table_sectors.extend(failed.table_sectors);
        for block in failed.new_blocks.into_iter().chain(failed.changed_bitmaps) {
            if has_place(block) {
                self.record_bitmap_changed(block);
            }
        }
        self.freed_sectors.extend(failed.freed_sectors);
    }
}

/// Commit in progress.
#[derive(Debug)]
pub(crate) struct CommitInProgress {
    pub(crate) changes: UncommittedChanges,
    /// New sector of the footer; `None` if the file does not grow.
    pub(crate) new_footer_sector: Option<u64>,
}
