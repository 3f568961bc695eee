//! Detection of a store whose estimated capacity is below the requirement of its minimums.

use core::time::Duration;

use suimon_quantity::Time;

use crate::{CapacityEstimate, CapacityLow, MINIMUMS_PERCENT_MAX, StoreEvent};

/// Time for which the capacity must be too low, or sufficient again, before an event is emitted.
const LASTING: Duration = Duration::from_secs(60);
/// Maximum interval between consecutive evaluations; after a longer one, the time of the current
/// state starts again.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Percentage of the required capacity below which the estimate is too low. With the largest
/// permitted minimums, the estimate of a healthy store may be slightly below the requirement at
/// times.
const LOW_PERCENT: u128 = 95;
/// Percentage of the required capacity from which the estimate is sufficient again. The estimate of
/// a healthy store is above it most of the time.
const ENOUGH_PERCENT: u128 = 98;

#[derive(Clone, Debug, Default)]
pub(crate) struct ShortageDetector {
    /// Time since which the state has differed from the one last reported; `None` if it does not
    /// differ.
    since: Option<Time>,
    /// Time of the last evaluation.
    evaluated_at: Time,
    /// Start of the reported shortage; `None` if none is reported.
    is_reported: Option<Time>,
}

impl ShortageDetector {
    /// Compares a capacity estimate with the sum of the minimums, `promised_iops`, and returns the
    /// event to report, if any. `is_new` is true if the estimate has just been updated.
    pub(crate) fn evaluate(
        &mut self,
        now: Time,
        estimate: CapacityEstimate,
        is_new: bool,
        promised_iops: u64,
    ) -> Option<StoreEvent> {
        let needed_iops = required(promised_iops);
        let percent = |share: u128| u128::from(needed_iops) * share / 100;
        let is_otherwise = match self.is_reported {
            // A shortage requires current estimates. Its end after minimums were lowered does not.
            None => is_new && u128::from(estimate.iops) < percent(LOW_PERCENT),
            Some(_) => u128::from(estimate.iops) >= percent(ENOUGH_PERCENT),
        };
        if !is_new && self.is_reported.is_none() {
            return None;
        }
        let pause = now.since(self.evaluated_at);
        self.evaluated_at = now;
        if !is_otherwise {
            self.since = None;
            return None;
        }
        let start = match self.since.filter(|_| pause < PAUSE_MAX) {
            Some(start) => start,
            None => *self.since.insert(now),
        };
        if now.since(start) < LASTING {
            return None;
        }
        self.since = None;
        let Some(reported_at) = self.is_reported.take() else {
            self.is_reported = Some(start);
            return Some(StoreEvent::CapacityLow(CapacityLow {
                low_for: now.since(start),
                estimate_iops: estimate.iops,
                reserved_iops: promised_iops,
                needed_iops,
            }));
        };
        let lasted = now.since(reported_at);
        Some(StoreEvent::CapacitySufficient {
            low_for: lasted,
            estimate_iops: estimate.iops,
            needed_iops,
        })
    }
}

/// Returns the capacity that is needed for a sum of minimums, both in normalised operations per
/// second.
fn required(promised_iops: u64) -> u64 {
    let required = (u128::from(promised_iops) * 100).div_ceil(u128::from(MINIMUMS_PERCENT_MAX));
    u64::try_from(required).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "shortage_tests.rs"]
mod tests;
