//! Images stored contiguously: raw files, block devices and fixed disks.

use crate::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, ImageFault,
    Location, Translation, push_extent,
};

/// Disk stored contiguously from an offset of its file.
#[derive(Clone, Copy, Debug)]
pub struct LinearImage {
    geometry: DiskGeometry,
    offset: u64,
    is_read_only: bool,
}

impl LinearImage {
    /// Creates an image of a disk at `offset` of its file.
    #[must_use]
    pub const fn new(geometry: DiskGeometry, offset: u64, is_read_only: bool) -> Self {
        Self { geometry, offset, is_read_only }
    }

    fn file_range(
        &self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.geometry.check(range)?;
        push_extent(
            extents,
            Location::File(self.offset.saturating_add(range.offset())),
            range.len(),
        );
        Ok(Translation::Ready)
    }

    fn check_writable(&self, range: ByteRange) -> Result<(), ImageError> {
        if self.is_read_only {
            return Err(ImageError::new("disk", range.offset(), ImageFault::ReadOnly));
        }
        Ok(())
    }
}

impl Image for LinearImage {
    fn disk_geometry(&self) -> DiskGeometry {
        self.geometry
    }

    fn linear_offset(&self) -> Option<u64> {
        Some(self.offset)
    }

    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.file_range(range, extents)
    }

    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.check_writable(range)?;
        self.file_range(range, extents)
    }

    fn handle_written(&mut self, _: ByteRange) {}

    fn handle_write_failed(&mut self, _: ByteRange) {}

    fn discard(
        &mut self,
        range: ByteRange,
        retained: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError> {
        self.check_writable(range)?;
        self.geometry.check(range)?;
        retained.push(range);
        Ok(Translation::Ready)
    }

    fn handle_metadata(&mut self, range: ByteRange, _: &[u8]) -> Result<(), ImageError> {
        Err(ImageError::new("metadata", range.offset(), ImageFault::MissingStructure))
    }

    fn uncommitted_bytes(&self) -> u64 {
        0
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        None
    }

    fn handle_commit(&mut self, _: CommitOutcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: DiskGeometry = DiskGeometry {
        size_bytes: 8192,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: 0,
    };

    fn range(offset: u64, len: u64) -> ByteRange {
        ByteRange::new(offset, len).unwrap()
    }

    #[test]
    fn linear_maps_one_extent_and_rejects_invalid_ranges() {
        let mut image = LinearImage::new(SHAPE, 1 << 20, false);
        let mut extents = Vec::new();
        image.translate_read(range(512, 7680), &mut extents).unwrap();
        assert_eq!(extents, [ImageExtent { location: Location::File((1 << 20) + 512), len: 7680 }]);
        for invalid in [range(0, 8704), range(8192, 512), range(1, 512), range(0, 100)] {
            assert!(image.translate_read(invalid, &mut extents).is_err(), "{invalid}");
            assert!(image.translate_write(invalid, &mut extents).is_err(), "{invalid}");
        }
        assert_eq!(extents.len(), 1);
        assert_eq!(image.linear_offset(), Some(1 << 20));
    }

    #[test]
    fn read_only_images_reject_writes() {
        let mut image = LinearImage::new(SHAPE, 0, true);
        assert!(image.translate_read(range(0, 512), &mut Vec::new()).is_ok());
        assert!(image.translate_write(range(0, 512), &mut Vec::new()).is_err());
        assert!(image.discard(range(0, 512), &mut Vec::new()).is_err());
    }
}
