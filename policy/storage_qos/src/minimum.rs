//! A minimum, as the time at which its next request is due.

use suimon_quantity::Iops;

use crate::pace::{Fine, Pace, fine_ns};

/// What a minimum is behind may be made up for, up to so much or a few requests.
const KEPT_NS: u64 = 100_000_000;
/// A minimum is behind when it is so late, or [`BEHIND_REQUESTS`].
const BEHIND_NS: u64 = 10_000_000;
const BEHIND_REQUESTS: Fine = 2;

/// Times are those of the reservation clock, which stands still while a store can do
/// less than all minimums together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minimum {
    pace: Pace,
    /// When the next request is due.
    pub(crate) due: Fine,
    /// What the last request counted as.
    last: u32,
}

impl Minimum {
    pub(crate) fn new(rate: Iops, clock: Fine) -> Self {
        Self { pace: Pace::at_least(rate.per_second()), due: clock, last: 0 }
    }

    /// The same minimum at another rate: what is owed stays owed.
    pub(crate) fn retuned(self, rate: Iops) -> Self {
        Self { pace: Pace::at_least(rate.per_second()), ..self }
    }

    /// Something was done, because it was due or because there was time: it counts, but
    /// what was done early puts the next one off by no more than its own time.
    #[inline]
    pub(crate) fn charge(&mut self, clock: Fine, cost: u32) {
        if self.due > clock {
            return self.charge_early(clock, cost);
        }
        self.due += self.pace.span(cost);
        self.last = cost;
    }

    /// The same of one request or several that count as `cost` each, before the minimum is due.
    #[inline]
    pub(crate) fn charge_early(&mut self, clock: Fine, cost: u32) {
        self.due = self.due.max(clock + self.pace.span(cost));
        self.last = cost;
    }

    /// Takes a charge back.
    pub(crate) fn refund(&mut self, cost: u32) {
        self.due = self.due.saturating_sub(self.pace.span(cost));
    }

    /// What the disk's own maximum kept from it is not owed.
    pub(crate) fn forgive(&mut self, clock: Fine) {
        self.due = self.due.max(clock);
    }

    /// The disk asks again after it asked for nothing for `idle`, which is not owed.
    pub(crate) fn resume(&mut self, clock: Fine, idle: Fine) {
        let due = self.due.saturating_add(idle);
        let oldest =
            if idle > fine_ns(KEPT_NS) { clock } else { clock.saturating_sub(self.kept()) };
        self.due = if due < clock { due.max(oldest) } else { self.due.max(clock) };
    }

    /// How late it is.
    #[inline]
    pub(crate) fn lag(&self, clock: Fine) -> Fine {
        clock.saturating_sub(self.due)
    }

    pub(crate) fn is_behind(&self, clock: Fine) -> bool {
        self.lag(clock) > fine_ns(BEHIND_NS).max(self.pace.span(self.last) * BEHIND_REQUESTS)
    }

    /// The most that may be made up for.
    #[inline]
    pub(crate) fn kept(&self) -> Fine {
        fine_ns(KEPT_NS).max(self.pace.span(self.last) * 2 * BEHIND_REQUESTS)
    }
}
