//! Three frames in any second.

use suimon_quantity::Time;

use super::constants::{FAST_PERIODIC_TIME, SENT_MAX};

/// The times of the last frames: no more than [`SENT_MAX`] in any
/// `Fast_Periodic_Time` (IEEE 802.1AX-2014, 6.4.16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Latest first.
    sent: [Option<Time>; SENT_MAX],
}

impl Rate {
    /// When the next frame may be sent; `None` if at any time.
    pub(crate) fn next(&self) -> Option<Time> {
        let [.., oldest] = self.sent;
        // One nanosecond more, for an interval that includes both its ends.
        oldest.map(|at| Time::from_ns((at + FAST_PERIODIC_TIME).as_ns().saturating_add(1)))
    }

    /// Whether a frame may be sent now; if so, it counts as sent.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        if self.next().is_some_and(|at| now < at) {
            return false;
        }
        let [latest, middle, _] = self.sent;
        self.sent = [Some(now), latest, middle];
        true
    }
}
