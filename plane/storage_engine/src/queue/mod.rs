//! Queue of a disk in the engine of its worker.

mod buffer_reclaim;
pub(crate) mod buffer_reclaim_state;
pub(crate) mod busy_poll;
pub(crate) mod poll_pause;
pub(crate) mod rotation;

use suimon_ports::DiskQueue;
use suimon_quantity::{DiskId, Time};

use crate::disk::qos_slot::EngineDiskSlot;
use crate::queue::busy_poll::BusyPoll;
use crate::queue::poll_pause::PollPause;
use crate::request::NoSpaceRequests;

/// Kind of a queue, by the client that submits its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Virtqueue of a VM's disk.
    Ring,
    /// Connection of an NBD client.
    Client,
    /// Connection of a VM's QEMU that emulates the disk's controller. QEMU pauses the VM if the
    /// store is full.
    EmulatedDisk,
    /// Connection of a mirror job that copies the disk.
    Mirror,
}

/// Queue of a disk on this worker.
pub(crate) struct QueueState {
    pub(crate) queue: Box<dyn DiskQueue>,
    /// Number of the disk on this worker.
    pub(crate) disk: usize,
    /// Identifier of the disk in the control plane, if it is known here.
    pub(crate) disk_id: Option<DiskId>,
    /// Number of requests of the queue that have not completed.
    pub(crate) in_flight: usize,
    /// True if completions of the queue are not yet published to the client.
    pub(crate) has_unpublished_completions: bool,
    /// True if the queue is not polled and the worker waits for its descriptor.
    pub(crate) waits_for_descriptor: bool,
    /// Consecutive polls without requests in iterations in which the worker did other work.
    pub(crate) empty_polls: u32,
    /// State that decides whether polling the queue for a short time before waiting is worthwhile.
    pub(crate) busy_poll: BusyPoll,
    /// State that decides whether the worker pauses between two polls of the queue.
    pub(crate) poll_pause: PollPause,
    /// Kind of client that the queue serves.
    pub(crate) kind: QueueKind,
    /// End of the current pause between polls; `None` if the queue is not in a pause.
    pub(crate) poll_pause_end: Option<Time>,
    /// Number of requests of the queue that are queued in their store's scheduler.
    pub(crate) queued: u32,
    /// Number of requests of the queue that are queued because their store is full.
    pub(crate) queued_for_space: u32,
    /// Maximum value of `queued`.
    pub(crate) queued_max: u32,
    /// Slot of the queue's requests in Storage QoS; `None` without limits.
    pub(crate) qos_slot: Option<EngineDiskSlot>,
    /// True if the disk is suspended or being suspended, so that the queue is not read.
    pub(crate) is_stopped: bool,
    /// True if the queue is neither read nor waited for, because its requests cannot be accepted.
    pub(crate) is_paused: bool,
    /// True if the descriptor of the queue is not watched.
    pub(crate) is_unwatched: bool,
    /// True if the queue is being closed or is faulty: no further requests are taken from it.
    pub(crate) is_closing: bool,
    /// True if the queue moves to another worker with its disk. That worker receives the requests
    /// again that the queue takes back.
    pub(crate) is_moving: bool,
    /// Requests that had found the store full on the queue's previous worker and were not yet
    /// received here, or that the queue has taken back for this reason.
    pub(crate) no_space_requests: NoSpaceRequests,
}

impl QueueState {
    /// Returns the number of requests of the queue that are in flight or queued for their store,
    /// except those that wait for space.
    pub(crate) fn requests_in_progress(&self) -> usize {
        self.in_flight.saturating_sub(self.queued_for_space as usize)
    }

    /// Returns true if the queue's requests belong to a copy of the disk.
    #[inline]
    pub(crate) fn is_mirror(&self) -> bool {
        self.kind == QueueKind::Mirror
    }

    /// Resumes polling of a queue for whose descriptor the worker waits, after a request of the
    /// queue has completed. Its client will probably submit further requests, and would otherwise
    /// have to wake the worker. A queue that is polled by a system call is polled again only when
    /// all its requests have completed. Returns true if polling was resumed.
    #[inline]
    pub(crate) fn resume_polling_after_completion(&mut self) -> bool {
        let is_polled = self.waits_for_descriptor
            && !self.is_closing
            && (self.in_flight == 0 || !self.queue.is_polled_by_fd());
        if is_polled {
            self.waits_for_descriptor = false;
            self.empty_polls = 0;
            self.queue.disarm_lazily();
        }
        is_polled
    }

    /// Accounts for a poll of the queue that returned `requests` requests. `is_all_read`: the queue
    /// is empty now. `is_busy`: the worker did other work in the iteration.
    pub(crate) fn handle_poll(
        &mut self,
        now: Time,
        (requests, is_all_read): (usize, bool),
        is_busy: bool,
    ) {
        let is_all_answered = self.in_flight == 0;
        self.in_flight += requests;
        if requests == 0 {
            self.empty_polls = self.empty_polls.saturating_add(u32::from(is_busy));
            self.poll_pause.handle_empty_poll();
            return;
        }
        self.empty_polls = 0;
        self.busy_poll.handle_requests_found();
        if self.queue.is_polled_by_fd() && is_all_answered {
            let has_completions = || self.queue.has_unconsumed_completions();
            self.poll_pause_end =
                self.poll_pause.handle_requests_found(now, requests, is_all_read, has_completions);
        }
    }
}
