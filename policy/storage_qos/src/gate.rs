//! Limit of all disks of a store on this node together: the node's share of a store that other
//! nodes use.

use suimon_quantity::{Time, TimedRateLimit};

use crate::{CATCH_UP, QueueCause};

/// One operation in units of credit. One unit is a rate of one operation per second times one
/// nanosecond.
const OPERATION: i128 = 1_000_000_000;

/// Meter that limits dispatches to a [`TimedRateLimit`] (cap). Without a cap, the meter permits
/// every dispatch.
///
/// The cap is evaluated at each dispatch. Credit accrues by the rate that applied at each moment,
/// not by the current rate. Over any time window, the operations dispatched are at most those that
/// the cap permitted in it, plus those of the highest rate in [`CATCH_UP`], plus one request. This
/// holds regardless of how often the cap is replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapMeter {
    limit: Option<Limit>,
    /// True if requests were queued for the cap more recently than for the device.
    is_limiting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    cap: TimedRateLimit,
    /// Rate of the cap since `seen`, in operations per second.
    rate: u64,
    /// Time up to which `credit` is computed.
    updated_at: Time,
    /// Credit that is available for dispatches; negative after dispatches beyond the credit.
    credit: i128,
    /// True if the cap permitted no dispatch when it was last evaluated.
    is_closed: bool,
}

impl CapMeter {
    /// Sets the cap; `None` removes it.
    pub(crate) fn set(&mut self, now: Time, cap: Option<TimedRateLimit>) {
        self.update(now);
        self.is_limiting &= cap.is_some();
        let credit = self.limit.map_or(0, |limit| limit.credit);
        self.limit = cap.map(|cap| {
            let rate = cap.iops_at(now);
            let credit = credit.min(Limit::credit_max(rate));
            Limit { cap, rate, updated_at: now, credit, is_closed: rate == 0 || credit < 0 }
        });
    }

    /// Returns true if there is a cap.
    #[inline]
    pub(crate) const fn is_capped(&self) -> bool {
        self.limit.is_some()
    }

    /// Returns true if a request may be dispatched now.
    #[inline]
    pub(crate) fn is_open(&mut self, now: Time) -> bool {
        self.limit.is_none() || self.update(now)
    }

    fn update(&mut self, now: Time) -> bool {
        let Some(limit) = &mut self.limit else { return true };
        // A cap contains at most two changes of its rate.
        while let Some(time) =
            limit.cap.next_change_after(limit.updated_at).filter(|time| *time <= now)
        {
            limit.earn(time);
            limit.rate = limit.cap.iops_at(time);
        }
        limit.earn(now);
        limit.is_closed = limit.rate == 0 || limit.credit < 0;
        !limit.is_closed
    }

    /// Records whether requests are queued because of the cap or for the device.
    #[inline]
    pub(crate) const fn set_holds(&mut self, holds: bool) {
        self.is_limiting = holds;
    }

    /// Returns true if requests are queued because of the cap.
    pub(crate) const fn is_limiting(&self) -> bool {
        self.is_limiting
    }

    /// Returns the cause of queueing for flows that are dispatched by weight.
    #[inline]
    pub(crate) const fn contention(&self) -> QueueCause {
        if self.is_limiting { QueueCause::StoreCap } else { QueueCause::DeviceDepth }
    }

    /// Charges a dispatch. Must follow a call of [`CapMeter::is_open`] that returned true.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit -= i128::from(cost) * OPERATION;
            limit.is_closed |= limit.credit < 0;
        }
    }

    /// Refunds the charge of a dispatch.
    pub(crate) fn refund(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit += i128::from(cost) * OPERATION;
            limit.is_closed &= limit.rate == 0 || limit.credit < 0;
        }
    }

    /// Returns the time of the next evaluation. `None` if the last evaluation permitted a dispatch.
    #[inline]
    pub(crate) fn closed_until(&self) -> Option<Time> {
        let limit = self.limit.as_ref().filter(|limit| limit.is_closed)?;
        let changes = limit.cap.next_change_after(limit.updated_at).unwrap_or(Time::NEVER);
        Some(limit.opens().min(changes))
    }
}

impl Limit {
    fn credit_max(rate: u64) -> i128 {
        i128::from(rate) * i128::try_from(CATCH_UP.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Adds the credit accrued since the last evaluation.
    fn earn(&mut self, now: Time) {
        let ns = now.as_ns().saturating_sub(self.updated_at.as_ns());
        let credit = self.credit + i128::from(self.rate) * i128::from(ns);
        self.credit = credit.min(Self::credit_max(self.rate));
        self.updated_at = self.updated_at.max(now);
    }

    /// Returns the time of the next permitted dispatch at the current rate.
    fn opens(&self) -> Time {
        if self.rate == 0 {
            return Time::NEVER;
        }
        let debt = u128::try_from(-self.credit).unwrap_or_default();
        let ns = debt.div_ceil(u128::from(self.rate));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        Time::from_ns(self.updated_at.as_ns().saturating_add(ns))
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
