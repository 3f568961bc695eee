//! Detaching of queues from their workers.
//!
//! [`Record::owner`] is locked only while the command is sent, so that a stalled disk blocks
//! neither new connections to it nor the operator. The disk may then be moved or closed while its
//! worker still has the queue. This is safe: a worker executes its commands in order, and drops a
//! detached queue instead of passing it on with its disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use suimon_ports::{AlreadyDetached, DetachingQueue};
use suimon_quantity::DiskId;

use crate::command::Command;
use crate::disk_record::Record;
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::queue_key::Which;

/// Progress of detaching the queues of a disk.
struct DetachState {
    plane: StoragePlane,
    disk: DiskId,
    record: Arc<Record>,
    /// Channel that disconnects when the last queue is dropped.
    answer: Receiver<()>,
}

impl DetachingQueue for DetachState {
    fn wait(&mut self, at_most: Duration) -> bool {
        match self.answer.recv_timeout(at_most) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
            Err(RecvTimeoutError::Timeout) => {
                self.record.is_ending.load(Ordering::Relaxed) && self.plane.is_stalled(self.disk)
            }
        }
    }
}

impl StoragePlane {
    /// Detaches queues of a disk. For the rings of a VM, blocks until their requests have
    /// completed, unless the disk is being taken out of service. Does not wait for clients of a
    /// stalled disk: their buffers belong to the daemon.
    pub(crate) fn detach_queues(&self, disk: DiskId, selection: Which) {
        let Some(detaching) = self.request_back(disk, selection) else { return };
        let is_a_vms = !matches!(selection, Which::Clients);
        loop {
            let is_ending = detaching.record.is_ending.load(Ordering::Relaxed);
            match self.wait_for_disk(disk, &detaching.answer) {
                Err(PlaneError::Stalled) if is_a_vms && !is_ending => {}
                _ => return,
            }
        }
    }

    /// Starts to detach queues of a disk. The returned handle waits for the end.
    pub(crate) fn begin_detach_queues(
        &self,
        disk: DiskId,
        selection: Which,
    ) -> Box<dyn DetachingQueue> {
        match self.request_back(disk, selection) {
            Some(detaching) => Box::new(detaching),
            None => Box::new(AlreadyDetached),
        }
    }

    fn request_back(&self, disk: DiskId, selection: Which) -> Option<DetachState> {
        let record = self.record(disk).ok()?;
        let owner = lock(&record.owner);
        let worker_channel = owner.and_then(|owner| self.channel(owner))?;
        let (reply, answer) = channel();
        worker_channel.send(Command::Detach(disk, selection, reply));
        drop(owner);
        Some(DetachState { plane: self.clone(), disk, record, answer })
    }
}
