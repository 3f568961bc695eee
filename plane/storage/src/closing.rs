//! Closing of queues and disks.

use suimon_ports::DiskQueue;

use crate::disk_location::DiskIndex;
use crate::disk_spec::DiskSpec;
use crate::engine::StorageEngine;

impl StorageEngine {
    /// Closes a queue: no further requests are taken. [`StorageEngine::poll_closed_queue`] returns
    /// the queue when its requests have ended. These requests, and earlier ones of the disk, do not
    /// wait for the disk's maximum. Requests queued because the store is full are left to the
    /// client's next queue if possible, and fail otherwise.
    pub fn close_queue(&mut self, queue: usize) {
        if let Some(of) = self.queues.get_mut(queue) {
            of.is_closing = true;
            if of.queued > 0 {
                let (disk, is_mirror) = (of.disk, of.is_mirror());
                self.bypass_scheduler(disk, is_mirror, true);
            }
        }
        self.release_full(queue);
        self.end_queue(queue);
    }

    /// Returns a closed queue with its number.
    pub fn poll_closed_queue(&mut self) -> Option<(usize, Box<dyn DiskQueue>)> {
        self.closed_queues.pop()
    }

    /// Closes a disk's queues and commits the disk. [`StorageEngine::poll_closed_disk`] returns the
    /// disk when this has ended.
    pub fn close_disk(&mut self, disk: usize) {
        let Some(of) = self.disks.get_mut(disk) else { return };
        of.is_closing = true;
        of.has_failed_commit = false;
        let of_it = |queue: &usize| self.queues.get(*queue).is_some_and(|of| of.disk == disk);
        let queues: Vec<usize> = self.queues.numbers().filter(of_it).collect();
        for queue in queues {
            // A budget that another worker requested before is not passed on to that worker.
            if let Some(of) = self.queues.get_mut(queue).filter(|of| !of.is_closing) {
                of.is_moving = true;
            }
            self.close_queue(queue);
        }
        self.end_disk(disk);
    }

    /// Returns a closed disk with its number, which may be reused from now on. The caller must
    /// close its own image, the first one ([`Image::close`](suimon_image::Image::close)).
    pub fn poll_closed_disk(&mut self) -> Option<(usize, DiskSpec)> {
        self.closed_disks.pop()
    }

    /// Returns a closing queue to the caller when none of its requests is in flight and all
    /// completions are published.
    pub(crate) fn end_queue(&mut self, number: usize) {
        let is_over = self
            .queues
            .get(number)
            .is_some_and(|of| of.is_closing && of.in_flight == 0 && !of.has_answers);
        if !is_over {
            return;
        }
        self.active.retain(|active| active != number);
        self.paused.retain(|left| *left != number);
        let Some(of) = self.queues.remove(number) else { return };
        if of.is_moving && !of.found_full.is_empty() {
            self.found_full.insert(number, of.found_full);
        }
        self.closed_queues.push((number, of.queue));
        if let Some(disk) = self.disks.get_mut(of.disk) {
            disk.queues -= 1;
            if let Some(DiskIndex { store, .. }) = disk.index {
                self.add_queues(store, -1);
            }
        }
        self.end_disk(of.disk);
    }
}
