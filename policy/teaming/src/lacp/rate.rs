//! Rate limit of three frames in any second.

use suimon_quantity::Time;

use super::constants::{FAST_PERIODIC_TIME, SENT_MAX};

/// Send times of the last frames: at most [`SENT_MAX`] in any `Fast_Periodic_Time` (IEEE
/// 802.1AX-2014, 6.4.16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Send times, latest first; `None` for unused places.
    sent: [Option<Time>; SENT_MAX],
}

impl Rate {
    /// Returns the time at which the next frame may be sent; `None` if immediately.
    pub(crate) fn next_send_time(&self) -> Option<Time> {
        let [.., oldest] = self.sent;
        // One nanosecond more, because the interval includes both its ends.
        oldest.map(|time| Time::from_ns((time + FAST_PERIODIC_TIME).as_ns().saturating_add(1)))
    }

    /// Returns whether a frame may be sent at `now`, and if so counts it as sent.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        if self.next_send_time().is_some_and(|deadline| now < deadline) {
            return false;
        }
        let [latest, middle, _] = self.sent;
        self.sent = [Some(now), latest, middle];
        true
    }
}
