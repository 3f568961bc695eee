//! What all disks of a store together may do: a share of a store that others load too.

use suimon_quantity::{Cap, Time};

use crate::{CATCH_UP, WaitCause};

/// An operation, in what a rate of one per second brings in a nanosecond.
const OPERATION: i128 = 1_000_000_000;

/// Holds dispatches to a cap. Without one it lets everything through.
///
/// The cap is looked at with each dispatch, and what it allowed at each moment counts, not
/// what it allows when it is looked at. Over any window what is dispatched counts as at most what the
/// cap allowed in it, what its highest rate carries in [`CATCH_UP`], and one request; however often
/// the cap is set anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    limit: Option<Limit>,
    /// Requests waited for it since they last waited for the device.
    holds: bool,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    cap: Cap,
    /// What the cap is since it was looked at.
    rate: u64,
    /// Up to then `credit` counts.
    seen: Time,
    /// What may go at once; below 0 something went that is not paid for yet.
    credit: i128,
    /// Nothing went when it was last looked at.
    is_closed: bool,
}

impl Gate {
    /// From now on this holds; `None`: nothing does.
    pub(crate) fn set(&mut self, now: Time, cap: Option<Cap>) {
        self.look(now);
        self.holds &= cap.is_some();
        let credit = self.limit.map_or(0, |limit| limit.credit);
        self.limit = cap.map(|cap| {
            let rate = cap.iops_at(now);
            let credit = credit.min(Limit::credit_max(rate));
            Limit { cap, rate, seen: now, credit, is_closed: rate == 0 || credit < 0 }
        });
    }

    /// Whether there is a cap at all.
    #[inline]
    pub(crate) const fn is_capped(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether something may go now.
    #[inline]
    pub(crate) fn is_open(&mut self, now: Time) -> bool {
        self.limit.is_none() || self.look(now)
    }

    fn look(&mut self, now: Time) -> bool {
        let Some(limit) = &mut self.limit else { return true };
        // A cap changes twice at most.
        while let Some(at) = limit.cap.changes_at(limit.seen).filter(|at| *at <= now) {
            limit.earn(at);
            limit.rate = limit.cap.iops_at(at);
        }
        limit.earn(now);
        limit.is_closed = limit.rate == 0 || limit.credit < 0;
        !limit.is_closed
    }

    /// Requests wait for it, or for the device instead.
    #[inline]
    pub(crate) const fn set_holds(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// Whether requests wait for it.
    pub(crate) const fn holds(&self) -> bool {
        self.holds
    }

    /// What requests wait for that go by weight, or would.
    #[inline]
    pub(crate) const fn contention(&self) -> WaitCause {
        if self.holds { WaitCause::StoreCap } else { WaitCause::DeviceDepth }
    }

    /// Something goes, after it was looked at.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit -= i128::from(cost) * OPERATION;
            limit.is_closed |= limit.credit < 0;
        }
    }

    /// Takes a charge back.
    pub(crate) fn refund(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit += i128::from(cost) * OPERATION;
            limit.is_closed &= limit.rate == 0 || limit.credit < 0;
        }
    }

    /// If nothing goes, as far as it was looked at: when it is to be looked at again.
    #[inline]
    pub(crate) fn closed_until(&self) -> Option<Time> {
        let limit = self.limit.as_ref().filter(|limit| limit.is_closed)?;
        let changes = limit.cap.changes_at(limit.seen).unwrap_or(Time::NEVER);
        Some(limit.opens().min(changes))
    }
}

impl Limit {
    fn credit_max(rate: u64) -> i128 {
        i128::from(rate) * i128::try_from(CATCH_UP.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Adds what has come since it was looked at.
    fn earn(&mut self, now: Time) {
        let ns = now.as_ns().saturating_sub(self.seen.as_ns());
        let credit = self.credit + i128::from(self.rate) * i128::from(ns);
        self.credit = credit.min(Self::credit_max(self.rate));
        self.seen = self.seen.max(now);
    }

    /// When the next may go, if the cap stays as it is.
    fn opens(&self) -> Time {
        if self.rate == 0 {
            return Time::NEVER;
        }
        let owed = u128::try_from(-self.credit).unwrap_or_default();
        let ns = owed.div_ceil(u128::from(self.rate));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        Time::from_ns(self.seen.as_ns().saturating_add(ns))
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
