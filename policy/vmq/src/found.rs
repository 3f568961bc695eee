//! Queues that are elsewhere than they were put.

use suimon_quantity::{ProcessorId, QueueId, Time};

use crate::{Vmq, Why};

impl Vmq {
    /// A queue that was not on its way was found at `at`: somebody else has put it there.
    /// It counts as being there and is treated as if it had been added there: it stays
    /// until its processor may not be used, sheds it or is packed.
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
