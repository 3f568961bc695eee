//! Queues moved by external agents.

use suimon_quantity::{ProcessorId, QueueId, Time};

use crate::{Vmq, Why};

impl Vmq {
    /// Records that a queue, not in transit, was found on `at`, moved by an external agent. It is
    /// treated as added there: it stays until its processor is no longer permitted, sheds it or is
    /// emptied.
    pub fn handle_found(&mut self, queue: QueueId, at: ProcessorId, now: Time) {
        let Some(of) = self.queues.get_mut(&queue) else { return };
        if of.coming_from.is_some() || of.at == at {
            return;
        }
        let from = core::mem::replace(&mut of.at, at);
        of.why = Why::Found;
        of.since = now;
        of.is_way_back_paid = true;
        self.watches.remove(&queue);
        for id in [from, at] {
            if let Some(seat) = self.seats.get_mut(&id) {
                seat.is_disturbed = true;
            }
        }
    }
}
