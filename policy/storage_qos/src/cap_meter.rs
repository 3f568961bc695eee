//! Limit of the rate of a flow, or of all disks of a store on this node, that changes over time:
//! the node's share of a store or policy that other nodes use, too.

use suimon_quantity::{Time, TimedRateLimit};

use crate::{CATCH_UP_WINDOW, QueueCause};

/// Credit for one operation. One unit is a rate of one operation per second times one nanosecond.
const OPERATION: i128 = 1_000_000_000;

/// Meter that limits dispatches to a [`TimedRateLimit`] (cap). Without a cap, the meter permits
/// every dispatch.
///
/// The cap is evaluated at each dispatch. Credit accrues by the rate that applied at each moment,
/// not by the current rate. Over any time window, the operations dispatched are at most those that
/// the cap permitted in it, plus those of the highest rate in [`CATCH_UP_WINDOW`], plus one
/// request. This holds regardless of how often the cap is replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapMeter {
    limit: Option<Limit>,
    /// True if requests were last found queued because of the cap, false if for the device.
    is_limiting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    cap: TimedRateLimit,
    /// Rate of the cap since `updated_at`, in operations per second.
    rate: u64,
    /// Time up to which `credit` is computed.
    updated_at: Time,
    /// Credit that is available for dispatches; negative after dispatches beyond the credit.
    credit: i128,
    /// True if the cap permitted no dispatch when it was last evaluated.
    is_closed: bool,
}

impl CapMeter {
    /// Sets the cap from `now` on; `None` removes it. Credit is kept as far as the new rate
    /// permits.
    pub(crate) fn set_cap(&mut self, now: Time, cap: Option<TimedRateLimit>) {
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

    /// Records whether requests are queued because of the cap (true) or for the device (false).
    #[inline]
    pub(crate) const fn set_limiting(&mut self, holds: bool) {
        self.is_limiting = holds;
    }

    /// Returns true if requests are queued because of the cap, as last recorded.
    pub(crate) const fn is_limiting(&self) -> bool {
        self.is_limiting
    }

    /// Returns the cause of queueing of flows that no maximum delays: cap or device.
    #[inline]
    pub(crate) const fn contention(&self) -> QueueCause {
        if self.is_limiting { QueueCause::StoreCap } else { QueueCause::DeviceDepth }
    }

    /// Charges a dispatch of `cost` operations. Must follow a call of [`CapMeter::is_open`] that
    /// returned true.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit -= i128::from(cost) * OPERATION;
            limit.is_closed |= limit.credit < 0;
        }
    }

    /// Refunds `cost` operations that were charged.
    pub(crate) fn refund(&mut self, cost: u32) {
        if let Some(limit) = &mut self.limit {
            limit.credit += i128::from(cost) * OPERATION;
            limit.is_closed &= limit.rate == 0 || limit.credit < 0;
        }
    }

    /// Returns when the cap may permit the next dispatch; `None` if it permitted one at the last
    /// evaluation.
    #[inline]
    pub(crate) fn closed_until(&self) -> Option<Time> {
        let limit = self.limit.as_ref().filter(|limit| limit.is_closed)?;
        let changes = limit.cap.next_change_after(limit.updated_at).unwrap_or(Time::NEVER);
        Some(limit.opens().min(changes))
    }
}

impl Limit {
    fn credit_max(rate: u64) -> i128 {
        i128::from(rate) * i128::try_from(CATCH_UP_WINDOW.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Adds the credit for the time from `updated_at` to `now` at the current rate.
    fn earn(&mut self, now: Time) {
        let ns = now.as_ns().saturating_sub(self.updated_at.as_ns());
        let credit = self.credit + i128::from(self.rate) * i128::from(ns);
        self.credit = credit.min(Self::credit_max(self.rate));
        self.updated_at = self.updated_at.max(now);
    }

    /// Returns the time of the next permitted dispatch if the rate does not change; [`Time::NEVER`]
    /// at rate 0.
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
#[path = "cap_meter_tests.rs"]
mod tests;
