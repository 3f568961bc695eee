//! What is not durable yet.

use std::collections::BTreeSet;

/// Entries of the table in a sector.
pub(crate) const ENTRIES_PER_SECTOR: u32 = 128;

/// Changes of metadata that no commit has taken on.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Sectors of the table.
    pub(crate) table_sectors: BTreeSet<u32>,
    /// Blocks that got a place, of whose bitmap nothing is in the file, and which no table
    /// in the file can name.
    pub(crate) fresh: BTreeSet<u32>,
    /// Other blocks whose bitmap changed.
    pub(crate) maps: BTreeSet<u32>,
    /// Places that blocks had.
    pub(crate) freed: Vec<u32>,
    /// Blocks that need room that is not there.
    pub(crate) wanted: u64,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.table_sectors.is_empty()
            && self.fresh.is_empty()
            && self.maps.is_empty()
            && self.freed.is_empty()
            && self.wanted == 0
    }

    /// A block has a place now.
    pub(crate) fn allocated(&mut self, block: u32) {
        self.table_sectors.insert(block / ENTRIES_PER_SECTOR);
        self.maps.remove(&block);
        self.fresh.insert(block);
    }

    /// A block has its place no more.
    pub(crate) fn freed(&mut self, block: u32, sector: u32) {
        self.table_sectors.insert(block / ENTRIES_PER_SECTOR);
        self.fresh.remove(&block);
        self.maps.remove(&block);
        self.freed.push(sector);
    }

    /// A block's bitmap changed.
    pub(crate) fn changed_map(&mut self, block: u32) {
        if !self.fresh.contains(&block) {
            self.maps.insert(block);
        }
    }

    /// Whether a block's bitmap is to be written.
    pub(crate) fn has_map(&self, block: u32) -> bool {
        self.fresh.contains(&block) || self.maps.contains(&block)
    }

    /// Bitmaps that are to be written.
    pub(crate) fn maps(&self) -> usize {
        self.fresh.len() + self.maps.len()
    }

    /// What a failed commit leaves to do: its changes are changes again. A table that names
    /// its fresh blocks may be in the file, so they are fresh no more. Room is not wanted any
    /// more: a write that still needs it has to be placed again, and the commits of others
    /// must not fail for it.
    pub(crate) fn take_back(&mut self, failed: Self, has_place: impl Fn(u32) -> bool) {
        self.table_sectors.extend(failed.table_sectors);
        for block in failed.fresh.into_iter().chain(failed.maps) {
            if has_place(block) {
                self.changed_map(block);
            }
        }
        self.freed.extend(failed.freed);
    }
}

/// A commit that was begun and has not ended.
#[derive(Debug)]
pub(crate) struct Committing {
    pub(crate) changes: Changes,
    /// Where the footer goes, as a sector.
    pub(crate) grown: Option<u64>,
}
