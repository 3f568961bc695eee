//! Opening an image, and repairing what a crash may have left.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use suimon_image::{FileError, ImageError, ImageFault, ImageFile, Redo};

use crate::fields::{SECTOR, field, index};
use crate::find::{Footers, footers};
use crate::footer::{DiskType, FOOTER, Footer, SizeRule};
use crate::header::{DynamicHeader, HEADER};
use crate::layout::{Layout, Region};
use crate::locator::{self, Parent};
use crate::space::{Gap, Space};
use crate::sparse::Sparse;
use crate::table;
use crate::vhd::{Body, Vhd};

/// What an image is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading: the file is not touched.
    Read,
    /// Reading and writing: what a crash or another program left is repaired.
    Write,
}

/// How an image is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// What for.
    pub access: Access,
    /// Which field tells the disk's size.
    pub size: SizeRule,
}

/// The structures of a dynamic or differencing image.
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
        rule: SizeRule,
    ) -> Result<Self, ImageError> {
        let footer = &footers.found.footer;
        let offset = footer.data_offset;
        let told_at = footers.found.offset.saturating_add(16);
        if offset.checked_add(HEADER).is_none_or(|end| end > footers.limit) {
            let fault = ImageFault::Short { file_len: footers.limit };
            return Err(ImageError::new("Data Offset", told_at, fault));
        }
        let mut bytes = [0; 1024];
        file.read_at(offset, &mut bytes)
            .map_err(|error| ImageError::new("dynamic disk header", offset, error))?;
        let header = DynamicHeader::parse(&bytes, offset)?;
        let size = footer.size(rule, footers.found.offset)?;
        let layout = Layout::new(&header, offset, size)?;
        let is_differencing = footer.disk_type == DiskType::Differencing;
        let regions = layout.regions(&header, is_differencing, footers.limit)?;
        Ok(Self { header, header_bytes: bytes, layout, regions })
    }

    /// The table, blocks by where they are, and gaps before where the footer belongs.
    pub(crate) fn read_table(
        &self,
        file: &dyn ImageFile,
        footers: &Footers,
    ) -> Result<(Vec<u32>, Vec<Gap>), ImageError> {
        let table = table::read(file, &self.layout)?;
        let blocks = self.judge(&table, footers)?;
        let gaps = table::gaps(&self.layout, &blocks, &self.regions, footers.place);
        Ok((table, gaps))
    }

    /// The blocks of a table by where they are, or what is wrong with one of them.
    fn judge(&self, table: &[u32], footers: &Footers) -> Result<Vec<(u32, u32)>, ImageError> {
        let blocks = table::sorted(table);
        let first = &mut ControlFlow::Break::<ImageError, ()>;
        match table::judge(&self.layout, &blocks, &self.regions, footers.limit, first) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(blocks),
        }
    }

    /// Makes changes that another process had not written yet: bitmaps before the table, after the
    /// payload that they are about. Can be done again, as often as it is interrupted.
    fn redo(&self, file: &dyn ImageFile, footers: &Footers, redo: &Redo) -> Result<(), ImageError> {
        let found = &footers.found;
        if found.footer.unique_id != redo.opened.write_id {
            let what = "another image is in its place";
            let fault = ImageFault::Changed { what };
            return Err(ImageError::new("Unique Id", found.offset.saturating_add(68), fault));
        }
        // All bits of an entry mean something.
        let pages = redo.pages(SECTOR, core::convert::identity, |page| {
            let mut bytes = vec![0; index(page.len())];
            let read = file.read_at(page.offset(), &mut bytes);
            read.map(|()| bytes)
                .map_err(|error| ImageError::new("sector that changes", page.offset(), error))
        })?;
        let (start, end) =
            (self.layout.table_offset, self.layout.entry_offset(self.layout.entries));
        let (of_table, others): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(offset, _)| (start..end).contains(offset));
        let mut table = table::read(file, &self.layout)?;
        for (offset, bytes) in &of_table {
            let first = index((offset - start) / 4);
            let entries = bytes.chunks_exact(4).map(|entry| u32::from_be_bytes(field(entry, 0)));
            let places = table.iter_mut().skip(first);
            places.zip(entries).for_each(|(place, entry)| *place = entry);
        }
        // Another program may have given the space away.
        let blocks = self.judge(&table, footers)?;
        let placed = |sector: u32| {
            let at = blocks.partition_point(|(place, _)| *place <= sector);
            blocks.get(at.checked_sub(1)?).map(|(place, _)| *place)
        };
        // Blocks that were freed again are not in the table any more.
        let freed: BTreeSet<u32> = redo.entries().map(u32::from_be_bytes).collect();
        redo.check_places(start..end, |fill| {
            let Ok(sector) = u32::try_from(fill.offset() / SECTOR) else { return false };
            let before = freed.range(..=sector).next_back().copied();
            let bitmaps = placed(sector).into_iter().chain(before);
            let bitmaps = bitmaps.filter_map(|place| self.layout.bitmap_range(place));
            bitmaps.into_iter().any(|bitmap| bitmap.contains(fill))
        })?;
        // On a full store this gives the space that the pages need.
        zero_gaps(
            file,
            &self.layout,
            &table::gaps(&self.layout, &blocks, &self.regions, footers.place),
        )?;
        let failed = |error: FileError| ImageError::new("sector that changes", start, error);
        file.flush().map_err(failed)?;
        for pages in [others, of_table] {
            for (offset, bytes) in pages {
                file.write_at(offset, &bytes).map_err(failed)?;
            }
            file.flush().map_err(failed)?;
        }
        Ok(())
    }
}

impl Vhd {
    /// Opens an image. Beside the table, whose entries are at most
    /// [`TABLE_ENTRIES_MAX`](crate::TABLE_ENTRIES_MAX) and lie in the file, it allocates
    /// eight bytes for each block in the file while it opens, and a bit for each entry.
    ///
    /// # Errors
    /// The file is no image of this format, is damaged, or cannot be read or written.
    pub fn open(file: &dyn ImageFile, options: OpenOptions) -> Result<Self, ImageError> {
        Self::open_and_redo(file, options, &Redo::default())
    }

    /// Opens an image that another process on this host had open for writing when it was killed,
    /// with the changes that it had not written yet. Without write access nothing is redone.
    ///
    /// # Errors
    /// As [`Vhd::open`]; or another program has changed the image since. Then nothing was changed.
    pub fn open_and_redo(
        file: &dyn ImageFile,
        options: OpenOptions,
        redo: &Redo,
    ) -> Result<Self, ImageError> {
        let footers = footers(file)?;
        let footer = footers.found.footer.clone();
        let is_writable = options.access == Access::Write;
        if footer.disk_type == DiskType::Fixed {
            let size = footer.size(options.size, footers.found.offset)?;
            if size > footers.limit {
                let fault = ImageFault::Short { file_len: footers.limit };
                return Err(ImageError::new("Current Size", footers.found.offset + 48, fault));
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
            Some(locator::read(file, &structures.header, footer.data_offset)?)
        } else {
            None
        };
        let layout = structures.layout;
        let space = is_writable.then(|| Space::new(layout, gaps));
        let body = Sparse::new(layout, is_differencing, table, space, footers.found.bytes);
        Ok(Self { footer, parent, body: Body::Sparse(Box::new(body)) })
    }

    /// The footer's fields.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// What a differencing disk says of its parent.
    #[must_use]
    pub fn parent(&self) -> Option<&Parent> {
        self.parent.as_ref()
    }
}

/// Makes both footers say the same, and room for blocks read as zeros: a crash may have left
/// payload there that nothing refers to.
fn repair(
    file: &dyn ImageFile,
    footers: &Footers,
    layout: &Layout,
    gaps: &[Gap],
) -> Result<(), ImageError> {
    let failed = |error: FileError| ImageError::new("footer", footers.place, error);
    // Before anything is written that needs space.
    let mut is_changed = zero_gaps(file, layout, gaps)?;
    if !footers.is_at_end || !footers.is_whole {
        file.write_at(footers.place, &footers.found.bytes).map_err(failed)?;
        // An older footer that is a byte too short would be found again.
        file.set_len(footers.place.saturating_add(FOOTER)).map_err(failed)?;
        is_changed = true;
    }
    if is_changed {
        file.flush().map_err(failed)?;
    }
    if footers.is_at_end && footers.other.is_some() {
        file.write_at(0, &footers.found.bytes).map_err(failed)?;
        file.flush().map_err(failed)?;
    }
    Ok(())
}

/// Makes room for blocks read as zeros. Returns true if there is any.
fn zero_gaps(file: &dyn ImageFile, layout: &Layout, gaps: &[Gap]) -> Result<bool, ImageError> {
    let mut is_changed = false;
    for (nth, gap) in (1..).zip(gaps) {
        // What is left before the footer becomes room when the file grows.
        let is_tail = nth == gaps.len() && gap.start < gap.end;
        if is_tail || layout.align(gap.start).saturating_add(layout.slot_sectors()) <= gap.end {
            let (offset, len) = (gap.start * SECTOR, (gap.end - gap.start) * SECTOR);
            let failed = |error: FileError| ImageError::new("room between blocks", offset, error);
            file.zero(offset, len).map_err(failed)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}
