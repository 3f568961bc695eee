//! Meter of a minimum. Its state is the time at which the next request is due.

use suimon_quantity::Iops;

use crate::pace::{FixedNs, UnitTime, fine_ns};

/// Maximum lag in nanoseconds that a flow may make up for.
const LAG_MAX_NS: u64 = 100_000_000;
/// Minimum lag at which a minimum counts as behind, in nanoseconds; it must also be at least
/// [`BEHIND_REQUESTS`] requests.
const BEHIND_NS: u64 = 10_000_000;
const BEHIND_REQUESTS: FixedNs = 2;

/// Meter of a minimum. Times are those of the reservation clock, which stops while the store's
/// capacity is below the sum of the minimums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minimum {
    pace: UnitTime,
    /// Due time of the next request.
    pub(crate) due: FixedNs,
    /// Cost of the last request in operations.
    last: u32,
}

impl Minimum {
    pub(crate) fn new(rate: Iops, clock: FixedNs) -> Self {
        Self { pace: UnitTime::at_least(rate.per_second()), due: clock, last: 0 }
    }

    /// Returns a meter with another rate. Operations that are owed remain owed.
    pub(crate) fn retuned(self, rate: Iops) -> Self {
        Self { pace: UnitTime::at_least(rate.per_second()), ..self }
    }

    /// Charges a dispatched request of `cost` operations. If the minimum was not due, the request
    /// delays the next due time by at most its own cost.
    #[inline]
    pub(crate) fn charge(&mut self, clock: FixedNs, cost: u32) {
        if self.due > clock {
            return self.charge_early(clock, cost);
        }
        self.due += self.pace.span(cost);
        self.last = cost;
    }

    /// Charges one or more requests of `cost` operations each that were dispatched before the
    /// minimum was due.
    #[inline]
    pub(crate) fn charge_early(&mut self, clock: FixedNs, cost: u32) {
        self.due = self.due.max(clock + self.pace.span(cost));
        self.last = cost;
    }

    /// Refunds the charge of requests of `cost` operations. The refund does not let the minimum lag
    /// behind by more than what may be made up for, because the catch-up of other flows would then
    /// be dropped, too.
    pub(crate) fn refund(&mut self, clock: FixedNs, cost: u32) {
        let oldest = self.due.min(clock.saturating_sub(self.guaranteed()));
        self.due = self.due.saturating_sub(self.pace.span(cost)).max(oldest);
    }

    /// Cancels owed operations that the disk's own maximum has prevented.
    pub(crate) fn forgive(&mut self, clock: FixedNs) {
        self.due = self.due.max(clock);
    }

    /// Continues after the flow had no requests for `idle`. Operations of that time are not owed.
    pub(crate) fn resume(&mut self, clock: FixedNs, idle: FixedNs) {
        let due = self.due.saturating_add(idle);
        let oldest = if idle > fine_ns(LAG_MAX_NS) {
            clock
        } else {
            clock.saturating_sub(self.guaranteed())
        };
        self.due = if due < clock { due.max(oldest) } else { self.due.max(clock) };
    }

    /// Returns the time by which the minimum is behind on the reservation clock; 0 if it is not
    /// due.
    #[inline]
    pub(crate) fn lag(&self, clock: FixedNs) -> FixedNs {
        clock.saturating_sub(self.due)
    }

    pub(crate) fn is_behind(&self, clock: FixedNs) -> bool {
        self.lag(clock) > fine_ns(BEHIND_NS).max(self.pace.span(self.last) * BEHIND_REQUESTS)
    }

    /// Returns the maximum lag that may be made up for.
    #[inline]
    pub(crate) fn guaranteed(&self) -> FixedNs {
        fine_ns(LAG_MAX_NS).max(self.pace.span(self.last) * 2 * BEHIND_REQUESTS)
    }
}
