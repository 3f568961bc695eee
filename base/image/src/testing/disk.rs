//! Test driver for an image and a file, one request at a time.

use crate::{
    ByteRange, CommitOutcome, FileError, Image, ImageError, ImageExtent, ImageFile, Location, Step,
    Translation,
};

/// Callback that reads a range of the parent.
pub type ParentRead<'a> = dyn FnMut(ByteRange, &mut [u8]) + 'a;

/// Drives an image over a file like the storage engine, but sequentially.
pub struct TestDisk<'a, I: Image> {
    /// Image format under test.
    pub image: I,
    /// File that contains the image.
    pub file: &'a dyn ImageFile,
    /// Reader of the parent, for extents located there.
    pub parent: Option<&'a mut ParentRead<'a>>,
}

impl<I: Image> TestDisk<'_, I> {
    /// Reads a range.
    ///
    /// # Errors
    /// Returns the error of the image or file.
    pub fn read(&mut self, range: ByteRange) -> Result<Vec<u8>, ImageError> {
        let mut extents = Vec::new();
        self.translate(|image| image.translate_read(range, &mut extents))?;
        let mut bytes = vec![0; usize::try_from(range.len()).unwrap_or(0)];
        let mut remaining = bytes.as_mut_slice();
        let mut offset = range.offset();
        for ImageExtent { location, len } in extents {
            let (piece, next) = remaining.split_at_mut(usize::try_from(len).unwrap_or(0));
            match location {
                Location::Zero => {}
                Location::File(offset) => read_past_end(self.file, offset, piece)
                    .map_err(|error| ImageError::new("payload", offset, error))?,
                Location::Parent => {
                    if let (Some(parent), Some(range)) =
                        (self.parent.as_mut(), ByteRange::new(offset, len))
                    {
                        parent(range, piece);
                    }
                }
            }
            offset = offset.saturating_add(len);
            remaining = next;
        }
        assert!(remaining.is_empty(), "{range}: {} bytes have no place", remaining.len());
        Ok(bytes)
    }

    /// Writes bytes, which are durable after [`TestDisk::flush`].
    ///
    /// # Errors
    /// Returns the error of the image or file.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        let Some(range) = ByteRange::new(offset, bytes.len() as u64) else { return Ok(()) };
        let mut extents = Vec::new();
        self.translate(|image| image.translate_write(range, &mut extents))?;
        let mut remaining = bytes;
        for ImageExtent { location, len } in extents {
            let Location::File(offset) = location else {
                panic!("{range}: a write goes to the file, not to {location:?}")
            };
            let (piece, next) = remaining.split_at(usize::try_from(len).unwrap_or(0));
            self.file
                .write_at(offset, piece)
                .map_err(|error| ImageError::new("payload", offset, error))?;
            remaining = next;
        }
        assert!(remaining.is_empty(), "{range}: {} bytes have no place", remaining.len());
        self.image.handle_written(range);
        Ok(())
    }

    /// Discards a range; returns the parts that were not freed and are unchanged.
    ///
    /// # Errors
    /// Returns the error of the image.
    pub fn discard(&mut self, range: ByteRange) -> Result<Vec<ByteRange>, ImageError> {
        let mut retained = Vec::new();
        self.translate(|image| image.discard(range, &mut retained))?;
        Ok(retained)
    }

    /// Commits and makes all writes durable. Then zeroes one range of freed space, if there is any.
    ///
    /// # Errors
    /// Returns the error of the image or file.
    pub fn flush(&mut self) -> Result<(), ImageError> {
        let failed = |error| ImageError::new("commit", 0, error);
        let Some(commit) = self.image.begin_commit() else {
            return self.file.flush().map_err(failed);
        };
        let durable = commit.steps.iter().filter(|step| **step == Step::DurableMarker).count();
        assert_eq!(durable, 1, "{:?}", commit.steps);
        if let Err(step) = commit.execute(self.file) {
            self.image.handle_commit(step.outcome());
            return Err(failed(step.error));
        }
        self.image.handle_commit(CommitOutcome::Done);
        self.zero_next().map(|_| ())
    }

    /// Zeroes one range of freed space. Returns false if there is none.
    ///
    /// # Errors
    /// Returns the error of the file.
    pub fn zero_next(&mut self) -> Result<bool, ImageError> {
        let Some(range) = self.image.poll_zeroing() else { return Ok(false) };
        let zeroed = self.file.zero(range.offset(), range.len());
        self.image.handle_zeroed(zeroed.is_ok());
        zeroed.map_err(|error| ImageError::new("freed space", range.offset(), error))?;
        Ok(true)
    }

    fn translate(
        &mut self,
        mut question: impl FnMut(&mut I) -> Result<Translation, ImageError>,
    ) -> Result<(), ImageError> {
        // Each iteration supplies what one [`Translation`] has requested; a range has a bounded
        // number of blocks.
        for _ in 0..1 << 20 {
            let range = match question(&mut self.image)? {
                Translation::Ready => return Ok(()),
                Translation::NeedsCommit => {
                    self.flush()?;
                    continue;
                }
                Translation::NeedsMetadata(range) => range,
            };
            let mut bytes = vec![0; usize::try_from(range.len()).unwrap_or(0)];
            self.file
                .read_at(range.offset(), &mut bytes)
                .map_err(|error| ImageError::new("metadata", range.offset(), error))?;
            self.image.handle_metadata(range, &bytes)?;
        }
        panic!("the image requests metadata without end")
    }
}

/// Fills `bytes` from the file; bytes beyond its end are zeros.
fn read_past_end(file: &dyn ImageFile, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
    let available = usize::try_from(file.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
    let (read, zeros) = bytes.split_at_mut(available.min(bytes.len()));
    zeros.fill(0);
    if read.is_empty() { Ok(()) } else { file.read_at(offset, read) }
}
