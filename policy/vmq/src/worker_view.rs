//! State of workers as reported to operators.

use suimon_quantity::WorkerId;

use crate::{Load, Vmq};

/// State of a worker in the placement, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPlacementView {
    /// Worker that is described.
    pub worker: WorkerId,
    /// True if the worker is permitted.
    pub permitted: bool,
    /// Number of its queues, including those in transit to it.
    pub queues: u32,
    /// Load as if the current queues had been on the worker throughout the last measurements.
    pub load: Load,
    /// Part of the load that is not caused by queues.
    pub other_load: Load,
}

impl Vmq {
    /// Returns the state of all workers of the host in ascending order.
    pub fn workers(&self) -> Vec<WorkerPlacementView> {
        let loads = self.loads();
        let views = self.workers.iter().map(|(id, worker_state)| {
            let count = self.queues.values().filter(|queue| queue.worker == *id).count();
            WorkerPlacementView {
                worker: *id,
                permitted: worker_state.rank.is_some(),
                queues: u32::try_from(count).unwrap_or(u32::MAX),
                load: loads
                    .get(id)
                    .map_or(Load::ZERO, |load| load.mean_of_last_two())
                    .min(Load::FULL),
                other_load: worker_state.other_load.mean_of_last_two(),
            }
        });
        views.collect()
    }
}
