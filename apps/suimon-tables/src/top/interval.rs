//! Growth of counters in an interval.

/// Returns `part` divided by `total` in thousandths, rounded; 0 if `total` is 0.
pub(crate) fn share_permille(part: u64, total: u64) -> u64 {
    let (part, total) = (u128::from(part), u128::from(total));
    let rounded = (part * 1000 + total / 2).checked_div(total);
    rounded.and_then(|share| u64::try_from(share).ok()).unwrap_or(0)
}

/// Time between two snapshots in ns.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    pub(crate) ns: u64,
}

impl Interval {
    /// Returns the increase of a counter per second.
    pub(super) fn per_second(self, before: u64, after: u64) -> u64 {
        self.scaled_increase(before, after, 1_000_000_000)
    }

    /// Returns the increase of a counter of nanoseconds, in thousandths of the interval.
    pub(crate) fn permille(self, before_ns: u64, after_ns: u64) -> u64 {
        self.scaled_increase(before_ns, after_ns, 1000)
    }

    pub(crate) fn scaled_increase(self, before: u64, after: u64, factor: u128) -> u64 {
        let rate =
            u128::from(counter_increase(before, after)) * factor / u128::from(self.ns.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// Returns the increase of a counter. If the counter was reset, `after` counts from 0.
pub(super) fn counter_increase(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}
