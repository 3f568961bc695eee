//! Closing of queues and disks.

use suimon_image_files::LayerStack;
use suimon_ports::DiskQueue;

use crate::disk::qos_slot::EngineDiskSlot;
use crate::engine::StorageEngine;

impl StorageEngine {
    /// Closes a queue: no further requests are taken from it. [`StorageEngine::poll_closed_queue`]
    /// returns the queue when its requests have ended. These requests, and earlier ones of the
    /// disk, start regardless of the disk's maximum. Requests that are queued because the store is
    /// full are left to the client's next queue if the queue supports that, and fail otherwise.
    pub fn close_queue(&mut self, queue: usize) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.is_closing = true;
            if queue_state.queued > 0 {
                let (disk, is_mirror) = (queue_state.disk, queue_state.is_mirror());
                self.bypass_scheduler(disk, is_mirror, true);
            }
        }
        self.release_no_space_requests(queue);
        self.release_queue_if_done(queue);
    }

    /// Returns a closed queue with its number; `None` if no queue has been closed since.
    pub fn poll_closed_queue(&mut self) -> Option<(usize, Box<dyn DiskQueue>)> {
        self.closed_queues.pop()
    }

    /// Closes a disk's queues and commits its metadata. [`StorageEngine::poll_closed_disk`] returns
    /// the disk when both have ended.
    pub fn close_disk(&mut self, disk: usize) {
        let Some(disk_state) = self.disks.get_mut(disk) else { return };
        disk_state.is_closing = true;
        disk_state.has_failed_commit = false;
        let is_queue_of_disk = |queue: &usize| {
            self.queues.get(*queue).is_some_and(|queue_state| queue_state.disk == disk)
        };
        let queues: Vec<usize> = self.queues.numbers().filter(is_queue_of_disk).collect();
        for queue in queues {
            // A budget that was requested for another worker before is not passed on to that
            // worker.
            if let Some(queue_state) =
                self.queues.get_mut(queue).filter(|queue_state| !queue_state.is_closing)
            {
                queue_state.is_moving = true;
            }
            self.close_queue(queue);
        }
        self.release_disk_if_done(disk);
    }

    /// Returns a closed disk with its number, which may be reused from now on; `None` if no disk
    /// has been closed since. The caller must close the disk's own image, the first one
    /// ([`Image::close`](suimon_image::Image::close)).
    pub fn poll_closed_disk(&mut self) -> Option<(usize, LayerStack)> {
        self.closed_disks.pop()
    }

    /// Makes a closing queue available to [`StorageEngine::poll_closed_queue`] if none of its
    /// requests is in flight and all its completions are published.
    pub(crate) fn release_queue_if_done(&mut self, number: usize) {
        let is_ended = self.queues.get(number).is_some_and(|queue_state| {
            queue_state.is_closing
                && queue_state.in_flight == 0
                && !queue_state.has_unpublished_completions
        });
        if !is_ended {
            return;
        }
        self.polled_queues.retain(|active| active != number);
        self.poll_paused_queues.retain(|paused_queue| *paused_queue != number);
        let Some(queue_state) = self.queues.remove(number) else { return };
        if queue_state.is_moving && !queue_state.no_space_requests.is_empty() {
            self.no_space_requests.insert(number, queue_state.no_space_requests);
        }
        self.closed_queues.push((number, queue_state.queue));
        if let Some(disk) = self.disks.get_mut(queue_state.disk) {
            disk.queues -= 1;
            if let Some(EngineDiskSlot { store_number: store, .. }) = disk.client_slot {
                self.adjust_store_queue_count(store, -1);
            }
        }
        self.release_disk_if_done(queue_state.disk);
    }
}
