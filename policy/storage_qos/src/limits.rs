//! What the operator says of a disk or a policy.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{ByteRate, Iops};
use thiserror::Error;

/// How long a burst may last at most.
pub const BURST_SECONDS_MAX: u32 = 3600;
/// The largest rate of operations that may be set: none that is larger can be kept
/// apart in whole nanoseconds.
pub const IOPS_MAX: u64 = 1_000_000_000;

/// How much more than its maximum a disk may do for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// The rate meanwhile; above the maximum.
    pub iops: Iops,
    /// How long a disk that was idle may keep it up, from 1 to [`BURST_SECONDS_MAX`]. What
    /// was used comes back while the disk does less than its maximum.
    pub seconds: u32,
}

/// A share of what is left when minimums are met: 1 to [`Weight::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Weight(u16);

impl Weight {
    /// The largest weight.
    pub const MAX: u16 = 10_000;

    /// `None` if `weight` is not from 1 to [`Weight::MAX`].
    pub const fn new(weight: u16) -> Option<Self> {
        if weight == 0 || weight > Self::MAX { None } else { Some(Self(weight)) }
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(100)
    }
}

impl TryFrom<u16> for Weight {
    type Error = &'static str;

    fn try_from(weight: u16) -> Result<Self, Self::Error> {
        Self::new(weight).ok_or("a weight must be from 1 to 10000")
    }
}

impl From<Weight> for u16 {
    fn from(weight: Weight) -> Self {
        weight.0
    }
}

/// What a disk is entitled to and held to. The default is no minimum, no maximum and
/// the default weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Normalised operations per second that it gets whenever it wants them.
    pub min_iops: Option<Iops>,
    /// Normalised operations per second that it never exceeds.
    pub max_iops: Option<Iops>,
    /// Bytes per second that it never exceeds.
    pub max_bandwidth: Option<ByteRate>,
    /// Its share of what nobody is entitled to.
    pub weight: Weight,
    /// What it may do above `max_iops`, and for how long.
    pub burst: Option<Burst>,
}

impl Limits {
    /// Whether they can hold together.
    ///
    /// # Errors
    /// What contradicts what, and what would be accepted.
    pub fn check(&self) -> Result<(), LimitsError> {
        let rates = [
            ("min_iops", self.min_iops),
            ("max_iops", self.max_iops),
            ("burst.iops", self.burst.map(|burst| burst.iops)),
        ];
        for (field, rate) in rates {
            if let Some(rate) = rate.filter(|rate| rate.per_second() > IOPS_MAX) {
                return Err(LimitsError::RateTooHigh { field, iops: rate.per_second() });
            }
        }
        if let (Some(min), Some(max)) = (self.min_iops, self.max_iops) {
            if min > max {
                return Err(LimitsError::MinimumAboveMaximum { min, max });
            }
        }
        let Some(burst) = self.burst else { return Ok(()) };
        let Some(max) = self.max_iops else { return Err(LimitsError::BurstWithoutMaximum) };
        if burst.iops <= max {
            return Err(LimitsError::BurstBelowMaximum { burst: burst.iops, max });
        }
        if burst.seconds == 0 || burst.seconds > BURST_SECONDS_MAX {
            return Err(LimitsError::BurstSeconds(burst.seconds));
        }
        Ok(())
    }

    /// How long a maximum that was not used may be made up for.
    pub const fn catch_up(&self) -> Duration {
        if self.min_iops.is_some() { crate::CATCH_UP_WITH_MINIMUM } else { crate::CATCH_UP }
    }

    /// The most operations that may be done in any window of `window`, beside what one
    /// request counts as: its maximum over the window and [`Limits::catch_up`], and its
    /// burst. `None`: there is no maximum.
    pub fn operations_max(&self, window: Duration) -> Option<u64> {
        let max = u128::from(self.max_iops?.per_second());
        let ns = (window + self.catch_up()).as_nanos();
        let carried = |rate: u128| (rate * ns).div_ceil(1_000_000_000);
        let most = match self.burst {
            None => carried(max),
            Some(burst) => {
                let peak = u128::from(burst.iops.per_second());
                let above = peak.saturating_sub(max) * u128::from(burst.seconds);
                carried(peak).min(carried(max) + above)
            }
        };
        Some(u64::try_from(most).unwrap_or(u64::MAX))
    }
}

/// Limits that contradict themselves. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// A rate that cannot be kept.
    #[error("{field} of {iops} is above {IOPS_MAX}; give less, or leave it out")]
    RateTooHigh {
        /// Which.
        field: &'static str,
        /// What was asked for.
        iops: u64,
    },
    /// A disk cannot be owed more than it may do.
    #[error("min_iops {} is above max_iops {}; lower the one or raise the other", .min.per_second(), .max.per_second())]
    MinimumAboveMaximum {
        /// `min_iops`.
        min: Iops,
        /// `max_iops`.
        max: Iops,
    },
    /// There is nothing to exceed.
    #[error("a burst is what may be done above max_iops; set max_iops or leave the burst out")]
    BurstWithoutMaximum,
    /// The burst allows no more than is allowed always.
    #[error("burst.iops {} is not above max_iops {}; give more or leave the burst out", .burst.per_second(), .max.per_second())]
    BurstBelowMaximum {
        /// `burst.iops`.
        burst: Iops,
        /// `max_iops`.
        max: Iops,
    },
    /// A length of no use.
    #[error("burst.seconds {0} is not from 1 to {BURST_SECONDS_MAX}")]
    BurstSeconds(u32),
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
