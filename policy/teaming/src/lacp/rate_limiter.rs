//! Rate limit of transmitted frames: three in any second.

use suimon_quantity::Time;

use super::constants::{FAST_PERIODIC_TIME, LACPDUS_SENT_MAX};

/// Rate limit: at most [`LACPDUS_SENT_MAX`] frames in any `Fast_Periodic_Time` (IEEE 802.1AX-2014,
/// 6.4.16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RateLimiter {
    /// Send times of the last frames, latest first; `None` before that many frames were sent.
    sent: [Option<Time>; LACPDUS_SENT_MAX],
}

impl RateLimiter {
    /// Returns the time from which the next frame may be sent; `None` if at any time.
    pub(crate) fn next_send_time(&self) -> Option<Time> {
        let [.., oldest] = self.sent;
        // The interval includes both its ends, so one nanosecond more is required.
        oldest.map(|time| Time::from_ns((time + FAST_PERIODIC_TIME).as_ns().saturating_add(1)))
    }

    /// Returns true if a frame may be sent at `now`, and then counts it as sent.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        if self.next_send_time().is_some_and(|deadline| now < deadline) {
            return false;
        }
        let [latest, middle, _] = self.sent;
        self.sent = [Some(now), latest, middle];
        true
    }
}
