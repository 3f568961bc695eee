//! Open dynamic or differencing image: metadata in memory.

mod translate;

use std::collections::BTreeMap;

use suimon_image::{
    ByteRange, DiskGeometry, ImageError, ImageExtent, ImageFault, Location, MetadataChange,
    Translation, push_extent,
};

use crate::bitmap;
use crate::bitmap_cache::{BitmapCache, SectorBitmap};
use crate::block_set::BlockSet;
use crate::changes::{CommitInProgress, UncommittedChanges};
use crate::disk_geometry::disk_geometry;
use crate::fields::{SECTOR_BYTES, to_index};
use crate::layout::{Layout, PAYLOAD_ALIGNMENT};
use crate::space::SpaceAllocator;
use crate::table::UNUSED;

/// Space in the file for a block whose first writes are in flight.
#[derive(Debug)]
struct PendingBlock {
    sector: u32,
    /// Number of writes to the block that are in flight.
    writes: u32,
}

/// Translation state of the image: metadata, uncommitted changes and free space.
#[derive(Debug)]
pub(crate) struct SparseImage {
    pub(crate) layout: Layout,
    shape: DiskGeometry,
    pub(crate) is_differencing: bool,
    /// Block allocation table as reads use it, including uncommitted changes: first sector by
    /// block.
    pub(crate) table: Vec<u32>,
    /// Blocks whose bitmap is full, including uncommitted changes.
    pub(crate) full_blocks: BlockSet,
    pending_blocks: BTreeMap<u32, PendingBlock>,
    pub(crate) bitmap_cache: BitmapCache,
    /// First and last block of the last request that needed bitmaps; these must be cached together.
    bitmap_blocks: (u32, u32),
    /// Free space; `None` in an image that was opened for reading only.
    pub(crate) space: Option<SpaceAllocator>,
    pub(crate) changes: UncommittedChanges,
    pub(crate) committing: Option<CommitInProgress>,
    /// True if the last commit that extends the file failed.
    pub(crate) has_failed_to_grow: bool,
    /// Changes to table and bitmaps since they were last taken for a redo record; `None` if they
    /// are not recorded.
    remembered: Option<Vec<MetadataChange>>,
    pub(crate) footer: [u8; 512],
    /// Number of blocks allocated in the file.
    pub(crate) allocated_blocks: u64,
}

/// Operation that must precede a write to a block.
enum WriteRequirement {
    /// No operation: the write can proceed.
    Yes,
    /// Allocation of space for the block.
    Allocate,
    /// Read of the block's bitmap in this file range.
    Bitmap(ByteRange),
}

impl SparseImage {
    pub(crate) fn new(
        layout: Layout,
        is_differencing: bool,
        table: Vec<u32>,
        space: Option<SpaceAllocator>,
        footer: [u8; 512],
    ) -> Self {
        let used = table.iter().filter(|sector| **sector != UNUSED);
        let is_aligned = layout.aligns_payload()
            && used.clone().all(|sector| layout.payload_offset(*sector) % PAYLOAD_ALIGNMENT == 0);
        let allocated = used.count() as u64;
        Self {
            full_blocks: BlockSet::new(layout.block_count),
            bitmap_cache: BitmapCache::new(layout.bitmap_bytes),
            bitmap_blocks: (0, 0),
            pending_blocks: BTreeMap::new(),
            changes: UncommittedChanges::default(),
            committing: None,
            has_failed_to_grow: false,
            remembered: None,
            shape: disk_geometry(layout.disk_bytes, layout.block_bytes, is_aligned),
            layout,
            is_differencing,
            table,
            space,
            footer,
            allocated_blocks: allocated,
        }
    }

    /// Returns the first sector of a block in the file; `None` if it is not allocated.
    pub(crate) fn first_sector(&self, block: u32) -> Option<u32> {
        let sector = self.table.get(block as usize).copied()?;
        (sector != UNUSED).then_some(sector)
    }

    fn check_writable(&self, range: ByteRange) -> Result<(), ImageError> {
        if self.space.is_none() {
            return Err(ImageError::new("disk", range.offset(), ImageFault::ReadOnly));
        }
        self.shape.check(range)
    }

    /// Splits a disk range at block boundaries. Returns each block with the range within the block.
    fn split_by_block(&self, range: ByteRange) -> impl Iterator<Item = (u32, ByteRange)> + use<> {
        let blocks = range.blocks(self.layout.block_bytes);
        blocks.map(|(block, part)| (u32::try_from(block).unwrap_or(UNUSED), part))
    }

    /// Returns the file offset in bytes of a range within the block that begins at `sector`.
    fn offset(&self, sector: u32, part: ByteRange) -> u64 {
        self.layout.payload_offset(sector).saturating_add(part.offset() % self.layout.block_bytes)
    }

    fn absent_location(&self) -> Location {
        if self.is_differencing { Location::Parent } else { Location::Zero }
    }

    /// Records a read of the bitmap of a block that begins at `sector`, and returns the request to
    /// perform it.
    fn request_bitmap(&mut self, block: u32, sector: u32) -> Translation {
        // Sector numbers have 32 bits, so the offset does not overflow.
        let Some(range) = self.layout.bitmap_range(sector) else { return Translation::NeedsCommit };
        self.bitmap_cache.begin_read(range, block);
        Translation::NeedsMetadata(range)
    }

    /// Appends the extents of a range within the block that begins at `sector`: sectors in the file
    /// and sectors in the parent, as `map` determines.
    fn push_runs(
        &self,
        sector: u32,
        part: ByteRange,
        map: &SectorBitmap,
        extents: &mut Vec<ImageExtent>,
    ) {
        let offset = self.offset(sector, part);
        let start = part.offset() % self.layout.block_bytes / SECTOR_BYTES;
        let end = start + part.len() / SECTOR_BYTES;
        let mut position = start;
        while position < end {
            let run_end = bitmap::run_end(&map.bits, position, end);
            let is_here = bitmap::is_set(&map.bits, position);
            let location = if is_here {
                Location::File(offset + (position - start) * SECTOR_BYTES)
            } else {
                Location::Parent
            };
            push_extent(extents, location, (run_end - position) * SECTOR_BYTES);
            position = run_end;
        }
    }

    fn block_span(&self, range: ByteRange) -> (u32, u32) {
        let block = |offset: u64| u32::try_from(offset / self.layout.block_bytes).unwrap_or(UNUSED);
        (block(range.offset()), block(range.end().saturating_sub(1)))
    }

    /// Returns the operation that must precede a write to a block with an incomplete bitmap.
    fn write_requirement(&self, block: u32) -> WriteRequirement {
        match self.first_sector(block) {
            Some(sector) if self.bitmap_cache.bitmap(block).is_none() => self
                .layout
                .bitmap_range(sector)
                .map_or(WriteRequirement::Yes, WriteRequirement::Bitmap),
            None if !self.pending_blocks.contains_key(&block) => WriteRequirement::Allocate,
            _ => WriteRequirement::Yes,
        }
    }

    /// Returns true if changes must be committed before `blocks` blocks are allocated, or before
    /// more bitmaps change.
    ///
    /// # Errors
    ///
    /// The file cannot grow.
    fn is_commit_due(&mut self, blocks: u64) -> Result<bool, ImageError> {
        let Some(space) = &mut self.space else { return Ok(false) };
        if blocks > 0 && !space.reserve(blocks) {
            if space.footer_sector_after_growth(blocks, 0).is_none() {
                return Err(too_large_error(&self.layout));
            }
            self.changes.blocks_beyond_end = self.changes.blocks_beyond_end.max(blocks);
            return Ok(true);
        }
        let uncommitted = self
            .committing
            .as_ref()
            .map_or(0, |committing| committing.changes.bitmap_write_count());
        Ok(self.changes.bitmap_write_count() + uncommitted >= self.bitmap_cache.capacity())
    }

    /// Returns the first sector of the block to which a write goes, with space allocated if
    /// necessary; `None` if there is no space.
    fn assign_sector(&mut self, block: u32) -> Option<u32> {
        if let Some(sector) = self.first_sector(block) {
            if self.full_blocks.contains(block) {
                return Some(sector);
            }
            if let Some(map) = self.bitmap_cache.bitmap_mut(block) {
                map.writes_in_flight = map.writes_in_flight.saturating_add(1);
            }
            return Some(sector);
        }
        if let Some(pending) = self.pending_blocks.get_mut(&block) {
            pending.writes = pending.writes.saturating_add(1);
            return Some(pending.sector);
        }
        let sector = self.space.as_mut()?.allocate()?;
        self.pending_blocks.insert(block, PendingBlock { sector, writes: 1 });
        Some(sector)
    }

    /// Changes the table entry of a block. Returns false if the block does not exist.
    fn set_sector(&mut self, block: u32, sector: u32) -> bool {
        let Some(entry) = self.table.get_mut(block as usize) else { return false };
        let before = core::mem::replace(entry, sector);
        if let Some(changes) = &mut self.remembered {
            let offset = self.layout.entry_offset(block);
            changes.push(MetadataChange::entry(offset, before.to_be_bytes(), sector.to_be_bytes()));
        }
        true
    }

    /// Records, for the redo record, that the bitmap of an allocated block is full.
    fn remember_full_bitmap(&mut self, block: u32) {
        let range = self.first_sector(block).and_then(|sector| self.layout.bitmap_range(sector));
        if let (Some(changes), Some(range)) = (&mut self.remembered, range) {
            changes.push(MetadataChange::fill(range, 0xff));
        }
    }

    /// Records, for the redo record, the bytes of a block's cached bitmap that contain the bits of
    /// the sectors `start .. end`.
    fn remember_bits(&mut self, block: u32, start: u64, end: u64) {
        let range = self.first_sector(block).and_then(|sector| self.layout.bitmap_range(sector));
        let (Some(range), Some(map)) = (range, self.bitmap_cache.bitmap(block)) else { return };
        let Some(changes) = &mut self.remembered else { return };
        let (first, last) = (start / 8, end.div_ceil(8));
        let mut position = first;
        while position < last {
            // All bytes between the first and the last are 0xff.
            let len =
                if position == first || position + 1 == last { 1 } else { last - 1 - position };
            let byte = map.bits.get(to_index(position)).copied();
            let changed = ByteRange::new(range.offset() + position, len);
            if let (Some(byte), Some(changed)) = (byte, changed) {
                changes.push(MetadataChange::fill(changed, byte));
            }
            position += len;
        }
    }

    /// Enters a block into the table after its first write has completed.
    fn allocate(&mut self, block: u32, pending: &PendingBlock) {
        if !self.set_sector(block, pending.sector) {
            return;
        }
        self.allocated_blocks += 1;
        self.changes.record_allocated(block);
        if self.is_differencing {
            let mut map = SectorBitmap::empty(to_index(self.layout.bitmap_bytes), pending.writes);
            map.is_dirty = true;
            self.bitmap_cache.insert(block, map, block..=block);
        } else {
            self.full_blocks.insert(block);
            self.remember_full_bitmap(block);
        }
    }

    /// Sets the bits of the written range `part` of an allocated block.
    fn set_written(&mut self, block: u32, part: ByteRange) {
        let is_differencing = self.is_differencing;
        let sectors = self.layout.block_sectors(block);
        let start = part.offset() % self.layout.block_bytes / SECTOR_BYTES;
        let Some(map) = self.bitmap_cache.bitmap_mut(block) else { return };
        map.writes_in_flight = map.writes_in_flight.saturating_sub(1);
        if is_differencing {
            if !map.set(start, start + part.len() / SECTOR_BYTES) {
                return;
            }
            map.is_dirty = true;
            self.remember_bits(block, start, start + part.len() / SECTOR_BYTES);
        } else {
            self.remember_full_bitmap(block);
        }
        self.changes.record_bitmap_changed(block);
        let Some(map) = self.bitmap_cache.bitmap(block) else { return };
        // In a dynamic disk, sectors with a clear bit are zero in the file, so all bits can be set.
        if !is_differencing || bitmap::is_full(&map.bits, sectors) {
            self.bitmap_cache.remove(block);
            self.full_blocks.insert(block);
        }
    }

    fn free(&mut self, block: u32, sector: u32) {
        if !self.set_sector(block, UNUSED) {
            return;
        }
        self.allocated_blocks = self.allocated_blocks.saturating_sub(1);
        self.full_blocks.remove(block);
        self.bitmap_cache.remove(block);
        self.changes.record_freed(block, sector);
    }
}

/// Returns the error for sectors that table entries cannot represent.
fn too_large_error(layout: &Layout) -> ImageError {
    let limit = u64::from(UNUSED) * SECTOR_BYTES;
    ImageError::new(
        "block allocation table",
        layout.table_offset,
        ImageFault::FormatLimit { limit },
    )
}
