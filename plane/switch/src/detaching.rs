//! Detaching of queues from their workers.
//!
//! The registry is locked only while the detachment is requested, so that a worker that the host
//! does not schedule holds up its own queues and not the changes and counters of others. A queue
//! counts as detached when it has been dropped, wherever it is: a move between workers may be in
//! progress.

use std::time::{Duration, Instant};

use suimon_ports::{CompletedDetachment, DetachingQueue};
use suimon_quantity::{Direction, QueueId};

use crate::latch::RESPONSE_TIMEOUT;
use crate::plane::DataPlane;
use crate::queue_record::QueueRecord;
use crate::worker_mailbox::WorkerCommand;

/// Queue whose detachment was requested. Its counters remain part of its port's counters.
struct DetachingPort {
    plane: DataPlane,
    id: QueueId,
    record: QueueRecord,
    /// Time of the request, or of the last report that the worker has not dropped the queue.
    requested: Instant,
}

impl DetachingQueue for DetachingPort {
    fn wait(&mut self, at_most: Duration) -> bool {
        let is_dropped = self.record.attachment.wait_dropped(at_most);
        if is_dropped {
            self.plane.registry().finish_detach(self.id, &self.record);
        } else if self.requested.elapsed() >= RESPONSE_TIMEOUT {
            self.requested = Instant::now();
            tracing::error!(
                queue = ?self.id,
                "its worker does not return the queue, because the host does not schedule the \
                 worker or a device blocks it. The guest's traffic stops. Check the load of the \
                 worker's CPU"
            );
            // Another worker has the queue if a move was in progress.
            for link in self.plane.registry().mailboxes() {
                link.send_command(WorkerCommand::DetachQueue(self.id));
            }
        }
        is_dropped
    }
}

impl DataPlane {
    /// Detaches a queue and blocks until its worker has dropped it. A worker may still access its
    /// memory before that.
    pub(crate) fn detach_queue(&self, id: QueueId) {
        if let Some(mut detaching) = self.request_back(id) {
            while !detaching.wait(RESPONSE_TIMEOUT) {}
        }
    }

    /// Requests the detachment of a queue without blocking. The returned handle waits until the
    /// worker has dropped the queue.
    pub(crate) fn begin_detach_queue(&self, id: QueueId) -> Box<dyn DetachingQueue> {
        match self.request_back(id) {
            Some(detaching) => Box::new(detaching),
            None => Box::new(CompletedDetachment),
        }
    }

    fn request_back(&self, id: QueueId) -> Option<DetachingPort> {
        let mut registry = self.registry();
        let record = match registry.queues.remove(&id) {
            None => registry.detaching.get(&id).cloned()?,
            Some(record) => {
                record.attachment.revoke();
                registry.detaching.insert(id, record.clone());
                if id.direction == Direction::Egress {
                    // The workers first stop sending to the queue, then it is dropped.
                    registry.republish_or_log();
                }
                if let Some(link) = registry.mailbox(record.owner) {
                    link.send_command(WorkerCommand::DetachQueue(id));
                }
                record
            }
        };
        drop(registry);
        Some(DetachingPort { plane: self.clone(), id, record, requested: Instant::now() })
    }
}
