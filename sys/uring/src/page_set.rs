//! Set of the pages that a file has: a bitmap that any thread may read and change without a lock.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Bits per word of the bitmap.
const BITS: u64 = 64;
/// Words per chunk of the bitmap. Chunks without set bits are not allocated.
const CHUNK_WORDS: u64 = 512;
const PART_PAGES: u64 = CHUNK_WORDS * BITS;

/// Set of pages of a file. Pages beyond its capacity are never members.
#[derive(Debug)]
pub(crate) struct PageSet {
    parts: Vec<OnceLock<Box<[AtomicU64]>>>,
}

impl PageSet {
    /// Size of a page in bytes.
    pub(crate) const PAGE_BYTES: u64 = 4096;

    /// Creates an empty set for the first `bytes` bytes of a file.
    pub(crate) fn new(bytes: u64) -> Self {
        let parts = (bytes / Self::PAGE_BYTES).div_ceil(PART_PAGES);
        Self { parts: (0..parts).map(|_| OnceLock::new()).collect() }
    }

    fn bytes(&self) -> u64 {
        self.parts.len() as u64 * PART_PAGES * Self::PAGE_BYTES
    }

    /// Returns true if all pages of a range are members; true for an empty range.
    #[inline]
    pub(crate) fn has(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes())
            && Masks::covering(offset, len)
                .all(|(word, mask)| self.word(word).is_some_and(|bits| bits & mask == mask))
    }

    /// Adds the pages of a range, up to the capacity.
    pub(crate) fn add(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.bytes());
        for (word, mask) in Masks::covering(offset, end.saturating_sub(offset)) {
            let Some(part) = self.parts.get((word / CHUNK_WORDS) as usize) else { return };
            let words = part.get_or_init(|| (0..CHUNK_WORDS).map(|_| AtomicU64::new(0)).collect());
            if let Some(word) = words.get((word % CHUNK_WORDS) as usize) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Removes the pages of a range, including partly covered ones.
    pub(crate) fn remove(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.bytes());
        for (word, mask) in Masks::covering(offset, end.saturating_sub(offset)) {
            let Some(part) = self.parts.get((word / CHUNK_WORDS) as usize) else { return };
            let words = part.get();
            if let Some(word) = words.and_then(|words| words.get((word % CHUNK_WORDS) as usize)) {
                word.fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn word(&self, word: u64) -> Option<u64> {
        let part = self.parts.get((word / CHUNK_WORDS) as usize)?.get()?;
        Some(part.get((word % CHUNK_WORDS) as usize)?.load(Ordering::Relaxed))
    }
}

/// Iterator over the words of the bitmap that a range of bytes covers, each with the mask of the
/// range's pages.
struct Masks {
    /// Next page, and end of the range (exclusive), as page numbers.
    page: u64,
    end: u64,
}

impl Masks {
    #[inline]
    const fn covering(offset: u64, len: u64) -> Self {
        let end = offset.saturating_add(len).div_ceil(PageSet::PAGE_BYTES);
        Self { page: offset / PageSet::PAGE_BYTES, end: if len == 0 { 0 } else { end } }
    }
}

impl Iterator for Masks {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.page >= self.end {
            return None;
        }
        let (word, first) = (self.page / BITS, self.page % BITS);
        let count = (BITS - first).min(self.end - self.page);
        self.page += count;
        Some((word, (u64::MAX >> (BITS - count)) << first))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{PART_PAGES, PageSet};

    proptest! {
        #[test]
        fn it_is_a_set_of_the_pages_that_ranges_touch(
            changes in proptest::collection::vec(
                (any::<bool>(), 0..PART_PAGES * 3 * PageSet::PAGE_BYTES, 0..300 * PageSet::PAGE_BYTES), 1..20),
        ) {
            let pages_of = |offset: u64, len: u64| match len {
                0 => 0..0,
                _ => offset / PageSet::PAGE_BYTES..(offset + len).div_ceil(PageSet::PAGE_BYTES),
            };
            // The bitmap has two chunks. Some ranges are partly or entirely beyond them.
            let pages = PageSet::new(PART_PAGES * 2 * PageSet::PAGE_BYTES);
            let mut model = BTreeSet::new();
            for (is_added, offset, len) in changes.clone() {
                if is_added {
                    pages.add(offset, len);
                    model.extend(pages_of(offset, len).filter(|page| *page < PART_PAGES * 2));
                } else {
                    pages.remove(offset, len);
                    model.retain(|page| !pages_of(offset, len).contains(page));
                }
            }
            for (_, offset, len) in changes {
                let expected = pages_of(offset, len).all(|page| model.contains(&page))
                    && offset + len <= PART_PAGES * 2 * PageSet::PAGE_BYTES;
                prop_assert_eq!(pages.has(offset, len), expected);
                let first = offset / PageSet::PAGE_BYTES;
                let has_first = pages.has(first * PageSet::PAGE_BYTES, PageSet::PAGE_BYTES);
                prop_assert_eq!(has_first, model.contains(&first));
            }
        }
    }

    #[test]
    fn an_unbounded_range_ends_at_the_capacity_of_the_set() {
        let pages = PageSet::new(PART_PAGES * PageSet::PAGE_BYTES);
        pages.add(0, u64::MAX);
        assert!(pages.has(0, PART_PAGES * PageSet::PAGE_BYTES));
        assert!(!pages.has(PART_PAGES * PageSet::PAGE_BYTES - 1, 2));
        assert!(!pages.has(u64::MAX, 1));
        pages.remove(PageSet::PAGE_BYTES + 1, u64::MAX);
        assert!(pages.has(0, PageSet::PAGE_BYTES) && !pages.has(PageSet::PAGE_BYTES, 1));
    }
}
