//! Frames for queues of other workers, collected in one [`FrameMessage`] per queue.
//!
//! A worker has a bounded number of frames in flight to others. Buffers are exchanged, not copied:
//! a frame leaves its batch in its own buffer, an empty buffer replaces it, and the receiver
//! returns the buffer with the message. Buffers are allocated on first use and kept.
//!
//! A receiver that reads no messages does not block frames to the others. Each receiver may always
//! have one batch in flight. Of the shared buffers beyond that, it may use at most [`SHARE`] times
//! the number that is still free, so a single blocked receiver ends up with three quarters of them.

use std::sync::Arc;

use suimon_frame::{BATCH_FRAMES_MAX, Frame};
use suimon_quantity::{QueueId, WorkerId};

use crate::outbox::WorkerOutbox;
use crate::worker_mailbox::{
    FRAME_MESSAGES_MAX, FrameMessage, WorkerMailbox, WorkerMailboxes, WorkerMessage,
    return_to_sender,
};

/// Maximum number of shared frames in flight to other workers, in addition to [`OWN_FRAMES`] for
/// each: the capacity of a large ring. Frames beyond it are dropped as if the egress queue were
/// full.
const FRAMES_MAX: usize = 1024;
/// Frames that may always be in flight to a receiver.
const OWN_FRAMES: usize = BATCH_FRAMES_MAX;
/// Limit of a receiver's shared frames, as a multiple of the free shared frames.
const SHARE: usize = 3;

/// Outgoing frames of one worker to other workers.
pub(crate) struct FrameSender {
    owner: Arc<WorkerMailbox>,
    /// Messages being filled, in order of creation.
    open: Vec<FrameMessage>,
    spare_messages: Vec<FrameMessage>,
    messages_made: usize,
    frames: Vec<Frame>,
    frames_made: usize,
    /// Number of frames in messages that were not returned yet, by worker id of the receiver.
    in_flight: Vec<usize>,
    /// Number of frames in flight beyond the first [`OWN_FRAMES`] of each receiver.
    shared: usize,
}

impl FrameSender {
    pub(crate) fn new(owner: Arc<WorkerMailbox>) -> Self {
        Self {
            owner,
            open: Vec::with_capacity(BATCH_FRAMES_MAX),
            spare_messages: Vec::new(),
            messages_made: 0,
            frames: Vec::new(),
            frames_made: 0,
            in_flight: Vec::new(),
            shared: 0,
        }
    }

    /// Creates a message with this frame for a queue of another worker. Returns `None` if too many
    /// frames are in flight to it. With `is_only`, the frame has no other destination, so its
    /// buffer may be taken.
    pub(crate) fn create_message(
        &mut self,
        to: WorkerId,
        queue: QueueId,
        frame: &mut Frame,
        is_only: bool,
    ) -> Option<FrameMessage> {
        let mut message = self.spare_message(to, queue)?;
        if self.put(&mut message, frame, is_only) {
            return Some(message);
        }
        self.spare_messages.push(message);
        None
    }

    /// Adds a frame to the message for its queue. Returns false, with nothing added, if too many
    /// frames are in flight to the owner. `is_only`: see [`FrameSender::create_message`].
    pub(crate) fn add(
        &mut self,
        owner: WorkerId,
        queue: QueueId,
        frame: &mut Frame,
        is_only: bool,
    ) -> bool {
        let open = self
            .open
            .iter()
            .rposition(|message| message.queue == queue && message.frames.len() < BATCH_FRAMES_MAX);
        let Some(index) = open else {
            let Some(message) = self.create_message(owner, queue, frame, is_only) else {
                return false;
            };
            self.open.push(message);
            return true;
        };
        let mut message = self.open.swap_remove(index);
        let is_in = self.put(&mut message, frame, is_only);
        self.open.push(message);
        is_in
    }

    /// Sends all messages being filled. Of the messages for one queue, only the last one has room,
    /// so their order is irrelevant.
    pub(crate) fn send_all(&mut self, links: &WorkerMailboxes, outbox: &mut WorkerOutbox) {
        for message in self.open.drain(..) {
            match links.mailbox_of(message.receiver) {
                Some(link) => outbox.send(link, WorkerMessage::FrameMessage(message)),
                None => return_to_sender(message),
            }
        }
    }

    fn put(&mut self, message: &mut FrameMessage, frame: &mut Frame, is_only: bool) -> bool {
        if !self.has_room(message.receiver) {
            return false;
        }
        let under_way = &mut self.in_flight[usize::from(message.receiver.0)];
        self.shared += usize::from(*under_way >= OWN_FRAMES);
        *under_way += 1;
        let mut buffer = self.spare_frame();
        if is_only {
            // The source does not wait for the other worker, so the tail is copied.
            frame.linearize();
            std::mem::swap(&mut buffer, frame);
        } else {
            buffer.copy_from(frame);
        }
        message.frames.push(buffer);
        true
    }

    /// Returns true if one more frame may be in flight to this receiver.
    fn has_room(&mut self, to: WorkerId) -> bool {
        let index = usize::from(to.0);
        if index >= self.in_flight.len() {
            self.in_flight.resize(index + 1, 0);
        }
        let is_room = |post: &Self| {
            let shared = post.in_flight[index].checked_sub(OWN_FRAMES);
            shared.is_none_or(|shared| shared < (FRAMES_MAX - post.shared) * SHARE)
        };
        if is_room(self) {
            return true;
        }
        self.collect_returns();
        is_room(self)
    }

    /// Returns a free buffer, or allocates one.
    fn spare_frame(&mut self) -> Frame {
        if self.frames.is_empty() {
            self.collect_returns();
        }
        self.frames.pop().unwrap_or_else(|| {
            self.frames_made += 1;
            Frame::new(self.frames_made)
        })
    }

    fn spare_message(&mut self, to: WorkerId, queue: QueueId) -> Option<FrameMessage> {
        if self.spare_messages.is_empty() {
            self.collect_returns();
        }
        if let Some(mut message) = self.spare_messages.pop() {
            (message.receiver, message.queue) = (to, queue);
            return Some(message);
        }
        if self.messages_made == FRAME_MESSAGES_MAX {
            return None;
        }
        self.messages_made += 1;
        let frames = Vec::with_capacity(BATCH_FRAMES_MAX);
        Some(FrameMessage { sender: Arc::clone(&self.owner), receiver: to, queue, frames })
    }

    fn collect_returns(&mut self) {
        while let Some(mut message) = self.owner.returned_messages.pop() {
            let under_way = &mut self.in_flight[usize::from(message.receiver.0)];
            self.shared -= message.frames.len().min(under_way.saturating_sub(OWN_FRAMES));
            *under_way -= message.frames.len();
            self.frames.append(&mut message.frames);
            self.spare_messages.push(message);
        }
    }
}

#[cfg(test)]
#[path = "frame_sender_tests.rs"]
mod tests;
