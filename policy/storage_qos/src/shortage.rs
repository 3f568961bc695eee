//! Whether a store does as much as its minimums need.

use core::time::Duration;

use suimon_quantity::Time;

use crate::{CapabilityEstimate, CapabilityLow, Event, PROMISED_PERCENT_MAX};

/// So long it is too little, or enough again, before it is told.
const LASTING: Duration = Duration::from_secs(60);
/// Time that passes between samples that follow one another, at most.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Too little is less than so much of what is needed: where all is promised that may be, a
/// store that does what it is known to do is estimated a little below that now and then.
const LOW_PERCENT: u128 = 95;
/// Enough again is so much of it: what such a store does most of the time.
const ENOUGH_PERCENT: u128 = 98;

#[derive(Clone, Debug, Default)]
pub(crate) struct Shortage {
    /// Since when it is otherwise than was told.
    since: Option<Time>,
    /// When it was last looked at.
    judged: Time,
    /// Since when what was told is so; `None`: nothing is wrong.
    told: Option<Time>,
}

impl Shortage {
    /// Judges what minimums that come to `promised_iops` have of a store, by an estimate;
    /// `is_new`: which was made just now.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        estimate: CapabilityEstimate,
        is_new: bool,
        promised_iops: u64,
    ) -> Option<Event> {
        let needed_iops = needed(promised_iops);
        let percent = |of: u128| u128::from(needed_iops) * of / 100;
        let is_otherwise = match self.told {
            // Too little is believed while it is seen; fewer promises need no proof.
            None => is_new && u128::from(estimate.iops) < percent(LOW_PERCENT),
            Some(_) => u128::from(estimate.iops) >= percent(ENOUGH_PERCENT),
        };
        if !is_new && self.told.is_none() {
            return None;
        }
        let pause = now.since(self.judged);
        self.judged = now;
        if !is_otherwise {
            self.since = None;
            return None;
        }
        let since = match self.since.filter(|_| pause < PAUSE_MAX) {
            Some(since) => since,
            None => *self.since.insert(now),
        };
        if now.since(since) < LASTING {
            return None;
        }
        self.since = None;
        let Some(told) = self.told.take() else {
            self.told = Some(since);
            return Some(Event::CapabilityLow(CapabilityLow {
                lasting: now.since(since),
                estimate_iops: estimate.iops,
                promised_iops,
                needed_iops,
            }));
        };
        let lasted = now.since(told);
        Some(Event::CapabilityEnough { lasted, estimate_iops: estimate.iops, needed_iops })
    }
}

/// What a store must be able to do, so that so much may be promised.
fn needed(promised_iops: u64) -> u64 {
    let needed = (u128::from(promised_iops) * 100).div_ceil(u128::from(PROMISED_PERCENT_MAX));
    u64::try_from(needed).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "shortage_tests.rs"]
mod tests;
