//! Open VHDX image.

use std::collections::{BTreeMap, BTreeSet};

use suimon_image::{ByteRange, DiskGeometry};

use crate::bat::Bat;
use crate::commit_in_progress::CommitInProgress;
use crate::geometry::Geometry;
use crate::header::Headers;
use crate::log::{LogWriter, Page};
use crate::metadata::Metadata;
use crate::region::Regions;
use crate::replayed_view::LogOverlay;
use crate::sector_bitmap::SectorBitmaps;
use crate::space::SpaceAllocator;
use crate::{Guid, ParentLocator};

/// Type of a VHDX image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageType {
    /// Fixed: every block is allocated at creation.
    Fixed,
    /// Dynamic: blocks are allocated when they are written.
    Dynamic,
    /// Differencing: like dynamic; absent blocks and sectors are read from a parent.
    Differencing,
}

/// Space for a block whose first writes are in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingBlock {
    /// File offset of the space in megabytes.
    pub offset_mb: u32,
    /// Number of writes to the block that are in flight.
    pub writes_in_flight: u32,
}

/// State of an image that exists only while it is open for writing.
#[derive(Debug)]
pub(crate) struct WriteState {
    pub space: SpaceAllocator,
    pub log: LogWriter,
    /// Pages of the last log entry, if a commit failed after the entry was durable. Some of the
    /// pages may be missing or torn at their offsets in the file. All of them are dirty.
    pub unapplied_pages: Vec<Page>,
    /// Blocks whose first writes are in flight, with their space.
    pub pending_blocks: BTreeMap<u64, PendingBlock>,
    pub committing: Option<CommitInProgress>,
    /// Intended length of the file in bytes. The actual file may be shorter.
    pub file_len: u64,
}

/// Open VHDX image of any type.
///
/// Memory use: 4 bytes per block, for differencing images 4 bytes per chunk, and up to 8 MB of
/// sector bitmaps plus uncommitted ones. Requests to differencing images are limited to less than
/// 16 GB.
#[derive(Debug)]
pub struct Vhdx {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Metadata,
    pub(crate) headers: Headers,
    pub(crate) regions: Regions,
    pub(crate) bat: Bat,
    pub(crate) bitmaps: SectorBitmaps,
    /// Changes in the log of an image that is open for reading only.
    pub(crate) overlay: LogOverlay,
    pub(crate) linear_payload_offset: Option<u64>,
    /// State for writing; `None` if the image is open for reading only.
    pub(crate) write_state: Option<WriteState>,
}

impl Vhdx {
    /// Returns the type of the image.
    #[must_use]
    pub fn kind(&self) -> ImageType {
        match &self.metadata {
            Metadata { parent: Some(_), .. } => ImageType::Differencing,
            Metadata { leave_allocated: true, .. } => ImageType::Fixed,
            Metadata { .. } => ImageType::Dynamic,
        }
    }

    /// Returns the block size in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.metadata.block_bytes
    }

    /// Returns the identifier of the disk, which writes do not change (SCSI page 83h).
    #[must_use]
    pub fn disk_id(&self) -> Guid {
        self.metadata.disk_id
    }

    /// Returns the DataWriteGuid, which identifies the contents of the disk and to which children
    /// are linked.
    #[must_use]
    pub fn data_write_guid(&self) -> Guid {
        self.headers.current.data_write
    }

    /// Returns the parent locator of a differencing image; `None` for other images.
    #[must_use]
    pub fn parent_locator(&self) -> Option<&ParentLocator> {
        self.metadata.parent.as_ref()
    }

    pub(crate) fn disk_geometry(&self) -> DiskGeometry {
        DiskGeometry {
            size_bytes: self.metadata.disk_bytes,
            logical_sector_bytes: self.metadata.logical_sector_bytes,
            physical_sector_bytes: self.metadata.physical_sector_bytes,
            block_bytes: if self.metadata.leave_allocated { 0 } else { self.metadata.block_bytes },
        }
    }

    /// Returns true if `part` covers all of the block that lies within the disk.
    pub(crate) fn covers_block(&self, block: u64, part: ByteRange) -> bool {
        part.len() == self.geometry.bytes_in_block(block)
    }

    /// Returns the file offset of the first block if all blocks are allocated contiguously in disk
    /// order.
    pub(crate) fn find_linear_payload(bat: &Bat, metadata: &Metadata) -> Option<u64> {
        if !metadata.leave_allocated || metadata.parent.is_some() {
            return None;
        }
        let mut entries = bat.entries();
        let first = entries.next().filter(|entry| entry.is_fully_present())?;
        let mut end = first.offset().saturating_add(metadata.block_bytes);
        let is_linear = entries.all(|entry| {
            let continues = entry.is_fully_present() && entry.offset() == end;
            end = end.saturating_add(metadata.block_bytes);
            continues
        });
        is_linear.then_some(first.offset())
    }

    /// Returns the number of metadata pages with changes that are not durable.
    pub(crate) fn uncommitted_pages(&self) -> u64 {
        let committing = self.write_state.as_ref().and_then(|writing| writing.committing.as_ref());
        let under_way = committing.map_or(0, CommitInProgress::page_count);
        let dirty: [usize; 2] = [self.bat.dirty_pages.len(), self.bitmaps.dirty_pages.len()];
        dirty.iter().map(|pages| *pages as u64).sum::<u64>().saturating_add(under_way)
    }

    /// Removes and returns the numbers of the changed pages of sector bitmaps and BAT, for a
    /// commit.
    pub(crate) fn take_dirty_pages(&mut self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        (core::mem::take(&mut self.bitmaps.dirty_pages), core::mem::take(&mut self.bat.dirty_pages))
    }
}
