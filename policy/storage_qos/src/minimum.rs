//! Meter of a minimum. Its state is the time at which the next request is due.

use suimon_quantity::Iops;

use crate::unit_time::{FixedNs, UnitTime, fixed_from_ns};

/// Maximum lag in nanoseconds that a flow may make up for.
const LAG_MAX_NS: u64 = 100_000_000;
/// Minimum lag at which a minimum counts as behind, in nanoseconds; it must also be at least
/// [`BEHIND_REQUESTS`] requests.
const BEHIND_NS: u64 = 10_000_000;
const BEHIND_REQUESTS: FixedNs = 2;

/// Meter of a minimum. Times are those of the reservation clock, which stops while the store's
/// capacity is below the sum of the minimums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinimumMeter {
    pace: UnitTime,
    /// Due time of the next request.
    pub(crate) due_at: FixedNs,
    /// Cost of the last request in operations.
    last: u32,
}

impl MinimumMeter {
    pub(crate) fn new(rate: Iops, clock: FixedNs) -> Self {
        Self { pace: UnitTime::from_rate_min(rate.per_second()), due_at: clock, last: 0 }
    }

    /// Returns a meter with another rate. Operations that are owed remain owed.
    pub(crate) fn with_rate(self, rate: Iops) -> Self {
        Self { pace: UnitTime::from_rate_min(rate.per_second()), ..self }
    }

    /// Charges a dispatched request of `cost` operations. If the minimum was not due, the request
    /// delays the next due time by at most its own cost.
    #[inline]
    pub(crate) fn charge(&mut self, clock: FixedNs, cost: u32) {
        if self.due_at > clock {
            return self.charge_early(clock, cost);
        }
        self.due_at += self.pace.duration_of_units(cost);
        self.last = cost;
    }

    /// Charges one or more requests of `cost` operations each that were dispatched before the
    /// minimum was due.
    #[inline]
    pub(crate) fn charge_early(&mut self, clock: FixedNs, cost: u32) {
        self.due_at = self.due_at.max(clock + self.pace.duration_of_units(cost));
        self.last = cost;
    }

    /// Refunds the charge of requests of `cost` operations. The refund does not let the minimum lag
    /// behind by more than what may be made up for, because the catch-up of other flows would then
    /// be dropped, too.
    pub(crate) fn refund(&mut self, clock: FixedNs, cost: u32) {
        let oldest = self.due_at.min(clock.saturating_sub(self.lag_max()));
        self.due_at = self.due_at.saturating_sub(self.pace.duration_of_units(cost)).max(oldest);
    }

    /// Cancels owed operations that the disk's own maximum has prevented.
    pub(crate) fn cancel_owed(&mut self, clock: FixedNs) {
        self.due_at = self.due_at.max(clock);
    }

    /// Continues after the flow had no requests for `idle`. Operations of that time are not owed.
    pub(crate) fn resume(&mut self, clock: FixedNs, idle: FixedNs) {
        let due = self.due_at.saturating_add(idle);
        let oldest = if idle > fixed_from_ns(LAG_MAX_NS) {
            clock
        } else {
            clock.saturating_sub(self.lag_max())
        };
        self.due_at = if due < clock { due.max(oldest) } else { self.due_at.max(clock) };
    }

    /// Returns the time by which the minimum is behind on the reservation clock; 0 if it is not
    /// due.
    #[inline]
    pub(crate) fn lag(&self, clock: FixedNs) -> FixedNs {
        clock.saturating_sub(self.due_at)
    }

    pub(crate) fn is_behind(&self, clock: FixedNs) -> bool {
        self.lag(clock)
            > fixed_from_ns(BEHIND_NS).max(self.pace.duration_of_units(self.last) * BEHIND_REQUESTS)
    }

    /// Returns the maximum lag that may be made up for.
    #[inline]
    pub(crate) fn lag_max(&self) -> FixedNs {
        fixed_from_ns(LAG_MAX_NS).max(self.pace.duration_of_units(self.last) * 2 * BEHIND_REQUESTS)
    }
}
