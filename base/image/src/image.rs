//! Interface of image formats.

use crate::{
    ByteRange, Commit, CommitOutcome, ImageError, ImageExtent, ImageFault, ImageFile,
    ImageIdentity, MetadataChange,
};

/// Guest-visible properties of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskGeometry {
    /// Size of the disk in bytes, a multiple of `logical_sector_bytes`.
    pub size_bytes: u64,
    /// Logical sector size in bytes, the smallest unit of a request: 512 or 4096.
    pub logical_sector_bytes: u32,
    /// Physical sector size in bytes, the preferred unit: 512 or 4096, at least
    /// `logical_sector_bytes`.
    pub physical_sector_bytes: u32,
    /// Allocation unit of the format in bytes; 0 if the format does not allocate.
    pub block_bytes: u64,
}

impl DiskGeometry {
    /// Checks that a range lies within the disk and consists of whole sectors.
    ///
    /// # Errors
    /// Fails with the range's offset otherwise.
    pub fn check(&self, range: ByteRange) -> Result<(), ImageError> {
        let (value, allowed) = if !range.is_aligned(u64::from(self.logical_sector_bytes.max(1))) {
            (range.offset(), "whole sectors")
        } else if !range.is_within(self.size_bytes) {
            (range.end(), "an end within the disk's size")
        } else {
            return Ok(());
        };
        Err(ImageError::new("range", range.offset(), ImageFault::InvalidValue { value, allowed }))
    }
}

/// Result of translating a disk range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// The translation of the range is complete.
    Ready,
    /// Metadata must be read: pass this range of the file to [`Image::handle_metadata`] and repeat
    /// the call. Nothing was returned or changed.
    NeedsMetadata(ByteRange),
    /// Changes must be committed: begin a commit after this result and repeat the call when it has
    /// ended. Nothing was returned or changed.
    NeedsCommit,
}

/// Open image: a state machine that translates disk ranges to file ranges, without I/O or blocking.
///
/// Ranges refer to the disk, aligned to logical sectors and within its size; other ranges cause an
/// error. Rules for the caller:
/// - `discard` is called only while no request that overlaps its range is in flight, reads
///   included.
/// - `begin_commit` is called only after the previous commit has ended.
/// - Each range that `translate_write` has translated is later reported to `handle_written` or
///   `handle_write_failed`.
pub trait Image: Send {
    /// Returns the guest-visible properties of the disk.
    fn disk_geometry(&self) -> DiskGeometry;

    /// Returns the file offset of the disk if it is stored contiguously and never moves. No other
    /// function then needs to be called.
    fn linear_offset(&self) -> Option<u64>;

    /// Appends the extents of `range` to `extents`, in order and without gaps.
    ///
    /// # Errors
    /// Fails if the range is invalid or metadata is corrupt.
    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError>;

    /// Appends the file extents to which `range` must be written to `extents`, in order and without
    /// gaps. Allocates space where necessary; reads do not use it until [`Image::handle_written`].
    ///
    /// # Errors
    /// As [`Image::translate_read`]; also fails if the image is read-only or cannot grow.
    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError>;

    /// Reports that the payload of a range translated by [`Image::translate_write`] was written.
    /// Reads now return it; the next commit makes it durable.
    fn handle_written(&mut self, range: ByteRange);

    /// Reports that writing a range translated by [`Image::translate_write`] failed, completely or
    /// in part. Space allocated for it, and for no other write in flight, becomes free with the
    /// next commit. Sectors that existed before have their old or new contents; newly allocated
    /// ones remain unallocated.
    fn handle_write_failed(&mut self, range: ByteRange);

    /// Discards the bytes of `range`. Whole allocation units are freed and read as zeros from now
    /// on. The remaining subranges are unchanged and appended to `retained`; the caller writes
    /// zeros to them if they must read as zeros.
    ///
    /// # Errors
    /// As [`Image::translate_write`].
    fn discard(
        &mut self,
        range: ByteRange,
        retained: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError>;

    /// Supplies the metadata requested by [`Translation::NeedsMetadata`].
    ///
    /// # Errors
    /// Fails if the range was not requested or the metadata is corrupt.
    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError>;

    /// Reports that metadata requested by [`Translation::NeedsMetadata`] cannot be read. The
    /// request that needs it fails; a later one requests the range again.
    fn handle_metadata_failure(&mut self, range: ByteRange) {
        let _ = range;
    }

    /// Returns the size of uncommitted metadata changes in bytes; 0 if there are none. The caller
    /// limits the size by commits.
    fn uncommitted_bytes(&self) -> u64;

    /// Returns the steps that commit the changes of all previous [`Image::handle_written`] and
    /// [`Image::discard`] calls; `None` if flushing the file suffices.
    fn begin_commit(&mut self) -> Option<Commit>;

    /// Reports the end of the commit that [`Image::begin_commit`] returned.
    fn handle_commit(&mut self, outcome: CommitOutcome);

    /// Returns a range of the file with freed space, to which no metadata refers any more; `None`
    /// if there is none, or if the zeroing of one is in progress. The caller zeroes the range,
    /// deallocating it where the file system supports it, and calls [`Image::handle_zeroed`]; only
    /// then does the image reuse the space. May be called during a commit.
    fn poll_zeroing(&mut self) -> Option<ByteRange> {
        None
    }

    /// Reports the end of zeroing the range that [`Image::poll_zeroing`] returned. `is_zero`: true
    /// if it succeeded. If it failed, the range is returned again after the next commit.
    fn handle_zeroed(&mut self, is_zero: bool) {
        let _ = is_zero;
    }

    /// Returns true if the uncommitted changes on which the contents of `range` depend are also
    /// recorded outside this process, so that a later process can redo them after a kill. Formats
    /// themselves record nothing.
    fn has_redo_record(&self, range: ByteRange) -> bool {
        let _ = range;
        false
    }

    /// Reports that a flush of the file has failed, so that payload of completed writes may be
    /// lost. Uncommitted changes must not outlive the process: they would refer to that payload.
    /// The caller begins no further commit and drops the image instead of closing it.
    fn handle_flush_failure(&mut self) {}

    /// Starts logging of changes for [`Image::take_logged_changes`]. Formats without changing
    /// metadata log nothing.
    fn enable_change_log(&mut self) {}

    /// Appends the metadata changes since the previous call, in order: changes that reads observe
    /// and that are neither in the file nor part of a commit.
    fn take_logged_changes(&mut self, changes: &mut Vec<MetadataChange>) {
        let _ = changes;
    }

    /// Returns an upper bound of the number of metadata changes that a write to `range` causes on
    /// completion. The bound holds until blocks of the range are discarded.
    fn logged_changes_max(&self, range: ByteRange) -> u64 {
        let _ = range;
        0
    }

    /// Returns identity and minimum length of the file, by which a later process detects
    /// modification by another program (see [`crate::RedoChanges`]).
    fn identity(&self) -> ImageIdentity {
        ImageIdentity::default()
    }

    /// Closes an idle image that is out of service: writes pending metadata so that the file needs
    /// no repair. Blocks. Dropping an image instead is equivalent to a crash, without loss of
    /// durable data.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    fn close(mut self: Box<Self>, file: &dyn ImageFile) -> Result<(), ImageError> {
        let failed = |error| ImageError::new("image", 0, error);
        if let Some(commit) = self.begin_commit() {
            commit.execute(file).map_err(|step| failed(step.error))?;
            self.handle_commit(CommitOutcome::Done);
        }
        zero_freed(&mut *self, file)?;
        file.flush().map_err(failed)
    }
}

/// Zeroes all ranges that [`Image::poll_zeroing`] returns. Blocks.
///
/// # Errors
/// Fails with the first range that cannot be zeroed.
pub fn zero_freed<I: Image + ?Sized>(
    image: &mut I,
    file: &dyn ImageFile,
) -> Result<(), ImageError> {
    while let Some(range) = image.poll_zeroing() {
        let zeroed = file.zero(range.offset(), range.len());
        image.handle_zeroed(zeroed.is_ok());
        zeroed.map_err(|error| ImageError::new("freed space", range.offset(), error))?;
    }
    Ok(())
}
