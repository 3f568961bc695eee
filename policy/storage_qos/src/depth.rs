//! Queue depth of the device: the maximum number of requests in the device. It is deep enough that
//! the device is never idle while requests are queued, and shallow enough that the scheduler still
//! determines the order of requests.
//!
//! The depth grows while requests are queued for the device and its latency is low. The depth
//! shrinks while the latency exceeds [`SLOWDOWN_MAX`] times the latency under low load. Latencies
//! are compared within classes of similar request size.
//!
//! For a disk that is the only user of the store, a separate depth applies. It may increase the
//! device's latency up to [`StoreSpec::single_disk_latency_max`]. The shared depth applies again as
//! soon as another disk has a request.

use core::time::Duration;

use suimon_quantity::Time;

use crate::StoreSpec;
use crate::cost::{SIZE_CLASSES, size_class};

/// Largest ratio of the latency of a busy device to its latency under low load.
const SLOWDOWN_MAX: u64 = 3;
/// Latency in nanoseconds up to which the device never counts as overloaded. Below it, most of the
/// latency is caused by the storage engine.
const SHORT_NS: u64 = 100_000;
/// Minimum number of completions on which an adjustment of the depth is based.
const SAMPLES_MIN: u32 = 32;
const JUDGED_BY_MAX: u32 = 256;
/// Interval after which the depth is adjusted on the basis of at least [`FEW`] completions.
const ADJUST_INTERVAL: Duration = Duration::from_millis(500);
const FEW: u32 = 4;
/// Value that represents 1 in the fixed-point ratio of the latency to the permitted latency.
const ONE: u64 = 1024;
/// Ratio, in units of 1/[`ONE`], below which the depth grows by a half.
const FAST: u64 = 600;
/// Ratio, in units of 1/[`ONE`], below which the depth grows by an eighth.
const FAST_ENOUGH: u64 = 900;
/// Interval at which the latency under low load is measured, by a short reduction of the depth
/// (probe).
const PROBE_EVERY: Duration = Duration::from_secs(30);
const PROBE_MAX: Duration = Duration::from_millis(500);
const START: u32 = 4;
/// Time without requests after which another disk no longer counts as a user of the store.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// Completed requests of one class of similar sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Sum of the latencies of the requests that completed since the last adjustment.
    sum_ns: u64,
    /// Number of these requests.
    count: u32,
    /// Mean latency under low load in nanoseconds; 0 if not known.
    least_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct DepthController {
    min: u32,
    max: u32,
    /// Depth that applies while several disks use the device.
    shared: u32,
    /// Depth that applies while one disk uses the device; `None` while several do.
    alone: Option<u32>,
    /// Depth in effect, including that of a probe. Stored because each request is compared with it.
    limit: u32,
    /// Number of completions after which the depth is adjusted.
    enough: u32,
    alone_ns: u64,
    /// Time until which the device counts as used by several disks.
    shared_until: Time,
    pub(crate) in_flight: u32,
    was_full: bool,
    classes: [Class; SIZE_CLASSES],
    completed: u32,
    adjusted_at: Time,
    /// Mean latency at the last adjustment in nanoseconds; 0 if not known.
    pub(crate) latency_ns: u64,
    probed: Time,
    probe: Option<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    limit: u32,
    started: Time,
    /// Number of completions to ignore, because their requests were submitted before the probe.
    skip: u32,
}

impl DepthController {
    pub(crate) fn new(spec: &StoreSpec) -> Self {
        let max = spec.depth_max.max(1);
        let min = spec.depth_min.clamp(1, max);
        let start = START.clamp(min, max);
        let mut depth = Self {
            min,
            max,
            shared: start,
            alone: None,
            limit: start,
            enough: start,
            alone_ns: u64::try_from(spec.single_disk_latency_max.as_nanos()).unwrap_or(u64::MAX),
            shared_until: Time::ZERO,
            in_flight: 0,
            was_full: false,
            classes: [Class::default(); SIZE_CLASSES],
            completed: 0,
            adjusted_at: Time::ZERO,
            latency_ns: 0,
            probed: Time::ZERO,
            probe: None,
        };
        depth.update_limit();
        depth
    }

    /// Returns the maximum number of requests in the device.
    #[inline]
    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    fn tuned(&self) -> u32 {
        self.alone.unwrap_or(self.shared)
    }

    /// Recomputes the values that are derived from the depths.
    fn update_limit(&mut self) {
        let tuned = self.tuned();
        self.limit = self.probe.map_or(tuned, |probe| probe.limit);
        self.enough = tuned.clamp(SAMPLES_MIN, JUDGED_BY_MAX);
    }

    /// Records whether all queued and in-flight requests belong to one disk.
    #[inline]
    pub(crate) fn record_single_disk(&mut self, now: Time, is_alone: bool) {
        if !is_alone {
            self.shared_until = now + GONE_AFTER;
        }
        if is_alone == self.alone.is_some() {
            return;
        }
        if !is_alone {
            self.switch(None);
        } else if self.alone_ns > 0 && now >= self.shared_until && self.probe.is_none() {
            self.switch(Some(self.shared));
        }
    }

    /// Switches between the shared depth (`None`) and that of a single user. Completions counted so
    /// far are discarded, because they belong to the previous depth.
    #[cold]
    fn switch(&mut self, alone: Option<u32>) {
        self.alone = alone;
        self.update_limit();
        self.completed = 0;
        for class in &mut self.classes {
            (class.sum_ns, class.count) = (0, 0);
        }
    }

    /// Returns true while the latency under low load is being measured.
    #[inline]
    pub(crate) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < self.limit()
    }

    /// Returns the number of further requests that the device may receive.
    #[inline]
    pub(crate) fn remaining(&self) -> u32 {
        self.limit().saturating_sub(self.in_flight)
    }

    /// Records that a request is queued because the device is full.
    #[inline]
    pub(crate) fn handle_full(&mut self) {
        self.was_full = true;
    }

    /// Subtracts completed requests from those in flight. Returns the number of them whose latency
    /// is to be counted: during a probe, requests submitted before it are not counted.
    #[inline]
    pub(crate) fn subtract_completed(&mut self, requests: u32) -> u32 {
        self.in_flight = self.in_flight.saturating_sub(requests);
        let Some(probe) = &mut self.probe else { return requests };
        let skipped = requests.min(probe.skip);
        probe.skip -= skipped;
        requests - skipped
    }

    /// Accounts for `requests` completed requests of `cost` operations each; `latency_ns` is the
    /// sum of their latencies.
    #[inline]
    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        cost: u32,
        requests: u32,
        latency_ns: u64,
    ) {
        let counted = self.subtract_completed(requests);
        if counted == 0 {
            return;
        }
        let latency_ns = if counted == requests {
            latency_ns
        } else {
            latency_ns / u64::from(requests) * u64::from(counted)
        };
        if let Some(class) = self.classes.get_mut(size_class(cost)) {
            class.sum_ns = class.sum_ns.saturating_add(latency_ns);
            class.count += counted;
        }
        let before = self.completed;
        self.completed += counted;
        if self.completed >= self.enough || before / FEW != self.completed / FEW {
            self.adjust_if_due(now);
        }
    }

    #[cold]
    fn adjust_if_due(&mut self, now: Time) {
        let has_enough = match self.probe {
            Some(probe) => {
                now.since(probe.started) >= PROBE_MAX || self.completed >= SAMPLES_MIN / 2
            }
            None => self.completed >= self.enough || now.since(self.adjusted_at) >= ADJUST_INTERVAL,
        };
        if has_enough {
            self.adjust_depth(now);
        }
    }

    fn adjust_depth(&mut self, now: Time) {
        let is_probe = self.probe.take().is_some();
        let patience_ns = if self.alone.is_some() { self.alone_ns.max(SHORT_NS) } else { SHORT_NS };
        let tuned = self.tuned();
        let (mut ratios, mut sum, mut count) = (0u64, 0u64, 0u64);
        for class in &mut self.classes {
            let requests = u64::from(class.count);
            if let Some(mean) = class.sum_ns.checked_div(requests) {
                // At such a small depth, the load is low regardless of earlier latencies.
                let has_little = is_probe || tuned <= START;
                if class.count >= FEW
                    && (has_little || class.least_ns == 0 || mean < class.least_ns)
                {
                    class.least_ns = mean.max(1);
                }
                if class.least_ns == 0 {
                    // The requests are too few to determine the permitted latency. They are counted
                    // in the next adjustment.
                    continue;
                }
                let allowed = patience_ns.max(class.least_ns.saturating_mul(SLOWDOWN_MAX));
                let ratio = mean.saturating_mul(ONE) / allowed;
                ratios = ratios.saturating_add(ratio.saturating_mul(requests));
                sum = sum.saturating_add(class.sum_ns);
                count += requests;
            }
            class.sum_ns = 0;
            class.count = 0;
        }
        let ratio = ratios / count.max(1);
        if is_probe {
            self.probed = now;
        } else {
            self.latency_ns = sum.checked_div(count).unwrap_or(self.latency_ns);
            self.adjust(ratio);
            if now.since(self.probed) >= PROBE_EVERY && self.was_full {
                let limit = (self.shared / 4).max(self.min);
                self.probe = Some(Probe { limit, started: now, skip: self.in_flight });
            }
        }
        self.update_limit();
        self.completed = 0;
        self.was_full = false;
        self.adjusted_at = now;
    }

    fn adjust(&mut self, ratio: u64) {
        let limit = u64::from(self.tuned());
        let depth = if ratio > ONE {
            // Half of the difference to the depth at which the latency would be the permitted one,
            // assuming that latency is proportional to depth.
            (limit + limit * ONE / ratio) / 2
        } else if self.was_full && ratio < FAST {
            limit + (limit / 2).max(1)
        } else if self.was_full && ratio < FAST_ENOUGH {
            limit + (limit / 8).max(1)
        } else {
            limit
        };
        let depth = u32::try_from(depth).unwrap_or(u32::MAX).clamp(self.min, self.max);
        *self.alone.as_mut().unwrap_or(&mut self.shared) = depth;
    }
}

#[cfg(test)]
#[path = "depth_tests.rs"]
mod tests;
