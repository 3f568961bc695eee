//! Load of a worker or queue.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Number of measurements over which the running mean (usual load) is formed, about four seconds.
pub(crate) const RUNNING_MEAN_MEASUREMENTS: u32 = 16;

/// Fraction of one worker's time, in parts per million. Measured loads are at most 100 %, predicted
/// ones may exceed it. Arithmetic saturates.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Load(u32);

impl Load {
    /// Load of an idle worker.
    pub const ZERO: Self = Self(0);
    /// Load of a fully used worker, 100 %.
    pub const FULL: Self = Self(1_000_000);

    /// Creates a load of `percent` percent of a worker.
    pub const fn percent(percent: u32) -> Self {
        Self(percent.saturating_mul(10_000))
    }

    /// Creates a load from parts per million.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(ppm)
    }

    /// Returns the load in parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Returns the load of a worker or queue that was busy for `busy_ns` in `period`, at most 100
    /// %; 0 if `period` is zero.
    pub fn from_busy_time(busy_ns: u64, period: Duration) -> Self {
        let period_ns = period.as_nanos();
        if period_ns == 0 {
            return Self::ZERO;
        }
        let ppm = u128::from(busy_ns).saturating_mul(u128::from(Self::FULL.0)) / period_ns;
        Self(u32::try_from(ppm).unwrap_or(u32::MAX)).min(Self::FULL)
    }

    /// Returns twice this load, saturating.
    #[must_use]
    pub const fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// Returns half of this load, rounded down.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self(self.0 / 2)
    }

    /// Returns this load moved towards `other` by a fraction of 1/`parts` of the difference.
    #[must_use]
    pub(crate) fn moved_towards(self, other: Self, parts: u32) -> Self {
        let parts = u64::from(parts.max(1));
        let sum = u64::from(self.0) * (parts - 1) + u64::from(other.0);
        // The result is at most the larger of both, so it fits.
        Self(u32::try_from(sum / parts).unwrap_or(u32::MAX))
    }

    /// Returns this load divided by `number`, rounded down; unchanged for 0 and 1.
    #[must_use]
    pub(crate) fn divided_by(self, number: usize) -> Self {
        Self(self.0 / u32::try_from(number).unwrap_or(u32::MAX).max(1))
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Load {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl core::iter::Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10_000, self.0 % 10_000 / 1000)
    }
}

/// Last two measured loads and the running mean (usual load) of a worker or queue. A single
/// measurement may be an outlier; decisions use both, or the usual load if loads vary strongly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecentLoads {
    earlier: Load,
    latest: Load,
    usual: Load,
}

impl RecentLoads {
    pub(crate) fn push(&mut self, load: Load) {
        self.earlier = self.latest;
        self.latest = load;
        self.usual = self.usual.moved_towards(load, RUNNING_MEAN_MEASUREMENTS);
    }

    /// Returns the sum of both, measurement by measurement.
    pub(crate) fn sum_with(self, other: Self) -> Self {
        Self {
            earlier: self.earlier + other.earlier,
            latest: self.latest + other.latest,
            usual: self.usual + other.usual,
        }
    }

    pub(crate) const fn latest(self) -> Load {
        self.latest
    }

    /// Returns the running mean over about four seconds.
    pub(crate) const fn running_mean(self) -> Load {
        self.usual
    }

    pub(crate) fn smaller_of_last_two(self) -> Load {
        self.earlier.min(self.latest)
    }

    pub(crate) fn mean_of_last_two(self) -> Load {
        (self.earlier + self.latest).halved()
    }

    pub(crate) fn larger_of_last_two(self) -> Load {
        self.earlier.max(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_share_of_the_period_and_no_more_than_all_of_it() {
        let period = Duration::from_millis(250);
        for (busy_ns, text) in
            [(0, "0.0 %"), (25_000_000, "10.0 %"), (249_999_999, "99.9 %"), (u64::MAX, "100.0 %")]
        {
            assert_eq!(Load::from_busy_time(busy_ns, period).to_string(), text);
        }
        assert_eq!(Load::from_busy_time(5, Duration::ZERO), Load::ZERO);
        assert_eq!(Load::from_busy_time(u64::MAX, Duration::from_nanos(1)), Load::FULL);
        assert_eq!(Load::from_busy_time(7, Duration::MAX), Load::ZERO);
    }

    #[test]
    fn arithmetic_saturates() {
        let max = Load::from_ppm(u32::MAX);
        assert_eq!(max + Load::FULL, max);
        assert_eq!(max.doubled(), max);
        assert_eq!(Load::ZERO - max, Load::ZERO);
        assert_eq!([max, max].into_iter().sum::<Load>(), max);
    }
}
