//! Changes of metadata that are in memory only, in a form that another process can redo.
//!
//! A write to new space is answered when its payload is in the file; where that is, only memory
//! says until the next commit. Whoever drives an image can keep these changes where they outlive
//! the process. If the process is killed, the next one redoes them while it opens the image, and
//! everything that was answered is there.
//!
//! What it does not do: it does not survive a crash of the host, after which the payload may be
//! missing. Whoever keeps the changes must not hand them on then.

use core::ops::Range;
use std::collections::BTreeMap;

use crate::{ByteRange, FileError, ImageError, ImageFault};

/// Bytes of metadata that have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChange {
    /// Where in the file.
    pub offset: u64,
    /// How many; at most 8 of an entry.
    pub len: u32,
    /// Their values after the change; of an entry also those before it.
    pub content: Changed,
}

/// What bytes of metadata are after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// An entry of a table, in its first `len` bytes.
    Entry {
        /// What it was.
        before: [u8; 8],
        /// What it is.
        after: [u8; 8],
    },
    /// The same byte again and again.
    Fill(u8),
}

impl MetadataChange {
    /// A change of an entry of 4 or 8 bytes.
    #[must_use]
    pub fn entry<const N: usize>(offset: u64, before: [u8; N], after: [u8; N]) -> Self {
        let wide = |bytes: [u8; N]| {
            let mut wide = [0; 8];
            wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            wide
        };
        let content = Changed::Entry { before: wide(before), after: wide(after) };
        Self { offset, len: N.min(8) as u32, content }
    }

    /// A range that is one byte again and again. Longer ones than 4 GB are cut.
    #[must_use]
    pub fn fill(range: ByteRange, byte: u8) -> Self {
        let len = u32::try_from(range.len()).unwrap_or(u32::MAX);
        Self { offset: range.offset(), len, content: Changed::Fill(byte) }
    }

    /// Where in the file.
    #[must_use]
    pub fn range(&self) -> Option<ByteRange> {
        ByteRange::new(self.offset, self.len.into())
    }
}

/// Changes that a process left, and the image that they are of.
#[derive(Clone, Debug, Default)]
pub struct Redo {
    /// The image as the process had opened it. Formats that say when somebody else has written to
    /// a file have another one then.
    pub opened: OpenedImage,
    /// In the order in which they were made.
    pub changes: Vec<MetadataChange>,
    /// The `write_id` that whoever redoes them gives the file afterwards. A file that has it has
    /// them already.
    pub redone_as: [u8; 16],
}

/// What tells whether an image is still the one that a process had open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenedImage {
    /// Changes whenever somebody opens the file for writing (VHDX: FileWriteGuid). In a format
    /// without that, what tells the image from others (VHD: Unique Id).
    pub write_id: [u8; 16],
    /// Bytes that the file must have for what its metadata in memory names.
    pub file_len: u64,
}

impl Redo {
    /// Returns the pages of `page_len` bytes that change, by their offsets and as they become.
    /// `read` returns bytes of the file as they are; `normalize` returns an entry of the file
    /// without bits that mean nothing, as entries of changes are.
    ///
    /// # Errors
    /// As `read`; or an entry is none of what it was and became: another program has changed the
    /// image since.
    pub fn pages(
        &self,
        page_len: u64,
        normalize: impl Fn([u8; 8]) -> [u8; 8],
        mut read: impl FnMut(ByteRange) -> Result<Vec<u8>, ImageError>,
    ) -> Result<BTreeMap<u64, Vec<u8>>, ImageError> {
        let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut states: BTreeMap<u64, Vec<[u8; 8]>> = BTreeMap::new();
        for change in &self.changes {
            let Some(range) = change.range() else {
                let what = "a change of it is behind the end of every file";
                return Err(ImageError::new("redo", change.offset, ImageFault::Changed { what }));
            };
            if let Changed::Entry { before, after } = change.content {
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

    /// Returns what entries were and became, in their first `N` bytes.
    pub fn entries<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> + '_ {
        let entries = self.changes.iter().filter_map(|change| match change.content {
            Changed::Entry { before, after } => Some([before, after]),
            Changed::Fill(_) => None,
        });
        entries.flatten().filter_map(|entry| entry.first_chunk().copied())
    }

    /// Checks that entries are in the table of the image, and other bytes in sector bitmaps.
    ///
    /// # Errors
    /// The first change elsewhere: the record is of another image.
    pub fn check_places(
        &self,
        table: Range<u64>,
        is_in_bitmap: impl Fn(ByteRange) -> bool,
    ) -> Result<(), ImageError> {
        let is_misplaced = |change: &&MetadataChange| match (change.content, change.range()) {
            (Changed::Entry { .. }, Some(range)) => {
                range.offset() < table.start || table.end < range.end()
            }
            (Changed::Fill(_), Some(range)) => !is_in_bitmap(range),
            (_, None) => true,
        };
        match self.changes.iter().find(is_misplaced) {
            None => Ok(()),
            Some(change) => {
                let what = "a change is not of its block allocation";
                Err(ImageError::new("redo", change.offset, ImageFault::Changed { what }))
            }
        }
    }

    /// Whether every entry is what it was before or after one of its changes.
    fn check(
        &self,
        page_len: u64,
        normalize: impl Fn([u8; 8]) -> [u8; 8],
        pages: &BTreeMap<u64, Vec<u8>>,
        states: &BTreeMap<u64, Vec<[u8; 8]>>,
    ) -> Result<(), ImageError> {
        for change in &self.changes {
            let Changed::Entry { .. } = change.content else { continue };
            let found = entry_at(pages, page_len, change.offset, change.len as usize);
            let states = states.get(&change.offset).map(Vec::as_slice).unwrap_or_default();
            if !found.is_some_and(|found| states.contains(&normalize(found))) {
                let what = "another program has written to it";
                let fault = ImageFault::Changed { what };
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
            let Some(place) = page.get_mut(from..to) else { continue };
            match self.content {
                Changed::Fill(byte) => place.fill(byte),
                Changed::Entry { after, .. } => {
                    let skip = usize::try_from(piece.offset() - self.offset).unwrap_or(0);
                    place
                        .iter_mut()
                        .zip(after.iter().skip(skip))
                        .for_each(|(to, from)| *to = *from);
                }
            }
        }
    }
}

/// A file that ends before what changes in it is another one.
fn shorter(error: ImageError) -> ImageError {
    match error.fault {
        ImageFault::Short { .. } | ImageFault::File(FileError::End { .. }) => {
            let fault = ImageFault::Changed { what: "it is shorter" };
            ImageError { fault, ..error }
        }
        _ => error,
    }
}

/// The first `len` bytes of an entry, if its pages are there.
fn entry_at(
    pages: &BTreeMap<u64, Vec<u8>>,
    page_len: u64,
    offset: u64,
    len: usize,
) -> Option<[u8; 8]> {
    let mut entry = [0; 8];
    for (place, at) in entry.iter_mut().take(len).zip(offset..) {
        let start = at - at % page_len.max(1);
        *place = *pages.get(&start)?.get(usize::try_from(at - start).ok()?)?;
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redo(changes: Vec<MetadataChange>) -> Redo {
        Redo { changes, ..Redo::default() }
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
        let pages = redo.pages(16, same, zeros).unwrap();
        assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [0, 16, 32]);
        assert_eq!(pages[&0][..], [[7, 0, 0, 0], [0; 4], [0; 4], [0, 0, 255, 255]].concat());
        assert_eq!(pages[&16][..], [[255; 14].as_slice(), &[1, 2]].concat());
        assert_eq!(pages[&32][..4], [3, 4, 0, 0]);
    }

    #[test]
    fn an_entry_that_somebody_else_has_changed_is_noticed() {
        let changes = vec![
            MetadataChange::entry(8, [0xff; 4], [0, 0, 0, 1]),
            MetadataChange::entry(8, [0, 0, 0, 1], [0, 0, 0, 2]),
        ];
        let with = |entry: [u8; 4]| {
            redo(changes.clone()).pages(16, same, |_| Ok([[0; 4], [0; 4], entry, [0; 4]].concat()))
        };
        for before in [[0xff; 4], [0, 0, 0, 1], [0, 0, 0, 2]] {
            assert_eq!(with(before).unwrap()[&0][8..12], [0, 0, 0, 2]);
        }
        let error = with([0, 0, 0, 3]).unwrap_err();
        assert_eq!((error.field, error.offset), ("block allocation", 8));
        assert!(error.to_string().contains("another program"), "{error}");
    }

    #[test]
    fn bits_of_an_entry_that_mean_nothing_are_disregarded() {
        let redo = redo(vec![MetadataChange::entry(8, [2; 8], [1; 8])]);
        let read = |_| Ok([[0; 8], [0xf2; 8]].concat());
        assert!(redo.pages(16, same, read).is_err());
        let pages = redo.pages(16, |entry| entry.map(|byte| byte & 0xf), read).unwrap();
        assert_eq!(pages[&0][8..], [1; 8]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let failing = |_| Err(ImageError::new("page", 0, ImageFault::Missing));
        let redo = redo(vec![MetadataChange::entry(8, [0; 8], [1; 8])]);
        assert!(redo.pages(16, same, failing).is_err());
        // A page that is too short.
        assert!(redo.pages(16, same, |_| Ok(vec![0; 9])).is_err());
    }
}
