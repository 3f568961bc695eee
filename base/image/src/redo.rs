//! Uncommitted metadata changes in a form that another process can redo.
//!
//! A write to new space completes when its payload is in the file. Until the next commit, the
//! location of the payload is recorded only in memory. The caller can record these changes where
//! they survive the process. If the process is killed, the next one redoes them when it opens the
//! image, so that no completed write is lost.
//!
//! This does not cover a crash of the host, after which the payload may be missing. The caller must
//! discard recorded changes in this case.

use core::ops::Range;
use std::collections::BTreeMap;

use crate::{ByteRange, FileError, ImageError, ImageFault};

/// Change of metadata bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChange {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes; at most 8 for an entry.
    pub len: u32,
    /// Contents after the change; for an entry also before it.
    pub content: NewContent,
}

/// New contents of changed metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewContent {
    /// Table entry, stored in the first `len` bytes.
    Entry {
        /// Value of the entry before the change.
        before: [u8; 8],
        /// Value of the entry after the change.
        after: [u8; 8],
    },
    /// One byte value repeated over the range.
    Fill(u8),
}

impl MetadataChange {
    /// Creates the change of an entry of 4 or 8 bytes.
    #[must_use]
    pub fn entry<const N: usize>(offset: u64, before: [u8; N], after: [u8; N]) -> Self {
        let pad = |bytes: [u8; N]| {
            let mut padded = [0; 8];
            padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            padded
        };
        let content = NewContent::Entry { before: pad(before), after: pad(after) };
        Self { offset, len: N.min(8) as u32, content }
    }

    /// Creates the change of a range to one repeated byte. A range longer than 4 GiB is truncated
    /// to `u32::MAX` bytes.
    #[must_use]
    pub fn fill(range: ByteRange, byte: u8) -> Self {
        let len = u32::try_from(range.len()).unwrap_or(u32::MAX);
        Self { offset: range.offset(), len, content: NewContent::Fill(byte) }
    }

    /// Returns the file range of the change; `None` if it exceeds 64 bits.
    #[must_use]
    pub fn range(&self) -> Option<ByteRange> {
        ByteRange::new(self.offset, self.len.into())
    }
}

/// Changes left by a killed process, with the identity of their image.
#[derive(Clone, Debug, Default)]
pub struct RedoChanges {
    /// Identity of the image when the process opened it. In formats that record writers, it differs
    /// after another program has written.
    pub identity_at_open: ImageIdentity,
    /// Changes in the order in which they occurred.
    pub changes: Vec<MetadataChange>,
    /// New `write_id` of the file after the changes are redone. A file with this id already
    /// contains them.
    pub new_write_id: [u8; 16],
}

/// Identity of an open image, by which a later process detects changes by other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Identifier that changes whenever the file is opened for writing (VHDX: FileWriteGuid). In
    /// formats without one, the identifier of the image (VHD: Unique Id).
    pub write_id: [u8; 16],
    /// Minimum length of the file in bytes, required by metadata in memory.
    pub file_len: u64,
}

impl RedoChanges {
    /// Returns the changed pages of the file: contents of `page_len` bytes by offset, with the
    /// changes applied. `read` returns current file contents. `normalize` clears undefined bits of
    /// an entry in the file; recorded entries have none.
    ///
    /// # Errors
    /// As `read`; also fails if an entry in the file equals neither the value before nor the value
    /// after one of its changes, because another program has modified the image.
    pub fn changed_pages(
        &self,
        page_len: u64,
        normalize: impl Fn([u8; 8]) -> [u8; 8],
        mut read: impl FnMut(ByteRange) -> Result<Vec<u8>, ImageError>,
    ) -> Result<BTreeMap<u64, Vec<u8>>, ImageError> {
        let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut states: BTreeMap<u64, Vec<[u8; 8]>> = BTreeMap::new();
        for change in &self.changes {
            let Some(range) = change.range() else {
                let what = "a recorded change is beyond the end of every file";
                return Err(ImageError::new(
                    "redo",
                    change.offset,
                    ImageFault::ImageModified { difference: what },
                ));
            };
            if let NewContent::Entry { before, after } = change.content {
                states.entry(change.offset).or_default().extend([before, after]);
            }
            for (number, _) in range.blocks(page_len) {
                let offset = number.saturating_mul(page_len);
                if let (false, Some(page)) =
                    (pages.contains_key(&offset), ByteRange::new(offset, page_len))
                {
                    pages.insert(offset, read(page).map_err(shorter)?);
                }
            }
        }
        self.check(page_len, normalize, &pages, &states)?;
        for change in &self.changes {
            change.apply(page_len, &mut pages);
        }
        Ok(pages)
    }

    /// Returns the values before and after the change of every changed entry, each in the first `N`
    /// bytes of its field.
    pub fn entry_values<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> + '_ {
        let entries = self.changes.iter().filter_map(|change| match change.content {
            NewContent::Entry { before, after } => Some([before, after]),
            NewContent::Fill(_) => None,
        });
        entries.flatten().filter_map(|entry| entry.first_chunk().copied())
    }

    /// Checks that changed entries lie in `table`, the file range of the format's allocation table,
    /// and other changes in sector bitmaps.
    ///
    /// # Errors
    /// Fails at the first change elsewhere: the record belongs to another image.
    pub fn check_ranges(
        &self,
        table: Range<u64>,
        is_in_bitmap: impl Fn(ByteRange) -> bool,
    ) -> Result<(), ImageError> {
        let is_misplaced = |change: &&MetadataChange| match (change.content, change.range()) {
            (NewContent::Entry { .. }, Some(range)) => {
                range.offset() < table.start || table.end < range.end()
            }
            (NewContent::Fill(_), Some(range)) => !is_in_bitmap(range),
            (_, None) => true,
        };
        match self.changes.iter().find(is_misplaced) {
            None => Ok(()),
            Some(change) => {
                let what = "a recorded change is outside of the block allocation";
                Err(ImageError::new(
                    "redo",
                    change.offset,
                    ImageFault::ImageModified { difference: what },
                ))
            }
        }
    }

    /// Checks that every entry in the file has a value from before or after one of its changes.
    fn check(
        &self,
        page_len: u64,
        normalize: impl Fn([u8; 8]) -> [u8; 8],
        pages: &BTreeMap<u64, Vec<u8>>,
        states: &BTreeMap<u64, Vec<[u8; 8]>>,
    ) -> Result<(), ImageError> {
        for change in &self.changes {
            let NewContent::Entry { .. } = change.content else { continue };
            let entry = read_entry(pages, page_len, change.offset, change.len as usize);
            let states = states.get(&change.offset).map(Vec::as_slice).unwrap_or_default();
            if !entry.is_some_and(|entry| states.contains(&normalize(entry))) {
                let what = "the recorded contents differ";
                let fault = ImageFault::ImageModified { difference: what };
                return Err(ImageError::new("block allocation", change.offset, fault));
            }
        }
        Ok(())
    }
}

impl MetadataChange {
    fn apply(&self, page_len: u64, pages: &mut BTreeMap<u64, Vec<u8>>) {
        let Some(range) = self.range() else { return };
        for (number, piece) in range.blocks(page_len) {
            let offset = number.saturating_mul(page_len);
            let Some(page) = pages.get_mut(&offset) else { continue };
            let from = usize::try_from(piece.offset() - offset).unwrap_or(usize::MAX);
            let to = from.saturating_add(usize::try_from(piece.len()).unwrap_or(0));
            let Some(target) = page.get_mut(from..to) else { continue };
            match self.content {
                NewContent::Fill(byte) => target.fill(byte),
                NewContent::Entry { after, .. } => {
                    let skip = usize::try_from(piece.offset() - self.offset).unwrap_or(0);
                    target
                        .iter_mut()
                        .zip(after.iter().skip(skip))
                        .for_each(|(to, from)| *to = *from);
                }
            }
        }
    }
}

/// Converts the error of reading beyond the end of the file: the file is not the recorded image.
fn shorter(error: ImageError) -> ImageError {
    match error.fault {
        ImageFault::Truncated { .. } | ImageFault::File(FileError::BeyondEnd { .. }) => {
            let fault =
                ImageFault::ImageModified { difference: "the file is shorter than recorded" };
            ImageError { fault, ..error }
        }
        _ => error,
    }
}

/// Returns the entry of `len` bytes at `offset`, in the first bytes of the result; `None` if the
/// entry is not in `pages`.
fn read_entry(
    pages: &BTreeMap<u64, Vec<u8>>,
    page_len: u64,
    offset: u64,
    len: usize,
) -> Option<[u8; 8]> {
    let mut entry = [0; 8];
    for (byte, position) in entry.iter_mut().take(len).zip(offset..) {
        let start = position - position % page_len.max(1);
        *byte = *pages.get(&start)?.get(usize::try_from(position - start).ok()?)?;
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redo(changes: Vec<MetadataChange>) -> RedoChanges {
        RedoChanges { changes, ..RedoChanges::default() }
    }

    fn same(entry: [u8; 8]) -> [u8; 8] {
        entry
    }

    fn zeros(range: ByteRange) -> Result<Vec<u8>, ImageError> {
        Ok(vec![0; range.len() as usize])
    }

    #[test]
    fn changes_are_made_in_order_and_over_the_ends_of_pages() {
        let range = |offset, len| ByteRange::new(offset, len).unwrap();
        let redo = redo(vec![
            MetadataChange::fill(range(14, 20), 0xff),
            MetadataChange::entry(30, [0; 4], [1, 2, 3, 4]),
            MetadataChange::fill(range(0, 1), 7),
        ]);
        let pages = redo.changed_pages(16, same, zeros).unwrap();
        assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [0, 16, 32]);
        assert_eq!(pages[&0][..], [[7, 0, 0, 0], [0; 4], [0; 4], [0, 0, 255, 255]].concat());
        assert_eq!(pages[&16][..], [[255; 14].as_slice(), &[1, 2]].concat());
        assert_eq!(pages[&32][..4], [3, 4, 0, 0]);
    }

    #[test]
    fn foreign_entry_changes_are_detected() {
        let changes = vec![
            MetadataChange::entry(8, [0xff; 4], [0, 0, 0, 1]),
            MetadataChange::entry(8, [0, 0, 0, 1], [0, 0, 0, 2]),
        ];
        let check = |entry: [u8; 4]| {
            redo(changes.clone())
                .changed_pages(16, same, |_| Ok([[0; 4], [0; 4], entry, [0; 4]].concat()))
        };
        for before in [[0xff; 4], [0, 0, 0, 1], [0, 0, 0, 2]] {
            assert_eq!(check(before).unwrap()[&0][8..12], [0, 0, 0, 2]);
        }
        let error = check([0, 0, 0, 3]).unwrap_err();
        assert_eq!((error.field, error.offset), ("block allocation", 8));
        assert!(error.to_string().contains("another program"), "{error}");
    }

    #[test]
    fn undefined_entry_bits_are_ignored() {
        let redo = redo(vec![MetadataChange::entry(8, [2; 8], [1; 8])]);
        let read = |_| Ok([[0; 8], [0xf2; 8]].concat());
        assert!(redo.changed_pages(16, same, read).is_err());
        let pages = redo.changed_pages(16, |entry| entry.map(|byte| byte & 0xf), read).unwrap();
        assert_eq!(pages[&0][8..], [1; 8]);
    }

    #[test]
    fn read_failures_are_returned() {
        let failing = |_| Err(ImageError::new("page", 0, ImageFault::MissingStructure));
        let redo = redo(vec![MetadataChange::entry(8, [0; 8], [1; 8])]);
        assert!(redo.changed_pages(16, same, failing).is_err());
        // A page that is too short.
        assert!(redo.changed_pages(16, same, |_| Ok(vec![0; 9])).is_err());
    }
}
