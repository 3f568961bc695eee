//! Capacity of a store, estimated from its throughput while requests are queued for the device.
//!
//! A partially loaded device gives no estimate. Only time counts in which the device was full and
//! further requests were queued.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

/// Shortest time within a sample in which the device was full, for the sample to count.
const FULL_MIN: Duration = Duration::from_millis(250);
/// Smallest number of completions in that time for the sample to count.
const REQUESTS_MIN: u64 = 4;
/// Age at which an estimate is discarded.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const NS_PER_SECOND: u128 = 1_000_000_000;

/// Last estimate of a store's capacity, for the load at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityEstimate {
    /// Normalised operations per second; never more than was delivered in any of the samples.
    pub iops: u64,
    /// Time of the last sample that contributed.
    pub at: Time,
}

/// Completions while the device was full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    /// Time of the last completion, and whether the device was full until then.
    last: Time,
    was_full: bool,
    /// True if the time up to the last completion counts; and that time, with the operations and
    /// requests completed at its end.
    counts: bool,
    full_ns: u64,
    operations: u64,
    requests: u64,
    depth: u32,
    found: Option<CapacityEstimate>,
}

impl Estimate {
    /// Accounts for completed requests of `cost` operations in total. `is_full`: up to now the
    /// device was full and further requests were queued.
    ///
    /// A device that was full at a completion receives a queued request, so it is full up to the
    /// next completion. Completions at the same time end the same span.
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

    /// Ends a sample; `depth` is the current queue depth of the device. Returns true if the sample
    /// contributed to the estimate.
    pub(crate) fn sample(&mut self, now: Time, depth: u32) -> bool {
        let before = core::mem::replace(&mut self.depth, depth);
        let full_ns = core::mem::take(&mut self.full_ns);
        let operations = core::mem::take(&mut self.operations);
        let requests = core::mem::take(&mut self.requests);
        // While the queue depth still grows, the device could deliver more.
        let is_tuned = u64::from(depth) * 4 <= u64::from(before) * 5;
        let is_long = u128::from(full_ns) >= FULL_MIN.as_nanos();
        if !is_long || requests < REQUESTS_MIN || !is_tuned {
            return false;
        }
        let rate = u128::from(operations) * NS_PER_SECOND / u128::from(full_ns.max(1));
        let known = self.found.filter(|found| now.since(found.at) < FORGOTTEN_AFTER);
        // Weight of one quarter per sample: half-life about 1.2 s.
        let smooth = known.map_or(rate, |found| (u128::from(found.iops) * 3 + rate) / 4);
        let iops = u64::try_from(smooth).unwrap_or(u64::MAX);
        self.found = Some(CapacityEstimate { iops, at: now });
        true
    }

    pub(crate) const fn found(&self) -> Option<CapacityEstimate> {
        self.found
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
