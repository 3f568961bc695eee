//! Estimate of a store's capacity from its throughput while requests are queued for the device.
//!
//! A partially loaded device permits no estimate. Only the time in which the device was full and
//! further requests were queued is counted.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

/// Minimum time in which the device was full during a sample that is used.
const FULL_MIN: Duration = Duration::from_millis(250);
/// Minimum number of completions in that time during a sample that is used.
const REQUESTS_MIN: u64 = 4;
/// Age at which an estimate is discarded.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const NS_PER_SECOND: u128 = 1_000_000_000;

/// Last estimate of a store's capacity, for the load at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityEstimate {
    /// Capacity in normalised operations per second. Never more than the device delivered in any of
    /// the samples.
    pub iops: u64,
    /// Time of the last sample that contributed.
    #[serde(rename = "at")]
    pub sampled_at: Time,
}

/// Completions while the device was full, and the resulting estimate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapacityEstimator {
    /// Time of the last completion.
    last: Time,
    /// True if the device was full, with further requests queued, before the last completion.
    was_full: bool,
    /// True if the time before the last completion is counted.
    counts: bool,
    /// Time in which the device was full during this sample, in nanoseconds.
    full_ns: u64,
    /// Normalised operations that completed in that time.
    operations: u64,
    /// Number of requests that completed in that time.
    requests: u64,
    depth: u32,
    found: Option<CapacityEstimate>,
}

impl CapacityEstimator {
    /// Accounts for completed requests of `cost` operations in total. `is_full` is true if the
    /// device was full and further requests were queued until now.
    ///
    /// A device that is full at a completion receives a queued request, and remains full up to the
    /// next completion. Completions at the same time end the same time span.
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

    /// Ends a sample and updates the estimate; `depth` is the current queue depth of the device.
    /// Returns true if the sample was used.
    pub(crate) fn sample(&mut self, now: Time, depth: u32) -> bool {
        let before = core::mem::replace(&mut self.depth, depth);
        let full_ns = core::mem::take(&mut self.full_ns);
        let operations = core::mem::take(&mut self.operations);
        let requests = core::mem::take(&mut self.requests);
        // While the queue depth is still growing, the device could deliver more.
        let is_tuned = u64::from(depth) * 4 <= u64::from(before) * 5;
        let is_long = u128::from(full_ns) >= FULL_MIN.as_nanos();
        if !is_long || requests < REQUESTS_MIN || !is_tuned {
            return false;
        }
        let rate = u128::from(operations) * NS_PER_SECOND / u128::from(full_ns.max(1));
        let recent = self.found.filter(|estimate| now.since(estimate.sampled_at) < FORGOTTEN_AFTER);
        // Each sample has a weight of one quarter, which corresponds to a half-life of about 1.2 s.
        let smooth = recent.map_or(rate, |estimate| (u128::from(estimate.iops) * 3 + rate) / 4);
        let iops = u64::try_from(smooth).unwrap_or(u64::MAX);
        self.found = Some(CapacityEstimate { iops, sampled_at: now });
        true
    }

    pub(crate) const fn estimate(&self) -> Option<CapacityEstimate> {
        self.found
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
