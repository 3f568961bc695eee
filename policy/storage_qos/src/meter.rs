//! Meter of a maximum. Its state is the time up to which the maximum is used up.

use core::time::Duration;

use suimon_quantity::Time;

use crate::unit_time::{
    FixedNs, UnitTime, fixed_from_ns, fixed_from_time, round_down_to_time, round_up_to_time,
};

/// Time for which unused operations of a maximum may be used later. A disk at queue depth 1 thereby
/// reaches its maximum although device latency varies and timers fire late.
///
/// This time and the burst are the only tolerances. Over any time window, the operations dispatched
/// are at most those of the maximum over the window plus this time, the burst, and one request.
pub const CATCH_UP_WINDOW: Duration = Duration::from_millis(20);

/// As [`CATCH_UP_WINDOW`], for a disk with a minimum. Other disks are held back only after the
/// minimum is behind, and the disk must be able to make up for the shortfall within its maximum.
/// The value exceeds the time until other disks are held back, even if the maximum is slightly
/// above the minimum and requests have 512 KiB. It is 1.6 % of five seconds.
pub const CATCH_UP_WINDOW_WITH_MINIMUM: Duration = Duration::from_millis(80);

/// Rate limit in the virtual scheduling form of the generic cell rate algorithm (ITU-T I.371, annex
/// A). The time of the next request does not depend on its cost: a request is charged after its
/// dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pace: UnitTime,
    /// Time in nanoseconds by which the use of the maximum may be ahead.
    tolerance_ns: u64,
    used_until: FixedNs,
}

impl Meter {
    /// Creates the meter of an unused maximum of `per_second` units. `extra` units may be used at
    /// once, in addition to those of `catch_up`.
    pub(crate) fn new(per_second: u64, extra: u64, catch_up: Duration) -> Self {
        let pace = UnitTime::from_rate_max(per_second);
        Self { pace, tolerance_ns: tolerance_ns(pace, extra, catch_up), used_until: 0 }
    }

    /// Returns a meter with another rate that preserves the use of this meter. The new meter is at
    /// most fully used up: use that a higher rate permitted is not charged at a lower rate.
    pub(crate) fn with_rate(
        self,
        per_second: u64,
        extra: u64,
        catch_up: Duration,
        now: Time,
    ) -> Self {
        let new = Self::new(per_second, extra, catch_up);
        let ahead = self.used_until.saturating_sub(fixed_from_time(now));
        let debt = ahead.saturating_sub(fixed_from_ns(self.tolerance_ns));
        let debt =
            fixed_from_ns(new.tolerance_ns).saturating_add(self.pace.convert_span(debt, new.pace));
        let ahead = self.pace.convert_span(ahead, new.pace).min(debt);
        // The value is limited to the largest time, so that sums with the spans of requests do not
        // overflow.
        Self {
            used_until: fixed_from_time(now)
                .saturating_add(ahead)
                .min(fixed_from_time(Time::NEVER)),
            ..new
        }
    }

    /// Returns the time of the next permitted request, which may be in the past.
    #[inline]
    pub(crate) fn next_permitted_at(&self) -> Time {
        let ns = round_up_to_time(self.used_until).as_ns();
        Time::from_ns(ns.saturating_sub(self.tolerance_ns))
    }

    /// Charges a request of `units` units at `now`, and returns the time of the next permitted
    /// request.
    #[inline]
    pub(crate) fn charge(&mut self, now: Time, units: u32) -> Time {
        self.used_until =
            self.used_until.max(fixed_from_time(now)) + self.pace.duration_of_units(units);
        self.next_permitted_at()
    }

    /// Refunds a charge of `units` units.
    pub(crate) fn refund(&mut self, units: u32) {
        self.used_until = self.used_until.saturating_sub(self.pace.duration_of_units(units));
    }
}

fn tolerance_ns(pace: UnitTime, extra: u64, catch_up: Duration) -> u64 {
    let chunks = extra / u64::from(u32::MAX);
    let remainder = (extra % u64::from(u32::MAX)) as u32;
    let chunk_span = pace.duration_of_units(u32::MAX).saturating_mul(FixedNs::from(chunks));
    let ns =
        round_down_to_time(chunk_span.saturating_add(pace.duration_of_units(remainder))).as_ns();
    ns.saturating_add(u64::try_from(catch_up.as_nanos()).unwrap_or(u64::MAX))
}
