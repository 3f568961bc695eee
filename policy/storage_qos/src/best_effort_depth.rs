//! Holding back of other disks for a minimum that is behind although its own requests are not
//! queued: requests of the other disks delay them in the device.
//!
//! A second, lower queue depth of the device applies to requests that no minimum guarantees. This
//! depth decreases while a minimum is behind, and increases again afterwards.

use core::time::Duration;

use suimon_quantity::Time;

/// Minimum interval between adjustments, and at least the duration of two requests, after which an
/// adjustment takes effect.
const PERIOD: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub(crate) struct BestEffortDepth {
    limit: u32,
    is_behind: bool,
    next: Time,
}

impl BestEffortDepth {
    pub(crate) const fn new() -> Self {
        Self { limit: u32::MAX, is_behind: false, next: Time::ZERO }
    }

    #[inline]
    pub(crate) const fn has_room(&self, in_flight: u32) -> bool {
        in_flight < self.limit
    }

    /// Returns the number of requests without a guarantee that may be dispatched while `in_flight`
    /// requests are in the device.
    pub(crate) const fn remaining(&self, in_flight: u32) -> u32 {
        self.limit.saturating_sub(in_flight)
    }

    /// Returns true if the depth is at its minimum: only guaranteed requests are dispatched, unless
    /// the device is idle.
    pub(crate) const fn is_at_minimum(&self) -> bool {
        self.limit <= 1
    }

    /// Records that a minimum is behind, until the next adjustment.
    pub(crate) const fn handle_minimum_behind(&mut self) {
        self.is_behind = true;
    }

    /// Adjusts the depth after a completion. `in_flight` requests remain in the device; `depth` is
    /// the device's queue depth.
    #[inline]
    pub(crate) fn handle_completion(
        &mut self,
        now: Time,
        in_flight: u32,
        depth: u32,
        latency_ns: u64,
    ) {
        if (self.is_behind || self.limit != u32::MAX) && now >= self.next {
            self.adjust(now, in_flight, depth, latency_ns);
        }
    }

    #[cold]
    fn adjust(&mut self, now: Time, in_flight: u32, depth: u32, latency_ns: u64) {
        self.next = now + PERIOD.max(Duration::from_nanos(latency_ns.saturating_mul(2)));
        if self.is_behind {
            let limit = self.limit.min(depth).min(in_flight.saturating_add(1));
            self.limit = limit.saturating_sub((limit / 4).max(1)).max(1);
        } else {
            let limit = self.limit.saturating_add((self.limit / 8).max(1));
            self.limit = if limit >= depth { u32::MAX } else { limit };
        }
        self.is_behind = false;
    }
}
