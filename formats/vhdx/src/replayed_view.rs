//! View of a file with the changes of its log, applied in memory or on disk.

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};

use crate::fields::{PAGE_LEN, to_usize};

/// Change of the file that a log entry contains.
#[derive(Clone, Debug)]
pub(crate) enum LogChange {
    /// New contents of a page.
    Page {
        /// Range of the page in the file.
        range: ByteRange,
        /// New contents of the page.
        bytes: Box<[u8; PAGE_LEN]>,
    },
    /// Range of the file that becomes zeros.
    Zero(ByteRange),
}

impl LogChange {
    /// Returns the changed file range.
    pub(crate) fn range(&self) -> ByteRange {
        match self {
            Self::Page { range, .. } | Self::Zero(range) => *range,
        }
    }
}

/// Changes of the log, in order, that have not been applied to the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogOverlay {
    pub changes: Vec<LogChange>,
}

impl LogOverlay {
    /// Applies the changes to `bytes`, which were read from the file at `offset`.
    pub(crate) fn patch(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        for change in &self.changes {
            let range = change.range();
            let (from, to) = (range.offset().max(offset), range.end().min(end));
            if from >= to {
                continue;
            }
            let target = bytes.get_mut(to_usize(from - offset)..to_usize(to - offset));
            let Some(target) = target else { continue };
            match change {
                LogChange::Zero(_) => target.fill(0),
                LogChange::Page { bytes, .. } => {
                    let start = range.offset();
                    let source = bytes.get(to_usize(from - start)..to_usize(to - start));
                    if let Some(source) = source {
                        target.copy_from_slice(source);
                    }
                }
            }
        }
    }
}

/// File as it is after applying the changes of its log.
#[derive(Clone, Copy)]
pub(crate) struct ReplayedView<'a> {
    pub file: &'a dyn ImageFile,
    /// Length of the file itself in bytes.
    pub file_len: u64,
    /// Length of the file after replay in bytes; at least `file_len`.
    pub replayed_len: u64,
    pub overlay: &'a LogOverlay,
}

impl ReplayedView<'_> {
    /// Reads a range of the file. Checks that the file contains it before memory is allocated.
    ///
    /// # Errors
    ///
    /// The range exceeds the file, or the file cannot be read.
    pub(crate) fn read(
        &self,
        field: &'static str,
        range: ByteRange,
    ) -> Result<Vec<u8>, ImageError> {
        let short = || {
            let fault = ImageFault::Truncated { file_len: self.replayed_len };
            ImageError::new(field, range.offset(), fault)
        };
        if !range.is_within(self.replayed_len) {
            return Err(short());
        }
        let len = usize::try_from(range.len()).map_err(|_| short())?;
        let mut bytes = vec![0; len];
        let available = self.file_len.saturating_sub(range.offset()).min(range.len());
        if let Some(bytes) = bytes.get_mut(..to_usize(available)).filter(|bytes| !bytes.is_empty())
        {
            self.file
                .read_at(range.offset(), bytes)
                .map_err(|error| ImageError::new(field, range.offset(), error))?;
        }
        self.overlay.patch(range.offset(), &mut bytes);
        Ok(bytes)
    }
}
