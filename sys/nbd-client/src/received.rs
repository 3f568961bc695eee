//! Ranges of the data of a read that were received.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of a buffer that were received, in any order. Allocates nothing while each range begins
/// at the end of the former one.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRanges {
    /// Number of received bytes.
    bytes: usize,
    /// End of the received bytes that begin at the start of the buffer.
    prefix_end: usize,
    /// Ends of the other ranges, by their starts. They do not overlap, and are not empty.
    others: BTreeMap<usize, usize>,
}

impl ReceivedRanges {
    /// Returns the number of received bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a range. Returns false, and adds nothing, if it overlaps a received one.
    pub(crate) fn insert(&mut self, range: &Range<usize>) -> bool {
        if range.is_empty() {
            return true;
        }
        let last_before_end = self.others.range(..range.end).next_back();
        if range.start < self.prefix_end
            || last_before_end.is_some_and(|(_, end)| range.start < *end)
        {
            return false;
        }
        self.bytes = self.bytes.saturating_add(range.len());
        if range.start > self.prefix_end {
            self.others.insert(range.start, range.end);
            return true;
        }
        self.prefix_end = range.end;
        while let Some(end) = self.others.remove(&self.prefix_end) {
            self.prefix_end = end;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_accepted_in_any_order() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut received = ReceivedRanges::default();
            for index in order {
                assert!(received.insert(&(index * 512..(index + 1) * 512)), "{order:?}: {index}");
            }
            assert_eq!((received.bytes(), received.prefix_end), (2048, 2048), "{order:?}");
            assert!(received.others.is_empty(), "{order:?}");
        }
    }

    #[test]
    fn overlapping_ranges_are_refused() {
        let mut received = ReceivedRanges::default();
        assert!(received.insert(&(0..512)));
        assert!(received.insert(&(1024..1536)));
        let overlapping = [
            0..512,
            0..1,
            511..512,
            511..1024,
            0..2048,
            512..1025,
            1024..1536,
            1535..1536,
            1535..4096,
        ];
        for range in overlapping {
            assert!(!received.insert(&range), "{range:?}");
        }
        // An empty range overlaps none.
        assert!(received.insert(&(100..100)));
        assert_eq!(received.bytes(), 1024);
        assert!(received.insert(&(512..1024)));
        assert!(received.insert(&(1536..2048)));
        assert_eq!((received.bytes(), received.prefix_end), (2048, 2048));
    }
}
