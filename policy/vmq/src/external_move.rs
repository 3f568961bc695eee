//! Queues moved by external agents.

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::{PlacementReason, Vmq};

impl Vmq {
    /// Records that a queue, not in transit, was found on `at`, moved by an external agent. It is
    /// treated as added there: it stays until its worker is no longer permitted, sheds it or is
    /// emptied.
    pub fn handle_moved_externally(&mut self, queue: QueueId, at: WorkerId, now: Time) {
        let Some(of) = self.queues.get_mut(&queue) else { return };
        if of.moving_from.is_some() || of.worker == at {
            return;
        }
        let from = core::mem::replace(&mut of.worker, at);
        of.reason = PlacementReason::MovedExternally;
        of.since = now;
        of.is_return_prepaid = true;
        self.pending_effects.remove(&queue);
        for id in [from, at] {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.is_disturbed = true;
            }
        }
    }
}
