//! Estimate of the current capacity of a store.
//!
//! The store is saturated if nodes with unused shares have requests queued at the store and its
//! latency has increased. Its throughput is then used as the capacity for the time being. The
//! estimate never affects guarantees: reservations stay reserved.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::SharedStoreCapacity;

/// Interval between evaluations of the observed throughput.
pub(crate) const EVALUATION_INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a delivered throughput proves that the store has at least that capacity.
const PROOF_LIFETIME: Duration = Duration::from_secs(10);
/// Time after a reduction of the estimate during which it is not increased step by step.
const RAISE_DELAY: Duration = Duration::from_secs(10);
/// Number of consecutive evaluations that must find the store saturated before the estimate is
/// reduced.
const AGREEING_EVALUATIONS: u32 = 3;
/// Latency, in percent of the lowest observed, above which the store is saturated.
const FULL_PERCENT: u64 = 150;
/// Time for which the capacity must be low, or sufficient again, before it is reported.
const REPORT_AFTER: Duration = Duration::from_secs(10);
/// Estimated capacity, in percent of the declared or measured one, below which the capacity counts
/// as low.
const LOW_PERCENT: u64 = 95;

/// Load and latency of the store, combined from the recent reports of all nodes. Rates are in
/// normalised operations per second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observation {
    pub(crate) delivered_iops: u64,
    /// Sum of the leased shares of the nodes with requests queued at the store.
    pub(crate) saturated_share_iops: u64,
    /// Throughput of the nodes with requests queued at the store.
    pub(crate) saturated_delivered_iops: u64,
    /// True if the demand of any node exceeds its leased share and no requests of that node are
    /// queued at the store itself.
    pub(crate) is_limited_by_grant: bool,
    /// Mean latency weighted by throughput, in ns; 0 if nothing was delivered.
    pub(crate) latency_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct CapacityEstimator {
    capacity: SharedStoreCapacity,
    iops: u64,
    /// Recent evaluations: time, estimate before the evaluation, and delivered throughput of all
    /// nodes.
    proved: VecDeque<(Time, u64, u64)>,
    best_latency_ns: u64,
    evaluations: u32,
    raise_after: Time,
    evaluated_at: Time,
    /// Time since which the capacity has differed from the state reported last (low or sufficient);
    /// `None` if it does not differ.
    since: Option<Time>,
    is_low: bool,
}

impl CapacityEstimator {
    pub(crate) fn new(now: Time, capability: SharedStoreCapacity, proved: u64) -> Self {
        let iops = match capability {
            SharedStoreCapacity::Declared(iops) => iops,
            SharedStoreCapacity::Measured(iops) => iops.max(proved),
        };
        Self {
            capacity: capability,
            iops,
            proved: VecDeque::new(),
            best_latency_ns: u64::MAX,
            evaluations: 0,
            raise_after: now,
            evaluated_at: now,
            since: None,
            is_low: false,
        }
    }

    pub(crate) fn set_capacity(&mut self, capability: SharedStoreCapacity) {
        self.capacity = capability;
        self.iops = capability.iops();
        self.evaluations = 0;
    }

    pub(crate) const fn capacity(&self) -> SharedStoreCapacity {
        self.capacity
    }

    /// Returns the estimated capacity, in normalised operations per second, on which new grants are
    /// based.
    pub(crate) const fn iops(&self) -> u64 {
        self.iops
    }

    /// Returns the upper bound of all shares together: the largest recent estimate. New grants are
    /// based on [`CapacityEstimator::iops`]; the sum reaches that once leases have ended or nodes
    /// have acknowledged lower grants.
    pub(crate) fn iops_upper_bound(&self) -> u64 {
        let recent = self.proved.iter().map(|(_, iops, _)| *iops).max().unwrap_or_default();
        self.capacity.iops().max(self.iops).max(recent)
    }

    pub(crate) fn next_evaluation(&self) -> Time {
        self.evaluated_at + EVALUATION_INTERVAL
    }

    /// Updates the estimate from observations. Returns `Some(true)` if a low capacity is to be
    /// reported now, `Some(false)` if its end is to be reported, and `None` if there is nothing
    /// new.
    pub(crate) fn evaluate(&mut self, now: Time, observation: Observation) -> Option<bool> {
        self.evaluated_at = now;
        self.proved.retain(|(time, ..)| now.since(*time) < PROOF_LIFETIME);
        self.proved.push_back((now, self.iops, observation.delivered_iops));
        let proved = self.proved.iter().map(|(.., iops)| *iops).max().unwrap_or_default();
        if observation.latency_ns > 0 {
            self.best_latency_ns = self.best_latency_ns.min(observation.latency_ns);
        }
        let is_slow = observation.latency_ns / FULL_PERCENT * 100 > self.best_latency_ns;
        let falls_short = u128::from(observation.saturated_delivered_iops) * 100
            < u128::from(observation.saturated_share_iops) * u128::from(LOW_PERCENT);
        if is_slow && falls_short {
            self.evaluations += 1;
            if self.evaluations >= AGREEING_EVALUATIONS {
                self.lower(now, observation.delivered_iops, proved);
            }
        } else {
            self.evaluations = 0;
            self.raise(now, observation, proved);
        }
        self.decide(now)
    }

    fn lower(&mut self, now: Time, delivered: u64, proved: u64) {
        let aim = delivered.saturating_add(delivered / 16).max(proved);
        let next = aim.max(self.iops.saturating_sub(self.iops / 8));
        if next < self.iops {
            self.iops = next;
            self.raise_after = now + RAISE_DELAY;
        }
    }

    fn raise(&mut self, now: Time, observation: Observation, proved: u64) {
        let capacity = self.capacity.iops();
        let step = (capacity / 32).max(1);
        let max = match self.capacity {
            SharedStoreCapacity::Declared(iops) => iops,
            // Proven throughput, and one step above it while nodes demand more.
            SharedStoreCapacity::Measured(iops) if observation.is_limited_by_grant => {
                iops.max(proved.saturating_add(step))
            }
            SharedStoreCapacity::Measured(iops) => iops.max(proved),
        };
        if now >= self.raise_after {
            self.iops = self.iops.saturating_add(step);
        }
        self.iops = self.iops.max(proved).min(max);
    }

    fn decide(&mut self, now: Time) -> Option<bool> {
        let is_low = self.iops < self.capacity.iops() / 100 * LOW_PERCENT;
        if is_low == self.is_low {
            self.since = None;
            return None;
        }
        let start = *self.since.get_or_insert(now);
        if now.since(start) < REPORT_AFTER {
            return None;
        }
        self.since = None;
        self.is_low = is_low;
        Some(is_low)
    }
}
