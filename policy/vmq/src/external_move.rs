//! Queues moved by external agents.

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::{PlacementReason, Vmq};

impl Vmq {
    /// Records that a queue, not in transit, was found on `worker`, moved by an external agent. It
    /// is treated as added there: it stays until its worker is no longer permitted, sheds it or is
    /// emptied.
    pub fn handle_moved_externally(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        let Some(record) = self.queues.get_mut(&queue) else { return };
        if record.moving_from.is_some() || record.worker == worker {
            return;
        }
        let from = core::mem::replace(&mut record.worker, worker);
        record.reason = PlacementReason::MovedExternally;
        record.since = now;
        record.is_return_prepaid = true;
        self.pending_effects.remove(&queue);
        for id in [from, worker] {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.is_disturbed = true;
            }
        }
    }
}
