//! Queues of disks that are requested back from their workers.
//!
//! [`Record::owner`] is held only while the request is sent, so that a disk that stalls holds up
//! neither new connections to it nor the operator. The disk may then be moved or closed while its
//! worker still has the queue. This is safe: a worker receives its commands in order, and drops a
//! queue that was requested back instead of handing it over with its disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use suimon_ports::{DetachedQueue, DetachingQueue};
use suimon_quantity::DiskId;

use crate::command::Command;
use crate::plane::{PlaneError, Record, StoragePlane, lock};
use crate::queue_key::Which;

/// Queues of a disk that were requested back.
struct Detaching {
    plane: StoragePlane,
    disk: DiskId,
    record: Arc<Record>,
    /// Disconnected when the last of the queues is dropped.
    answer: Receiver<()>,
}

impl DetachingQueue for Detaching {
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
    /// Takes queues of a disk back. Blocks until the requests of a VM's rings were answered, unless
    /// the disk ends. Does not wait for clients of a disk that stalls: their memory is the daemon's.
    pub(crate) fn detach_queues(&self, disk: DiskId, which: Which) {
        let Some(detaching) = self.request_back(disk, which) else { return };
        let is_a_vms = !matches!(which, Which::Clients);
        loop {
            let is_ending = detaching.record.is_ending.load(Ordering::Relaxed);
            match self.wait_for_disk(disk, &detaching.answer) {
                Err(PlaneError::Stalled) if is_a_vms && !is_ending => {}
                _ => return,
            }
        }
    }

    /// Requests queues of a disk back, and returns what waits for them.
    pub(crate) fn begin_detach_queues(
        &self,
        disk: DiskId,
        which: Which,
    ) -> Box<dyn DetachingQueue> {
        match self.request_back(disk, which) {
            Some(detaching) => Box::new(detaching),
            None => Box::new(DetachedQueue),
        }
    }

    fn request_back(&self, disk: DiskId, which: Which) -> Option<Detaching> {
        let record = self.record(disk).ok()?;
        let owner = lock(&record.owner);
        let way = owner.and_then(|owner| self.way(owner))?;
        let (reply, answer) = channel();
        way.tell(Command::Detach(disk, which, reply));
        drop(owner);
        Some(Detaching { plane: self.clone(), disk, record, answer })
    }
}
