//! Requests for which the store had no space, of disks that move to another worker.
//!
//! A queue that moves with its disk takes such requests back, and the next worker receives them
//! again. The time at which each request first found the store full moves with the queue. No
//! request is therefore queued longer than [`FullPolicy`](crate::FullPolicy) permits, however often
//! its disk moves.

use crate::engine::StorageEngine;
use crate::request::{FoundFull, Full};

impl StorageEngine {
    /// Removes and returns the requests that a closed queue has taken back, for the disk's next
    /// worker. Called once for each queue of [`StorageEngine::poll_closed_queue`].
    pub fn take_found_full(&mut self, queue: usize) -> FoundFull {
        self.found_full.remove(&queue).unwrap_or_default()
    }

    /// Sets the requests that the queue has taken back on its previous worker, as returned by
    /// [`StorageEngine::take_found_full`] there.
    pub fn set_found_full(&mut self, queue: usize, found_full: FoundFull) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.found_full = found_full;
        }
    }

    /// Handles the receipt of a request from a queue that came from another worker. If the request
    /// had found the store full there, its waiting time continues.
    #[cold]
    pub(crate) fn note_found_before(&mut self, number: usize) {
        let now = self.now;
        let Some(request) = self.requests.get_mut(number) else { return };
        let Some(queue) = self.queues.get_mut(request.queue) else { return };
        let Some(position) = queue.found_full.iter().position(|(tag, _)| *tag == request.tag)
        else {
            // A queue returns all requests that it has taken back before any other request.
            queue.found_full.clear();
            return;
        };
        let (_, first) = queue.found_full.swap_remove(position);
        request.full = Full::Repeated(first);
        let disk_number = request.disk;
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full.note_found_before(first, now) {
            self.full_disks.push(disk_number);
        }
        self.schedule_full_check();
    }
}
