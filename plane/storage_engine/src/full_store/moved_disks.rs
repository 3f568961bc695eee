//! Requests for which the store had no space, of disks that move to another worker.
//!
//! A queue that moves with its disk takes such requests back, and the next worker receives them
//! again. The time at which each request first found the store full moves with the queue. No
//! request is therefore queued longer than [`FullStorePolicy`](crate::FullStorePolicy) permits,
//! however often its disk moves.

use crate::engine::StorageEngine;
use crate::request::{NoSpaceRequests, RequestFullState};

impl StorageEngine {
    /// Removes and returns the requests that a closed queue has taken back, for the disk's next
    /// worker. Called once for each queue of [`StorageEngine::poll_closed_queue`].
    pub fn take_no_space_requests(&mut self, queue: usize) -> NoSpaceRequests {
        self.no_space_requests.remove(&queue).unwrap_or_default()
    }

    /// Sets the requests that the queue has taken back on its previous worker, as returned by
    /// [`StorageEngine::take_no_space_requests`] there.
    pub fn set_no_space_requests(&mut self, queue: usize, found_full: NoSpaceRequests) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.no_space_requests = found_full;
        }
    }

    /// Handles the receipt of a request from a queue that came from another worker. If the request
    /// had found the store full there, its waiting time continues.
    #[cold]
    pub(crate) fn record_previous_no_space(&mut self, number: usize) {
        let now = self.now;
        let Some(request) = self.requests.get_mut(number) else { return };
        let Some(queue) = self.queues.get_mut(request.queue) else { return };
        let Some(position) =
            queue.no_space_requests.iter().position(|(tag, _)| *tag == request.tag)
        else {
            // A queue returns all requests that it has taken back before any other request.
            queue.no_space_requests.clear();
            return;
        };
        let (_, first) = queue.no_space_requests.swap_remove(position);
        request.full_state = RequestFullState::Repeating(first);
        let disk_number = request.disk;
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full_state.record_previous_no_space(first, now) {
            self.full_disks.push(disk_number);
        }
        self.schedule_full_check();
    }
}
