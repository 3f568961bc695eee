//! Limits of a disk or a policy.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{ByteRate, Iops};
use thiserror::Error;

/// Maximum length of a burst in seconds.
pub const BURST_SECONDS_MAX: u32 = 3600;
/// Maximum rate in operations per second. The interval of operations at a higher rate would be
/// below one nanosecond.
pub const IOPS_MAX: u64 = 1_000_000_000;

/// Permission to exceed the maximum for a limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Rate during the burst in operations per second. Exceeds the maximum.
    pub iops: Iops,
    /// Length of the burst in seconds after an idle time, from 1 to [`BURST_SECONDS_MAX`]. Burst
    /// credit recovers while the disk is below its maximum.
    pub seconds: u32,
}

/// Weight that determines the share of the capacity beyond the minimums: 1 to [`Weight::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Weight(u16);

impl Weight {
    /// Maximum weight of a disk or policy.
    pub const MAX: u16 = 10_000;

    /// Creates a weight; `None` if `weight` is not from 1 to [`Weight::MAX`].
    pub const fn new(weight: u16) -> Option<Self> {
        if weight == 0 || weight > Self::MAX { None } else { Some(Self(weight)) }
    }

    /// Returns the weight as a number.
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
        Self::new(weight).ok_or("weight must be from 1 to 10000")
    }
}

impl From<Weight> for u16 {
    fn from(weight: Weight) -> Self {
        weight.0
    }
}

/// Limits of a disk or policy. The default has no minimum, no maximum and the default weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Guaranteed rate in normalised operations per second; `None`: no guarantee.
    pub min_iops: Option<Iops>,
    /// Maximum rate in normalised operations per second; `None`: unlimited.
    pub max_iops: Option<Iops>,
    /// Maximum rate in bytes per second; `None`: unlimited.
    pub max_bandwidth: Option<ByteRate>,
    /// Weight for the capacity beyond the minimums.
    pub weight: Weight,
    /// Permission to exceed `max_iops` for a limited time.
    pub burst: Option<Burst>,
}

impl Limits {
    /// Checks the limits for contradictions.
    ///
    /// # Errors
    ///
    /// The contradicting fields and the accepted values.
    pub fn check(&self) -> Result<(), LimitsError> {
        let rates = [
            ("min_iops", self.min_iops),
            ("max_iops", self.max_iops),
            ("burst_iops", self.burst.map(|burst| burst.iops)),
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

    /// Returns the time for which unused operations of the maximum may be used later.
    pub const fn catch_up_window(&self) -> Duration {
        if self.min_iops.is_some() {
            crate::CATCH_UP_WINDOW_WITH_MINIMUM
        } else {
            crate::CATCH_UP_WINDOW
        }
    }

    /// Returns the maximum number of operations in any time window of length `window`, excluding
    /// the cost of one request. It includes the maximum over the window and
    /// [`Limits::catch_up_window`], and the burst. `None` without a maximum.
    pub fn operations_max(&self, window: Duration) -> Option<u64> {
        let max = u128::from(self.max_iops?.per_second());
        let ns = (window + self.catch_up_window()).as_nanos();
        let operations = |rate: u128| (rate * ns).div_ceil(1_000_000_000);
        let limit = match self.burst {
            None => operations(max),
            Some(burst) => {
                let peak = u128::from(burst.iops.per_second());
                let burst_extra = peak.saturating_sub(max) * u128::from(burst.seconds);
                operations(peak).min(operations(max) + burst_extra)
            }
        };
        Some(u64::try_from(limit).unwrap_or(u64::MAX))
    }
}

/// Contradiction in limits. No limits were changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The rate exceeds [`IOPS_MAX`].
    #[error("{field} {iops} exceeds the maximum of {IOPS_MAX}; lower it or remove it")]
    RateTooHigh {
        /// Name of the field with the rate.
        field: &'static str,
        /// Requested rate in operations per second.
        iops: u64,
    },
    /// The minimum exceeds the maximum.
    #[error(
        "min_iops {} exceeds max_iops {}; lower min_iops or raise max_iops", .min.per_second(), .max.per_second())]
    MinimumAboveMaximum {
        /// Requested minimum, `min_iops`.
        min: Iops,
        /// Requested maximum, `max_iops`.
        max: Iops,
    },
    /// The limits have a burst but no maximum.
    #[error("burst_iops requires max_iops; set max_iops, or remove burst_iops")]
    BurstWithoutMaximum,
    /// The burst rate does not exceed the maximum.
    #[error(
        "burst_iops {} does not exceed max_iops {}; raise burst_iops or remove it", .burst.per_second(), .max.per_second())]
    BurstBelowMaximum {
        /// Requested burst rate, `burst_iops`.
        burst: Iops,
        /// Requested maximum, `max_iops`.
        max: Iops,
    },
    /// The length of the burst is out of range. Contains the requested length in seconds.
    #[error("burst_s {0} is outside of 1 to {BURST_SECONDS_MAX}")]
    BurstSeconds(u32),
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
