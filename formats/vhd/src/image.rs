//! Open VHD image of any type.

use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, ImageIdentity,
    LinearImage, MetadataChange, Translation,
};

use crate::disk_geometry::disk_geometry;
use crate::footer::Footer;
use crate::locator::Parent;
use crate::sparse::SparseImage;

/// Open VHD image of any type.
#[derive(Debug)]
pub struct Vhd {
    pub(crate) footer: Footer,
    pub(crate) parent: Option<Parent>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// Fixed disk: the first bytes of the file.
    Fixed(LinearImage),
    /// Dynamic or differencing disk, stored in blocks.
    Sparse(Box<SparseImage>),
}

impl Body {
    /// Returns the body of a fixed disk with `size` bytes.
    pub(crate) fn fixed(size: u64, is_writable: bool) -> Self {
        Self::Fixed(LinearImage::new(disk_geometry(size, 0, size % 4096 == 0), 0, !is_writable))
    }
}

impl Vhd {
    fn image(&self) -> &dyn Image {
        match &self.body {
            Body::Fixed(linear) => linear,
            Body::Sparse(sparse) => sparse.as_ref(),
        }
    }

    fn image_mut(&mut self) -> &mut dyn Image {
        match &mut self.body {
            Body::Fixed(linear) => linear,
            Body::Sparse(sparse) => sparse.as_mut(),
        }
    }
}

impl Image for Vhd {
    fn disk_geometry(&self) -> DiskGeometry {
        self.image().disk_geometry()
    }

    fn linear_offset(&self) -> Option<u64> {
        self.image().linear_offset()
    }

    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.image_mut().translate_read(range, extents)
    }

    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.image_mut().translate_write(range, extents)
    }

    fn handle_written(&mut self, range: ByteRange) {
        self.image_mut().handle_written(range);
    }

    fn handle_write_failed(&mut self, range: ByteRange) {
        self.image_mut().handle_write_failed(range);
    }

    fn discard(
        &mut self,
        range: ByteRange,
        retained: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError> {
        self.image_mut().discard(range, retained)
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        self.image_mut().handle_metadata(range, bytes)
    }

    fn handle_metadata_failure(&mut self, range: ByteRange) {
        self.image_mut().handle_metadata_failure(range);
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.image().uncommitted_bytes()
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.image_mut().begin_commit()
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.image_mut().handle_commit(outcome);
    }

    fn poll_zeroing(&mut self) -> Option<ByteRange> {
        self.image_mut().poll_zeroing()
    }

    fn handle_zeroed(&mut self, is_zero: bool) {
        self.image_mut().handle_zeroed(is_zero);
    }

    fn enable_change_log(&mut self) {
        self.image_mut().enable_change_log();
    }

    fn take_logged_changes(&mut self, changes: &mut Vec<MetadataChange>) {
        self.image_mut().take_logged_changes(changes);
    }

    fn logged_changes_max(&self, range: ByteRange) -> u64 {
        self.image().logged_changes_max(range)
    }

    fn identity(&self) -> ImageIdentity {
        // Opening a VHD image changes no field. The blocks determine the position of the footer.
        ImageIdentity { write_id: self.footer.unique_id, file_len: 0 }
    }
}
