//! Detection of workers that do not respond, for all workers at once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::exclusion::lock;
use crate::plane::StoragePlane;
use crate::worker_channel::WorkerChannel;

/// Shortest time after which a worker without a reply counts as late.
const LATE_AFTER: Duration = Duration::from_millis(400);

/// Requests for a reply of all workers that have replied to earlier ones. They are sent while the
/// caller waits for one of the workers, so that a later wait for another one ends earlier.
pub(crate) struct Probe {
    sent: Instant,
    replies: Vec<(Arc<WorkerChannel>, Receiver<()>)>,
}

impl StoragePlane {
    /// Requests a reply of all workers.
    pub(crate) fn probe(&self) -> Probe {
        let channels: Vec<Arc<WorkerChannel>> =
            lock(&self.0.channels).values().map(Arc::clone).collect();
        let sent = Instant::now();
        let replies = channels
            .into_iter()
            .filter_map(|worker| worker.begin_sync().map(|reply| (worker, reply)));
        Probe { sent, replies: replies.collect() }
    }
}

impl Probe {
    /// Counts workers as late that have not replied, unless the requests are too recent. `waited`: a
    /// worker for which the caller has waited for long enough.
    pub(crate) fn end(self, waited: Option<&Arc<WorkerChannel>>) {
        let is_over = self.sent.elapsed() >= LATE_AFTER;
        for (worker, reply) in self.replies {
            let is_waited = waited.is_some_and(|waited_worker| Arc::ptr_eq(waited_worker, &worker));
            // The worker drops the sender.
            if (is_over || is_waited) && reply.try_recv() == Err(TryRecvError::Empty) {
                worker.note_unanswered_sync(reply, self.sent);
            }
        }
    }
}
