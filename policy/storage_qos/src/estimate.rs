//! What a store can do, estimated from what it does while requests wait for the device.
//!
//! Whoever asks for little learns nothing of what there is: only time counts in which the
//! device had as many requests as it may have, and others waited for it.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

/// A sample counts if the device was full for so long in it.
const FULL_MIN: Duration = Duration::from_millis(250);
/// And if so many requests completed meanwhile.
const REQUESTS_MIN: u64 = 4;
/// What was found out so long ago says nothing of now.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const NS_PER_SECOND: u128 = 1_000_000_000;

/// What a store was last seen to do, of the load that it had then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityEstimate {
    /// Normalised operations per second; never more than what was delivered in any of the
    /// samples that it is made of.
    pub iops: u64,
    /// When it was last found out.
    pub at: Time,
}

/// Completions while the device was full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    /// When a request last completed, and whether the device was full until then.
    last: Time,
    was_full: bool,
    /// Whether the time up to the last completion counts, and what ended with it.
    counts: bool,
    full_ns: u64,
    operations: u64,
    requests: u64,
    depth: u32,
    found: Option<CapabilityEstimate>,
}

impl Estimate {
    /// Requests completed that count as `cost` in all; `is_full`: until then the device had all
    /// it may have, and others waited.
    ///
    /// A device that was full at one completion gets one of those that waited, so it was full
    /// up to the next. What completes at the same time ended the same span.
    #[inline]
    pub(crate) fn handle_completed(&mut self, now: Time, cost: u64, requests: u32, is_full: bool) {
        if now > self.last {
            self.counts = self.was_full && is_full;
            if self.counts {
                let ns = now.as_ns().saturating_sub(self.last.as_ns());
                self.full_ns = self.full_ns.saturating_add(ns);
            }
            self.was_full = is_full;
            self.last = now;
        }
        if self.counts {
            self.operations = self.operations.saturating_add(cost);
            self.requests = self.requests.saturating_add(requests.into());
        }
    }

    /// Ends a sample; `depth`: what the device may have now. Whether it has told something.
    pub(crate) fn sample(&mut self, now: Time, depth: u32) -> bool {
        let before = core::mem::replace(&mut self.depth, depth);
        let full_ns = core::mem::take(&mut self.full_ns);
        let operations = core::mem::take(&mut self.operations);
        let requests = core::mem::take(&mut self.requests);
        // While it is still being found out how much the device takes, it could do more.
        let is_tuned = u64::from(depth) * 4 <= u64::from(before) * 5;
        let is_long = u128::from(full_ns) >= FULL_MIN.as_nanos();
        if !is_long || requests < REQUESTS_MIN || !is_tuned {
            return false;
        }
        let rate = u128::from(operations) * NS_PER_SECOND / u128::from(full_ns.max(1));
        let known = self.found.filter(|found| now.since(found.at) < FORGOTTEN_AFTER);
        // A quarter of each sample: half is forgotten after some 1.2 s.
        let smooth = known.map_or(rate, |found| (u128::from(found.iops) * 3 + rate) / 4);
        let iops = u64::try_from(smooth).unwrap_or(u64::MAX);
        self.found = Some(CapabilityEstimate { iops, at: now });
        true
    }

    pub(crate) const fn found(&self) -> Option<CapabilityEstimate> {
        self.found
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
