//! Detaching of queues from their workers.
//!
//! [`DiskRecord::owner`] is locked only while the command is sent, so that a stalled disk blocks
//! neither new connections to it nor the operator. The disk may then be moved or closed while its
//! worker still has the queue. This is safe: a worker executes its commands in order, and drops a
//! detached queue instead of passing it on with its disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use suimon_ports::{CompletedDetachment, DetachingQueue};
use suimon_quantity::DiskId;

use crate::command::Command;
use crate::command::channel::WorkerChannel;
use crate::command::disk_wait::STALL_CHECK_INTERVAL;
use crate::command::queue_key::QueueSelection;
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::{StoragePlane, lock};

/// Detachment of queues of a disk that was requested from the disk's worker.
struct DetachState {
    plane: StoragePlane,
    disk: DiskId,
    record: Arc<DiskRecord>,
    worker: Arc<WorkerChannel>,
    /// Channel that disconnects when the worker has dropped all of the queues.
    answer: Receiver<()>,
}

impl DetachingQueue for DetachState {
    fn wait(&mut self, at_most: Duration) -> bool {
        match self.answer.recv_timeout(at_most) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
            Err(RecvTimeoutError::Timeout) => {
                let is_blocked =
                    || self.worker.is_blocked(self.plane.0.wait_limits.command_wait_max);
                self.record.is_being_removed.load(Ordering::Relaxed)
                    && (self.plane.is_stalled(self.disk) || is_blocked())
            }
        }
    }
}

impl StoragePlane {
    /// Detaches queues of a disk. For virtqueues of a VM, blocks until their requests have
    /// completed, unless the disk is being taken out of service. Does not wait for clients of a
    /// stalled disk or of a worker that does not respond: their buffers belong to the daemon.
    pub(crate) fn detach_queues(&self, disk: DiskId, which: QueueSelection) {
        let Some(detaching) = self.request_detach(disk, which) else { return };
        let is_a_vms = !matches!(which, QueueSelection::Clients);
        loop {
            let is_ending = detaching.record.is_being_removed.load(Ordering::Relaxed);
            let waited = self.wait_for_disk_reply(disk, &detaching.worker, &detaching.answer);
            let is_late = matches!(waited, Err(PlaneError::Stalled | PlaneError::NoResponse(_)));
            if !is_late || !is_a_vms || is_ending {
                return;
            }
            // For a worker that counts as blocked, the call above returns without waiting.
            if detaching.answer.recv_timeout(STALL_CHECK_INTERVAL) != Err(RecvTimeoutError::Timeout)
            {
                return;
            }
        }
    }

    /// Requests the detachment of queues of a disk without blocking. The returned handle waits for
    /// the end.
    pub(crate) fn begin_detach_queues(
        &self,
        disk: DiskId,
        which: QueueSelection,
    ) -> Box<dyn DetachingQueue> {
        match self.request_detach(disk, which) {
            Some(detaching) => Box::new(detaching),
            None => Box::new(CompletedDetachment),
        }
    }

    fn request_detach(&self, disk: DiskId, which: QueueSelection) -> Option<DetachState> {
        let record = self.disk_record(disk).ok()?;
        let owner = lock(&record.owner);
        let worker_channel = owner.and_then(|owner| self.worker_channel(owner))?;
        let (reply, answer) = channel();
        worker_channel.send(Command::DetachQueues(disk, which, reply));
        drop(owner);
        Some(DetachState { plane: self.clone(), disk, record, worker: worker_channel, answer })
    }
}
