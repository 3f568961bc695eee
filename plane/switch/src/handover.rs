//! Location of each egress queue as one worker knows it, while queues move.
//!
//! A queue is owned by exactly one worker. Frames for a queue of another worker are sent to its
//! owner's mailbox, which preserves the order of each sender. When a queue moves from A to B, no
//! frame may be lost and frames of one sender may not overtake each other, although senders learn
//! of the move at different times:
//!
//! 1. Every worker adopts the tables that name B as the owner. From then on it sends to B, and puts
//!    a *fence* into A's mailbox behind the last frame that it sent there. B itself does the same.
//! 2. A keeps the queue, and delivers the frames in its mailbox, until it has received the fences
//!    of all other workers. Then it sends the queue to B.
//! 3. B *buffers* frames for the queue until the queue arrives, then delivers them first. B may
//!    have to buffer frames before it has adopted the tables, from senders that adopted them
//!    earlier.
//!
//! ```text
//! A:  Here ──adopt──► MovingOut ──all fences──► OtherWorker(B)
//! B:  OtherWorker(A) (buffers) ──adopt──► MovingIn (buffers) ──queue arrives──► Here
//! C:  OtherWorker(A) ──adopt──► OtherWorker(B)                (a fence to A)
//! ```
//!
//! Ingress queues need no fences. The owner stops polling and puts the queue into the new owner's
//! mailbox, behind everything that it sent there before. Frames that it sent to other workers are
//! in their mailboxes already.
//!
//! This module contains the state machine only, without threads or frames, so that its test can run
//! it with arbitrary interleavings.

use std::collections::BTreeMap;

use suimon_quantity::{QueueId, WorkerId};

/// Destination of a frame for an egress queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueLocation {
    /// This worker owns the queue.
    ThisWorker,
    /// Put the frame into the mailbox of this worker.
    OtherWorker(WorkerId),
    /// Buffer the frame: the queue is being moved to this worker.
    MovingHere,
    /// Drop the frame: the queue does not exist.
    UnknownQueue,
}

/// Fence to put into the mailbox of worker `to`, the former owner of `queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingFence {
    pub former_owner: WorkerId,
    pub queue: QueueId,
}

#[derive(Debug)]
enum State<Held> {
    Here,
    OtherWorker(WorkerId),
    MovingIn { queued: Vec<Held> },
    MovingOut { to: WorkerId, fences_due: usize },
}

/// State of all egress queues in one worker. `Held`: type of a buffered frame or frame message.
#[derive(Debug)]
pub(crate) struct QueueLocations<Held> {
    worker_id: WorkerId,
    states: BTreeMap<QueueId, State<Held>>,
    /// Number of fences received before this worker adopted the tables that they belong to.
    early_fences: BTreeMap<QueueId, usize>,
    /// Frames buffered for queues that, in this worker's tables, another worker owns.
    early_frames: BTreeMap<QueueId, Vec<Held>>,
}

/// Actions to take after new tables were adopted.
#[derive(Debug)]
pub(crate) struct AdoptionResult<Held> {
    pub fences: Vec<PendingFence>,
    /// Queues to send to their new owners at once, each with its new owner.
    pub queues_to_send: Vec<(QueueId, WorkerId)>,
    /// Buffered frames for queues that no longer exist.
    pub orphaned_messages: Vec<Held>,
}

impl<Held> QueueLocations<Held> {
    pub(crate) fn new(worker_id: WorkerId) -> Self {
        Self {
            worker_id,
            states: BTreeMap::new(),
            early_fences: BTreeMap::new(),
            early_frames: BTreeMap::new(),
        }
    }

    /// Adopts the owners of new tables. `other_workers` is the number of other workers that adopt
    /// the same tables. `is_here` returns true if this worker has the queue.
    pub(crate) fn adopt(
        &mut self,
        owners: &[(QueueId, WorkerId)],
        other_workers: usize,
        is_here: impl Fn(QueueId) -> bool,
    ) -> AdoptionResult<Held> {
        let mut before = std::mem::take(&mut self.states);
        let mut adopted = AdoptionResult {
            fences: Vec::new(),
            queues_to_send: Vec::new(),
            orphaned_messages: Vec::new(),
        };
        for &(queue, owner) in owners {
            let is_mine = owner == self.worker_id;
            let state = match before.remove(&queue) {
                None if !is_mine => State::OtherWorker(owner),
                None if is_here(queue) => State::Here,
                None => self.moving_in(queue),
                Some(State::OtherWorker(from)) if from != owner => {
                    adopted.fences.push(PendingFence { former_owner: from, queue });
                    if is_mine { self.moving_in(queue) } else { State::OtherWorker(owner) }
                }
                Some(State::Here) if !is_mine => {
                    self.moving_out(queue, owner, other_workers, &mut adopted)
                }
                Some(unchanged) => unchanged,
            };
            self.states.insert(queue, state);
        }
        for state in before.into_values() {
            if let State::MovingIn { queued } = state {
                adopted.orphaned_messages.extend(queued);
            }
        }
        self.early_fences.retain(|queue, _| self.states.contains_key(queue));
        let is_orphan = |queue: &QueueId| !self.states.contains_key(queue);
        for queue in self.early_frames.keys().copied().filter(is_orphan).collect::<Vec<_>>() {
            adopted.orphaned_messages.extend(self.early_frames.remove(&queue).unwrap_or_default());
        }
        adopted
    }

    fn moving_in(&mut self, queue: QueueId) -> State<Held> {
        State::MovingIn { queued: self.early_frames.remove(&queue).unwrap_or_default() }
    }

    fn moving_out(
        &mut self,
        queue: QueueId,
        to: WorkerId,
        other_workers: usize,
        adopted: &mut AdoptionResult<Held>,
    ) -> State<Held> {
        let early_count = self.early_fences.remove(&queue).unwrap_or(0);
        match other_workers.saturating_sub(early_count) {
            0 => {
                adopted.queues_to_send.push((queue, to));
                State::OtherWorker(to)
            }
            fences_due => State::MovingOut { to, fences_due },
        }
    }

    /// Counts a received fence. Returns the new owner if the queue must be sent there now.
    pub(crate) fn handle_fence(&mut self, queue: QueueId) -> Option<WorkerId> {
        match self.states.get_mut(&queue) {
            Some(State::MovingOut { to, fences_due }) => {
                *fences_due -= 1;
                if *fences_due > 0 {
                    return None;
                }
                let to = *to;
                self.states.insert(queue, State::OtherWorker(to));
                Some(to)
            }
            Some(State::Here) => {
                *self.early_fences.entry(queue).or_default() += 1;
                None
            }
            _ => None,
        }
    }

    /// Records that a queue has been moved to this worker. Returns the frames buffered for it, in
    /// order.
    pub(crate) fn handle_queue_arrival(&mut self, queue: QueueId) -> Vec<Held> {
        match self.states.insert(queue, State::Here) {
            Some(State::MovingIn { queued }) => queued,
            _ => Vec::new(),
        }
    }

    /// Buffers a frame or frame message until the queue has been moved to this worker.
    ///
    /// # Errors
    /// Returns `message` if there is no such queue, this worker has it, or `held_max` messages are
    /// buffered for it already.
    pub(crate) fn buffer(
        &mut self,
        queue: QueueId,
        message: Held,
        held_max: usize,
    ) -> Result<(), Held> {
        let queued = match self.states.get_mut(&queue) {
            Some(State::MovingIn { queued }) => queued,
            Some(State::OtherWorker(_)) => self.early_frames.entry(queue).or_default(),
            _ => return Err(message),
        };
        if queued.len() >= held_max {
            return Err(message);
        }
        queued.push(message);
        Ok(())
    }

    /// Returns the destination of a frame that this worker received from an ingress queue.
    pub(crate) fn location(&self, queue: QueueId) -> QueueLocation {
        match self.states.get(&queue) {
            None => QueueLocation::UnknownQueue,
            Some(State::Here) => QueueLocation::ThisWorker,
            Some(State::OtherWorker(owner) | State::MovingOut { to: owner, .. }) => {
                QueueLocation::OtherWorker(*owner)
            }
            Some(State::MovingIn { .. }) => QueueLocation::MovingHere,
        }
    }

    /// Returns the destination of a frame that another worker has sent. A queue that is being moved
    /// away still accepts it. If another worker owns the queue in this worker's tables, the sender
    /// has adopted tables with a move to this worker that this worker has not adopted yet.
    pub(crate) fn location_for_received(&self, queue: QueueId) -> QueueLocation {
        match self.states.get(&queue) {
            Some(State::MovingOut { .. }) => QueueLocation::ThisWorker,
            Some(State::OtherWorker(_)) => QueueLocation::MovingHere,
            _ => self.location(queue),
        }
    }
}

#[cfg(test)]
#[path = "handover_tests.rs"]
mod tests;
