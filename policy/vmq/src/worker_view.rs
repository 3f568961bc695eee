//! Reported state of workers.

use suimon_quantity::WorkerId;

use crate::{Load, Vmq};

/// State of a worker as used by the placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPlacementView {
    /// Worker that is described.
    pub worker: WorkerId,
    /// True if the worker is permitted.
    pub permitted: bool,
    /// Number of its queues, including those in transit to it.
    pub queues: u32,
    /// Load as if the current queues had been there throughout.
    pub load: Load,
    /// Part of the load that is other work.
    pub other_load: Load,
}

impl Vmq {
    /// Returns all workers in ascending order.
    pub fn workers(&self) -> Vec<WorkerPlacementView> {
        let loads = self.loads();
        let views = self.workers.iter().map(|(id, worker_state)| {
            let count = self.queues.values().filter(|queue| queue.worker == *id).count();
            WorkerPlacementView {
                worker: *id,
                permitted: worker_state.rank.is_some(),
                queues: u32::try_from(count).unwrap_or(u32::MAX),
                load: loads.get(id).map_or(Load::ZERO, |load| load.mean()).min(Load::FULL),
                other_load: worker_state.other.mean(),
            }
        });
        views.collect()
    }
}
