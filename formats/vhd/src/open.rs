//! Opening of images, including repair after a crash.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use suimon_image::{FileError, ImageError, ImageFault, ImageFile, RedoChanges};

use crate::fields::{SECTOR_BYTES, bytes_at, to_index};
use crate::find_footers::{Footers, find_footers};
use crate::footer::{DiskType, FOOTER_BYTES, Footer, SizeSource};
use crate::gap::Gap;
use crate::header::{DynamicHeader, HEADER_BYTES};
use crate::image::{Body, Vhd};
use crate::layout::{Layout, Region};
use crate::locator::{self, Parent};
use crate::space::SpaceAllocator;
use crate::sparse::SparseImage;
use crate::table;

/// Access mode of an open image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only: the file is not modified.
    Read,
    /// Read and write: opening repairs inconsistencies left by a crash or another program.
    Write,
}

/// Options for opening an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Access mode of the opened image.
    pub access: Access,
    /// Field that determines the disk's size.
    pub size: SizeSource,
}

/// Validated structures of a dynamic or differencing image: header and layout.
pub(crate) struct Structures {
    pub(crate) header: DynamicHeader,
    pub(crate) header_bytes: [u8; 1024],
    pub(crate) layout: Layout,
    pub(crate) regions: Vec<Region>,
}

impl Structures {
    pub(crate) fn read(
        file: &dyn ImageFile,
        footers: &Footers,
        rule: SizeSource,
    ) -> Result<Self, ImageError> {
        let footer = &footers.selected.footer;
        let offset = footer.data_offset;
        let told_at = footers.selected.offset.saturating_add(16);
        if offset.checked_add(HEADER_BYTES).is_none_or(|end| end > footers.payload_end_max) {
            let fault = ImageFault::Truncated { file_len: footers.payload_end_max };
            return Err(ImageError::new("Data Offset", told_at, fault));
        }
        let mut bytes = [0; 1024];
        file.read_at(offset, &mut bytes)
            .map_err(|error| ImageError::new("dynamic disk header", offset, error))?;
        let header = DynamicHeader::parse(&bytes, offset)?;
        let size = footer.size(rule, footers.selected.offset)?;
        let layout = Layout::new(&header, offset, size)?;
        let is_differencing = footer.disk_type == DiskType::Differencing;
        let regions = layout.regions(&header, is_differencing, footers.payload_end_max)?;
        Ok(Self { header, header_bytes: bytes, layout, regions })
    }

    /// Reads and validates the block allocation table. Returns it with the gaps before the correct
    /// offset of the footer.
    pub(crate) fn read_table(
        &self,
        file: &dyn ImageFile,
        footers: &Footers,
    ) -> Result<(Vec<u32>, Vec<Gap>), ImageError> {
        let table = table::read(file, &self.layout)?;
        let blocks = self.validate(&table, footers)?;
        let gaps = table::gaps(&self.layout, &blocks, &self.regions, footers.correct_offset);
        Ok((table, gaps))
    }

    /// Validates a table. Returns its blocks in order of sectors: (sector, block).
    ///
    /// # Errors
    ///
    /// The first invalid entry.
    fn validate(&self, table: &[u32], footers: &Footers) -> Result<Vec<(u32, u32)>, ImageError> {
        let blocks = table::blocks_by_sector(table);
        let first = &mut ControlFlow::Break::<ImageError, ()>;
        match table::validate(&self.layout, &blocks, &self.regions, footers.payload_end_max, first)
        {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(blocks),
        }
    }

    /// Writes changes that a killed process had not committed, first those of bitmaps, then those
    /// of the table, to the file. The file contains their payload already. May be interrupted and
    /// repeated.
    fn redo(
        &self,
        file: &dyn ImageFile,
        footers: &Footers,
        redo: &RedoChanges,
    ) -> Result<(), ImageError> {
        let located_footer = &footers.selected;
        if located_footer.footer.unique_id != redo.identity_at_open.write_id {
            let what = "another image has this name now";
            let fault = ImageFault::ImageModified { difference: what };
            return Err(ImageError::new(
                "Unique Id",
                located_footer.offset.saturating_add(68),
                fault,
            ));
        }
        // All bits of an entry are defined, so no normalisation is necessary.
        let pages = redo.changed_pages(SECTOR_BYTES, core::convert::identity, |page| {
            let mut bytes = vec![0; to_index(page.len())];
            let read = file.read_at(page.offset(), &mut bytes);
            read.map(|()| bytes)
                .map_err(|error| ImageError::new("sector that changes", page.offset(), error))
        })?;
        let (start, end) =
            (self.layout.table_offset, self.layout.entry_offset(self.layout.entry_count));
        let (of_table, other_pages): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(offset, _)| (start..end).contains(offset));
        let mut table = table::read(file, &self.layout)?;
        for (offset, bytes) in &of_table {
            let first = to_index((offset - start) / 4);
            let entries = bytes.chunks_exact(4).map(|entry| u32::from_be_bytes(bytes_at(entry, 0)));
            let slots = table.iter_mut().skip(first);
            slots.zip(entries).for_each(|(slot, entry)| *slot = entry);
        }
        // Another program may have reused the space of the block.
        let blocks = self.validate(&table, footers)?;
        let block_start = |sector: u32| {
            let index = blocks.partition_point(|(start_sector, _)| *start_sector <= sector);
            blocks.get(index.checked_sub(1)?).map(|(start_sector, _)| *start_sector)
        };
        // The table does not contain blocks that were freed again.
        let freed: BTreeSet<u32> = redo.entry_values().map(u32::from_be_bytes).collect();
        redo.check_ranges(start..end, |fill| {
            let Ok(sector) = u32::try_from(fill.offset() / SECTOR_BYTES) else { return false };
            let before = freed.range(..=sector).next_back().copied();
            let bitmaps = block_start(sector).into_iter().chain(before);
            let bitmaps =
                bitmaps.filter_map(|bitmap_sector| self.layout.bitmap_range(bitmap_sector));
            bitmaps.into_iter().any(|bitmap| bitmap.contains(fill))
        })?;
        // If the store is full, this frees the space that the following writes need.
        zero_gaps(
            file,
            &self.layout,
            &table::gaps(&self.layout, &blocks, &self.regions, footers.correct_offset),
        )?;
        let failed = |error: FileError| ImageError::new("sector that changes", start, error);
        file.flush().map_err(failed)?;
        for pages in [other_pages, of_table] {
            for (offset, bytes) in pages {
                file.write_at(offset, &bytes).map_err(failed)?;
            }
            file.flush().map_err(failed)?;
        }
        Ok(())
    }
}

impl Vhd {
    /// Opens an image. Memory use: the table (at most
    /// [`TABLE_ENTRIES_MAX`](crate::TABLE_ENTRIES_MAX) entries, which must lie within the file),
    /// one bit per entry, and during opening eight bytes per allocated block.
    ///
    /// # Errors
    ///
    /// The file is not a VHD image, is damaged, or cannot be read or written.
    pub fn open(file: &dyn ImageFile, options: OpenOptions) -> Result<Self, ImageError> {
        Self::open_with_redo(file, options, &RedoChanges::default())
    }

    /// Opens an image that a killed process of this host had open for writing, and applies the
    /// metadata changes that this process had not committed. Without write access the changes are
    /// not applied.
    ///
    /// # Errors
    ///
    /// As [`Vhd::open`]; also if another program has modified the image since. The file is then
    /// unchanged.
    pub fn open_with_redo(
        file: &dyn ImageFile,
        options: OpenOptions,
        redo: &RedoChanges,
    ) -> Result<Self, ImageError> {
        let footers = find_footers(file)?;
        let footer = footers.selected.footer.clone();
        let is_writable = options.access == Access::Write;
        if footer.disk_type == DiskType::Fixed {
            let size = footer.size(options.size, footers.selected.offset)?;
            if size > footers.payload_end_max {
                let fault = ImageFault::Truncated { file_len: footers.payload_end_max };
                return Err(ImageError::new("Current Size", footers.selected.offset + 48, fault));
            }
            return Ok(Self { footer, parent: None, body: Body::fixed(size, is_writable) });
        }
        let structures = Structures::read(file, &footers, options.size)?;
        if is_writable && !redo.changes.is_empty() {
            structures.redo(file, &footers, redo)?;
        }
        let (table, gaps) = structures.read_table(file, &footers)?;
        if is_writable {
            repair(file, &footers, &structures.layout, &gaps)?;
        }
        let is_differencing = footer.disk_type == DiskType::Differencing;
        let parent = if is_differencing {
            Some(locator::read_parent(file, &structures.header, footer.data_offset)?)
        } else {
            None
        };
        let layout = structures.layout;
        let space = is_writable.then(|| SpaceAllocator::new(layout, gaps));
        let body = SparseImage::new(layout, is_differencing, table, space, footers.selected.bytes);
        Ok(Self { footer, parent, body: Body::Sparse(Box::new(body)) })
    }

    /// Returns the decoded footer of the image.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Returns the parent information of a differencing disk; `None` for other types.
    #[must_use]
    pub fn parent(&self) -> Option<&Parent> {
        self.parent.as_ref()
    }
}

/// Makes footer and copy identical, and zeroes free space, which may contain unreferenced data
/// after a crash.
fn repair(
    file: &dyn ImageFile,
    footers: &Footers,
    layout: &Layout,
    gaps: &[Gap],
) -> Result<(), ImageError> {
    let failed = |error: FileError| ImageError::new("footer", footers.correct_offset, error);
    // Zeroing frees space. It therefore precedes the writes that need space.
    let mut is_changed = zero_gaps(file, layout, gaps)?;
    if !footers.is_at_end || !footers.is_complete {
        file.write_at(footers.correct_offset, &footers.selected.bytes).map_err(failed)?;
        // The file must be truncated, because a former 511-byte footer at its end would be found
        // again.
        file.set_len(footers.correct_offset.saturating_add(FOOTER_BYTES)).map_err(failed)?;
        is_changed = true;
    }
    if is_changed {
        file.flush().map_err(failed)?;
    }
    if footers.is_at_end && footers.other_error.is_some() {
        file.write_at(0, &footers.selected.bytes).map_err(failed)?;
        file.flush().map_err(failed)?;
    }
    Ok(())
}

/// Zeroes the gaps that are large enough for a block. Returns true if there is any.
fn zero_gaps(file: &dyn ImageFile, layout: &Layout, gaps: &[Gap]) -> Result<bool, ImageError> {
    let mut is_changed = false;
    for (index, gap) in (1..).zip(gaps) {
        // The gap before the footer becomes part of the free space when the file grows.
        let is_tail = index == gaps.len() && gap.start_sector < gap.end_sector;
        if is_tail
            || layout.align_sector(gap.start_sector).saturating_add(layout.slot_sectors())
                <= gap.end_sector
        {
            let (offset, len) = (
                gap.start_sector * SECTOR_BYTES,
                (gap.end_sector - gap.start_sector) * SECTOR_BYTES,
            );
            let failed = |error: FileError| ImageError::new("room between blocks", offset, error);
            file.zero(offset, len).map_err(failed)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}
