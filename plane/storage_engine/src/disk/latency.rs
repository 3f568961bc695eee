//! Latency histogram with ranges of constant relative width.

/// Ranges per doubling of the latency, as a power of two. Values read from the histogram are at
/// most 1/16 too high.
const PER_DOUBLING_SHIFT: u32 = 4;
const PER_DOUBLING: u64 = 1 << PER_DOUBLING_SHIFT;
/// Width of the lowest ranges in nanoseconds, as a power of two.
const UNIT_SHIFT: u32 = 8;
/// Doublings above the lowest ranges, up to 68 seconds. The lowest ranges have a width of one unit
/// each.
const DOUBLINGS: u64 = 24;
const RANGES: usize = (PER_DOUBLING * (DOUBLINGS + 1)) as usize;

/// Latency percentiles in nanoseconds. All 0 without requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyPercentiles {
    /// Median; at most 1/16 too high.
    pub p50_ns: u64,
    /// 99th percentile; at most 1/16 too high.
    pub p99_ns: u64,
    /// Largest latency of a request.
    pub max_ns: u64,
}

/// Latency histogram. All memory is allocated on creation: 3200 bytes.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    counts: Box<[u64; RANGES]>,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: Box::new([0; RANGES]), max_ns: 0 }
    }
}

impl LatencyHistogram {
    /// Adds a request with this latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if let Some(count) = self.counts.get_mut(range_of(ns)) {
            *count += 1;
        }
        self.max_ns = self.max_ns.max(ns);
    }

    /// Returns the percentiles of the requests counted so far.
    #[must_use]
    pub fn percentiles(&self) -> LatencyPercentiles {
        let total: u64 = self.counts.iter().sum();
        let (p50_ns, p99_ns) = (self.quantile(total, 50), self.quantile(total, 99));
        LatencyPercentiles { p50_ns, p99_ns, max_ns: self.max_ns }
    }

    /// Returns the latency in nanoseconds that `percent` of `total` requests did not exceed, at
    /// most 1/16 too high.
    fn quantile(&self, total: u64, percent: u64) -> u64 {
        let rank = (u128::from(total) * u128::from(percent)).div_ceil(100);
        let mut cumulative = 0u128;
        for (range, count) in self.counts.iter().enumerate() {
            cumulative += u128::from(*count);
            if *count > 0 && cumulative >= rank {
                return end_of(range).min(self.max_ns);
            }
        }
        0
    }
}

/// Returns the index of the range that contains a latency. The last range includes all longer
/// latencies.
#[inline]
fn range_of(ns: u64) -> usize {
    let units = ns >> UNIT_SHIFT;
    let doublings = (units | 1).ilog2().saturating_sub(PER_DOUBLING_SHIFT);
    let step = units >> doublings;
    let range = u64::from(doublings) * PER_DOUBLING + step;
    usize::try_from(range).unwrap_or(usize::MAX).min(RANGES - 1)
}

/// Returns the longest latency of the range with this index, in nanoseconds.
fn end_of(range: usize) -> u64 {
    let range = range as u64;
    let doublings = (range / PER_DOUBLING).saturating_sub(1);
    let step = range - doublings * PER_DOUBLING;
    ((step + 1) << (doublings + u64::from(UNIT_SHIFT))) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_and_are_narrow() {
        let mut begin = 0;
        for range in 0..RANGES {
            let end = end_of(range);
            assert_eq!((range_of(begin), range_of(end)), (range, range));
            assert!(end - begin < 256 || (end - begin) <= begin / 16, "{begin} to {end}");
            begin = end + 1;
        }
        assert!(begin > 60_000_000_000);
        assert_eq!(range_of(u64::MAX), RANGES - 1);
    }

    #[test]
    fn quantiles_are_as_counted() {
        let mut counts = LatencyHistogram::default();
        assert_eq!(counts.percentiles(), LatencyPercentiles::default());
        for latency_us in 1..=1000 {
            counts.record(latency_us * 1000);
        }
        let LatencyPercentiles { p50_ns, p99_ns, max_ns } = counts.percentiles();
        assert!((500_000..=500_000 * 17 / 16).contains(&p50_ns), "{p50_ns}");
        assert!((990_000..=1_000_000).contains(&p99_ns), "{p99_ns}");
        assert_eq!(max_ns, 1_000_000);
        assert!(size_of_val(&*counts.counts) * 5 <= 16 << 10, "of a disk's five kinds");
    }
}
