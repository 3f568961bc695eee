//! Return of unused buffers of NBD connections to the system.
//!
//! A connection keeps the memory of its last requests, so that the next ones need no allocation.
//! Memory that was not used for [`CHECK_INTERVAL`] is returned.

use core::time::Duration;

use suimon_quantity::Time;

use crate::engine::StorageEngine;
use crate::queue::QueueKind;
use crate::queue::buffer_reclaim_state::BufferReclaim;

/// Interval of the check for unused buffers, while any queue has some.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl StorageEngine {
    /// Lets queues return buffers to the system that were not used since the last check. No-op
    /// unless a check is due.
    pub(crate) fn release_unused_buffers(&mut self) {
        if !self.buffer_reclaim.is_pending || self.now < self.buffer_reclaim.since + CHECK_INTERVAL
        {
            return;
        }
        let mut has_unreleased = false;
        for number in self.queues.numbers() {
            if let Some(queue_state) = self
                .queues
                .get_mut(number)
                .filter(|queue_state| queue_state.kind != QueueKind::Ring)
            {
                has_unreleased |= queue_state.queue.release_unused_buffers();
            }
        }
        self.buffer_reclaim = BufferReclaim { is_pending: has_unreleased, since: self.now };
    }

    /// Returns the time of the next check for unused buffers; `None` if no queue may have some.
    pub(crate) fn buffer_reclaim_deadline(&self) -> Option<Time> {
        self.buffer_reclaim.is_pending.then(|| self.buffer_reclaim.since + CHECK_INTERVAL)
    }
}

#[cfg(test)]
#[path = "buffer_reclaim_tests.rs"]
mod tests;
