//! Byte ranges.

use core::fmt;

/// Bytes `offset .. offset + len`; the end is at most [`u64::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    offset: u64,
    len: u64,
}

impl ByteRange {
    /// Creates a range; `None` if its end exceeds 64 bits.
    #[must_use]
    pub const fn new(offset: u64, len: u64) -> Option<Self> {
        match offset.checked_add(len) {
            Some(_) => Some(Self { offset, len }),
            None => None,
        }
    }

    /// Returns the offset of the first byte.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Returns true if the length is 0.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the offset after the last byte.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Returns true if both ends are multiples of `unit`, which must not be 0.
    #[must_use]
    pub const fn is_aligned(self, unit: u64) -> bool {
        self.offset % unit == 0 && self.len % unit == 0
    }

    /// Returns true if the range lies within the first `size` bytes.
    #[must_use]
    pub const fn is_within(self, size: u64) -> bool {
        self.end() <= size
    }

    /// Returns true if `other` lies within this range.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }

    /// Returns true if a byte lies within both ranges.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        let is_empty = self.is_empty() || other.is_empty();
        !is_empty && self.offset < other.end() && other.offset < self.end()
    }

    /// Splits the range after at most `len` bytes. Returns the first part and the remainder, which
    /// may be empty.
    #[must_use]
    pub const fn split_at(self, len: u64) -> (Self, Self) {
        let len = if len < self.len { len } else { self.len };
        let rest = Self { offset: self.offset.saturating_add(len), len: self.len - len };
        (Self { offset: self.offset, len }, rest)
    }

    /// Splits the range at multiples of `unit`, which must not be 0: yields each block's number
    /// (offset / `unit`) with the part of the range in that block.
    pub fn blocks(self, unit: u64) -> impl Iterator<Item = (u64, Self)> {
        let mut remaining = self;
        core::iter::from_fn(move || {
            if remaining.is_empty() {
                return None;
            }
            let block = remaining.offset / unit;
            let (piece, next) = remaining.split_at(unit - remaining.offset % unit);
            remaining = next;
            Some((block, piece))
        })
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.len, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_wraps_is_none() {
        assert_eq!(ByteRange::new(u64::MAX, 1), None);
        assert!(ByteRange::new(u64::MAX - 1, 1).is_some());
    }

    #[test]
    fn blocks_are_the_range_in_order_and_cut_at_their_ends() {
        let range = ByteRange::new(700, 1000).unwrap();
        let blocks: Vec<_> =
            range.blocks(512).map(|(block, part)| (block, part.offset(), part.len())).collect();
        assert_eq!(blocks, [(1, 700, 324), (2, 1024, 512), (3, 1536, 164)]);
        assert_eq!(ByteRange::new(9, 0).unwrap().blocks(512).count(), 0);
    }

    #[test]
    fn ranges_overlap_if_they_share_a_byte() {
        let range = |offset, len| ByteRange::new(offset, len).unwrap();
        for (first, second, expected) in [
            (range(0, 4), range(3, 4), true),
            (range(0, 9), range(3, 1), true),
            (range(0, 4), range(4, 4), false),
            (range(0, 9), range(3, 0), false),
        ] {
            assert_eq!((first.overlaps(second), second.overlaps(first)), (expected, expected));
        }
    }

    #[test]
    fn split_is_bounded_by_the_length() {
        let range = ByteRange::new(8, 4).unwrap();
        let (front, none) = range.split_at(9);
        assert_eq!((front, none.offset(), none.len()), (range, 12, 0));
    }
}
