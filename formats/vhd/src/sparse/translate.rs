//! Translation of requests: implementation of [`Image`] for dynamic and differencing images.

use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, ImageFault,
    Location, MetadataChange, Translation, push_extent,
};

use super::{SparseImage, WriteRequirement, too_large_error};
use crate::bitmap;
use crate::fields::SECTOR_BYTES;

impl Image for SparseImage {
    fn disk_geometry(&self) -> DiskGeometry {
        self.shape
    }

    fn linear_offset(&self) -> Option<u64> {
        None
    }

    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.shape.check(range)?;
        let before = (extents.len(), extents.last().copied());
        for (block, part) in self.split_by_block(range) {
            let Some(sector) = self.first_sector(block) else {
                push_extent(extents, self.absent_location(), part.len());
                continue;
            };
            // In a dynamic disk, sectors with a clear bit are zero in the file.
            if !self.is_differencing || self.full_blocks.contains(block) {
                push_extent(extents, Location::File(self.offset(sector, part)), part.len());
                continue;
            }
            let Some(map) = self.bitmap_cache.bitmap(block) else {
                extents.truncate(before.0);
                if let (Some(last), Some(previous)) = (extents.last_mut(), before.1) {
                    *last = previous;
                }
                self.bitmap_blocks = self.block_span(range);
                return Ok(self.request_bitmap(block, sector));
            };
            self.push_runs(sector, part, map, extents);
        }
        Ok(Translation::Ready)
    }

    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.check_writable(range)?;
        let mut blocks = 0_u64;
        let mut is_complete = true;
        for (block, _) in self.split_by_block(range) {
            if self.full_blocks.contains(block) {
                continue;
            }
            is_complete = false;
            match self.write_requirement(block) {
                WriteRequirement::Yes => {}
                WriteRequirement::Allocate => blocks += 1,
                WriteRequirement::Bitmap(bitmap) => {
                    self.bitmap_blocks = self.block_span(range);
                    self.bitmap_cache.begin_read(bitmap, block);
                    return Ok(Translation::NeedsMetadata(bitmap));
                }
            }
        }
        if !is_complete && self.is_commit_due(blocks)? {
            return Ok(Translation::NeedsCommit);
        }
        for (block, part) in self.split_by_block(range) {
            let Some(sector) = self.assign_sector(block) else {
                // The space was reserved by `is_commit_due` above.
                return Err(too_large_error(&self.layout));
            };
            push_extent(extents, Location::File(self.offset(sector, part)), part.len());
        }
        Ok(Translation::Ready)
    }

    fn logged_changes_max(&self, range: ByteRange) -> u64 {
        let changing =
            self.split_by_block(range).filter(|(block, _)| !self.full_blocks.contains(*block));
        // Per block: the table entry, and bitmap bytes (the whole bitmap, or both ends and the
        // middle).
        (changing.count() as u64).saturating_mul(if self.is_differencing { 4 } else { 2 })
    }

    fn handle_written(&mut self, range: ByteRange) {
        for (block, part) in self.split_by_block(range) {
            if self.full_blocks.contains(block) {
                continue;
            }
            if let Some(pending) = self.pending_blocks.remove(&block) {
                self.allocate(block, &pending);
            }
            self.set_written(block, part);
        }
    }

    fn handle_write_failed(&mut self, range: ByteRange) {
        for (block, _) in self.split_by_block(range) {
            if let Some(map) = self.bitmap_cache.bitmap_mut(block) {
                map.writes_in_flight = map.writes_in_flight.saturating_sub(1);
            }
            let Some(pending) = self.pending_blocks.get_mut(&block) else { continue };
            pending.writes = pending.writes.saturating_sub(1);
            if pending.writes == 0 {
                self.changes.freed_sectors.push(pending.sector);
                self.pending_blocks.remove(&block);
            }
        }
    }

    fn discard(
        &mut self,
        range: ByteRange,
        retained: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError> {
        self.check_writable(range)?;
        if self.is_differencing {
            // An absent block is read from the parent; the format cannot mark it as zero.
            retained.push(range);
            return Ok(Translation::Ready);
        }
        for (block, part) in self.split_by_block(range) {
            let is_whole = part.len() == self.layout.block_sectors(block) * SECTOR_BYTES;
            match self.first_sector(block) {
                Some(sector) if is_whole => self.free(block, sector),
                Some(_) => push_range(retained, part),
                None => {}
            }
        }
        Ok(Translation::Ready)
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        if range.len() != self.layout.bitmap_bytes || bytes.len() as u64 != range.len() {
            let fault = ImageFault::InvalidValue {
                value: range.len(),
                allowed: "a bitmap of the requested block",
            };
            return Err(ImageError::new("sector bitmap", range.offset(), fault));
        }
        let Some(block) = self.bitmap_cache.end_read(range) else { return Ok(()) };
        let is_there = |sector| self.layout.bitmap_range(sector) == Some(range);
        if !self.first_sector(block).is_some_and(is_there)
            || self.full_blocks.contains(block)
            || self.bitmap_cache.bitmap(block).is_some()
        {
            return Ok(());
        }
        if bitmap::is_full(bytes, self.layout.block_sectors(block)) {
            self.full_blocks.insert(block);
        } else {
            let (first, last) = self.bitmap_blocks;
            self.bitmap_cache.insert_read(block, bytes, first..=last);
        }
        Ok(())
    }

    fn handle_metadata_failure(&mut self, range: ByteRange) {
        self.bitmap_cache.end_read(range);
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.changed_bytes()
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.start_commit()
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.end_commit(outcome);
    }

    fn poll_zeroing(&mut self) -> Option<ByteRange> {
        self.space.as_mut()?.poll_zeroing()
    }

    fn handle_zeroed(&mut self, is_zero: bool) {
        if let Some(space) = &mut self.space {
            space.handle_zeroed(is_zero);
        }
    }

    fn enable_change_log(&mut self) {
        self.remembered = Some(Vec::new());
    }

    fn take_logged_changes(&mut self, changes: &mut Vec<MetadataChange>) {
        if let Some(own_changes) = &mut self.remembered {
            changes.append(own_changes);
        }
    }
}

/// Appends a range, merging it with the last one if adjacent.
fn push_range(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    if let Some(last) = ranges.last_mut().filter(|last| last.end() == range.offset()) {
        if let Some(joined) = ByteRange::new(last.offset(), last.len().saturating_add(range.len()))
        {
            *last = joined;
            return;
        }
    }
    ranges.push(range);
}
