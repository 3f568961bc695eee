//! Return of unused buffers of NBD connections to the system.
//!
//! A connection keeps the memory of its last requests, so that the next ones need no allocation.
//! What it has not used for [`LOOK_EVERY`] is returned.

use core::time::Duration;

use suimon_quantity::Time;

use crate::disk::QueueKind;
use crate::work::StorageEngine;

/// Interval of the check for unused buffers, while any queue has some.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// State of the check for unused buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpareLook {
    /// True if a queue may have unused buffers.
    is_wanted: bool,
    /// Time of the last check, or of the first use since.
    since: Time,
}

impl SpareLook {
    /// Records that a queue was served.
    #[inline]
    pub(crate) fn handle_served(&mut self, kind: QueueKind, now: Time) {
        if kind != QueueKind::Ring && !self.is_wanted {
            *self = Self { is_wanted: true, since: now };
        }
    }
}

impl StorageEngine {
    /// Returns unused buffers of queues to the system.
    pub(crate) fn release_spares(&mut self) {
        if !self.spare_look.is_wanted || self.now < self.spare_look.since + LOOK_EVERY {
            return;
        }
        let mut is_wanted = false;
        for number in self.queues.numbers() {
            if let Some(of) = self.queues.get_mut(number).filter(|of| of.kind != QueueKind::Ring) {
                is_wanted |= of.queue.release_unused();
            }
        }
        self.spare_look = SpareLook { is_wanted, since: self.now };
    }

    /// Returns the time of the next check for unused buffers.
    pub(crate) fn spares_deadline(&self) -> Option<Time> {
        self.spare_look.is_wanted.then(|| self.spare_look.since + LOOK_EVERY)
    }
}

#[cfg(test)]
#[path = "spare_tests.rs"]
mod tests;
