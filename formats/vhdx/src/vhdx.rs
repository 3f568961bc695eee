//! An opened image.

use std::collections::{BTreeMap, BTreeSet};

use suimon_image::{ByteRange, Shape};

use crate::bat::Bat;
use crate::commit::Committing;
use crate::geometry::Geometry;
use crate::header::Headers;
use crate::log::Writer;
use crate::metadata::Metadata;
use crate::region::Regions;
use crate::sector_bitmap::SectorBitmaps;
use crate::space::Space;
use crate::view::Overlay;
use crate::{Guid, ParentLocator};

/// What kind of image it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every block has its space from the beginning.
    Fixed,
    /// Blocks get space when they are written.
    Dynamic,
    /// The same, and what is not there is in the parent.
    Differencing,
}

/// Space for a block that is written for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Where it is, in megabytes.
    pub mb: u32,
    /// Writes that were placed there and have not ended.
    pub writes: u32,
}

/// What an image that is open for writing needs besides.
#[derive(Debug)]
pub(crate) struct Writing {
    pub space: Space,
    pub log: Writer,
    /// Blocks that are written for the first time.
    pub pending: BTreeMap<u64, Pending>,
    pub committing: Option<Committing>,
    /// Bytes that the file has, or more.
    pub file_len: u64,
}

/// An opened VHDX image.
///
/// In memory it has 4 bytes for each block, 4 for each chunk of an image with a parent,
/// and up to 8 MB of sector bitmaps besides those that are not written yet. One request to
/// an image with a parent has less than 16 GB.
#[derive(Debug)]
pub struct Vhdx {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Metadata,
    pub(crate) headers: Headers,
    pub(crate) regions: Regions,
    pub(crate) bat: Bat,
    pub(crate) bitmaps: SectorBitmaps,
    /// What the log changes of a file that is open for reading only.
    pub(crate) overlay: Overlay,
    pub(crate) linear: Option<u64>,
    /// `None` if it is open for reading only.
    pub(crate) writing: Option<Writing>,
}

impl Vhdx {
    /// What kind of image it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.metadata {
            Metadata { parent: Some(_), .. } => Kind::Differencing,
            Metadata { leave_allocated: true, .. } => Kind::Fixed,
            Metadata { .. } => Kind::Dynamic,
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.metadata.block
    }

    /// What identifies the disk, whatever is written to it (SCSI page 83h).
    #[must_use]
    pub fn disk_id(&self) -> Guid {
        self.metadata.disk_id
    }

    /// What identifies the disk's content: a child is linked to it.
    #[must_use]
    pub fn data_write_guid(&self) -> Guid {
        self.headers.current.data_write
    }

    /// Where the parent may be found, if there is one.
    #[must_use]
    pub fn parent_locator(&self) -> Option<&ParentLocator> {
        self.metadata.parent.as_ref()
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            size: self.metadata.size,
            logical_sector: self.metadata.logical_sector,
            physical_sector: self.metadata.physical_sector,
            block: if self.metadata.leave_allocated { 0 } else { self.metadata.block },
        }
    }

    /// Whether a part of a block is all that the disk has of the block.
    pub(crate) fn is_whole(&self, block: u64, part: ByteRange) -> bool {
        part.len() == self.geometry.block_len(block)
    }

    /// The blocks of an image without holes, in one piece: where the first one is.
    pub(crate) fn find_linear(bat: &Bat, metadata: &Metadata) -> Option<u64> {
        if !metadata.leave_allocated || metadata.parent.is_some() {
            return None;
        }
        let mut entries = bat.entries();
        let first = entries.next().filter(|entry| entry.is_fully_present())?;
        let mut end = first.offset().saturating_add(metadata.block);
        let is_linear = entries.all(|entry| {
            let continues = entry.is_fully_present() && entry.offset() == end;
            end = end.saturating_add(metadata.block);
            continues
        });
        is_linear.then_some(first.offset())
    }

    /// Sector bitmap pages that are not on the disk, as metadata that is to be written.
    pub(crate) fn uncommitted_pages(&self) -> u64 {
        let committing = self.writing.as_ref().and_then(|writing| writing.committing.as_ref());
        let under_way = committing.map_or(0, Committing::pages);
        let dirty: [usize; 2] = [self.bat.dirty.len(), self.bitmaps.dirty.len()];
        dirty.iter().map(|pages| *pages as u64).sum::<u64>().saturating_add(under_way)
    }

    /// Takes the pages that are to be written out of what is dirty.
    pub(crate) fn take_dirty(&mut self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        (core::mem::take(&mut self.bitmaps.dirty), core::mem::take(&mut self.bat.dirty))
    }
}
