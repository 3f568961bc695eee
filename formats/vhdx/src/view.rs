//! The file as it is once its log is replayed, whether that was written or not.

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};

use crate::fields::{PAGE_LEN, to_usize};

/// One change that the log holds.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A page, at a multiple of its length.
    Page {
        /// Where in the file.
        range: ByteRange,
        /// What.
        bytes: Box<[u8; PAGE_LEN]>,
    },
    /// Zeros.
    Zero(ByteRange),
}

impl Change {
    /// What it changes.
    pub(crate) fn range(&self) -> ByteRange {
        match self {
            Self::Page { range, .. } | Self::Zero(range) => *range,
        }
    }
}

/// Changes of the log, in their order, that are not in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    pub changes: Vec<Change>,
}

impl Overlay {
    /// Puts the changes over what the file has from `offset` on.
    pub(crate) fn patch(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        for change in &self.changes {
            let range = change.range();
            let (from, to) = (range.offset().max(offset), range.end().min(end));
            if from >= to {
                continue;
            }
            let place = bytes.get_mut(to_usize(from - offset)..to_usize(to - offset));
            let Some(place) = place else { continue };
            match change {
                Change::Zero(_) => place.fill(0),
                Change::Page { bytes, .. } => {
                    let at = range.offset();
                    let source = bytes.get(to_usize(from - at)..to_usize(to - at));
                    if let Some(source) = source {
                        place.copy_from_slice(source);
                    }
                }
            }
        }
    }
}

/// A file, and what its log changes of it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub file: &'a dyn ImageFile,
    /// Bytes of the file itself.
    pub file_len: u64,
    /// Bytes of it with the log replayed: not less.
    pub len: u64,
    pub overlay: &'a Overlay,
}

impl View<'_> {
    /// Bytes of it. It is known that they are there before memory is taken for them.
    pub(crate) fn read(
        &self,
        field: &'static str,
        range: ByteRange,
    ) -> Result<Vec<u8>, ImageError> {
        let short = || {
            let fault = ImageFault::Short { file_len: self.len };
            ImageError::new(field, range.offset(), fault)
        };
        if !range.is_within(self.len) {
            return Err(short());
        }
        let len = usize::try_from(range.len()).map_err(|_| short())?;
        let mut bytes = vec![0; len];
        let there = self.file_len.saturating_sub(range.offset()).min(range.len());
        if let Some(bytes) = bytes.get_mut(..to_usize(there)).filter(|bytes| !bytes.is_empty()) {
            self.file
                .read_at(range.offset(), bytes)
                .map_err(|error| ImageError::new(field, range.offset(), error))?;
        }
        self.overlay.patch(range.offset(), &mut bytes);
        Ok(bytes)
    }
}
