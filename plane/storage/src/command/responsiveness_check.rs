//! Detection of workers that do not respond, for all workers at once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::command::channel::WorkerChannel;
use crate::plane::StoragePlane;
use crate::sync::lock;

/// Minimum time after which a worker without a reply counts as late.
const LATE_AFTER: Duration = Duration::from_millis(400);

/// Requests to all workers for a reply, sent while the caller waits for one of them. Workers that
/// do not reply to these count as late, so that a later wait for one of them ends earlier.
pub(crate) struct ResponsivenessCheck {
    sent: Instant,
    replies: Vec<(Arc<WorkerChannel>, Receiver<()>)>,
}

impl StoragePlane {
    /// Sends a request for a reply to all workers that have replied to earlier ones.
    pub(crate) fn begin_responsiveness_check(&self) -> ResponsivenessCheck {
        let channels: Vec<Arc<WorkerChannel>> =
            lock(&self.0.channels).values().map(Arc::clone).collect();
        let sent = Instant::now();
        let replies = channels
            .into_iter()
            .filter_map(|worker| worker.begin_sync().map(|reply| (worker, reply)));
        ResponsivenessCheck { sent, replies: replies.collect() }
    }
}

impl ResponsivenessCheck {
    /// Counts workers as late that have not replied, unless the requests are younger than
    /// [`LATE_AFTER`]. `waited`: worker that counts as late in any case, because the caller has
    /// waited for it.
    pub(crate) fn end(self, waited: Option<&Arc<WorkerChannel>>) {
        let is_over = self.sent.elapsed() >= LATE_AFTER;
        for (worker, reply) in self.replies {
            let is_waited = waited.is_some_and(|waited_worker| Arc::ptr_eq(waited_worker, &worker));
            // A worker that has executed the command drops the sender.
            if (is_over || is_waited) && reply.try_recv() == Err(TryRecvError::Empty) {
                worker.note_unanswered_sync(reply, self.sent);
            }
        }
    }
}
