//! Queues that programs other than the daemon moved to another worker.

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::{PlacementReason, Vmq};

impl Vmq {
    /// Records that a queue, which is not in transit, is now on `worker` because another program
    /// moved it. The queue is treated as if added there: it stays until the worker is no longer
    /// permitted, sheds the queue or is emptied.
    pub fn handle_moved_externally(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        let Some(record) = self.queues.get_mut(&queue) else { return };
        if record.moving_from.is_some() || record.worker == worker {
            return;
        }
        let from = core::mem::replace(&mut record.worker, worker);
        record.reason = PlacementReason::MovedExternally;
        record.placed_at = now;
        record.is_return_prepaid = true;
        self.pending_effects.remove(&queue);
        for id in [from, worker] {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.has_queue_changes = true;
            }
        }
    }
}
