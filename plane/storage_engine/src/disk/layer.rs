//! Images of a disk with their files in the worker's I/O.

use std::sync::Arc;

use suimon_image::{ByteRange, Image};
use suimon_ports::{DiskFile, FileSlot};

/// One image of a disk, with its file as registered with the worker's I/O.
pub(crate) struct Layer {
    pub(crate) image: Box<dyn Image>,
    /// File in which the image is stored, which is returned with the image.
    pub(crate) disk_file: Arc<dyn DiskFile>,
    pub(crate) file: FileSlot,
    pub(crate) can_punch: bool,
    /// True if I/O bypasses the host's page cache.
    pub(crate) is_direct: bool,
}

/// File range of a disk that is contiguous in its file. Requests are translated by it instead of
/// the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContiguousRange {
    pub(crate) file: FileSlot,
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Mask of the bits that are zero in offsets and lengths of whole sectors.
    within_sector: u64,
}

impl ContiguousRange {
    pub(crate) fn from_layers(layers: &[Layer]) -> Option<Self> {
        let top_layer = layers.first()?;
        let start = top_layer.image.linear_offset()?;
        let shape = top_layer.image.disk_geometry();
        let sector = u64::from(shape.logical_sector_bytes);
        let within_sector = sector.checked_sub(1).filter(|_| sector.is_power_of_two())?;
        Some(Self { file: top_layer.file, start, size: shape.size_bytes, within_sector })
    }

    /// Returns the file offset of a range; `None` if the range is invalid. The image then returns
    /// the error.
    #[inline]
    pub(crate) fn locate(&self, range: ByteRange) -> Option<u64> {
        let is_whole = (range.offset() | range.len()) & self.within_sector == 0;
        let is_sound = is_whole && !range.is_empty() && range.is_within(self.size);
        is_sound.then(|| self.start.saturating_add(range.offset()))
    }
}

/// Returns true if a flush of the disk's own file has failed since it was opened.
pub(crate) fn has_failed_flush(layers: &[Layer]) -> bool {
    layers.first().is_some_and(|top_layer| top_layer.disk_file.first_flush_error().is_some())
}
