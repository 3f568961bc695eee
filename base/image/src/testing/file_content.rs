//! Contents of a file in memory, in pages that copies share until one of them is changed. Crash
//! tests copy the same file thousands of times.

use std::fmt;
use std::sync::Arc;

const PAGE: usize = 4096;

type Page = [u8; PAGE];

/// Contents of a file. A copy costs as little as a list of its pages.
#[derive(Clone, Default)]
pub struct FileContent {
    /// Pages; `None` for zeros. Bytes beyond the end of the file are zero.
    pages: Vec<Option<Arc<Page>>>,
    len: usize,
}

impl FileContent {
    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the file has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.read_padded(0, self.len)
    }

    /// Returns `len` bytes from an offset in bytes, with zeros beyond the end of the file.
    #[must_use]
    pub fn read_padded(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes);
        bytes
    }

    /// Copies bytes from an offset, and leaves `bytes` unchanged where the file has a page of zeros
    /// or ends.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) {
        for (number, page_range, piece) in pages(offset, bytes.len()) {
            let Some(Some(page)) = self.pages.get(number) else { continue };
            let (Some(to), Some(from)) = (bytes.get_mut(piece), page.get(page_range)) else {
                continue;
            };
            to.copy_from_slice(from);
        }
    }

    /// Writes bytes at an offset, and makes the file longer if they exceed it.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len());
        if end > self.len {
            self.resize(end);
        }
        for (number, page_range, piece) in pages(offset, bytes.len()) {
            let Some(page) = self.pages.get_mut(number) else { continue };
            let page = Arc::make_mut(page.get_or_insert_with(|| Arc::new([0; PAGE])));
            let (Some(to), Some(from)) = (page.get_mut(page_range), bytes.get(piece)) else {
                continue;
            };
            to.copy_from_slice(from);
        }
    }

    /// Writes zeros within the file.
    pub(super) fn zero(&mut self, offset: usize, len: usize) {
        let end = offset.saturating_add(len).min(self.len);
        for (number, page_range, _) in pages(offset, end.saturating_sub(offset)) {
            let Some(page) = self.pages.get_mut(number) else { continue };
            if page_range.len() == PAGE {
                *page = None;
            } else if let Some(bytes) = page {
                Arc::make_mut(bytes).get_mut(page_range).unwrap_or_default().fill(0);
            }
        }
    }

    /// Sets the length. New bytes are zero.
    pub(super) fn resize(&mut self, len: usize) {
        if len < self.len {
            self.zero(len, PAGE - len % PAGE);
        }
        self.pages.resize(len.div_ceil(PAGE), None);
        self.len = len;
    }
}

/// Splits a range of bytes by pages: number of the page, range within the page, range within the
/// bytes.
fn pages(
    offset: usize,
    len: usize,
) -> impl Iterator<Item = (usize, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let (number, start) = ((offset + position) / PAGE, (offset + position) % PAGE);
        let page_bytes = (PAGE - start).min(len - position);
        let from = position;
        position += page_bytes;
        (page_bytes > 0).then(|| (number, start..start + page_bytes, from..position))
    })
}

impl From<&[u8]> for FileContent {
    fn from(bytes: &[u8]) -> Self {
        let page = |bytes: &[u8]| {
            let mut page = [0; PAGE];
            page.get_mut(..bytes.len())?.copy_from_slice(bytes);
            (page != [0; PAGE]).then(|| Arc::new(page))
        };
        Self { pages: bytes.chunks(PAGE).map(page).collect(), len: bytes.len() }
    }
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl PartialEq for FileContent {
    fn eq(&self, other: &Self) -> bool {
        const ZEROS: Page = [0; PAGE];
        let is_same = |pages: (&Option<Arc<Page>>, &Option<Arc<Page>>)| match pages {
            (Some(first), Some(other)) => Arc::ptr_eq(first, other) || first == other,
            (Some(page), None) | (None, Some(page)) => **page == ZEROS,
            (None, None) => true,
        };
        self.len == other.len && self.pages.iter().zip(&other.pages).all(is_same)
    }
}

impl Eq for FileContent {}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.pages.iter().flatten().count();
        write!(f, "FileContent({} bytes, {used} pages)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FileContent, PAGE};

    proptest! {
        /// The contents are those of a vector after the same changes, and copies are not affected.
        #[test]
        fn changes_are_those_of_a_vector(
            changes in prop::collection::vec((0..3, 0..4 * PAGE, 0..2 * PAGE, 1..=u8::MAX), 1..24),
        ) {
            let (mut bytes, mut content) = (Vec::new(), FileContent::default());
            for (kind, offset, len, byte) in changes {
                let (before, copy) = (bytes.clone(), content.clone());
                match kind {
                    0 => {
                        content.write(offset, &vec![byte; len]);
                        bytes.resize(bytes.len().max(offset + len), 0);
                        bytes[offset..offset + len].fill(byte);
                    }
                    1 => {
                        content.zero(offset, len);
                        let end = (offset + len).min(bytes.len());
                        bytes.get_mut(offset..end).unwrap_or_default().fill(0);
                    }
                    _ => {
                        content.resize(offset);
                        bytes.resize(offset, 0);
                    }
                }
                prop_assert!(content.to_vec() == bytes && content.len() == bytes.len());
                prop_assert!(content == FileContent::from(bytes.as_slice()));
                prop_assert!(copy.to_vec() == before);
                prop_assert_eq!(content == copy, bytes == before);
            }
        }
    }
}
