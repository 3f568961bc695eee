//! State of a queue in the placement.

use suimon_quantity::{Time, WorkerId};

use crate::PlacementReason;
use crate::load::RecentLoads;
use crate::thresholds::MEASUREMENTS_BEFORE_SHED_MIN;

/// Queue with its placement and load.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Worker of the queue; the destination while the queue is in transit.
    pub worker: WorkerId,
    /// Source worker while the queue is in transit.
    pub moving_from: Option<WorkerId>,
    /// Reason for which the queue is on its worker.
    pub reason: PlacementReason,
    /// Time at which the placement was decided.
    pub placed_at: Time,
    /// Load of the queue, as a fraction of one worker.
    pub load: RecentLoads,
    /// Busy time in the current measurement, in ns.
    pub busy_ns: u64,
    /// True if the queue may be shed once without using the move budget: its return was prepaid
    /// when packing moved it, or it is still where it was added or where the configuration moved
    /// it.
    pub is_return_prepaid: bool,
    /// Earliest time at which a failed move may be repeated.
    pub retry_at: Time,
    /// Number of measurements since the queue came to its current worker.
    pub measurement_count: u32,
}

impl Queue {
    pub(crate) fn new(worker: WorkerId, reason: PlacementReason, now: Time) -> Self {
        Self {
            worker,
            moving_from: None,
            reason,
            placed_at: now,
            load: RecentLoads::default(),
            busy_ns: 0,
            is_return_prepaid: true,
            retry_at: Time::ZERO,
            measurement_count: MEASUREMENTS_BEFORE_SHED_MIN,
        }
    }

    /// Returns true if enough measurements on the current worker exist to know the queue's load
    /// there.
    pub(crate) const fn is_load_known(&self) -> bool {
        self.measurement_count >= MEASUREMENTS_BEFORE_SHED_MIN
    }

    /// Returns true if the queue may be moved: it is not in transit, and the pause after a failed
    /// move is over.
    pub(crate) fn may_move(&self, now: Time) -> bool {
        self.moving_from.is_none() && self.retry_at <= now
    }
}
