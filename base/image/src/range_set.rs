//! Sets of bytes.

use std::collections::BTreeMap;

use crate::ByteRange;

/// Set of bytes of a file or disk, stored as ranges. Adjacent ranges are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// End of each range by its start. Ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Returns true if the set contains no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the bytes of a range.
    pub fn insert(&mut self, range: ByteRange) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.offset(), range.end());
        if let Some((&first, &last)) = self.ranges.range(..=start).next_back() {
            if last >= start {
                (start, end) = (first, end.max(last));
            }
        }
        while let Some((&next, &last)) = self.ranges.range(start..=end).next() {
            self.ranges.remove(&next);
            end = end.max(last);
        }
        self.ranges.insert(start, end);
    }

    /// Returns true if the set contains a byte of the range.
    #[must_use]
    pub fn intersects(&self, range: ByteRange) -> bool {
        let before = self.ranges.range(..range.end()).next_back();
        !range.is_empty() && before.is_some_and(|(_, end)| *end > range.offset())
    }

    /// Moves all bytes of another set to this one.
    pub fn append(&mut self, other: &mut Self) {
        for range in core::mem::take(other).iter() {
            self.insert(range);
        }
    }

    /// Returns the ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.ranges.iter().filter_map(|(start, end)| ByteRange::new(*start, end - start))
    }

    /// Removes the first range, or its first `len_max` bytes if it is longer, and returns it.
    pub fn pop_first(&mut self, len_max: u64) -> Option<ByteRange> {
        let (start, end) = self.ranges.pop_first()?;
        let (first, rest) = ByteRange::new(start, end - start)?.split_at(len_max.max(1));
        if !rest.is_empty() {
            self.ranges.insert(rest.offset(), end);
        }
        Some(first)
    }
}

impl FromIterator<ByteRange> for RangeSet {
    fn from_iter<T: IntoIterator<Item = ByteRange>>(ranges: T) -> Self {
        let mut set = Self::default();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(offset: u64, len: u64) -> ByteRange {
        ByteRange::new(offset, len).unwrap()
    }

    /// Compares the set with a set of single bytes, for all sequences of ranges of a small space.
    #[test]
    fn a_set_contains_the_bytes_of_its_ranges() {
        const BYTES: u64 = 12;
        let mut state = 7_u64;
        let mut random_below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for _ in 0..2000 {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for _ in 0..random_below(6) {
                let offset = random_below(BYTES);
                let range = range(offset, random_below(BYTES - offset + 1));
                set.insert(range);
                model.extend(range.offset()..range.end());
            }
            let bytes = |set: &RangeSet| {
                set.iter().flat_map(|range| range.offset()..range.end()).collect::<Vec<_>>()
            };
            assert_eq!(bytes(&set), model.iter().copied().collect::<Vec<_>>());
            assert!(
                set.iter()
                    .zip(set.iter().skip(1))
                    .all(|(current, next)| current.end() < next.offset())
            );
            for offset in 0..BYTES {
                let range = range(offset, random_below(BYTES - offset + 1));
                let expected = (range.offset()..range.end()).any(|byte| model.contains(&byte));
                assert_eq!(set.intersects(range), expected, "{range} of {set:?}");
            }
            let len_max = 1 + random_below(4);
            let first = set.pop_first(len_max);
            assert_eq!(first.map(ByteRange::offset), model.first().copied());
            if let Some(first) = first {
                assert!(first.len() <= len_max);
                model.retain(|byte| *byte >= first.end());
                assert_eq!(bytes(&set), model.iter().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_appended_set_is_empty() {
        let mut set: RangeSet = [range(0, 4), range(8, 4)].into_iter().collect();
        let mut other: RangeSet = [range(4, 4)].into_iter().collect();
        set.append(&mut other);
        assert!(other.is_empty());
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(0, 12)]);
        assert!(set.intersects(range(11, 9)) && !set.intersects(range(12, 9)));
    }
}
