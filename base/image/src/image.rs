//! What every format can do.

use crate::{
    ByteRange, Commit, CommitOutcome, Extent, ImageError, ImageFault, ImageFile, MetadataChange,
    OpenedImage,
};

/// What a guest sees of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the disk, a multiple of `logical_sector`.
    pub size: u64,
    /// The smallest unit of a request: 512 or 4096 bytes.
    pub logical_sector: u32,
    /// What the disk would rather have: 512 or 4096 bytes, not below `logical_sector`.
    pub physical_sector: u32,
    /// What is allocated and freed as a whole, in bytes; 0 if nothing is.
    pub block: u64,
}

impl Shape {
    /// Whether a range is one of the disk, in whole sectors.
    ///
    /// # Errors
    /// It is not; the error has the range's offset.
    pub fn check(&self, range: ByteRange) -> Result<(), ImageError> {
        let (value, allowed) = if !range.is_aligned(u64::from(self.logical_sector.max(1))) {
            (range.offset(), "whole sectors")
        } else if !range.is_within(self.size) {
            (range.end(), "at most the disk's size")
        } else {
            return Ok(());
        };
        Err(ImageError::new("range", range.offset(), ImageFault::Value { value, allowed }))
    }
}

/// Whether a translation could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// Yes.
    Ready,
    /// Metadata must be read first: this range of the file goes to
    /// [`Image::handle_metadata`], then the same question is asked again. Nothing was
    /// answered and nothing has changed.
    Need(ByteRange),
    /// Changes must be made durable first: when a commit that was begun after this answer
    /// has ended, the same question is asked again. Nothing was answered and nothing has
    /// changed.
    NeedCommit,
}

/// An opened image. It translates and remembers; it does no I/O and never waits.
///
/// Ranges are of the disk, aligned to logical sectors and within its size; a range that is
/// not gives an error. Who drives it keeps three rules:
/// - A range that is being written is not discarded, and the other way round: `discard` is
///   called when no request of the disk is under way.
/// - `begin_commit` is called again only when the one before has ended.
/// - Each write that was placed ends with `handle_written` or with `handle_failed`.
pub trait Image: Send {
    /// What a guest sees.
    fn shape(&self) -> Shape;

    /// Where the disk begins in the file, if all of it is there in one piece and neither
    /// reads nor writes ever change that. Then nothing else needs to be asked.
    fn linear_offset(&self) -> Option<u64>;

    /// Appends to `extents` where the bytes of `range` are, in order and without gaps.
    ///
    /// # Errors
    /// The range is no range of the disk, or metadata is wrong.
    fn locate(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<Extent>,
    ) -> Result<Located, ImageError>;

    /// Appends to `extents` where the bytes of `range` are to be written, in order and
    /// without gaps: places in the file only. Space is found for what has none; until
    /// [`Image::handle_written`], reads do not see it.
    ///
    /// # Errors
    /// As [`Image::locate`]; the image is open for reading only, or cannot grow.
    fn place_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<Extent>,
    ) -> Result<Located, ImageError>;

    /// The payload of a range that was placed has been written. Reads see it, and the next
    /// commit makes it durable.
    fn handle_written(&mut self, range: ByteRange);

    /// A range that was placed has not been written, or not as a whole. Space that was found
    /// for it, and for no other write under way, is free again after the next commit. What
    /// of it was in the file before reads as before or as was to be written, sector by
    /// sector; the rest is not there.
    fn handle_failed(&mut self, range: ByteRange);

    /// The bytes of `range` are needed no more. What can be freed as a whole is, and reads
    /// as zeros from now on; the rest is appended to `kept` as ranges of the disk, which
    /// were not changed: write zeros to them if they must read as zeros.
    ///
    /// # Errors
    /// As [`Image::place_write`].
    fn discard(
        &mut self,
        range: ByteRange,
        kept: &mut Vec<ByteRange>,
    ) -> Result<Located, ImageError>;

    /// Metadata that [`Located::Need`] asked for.
    ///
    /// # Errors
    /// It is not what was asked for, or wrong.
    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError>;

    /// Bytes of metadata that are not durable yet; 0 if a commit would have nothing to do.
    /// Beyond some bound that whoever drives it chooses, a commit is due.
    fn uncommitted_bytes(&self) -> u64;

    /// Steps that make durable whatever [`Image::handle_written`] and [`Image::discard`]
    /// were told until now; `None` if there is nothing to do but to flush the file.
    fn begin_commit(&mut self) -> Option<Commit>;

    /// The commit has ended.
    fn handle_commit(&mut self, outcome: CommitOutcome);

    /// Whether changes that are not committed are kept elsewhere, all of them until now, so that
    /// another process has them when this one is killed. Formats keep nothing elsewhere.
    fn outlives_process(&self) -> bool {
        false
    }

    /// Remembers changes for [`Image::take_changes`] from now on. A format whose metadata never
    /// changes has none.
    fn remember_changes(&mut self) {}

    /// Appends the changes of metadata that were made since this was last called, in their order:
    /// all that reads see and that is not in the file yet, unless a commit has taken it on.
    fn take_changes(&mut self, changes: &mut Vec<MetadataChange>) {
        let _ = changes;
    }

    /// Returns an upper bound of the changes of metadata that a write to a range makes when it ends; 0 if
    /// it makes none. The bound holds until blocks of the range are discarded.
    fn changes_max(&self, range: ByteRange) -> u64 {
        let _ = range;
        0
    }

    /// Returns the identity and least length of the file, by which a later process finds out whether
    /// another program has changed it (see [`crate::Redo`]).
    fn opened(&self) -> OpenedImage {
        OpenedImage::default()
    }

    /// The disk is out of service and nothing of it is under way: writes what makes the
    /// file one that needs no repair, and waits for it. An image that is dropped instead
    /// is as after a crash, and as good.
    ///
    /// # Errors
    /// The file could not be written.
    fn close(mut self: Box<Self>, file: &dyn ImageFile) -> Result<(), ImageError> {
        let commit = self.begin_commit();
        let done = commit.map_or(Ok(()), |commit| commit.carry_out(file));
        done.and_then(|()| file.flush()).map_err(|error| ImageError::new("image", 0, error))
    }
}
