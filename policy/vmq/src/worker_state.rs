//! State of a worker in the placement.

use suimon_quantity::Time;

use crate::WorkerSpec;
use crate::load::RecentLoads;
use crate::thresholds::NEWLY_HOT_AFTER;

/// Worker of the host, permitted or not.
#[derive(Clone, Debug)]
pub(crate) struct WorkerState {
    pub worker: WorkerSpec,
    /// Position in the order of use; `None` if not permitted.
    pub rank: Option<usize>,
    /// Total load of the worker.
    pub busy: RecentLoads,
    /// Load of the worker except that of its queues.
    pub other_load: RecentLoads,
    /// Busy time in the current measurement, in ns.
    pub busy_ns: u64,
    /// True if a queue came or left during this measurement, so that the load of other work is
    /// unknown.
    pub has_queue_changes: bool,
    /// Time since which it has been possible to empty the worker; `None` if it is not.
    pub emptiable_since: Option<Time>,
    /// Time at which the worker was last hot (above the high mark in two consecutive measurements).
    pub last_hot_at: Time,
    /// True if the worker is hot now and was not for [`NEWLY_HOT_AFTER`] before.
    pub is_newly_hot: bool,
    /// True if a queue that was moved here for a larger share got a smaller one: shares are unequal
    /// here.
    pub has_unequal_shares: bool,
}

impl WorkerState {
    pub(crate) fn new(worker: WorkerSpec, now: Time) -> Self {
        Self {
            worker,
            rank: None,
            busy: RecentLoads::default(),
            other_load: RecentLoads::default(),
            busy_ns: 0,
            has_queue_changes: false,
            emptiable_since: None,
            last_hot_at: now,
            is_newly_hot: false,
            has_unequal_shares: false,
        }
    }

    /// Records whether the worker is hot in this measurement.
    pub(crate) fn record_hot(&mut self, is_hot: bool, now: Time) {
        if !is_hot {
            self.is_newly_hot = false;
            return;
        }
        self.is_newly_hot |= now.since(self.last_hot_at) >= NEWLY_HOT_AFTER;
        self.last_hot_at = now;
    }
}
