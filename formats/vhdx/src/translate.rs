//! Translation of requests: implementation of [`Image`] for VHDX.

use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, ImageFault,
    ImageIdentity, Location, MetadataChange, Translation, push_extent,
};

use crate::Vhdx;
use crate::bat::{BatEntry, BlockState};
use crate::geometry::PAGE_SECTORS_SHIFT;
use crate::sector_bitmap::PAGES_PER_REQUEST_MAX;
use crate::vhdx::{PendingBlock, WriteState};

impl Image for Vhdx {
    fn disk_geometry(&self) -> DiskGeometry {
        Self::disk_geometry(self)
    }

    fn linear_offset(&self) -> Option<u64> {
        self.linear_payload_offset
    }

    #[inline]
    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.geometry.check(range)?;
        if self.push_present(range, extents) {
            return Ok(Translation::Ready);
        }
        self.locate_blocks(range, extents)
    }

    #[inline]
    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.geometry.check(range)?;
        if self.write_state.is_some() && self.push_present(range, extents) {
            return Ok(Translation::Ready);
        }
        self.assign_blocks(range, extents)
    }

    #[inline]
    fn handle_written(&mut self, range: ByteRange) {
        if !self.is_in_present_block(range) || self.geometry.has_parent {
            self.mark_written(range);
        }
    }

    fn handle_write_failed(&mut self, range: ByteRange) {
        self.handle_failed_write(range);
    }

    fn discard(
        &mut self,
        range: ByteRange,
        retained: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError> {
        self.geometry.check(range)?;
        if self.write_state.is_none() {
            return Err(read_only(range));
        }
        self.discard_blocks(range, retained);
        Ok(Translation::Ready)
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        if self.overlay.changes.is_empty() {
            return self.bitmaps.handle_page(range, bytes, &self.geometry);
        }
        let mut bytes = bytes.to_vec();
        self.overlay.patch(range.offset(), &mut bytes);
        self.bitmaps.handle_page(range, &bytes, &self.geometry)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.uncommitted_pages().saturating_mul(crate::fields::PAGE_BYTES)
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.start_commit()
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.end_commit(outcome);
    }

    fn poll_zeroing(&mut self) -> Option<ByteRange> {
        self.write_state.as_mut()?.space.poll_zeroing()
    }

    fn handle_zeroed(&mut self, is_zero: bool) {
        if let Some(writing) = &mut self.write_state {
            writing.space.handle_zeroed(is_zero);
        }
    }

    fn enable_change_log(&mut self) {
        self.bat.unrecorded_changes = Some(Vec::new());
    }

    fn take_logged_changes(&mut self, changes: &mut Vec<MetadataChange>) {
        if let Some(own_changes) = &mut self.bat.unrecorded_changes {
            changes.append(own_changes);
        }
    }

    fn logged_changes_max(&self, range: ByteRange) -> u64 {
        let blocks = range.blocks(self.geometry.block_bytes());
        blocks.map(|(block, part)| self.block_changes_max(block, part)).sum()
    }

    fn identity(&self) -> ImageIdentity {
        let file_len =
            self.write_state.as_ref().map_or(0, |writing| writing.space.required_file_bytes());
        ImageIdentity { write_id: self.headers.current.file_write.to_stored_bytes(), file_len }
    }

    fn close(self: Box<Self>, file: &dyn suimon_image::ImageFile) -> Result<(), ImageError> {
        Self::close(*self, file)
    }
}

impl Vhdx {
    /// Returns true if the range lies in one fully present block.
    #[inline]
    fn is_in_present_block(&self, range: ByteRange) -> bool {
        let block = range.offset() >> self.geometry.block_shift;
        let last = range.end().wrapping_sub(1) >> self.geometry.block_shift;
        block == last && self.bat.payload_entry(block).is_fully_present()
    }

    /// Appends the extent of a range within one fully present block. Returns false, without a
    /// change, for other ranges.
    #[inline]
    fn push_present(&self, range: ByteRange, extents: &mut Vec<ImageExtent>) -> bool {
        let is_present = self.is_in_present_block(range);
        if is_present {
            let entry = self.bat.payload_entry(range.offset() >> self.geometry.block_shift);
            let location = Location::File(entry.offset() + self.offset_in_block(range));
            push_extent(extents, location, range.len());
        }
        is_present
    }

    /// Returns the offset in bytes of the start of a range within its block.
    #[inline]
    fn offset_in_block(&self, range: ByteRange) -> u64 {
        range.offset() & (self.geometry.block_bytes() - 1)
    }

    /// Loads the sector bitmap pages that a request for `range` needs. `is_needed` receives each
    /// block, its entry and the requested range within the block, and returns the range of which
    /// the bits are needed.
    ///
    /// # Errors
    ///
    /// The request needs too many pages.
    fn load_bitmaps(
        &mut self,
        range: ByteRange,
        is_needed: impl Fn(&Self, u64, BatEntry, ByteRange) -> Option<ByteRange>,
    ) -> Result<Translation, ImageError> {
        if !self.geometry.has_parent {
            return Ok(Translation::Ready);
        }
        let page_shift = self.geometry.sector_shift + PAGE_SECTORS_SHIFT;
        let unit = page_shift.max(self.geometry.block_shift);
        if range.len() >> unit >= PAGES_PER_REQUEST_MAX >> (unit - page_shift) {
            let fault = ImageFault::InvalidValue {
                value: range.len(),
                allowed: "less than 16 GB in one request of an image with a parent",
            };
            return Err(ImageError::new("request", range.offset(), fault));
        }
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            let Some(needed_range) = is_needed(self, block, self.bat.payload_entry(block), part)
            else {
                continue;
            };
            if let Some(missing) = self.bitmaps.load(needed_range, &self.geometry, &self.bat) {
                return Ok(Translation::NeedsMetadata(missing));
            }
        }
        Ok(Translation::Ready)
    }

    fn locate_blocks(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        let located = self.load_bitmaps(range, |_, _, entry, part| {
            (entry.state() == BlockState::PartiallyPresent).then_some(part)
        })?;
        if located != Translation::Ready {
            return Ok(located);
        }
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            let entry = self.bat.payload_entry(block);
            let location =
                Location::File(entry.offset().saturating_add(self.offset_in_block(part)));
            match entry.state() {
                BlockState::FullyPresent => push_extent(extents, location, part.len()),
                BlockState::PartiallyPresent => self.push_sectors(entry, part, extents),
                BlockState::NotPresent if self.geometry.has_parent => {
                    push_extent(extents, Location::Parent, part.len());
                }
                BlockState::NotPresent
                | BlockState::Undefined
                | BlockState::Zero
                | BlockState::Unmapped => {
                    push_extent(extents, Location::Zero, part.len());
                }
            }
        }
        Ok(located)
    }

    /// Appends the extents of `part`, a range within one partially present block: sectors in the
    /// file and sectors in the parent.
    fn push_sectors(&self, entry: BatEntry, part: ByteRange, extents: &mut Vec<ImageExtent>) {
        let mut remaining = part;
        while !remaining.is_empty() {
            let (is_present, len) = self.bitmaps.first_run(remaining, &self.geometry);
            let file =
                Location::File(entry.offset().saturating_add(self.offset_in_block(remaining)));
            // A run has at least one sector, so the loop makes progress.
            let len = len.max(1 << self.geometry.sector_shift);
            let (run, next) = remaining.split_at(len);
            push_extent(extents, if is_present { file } else { Location::Parent }, run.len());
            remaining = next;
        }
    }

    /// Returns true if writing `part`, a range within one block, changes the sector bitmap, because
    /// other sectors of the block are in the parent.
    pub(crate) fn changes_bitmap(&self, block: u64, entry: BatEntry, part: ByteRange) -> bool {
        self.geometry.has_parent
            && matches!(entry.state(), BlockState::NotPresent | BlockState::PartiallyPresent)
            && !self.covers_block(block, part)
    }

    /// Returns the disk range of a block.
    pub(crate) fn block_range(&self, block: u64) -> Option<ByteRange> {
        let offset = block.checked_mul(self.geometry.block_bytes())?;
        ByteRange::new(offset, self.geometry.bytes_in_block(block))
            .filter(|range| !range.is_empty())
    }

    fn assign_blocks(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        if self.write_state.is_none() {
            return Err(read_only(range));
        }
        // The bits of the whole block are needed, because those of unwritten sectors are cleared.
        let located = self.load_bitmaps(range, |image, block, entry, part| {
            let is_needed = image.changes_bitmap(block, entry, part);
            if is_needed { image.block_range(block) } else { None }
        })?;
        if located != Translation::Ready {
            return Ok(located);
        }
        for (block, part) in range.blocks(self.geometry.block_bytes()) {
            match self.write_offset(block, part) {
                Ok(offset) => push_extent(extents, Location::File(offset), part.len()),
                Err(error) => {
                    let (assigned, _) = range.split_at(part.offset() - range.offset());
                    if !assigned.is_empty() {
                        self.handle_failed_write(assigned);
                    }
                    return Err(error);
                }
            }
        }
        Ok(located)
    }

    /// Returns the file offset in bytes to which `part`, a range within one block, must be written.
    /// Allocates space for a block that has none.
    ///
    /// # Errors
    ///
    /// There is no space.
    fn write_offset(&mut self, block: u64, part: ByteRange) -> Result<u64, ImageError> {
        let entry = self.bat.payload_entry(block);
        let needs_bitmap = self.changes_bitmap(block, entry, part);
        let Some(writing) = &mut self.write_state else { return Err(read_only(part)) };
        if needs_bitmap {
            let chunk = self.geometry.chunk_of_block(block);
            if !self.bat.bitmap_entry(chunk).is_present() {
                let mb = writing.space.allocate_bitmap()?;
                writing.space.add_reference(mb, false);
                let slot = BatEntry::present(BlockState::FullyPresent, mb);
                self.bat.set_bitmap_entry(chunk, slot, &self.geometry);
                self.bitmaps.new_chunks.insert(chunk);
            }
        }
        let offset = match entry.is_present() {
            true => entry.offset(),
            false => u64::from(writing.pending_space(block)?) << 20,
        };
        if needs_bitmap {
            self.bitmaps.pin(block);
        }
        Ok(offset + self.offset_in_block(part))
    }
}

impl WriteState {
    /// Returns the space for the first write to a block, as an offset in megabytes. Concurrent
    /// first writes to the block share it.
    fn pending_space(&mut self, block: u64) -> Result<u32, ImageError> {
        if let Some(pending) = self.pending_blocks.get_mut(&block) {
            pending.writes_in_flight = pending.writes_in_flight.saturating_add(1);
            return Ok(pending.offset_mb);
        }
        let mb = self.space.allocate_block()?;
        self.pending_blocks.insert(block, PendingBlock { offset_mb: mb, writes_in_flight: 1 });
        Ok(mb)
    }
}

fn read_only(range: ByteRange) -> ImageError {
    ImageError::new("request", range.offset(), ImageFault::ReadOnly)
}
