//! A maximum, as the time up to which it is used up.

use core::time::Duration;

use suimon_quantity::Time;

use crate::pace::{Fine, Pace, fine, fine_ns, not_after, not_before};

/// How long a maximum that was not used may be made up for: so a disk at depth 1 keeps
/// its maximum although the device's latency changes and timers fire late.
///
/// It is the only way to more than a maximum and a burst: over any window what is
/// dispatched counts as at most the maximum over the window and this, the burst, and
/// one request.
pub const CATCH_UP: Duration = Duration::from_millis(20);

/// The same of a disk with a minimum. Others are held back for it only when it is behind, and what it
/// is behind then has to be made up for, within the maximum: so this is more than it takes until
/// they are held back, also where the maximum is hardly above the minimum and requests are as
/// large as half a megabyte. It is 1.6 % of five seconds.
pub const CATCH_UP_WITH_MINIMUM: Duration = Duration::from_millis(80);

/// A rate limit in the virtual scheduling form of the generic cell rate algorithm (ITU-T
/// I.371, annex A). It says when the next request may go, whatever that counts as; the
/// request is paid for afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pace: Pace,
    /// How far it may be used ahead, in nanoseconds.
    tolerance_ns: u64,
    used_until: Fine,
}

impl Meter {
    /// Of a maximum that has not been used; `extra` units may be used at once.
    pub(crate) fn new(per_second: u64, extra: u64, catch_up: Duration) -> Self {
        let pace = Pace::at_most(per_second);
        Self { pace, tolerance_ns: tolerance_ns(pace, extra, catch_up), used_until: 0 }
    }

    /// The same use, at another rate. What may be used ahead is used up at most: a lower
    /// rate does not have to make up for what a higher one allowed.
    pub(crate) fn retuned(
        self,
        per_second: u64,
        extra: u64,
        catch_up: Duration,
        now: Time,
    ) -> Self {
        let new = Self::new(per_second, extra, catch_up);
        let ahead = self.used_until.saturating_sub(fine(now));
        let owed = ahead.saturating_sub(fine_ns(self.tolerance_ns));
        let owed = fine_ns(new.tolerance_ns).saturating_add(self.pace.translate(owed, new.pace));
        let ahead = self.pace.translate(ahead, new.pace).min(owed);
        // No later than there is time, so that sums of it and of requests' spans are far from overflow.
        Self { used_until: fine(now).saturating_add(ahead).min(fine(Time::NEVER)), ..new }
    }

    /// When the next request may go; may be in the past.
    #[inline]
    pub(crate) fn opens(&self) -> Time {
        let ns = not_before(self.used_until).as_ns();
        Time::from_ns(ns.saturating_sub(self.tolerance_ns))
    }

    /// When the next request may go then.
    #[inline]
    pub(crate) fn charge(&mut self, now: Time, units: u32) -> Time {
        self.used_until = self.used_until.max(fine(now)) + self.pace.span(units);
        self.opens()
    }

    /// Takes a charge back.
    pub(crate) fn refund(&mut self, units: u32) {
        self.used_until = self.used_until.saturating_sub(self.pace.span(units));
    }
}

fn tolerance_ns(pace: Pace, extra: u64, catch_up: Duration) -> u64 {
    let whole = extra / u64::from(u32::MAX);
    let rest = (extra % u64::from(u32::MAX)) as u32;
    let many = pace.span(u32::MAX).saturating_mul(Fine::from(whole));
    let ns = not_after(many.saturating_add(pace.span(rest))).as_ns();
    ns.saturating_add(u64::try_from(catch_up.as_nanos()).unwrap_or(u64::MAX))
}
