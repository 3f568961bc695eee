//! Commits: sequences of steps that make metadata changes durable.
//!
//! Order of steps: write the footer at its new position if the file grows; write bitmaps that no
//! reader uses before the table refers to them; flush; write other bitmaps and the table; flush.
//! The first flush makes the payload durable before any metadata refers to it; after the last flush
//! the commit is durable. Sectors are written atomically, so each sector of the table and of a
//! bitmap has its old or its new contents, and everything it refers to is durable. The former
//! footer is zeroed afterwards. Freed blocks are zeroed after the commit, and their space is reused
//! only then.

use suimon_image::{ByteRange, Commit, CommitOutcome, Step};

use crate::bitmap;
use crate::changes::{CommitInProgress, ENTRIES_PER_SECTOR, UncommittedChanges};
use crate::fields::{SECTOR_BYTES, to_index};
use crate::header::encode_table;
use crate::sparse::SparseImage;

/// Number of blocks for which a commit that contains new blocks leaves space before the footer.
const ROOM_MIN: u64 = 1;

impl SparseImage {
    /// Implements [`suimon_image::Image::uncommitted_bytes`].
    pub(crate) fn changed_bytes(&self) -> u64 {
        let changes = &self.changes;
        let sectors = changes.table_sectors.len() + usize::from(changes.blocks_beyond_end > 0);
        let maps = changes.bitmap_write_count() as u64;
        (sectors as u64 * SECTOR_BYTES)
            .saturating_add(maps.saturating_mul(self.layout.bitmap_bytes))
    }

    /// Implements [`suimon_image::Image::begin_commit`].
    pub(crate) fn start_commit(&mut self) -> Option<Commit> {
        if self.changes.is_empty() {
            return None;
        }
        let changes = core::mem::take(&mut self.changes);
        let grown = self.growth(&changes);
        let mut steps = Vec::new();
        if let Some(sector) = grown {
            steps.push(Step::Write { offset: sector * SECTOR_BYTES, bytes: self.footer.to_vec() });
        }
        // In a dynamic disk, a full bitmap may become durable before the payload: unwritten sectors
        // are zero in the file.
        let (early, late): (Vec<u32>, Vec<u32>) = if self.is_differencing {
            (
                changes.new_blocks.iter().copied().collect(),
                changes.changed_bitmaps.iter().copied().collect(),
            )
        } else {
            (changes.new_blocks.union(&changes.changed_bitmaps).copied().collect(), Vec::new())
        };
        steps.extend(early.into_iter().filter_map(|block| self.bitmap_write(block)));
        steps.push(Step::Flush);
        let named_before = steps.len();
        steps.extend(late.into_iter().filter_map(|block| self.bitmap_write(block)));
        self.push_table_writes(&changes, &mut steps);
        if steps.len() > named_before {
            steps.push(Step::Flush);
        }
        steps.push(Step::DurableMarker);
        let moved_space = self.space.as_ref().filter(|_| grown.is_some());
        steps.extend(
            moved_space
                .and_then(|space| ByteRange::new(space.footer_offset(), SECTOR_BYTES))
                .map(Step::Zero),
        );
        if let (Some(space), Some(sector)) = (&mut self.space, grown) {
            space.record_footer(sector);
        }
        self.committing = Some(CommitInProgress { changes, new_footer_sector: grown });
        Some(Commit { steps })
    }

    /// Returns the new sector of the footer if blocks need more space than is available now or will
    /// be soon; `None` if the file need not grow.
    fn growth(&mut self, changes: &UncommittedChanges) -> Option<u64> {
        let allocated = self.allocated_blocks;
        let space = self.space.as_mut()?;
        let is_wanted = changes.blocks_beyond_end > 0 && !space.reserve(changes.blocks_beyond_end);
        // Lack of space for later blocks must not fail the commit of existing ones.
        let is_ahead = !self.has_failed_to_grow && !changes.new_blocks.is_empty();
        let is_soon = is_ahead && space.available_blocks(ROOM_MIN) < ROOM_MIN;
        if !is_wanted && !is_soon {
            return None;
        }
        let sector =
            space.footer_sector_after_growth(changes.blocks_beyond_end.max(ROOM_MIN), allocated)?;
        (sector * SECTOR_BYTES > space.footer_offset()).then_some(sector)
    }

    fn bitmap_write(&self, block: u32) -> Option<Step> {
        let range = self.layout.bitmap_range(self.first_sector(block)?)?;
        let bytes = if self.full_blocks.contains(block) && self.is_differencing {
            // Sectors beyond the end of the disk belong to the parent if the disk grows.
            let mut bits = vec![0; to_index(range.len())];
            bitmap::set(&mut bits, 0, self.layout.block_sectors(block));
            bits
        } else if self.full_blocks.contains(block) {
            vec![0xff; to_index(range.len())]
        } else {
            self.bitmap_cache.bitmap(block)?.bits.to_vec()
        };
        Some(Step::Write { offset: range.offset(), bytes })
    }

    /// Appends writes of the changed table sectors, merging adjacent sectors.
    fn push_table_writes(&self, changes: &UncommittedChanges, steps: &mut Vec<Step>) {
        let mut sectors = changes.table_sectors.iter().copied().peekable();
        while let Some(first) = sectors.next() {
            let mut last = first;
            while let Some(next) = sectors.next_if_eq(&(last + 1)) {
                last = next;
            }
            let start = (first * ENTRIES_PER_SECTOR) as usize;
            let end = ((last + 1) * ENTRIES_PER_SECTOR) as usize;
            let entries = self.table.get(start..end.min(self.table.len())).unwrap_or_default();
            let offset = self.layout.table_offset + u64::from(first) * SECTOR_BYTES;
            steps.push(Step::Write { offset, bytes: encode_table(entries) });
        }
    }

    /// Implements [`suimon_image::Image::handle_commit`].
    pub(crate) fn end_commit(&mut self, outcome: CommitOutcome) {
        let Some(CommitInProgress { changes, new_footer_sector: grown }) = self.committing.take()
        else {
            return;
        };
        if outcome != CommitOutcome::Done {
            self.has_failed_to_grow |= grown.is_some();
            let table = &self.table;
            let has_place = |block: u32| {
                table.get(block as usize).is_some_and(|sector| *sector != crate::table::UNUSED)
            };
            self.changes.merge_failed(changes, has_place);
            return;
        }
        for block in changes.new_blocks.into_iter().chain(changes.changed_bitmaps) {
            if let Some(map) = self.bitmap_cache.bitmap_mut(block) {
                map.is_dirty = self.changes.needs_bitmap_write(block);
            }
        }
        let Some(space) = &mut self.space else { return };
        space.release(changes.freed_sectors);
        if let Some(sector) = grown {
            space.handle_grown(sector);
            self.has_failed_to_grow = false;
        }
    }
}
