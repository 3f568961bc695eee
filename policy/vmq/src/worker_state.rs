//! State of a worker in the placement.

use suimon_quantity::Time;

use crate::WorkerSpec;
use crate::load::RecentLoads;
use crate::thresholds::NOT_HOT_MIN;

/// Worker of the host, permitted or not.
#[derive(Clone, Debug)]
pub(crate) struct WorkerState {
    pub worker: WorkerSpec,
    /// Position in the order of use; `None` if not permitted.
    pub rank: Option<usize>,
    /// Total load of the worker.
    pub busy: RecentLoads,
    /// Load of the worker except that of its queues.
    pub other: RecentLoads,
    /// Busy time in the current measurement, in ns.
    pub busy_ns: u64,
    /// True if a queue came or left during this measurement, so that the load of other work is
    /// unknown.
    pub is_disturbed: bool,
    /// Time since which it has been possible to empty the worker; `None` if it is not.
    pub packable_since: Option<Time>,
    /// Time at which the worker was last hot (above the high mark in two consecutive measurements).
    pub hot_at: Time,
    /// True if the worker is hot now and was not for [`NOT_HOT_MIN`] before.
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
            other: RecentLoads::default(),
            busy_ns: 0,
            is_disturbed: false,
            packable_since: None,
            hot_at: now,
            is_newly_hot: false,
            has_unequal_shares: false,
        }
    }

    /// Records whether the worker is hot in this measurement.
    pub(crate) fn note_heat(&mut self, is_hot: bool, now: Time) {
        if !is_hot {
            self.is_newly_hot = false;
            return;
        }
        self.is_newly_hot |= now.since(self.hot_at) >= NOT_HOT_MIN;
        self.hot_at = now;
    }
}
