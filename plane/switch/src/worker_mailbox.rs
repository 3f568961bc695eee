//! Mailboxes of workers: messages from other workers, and commands of the control plane.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crossbeam_queue::{ArrayQueue, SegQueue};
use suimon_forwarding::{AddressSighting, LearnedAddress};
use suimon_frame::Frame;
use suimon_ports::{CpuAffinity, Waker};
use suimon_quantity::{PortId, QueueId, WorkerId};
use suimon_teaming::Distribution;

use crate::counters::WorkerCounters;
use crate::latch::Latch;
use crate::owned::{OwnedSink, OwnedSource};
use crate::published::PublishedTables;
use crate::round_progress::RoundProgress;

/// Maximum number of messages in a mailbox; further messages stay with their sender.
const MESSAGES_MAX: usize = 4096;

/// Maximum number of unread learned addresses in a mailbox. The rest of its capacity is for frames
/// and queues.
const LEARNED_MAX: usize = 256;

/// Maximum number of frame messages that a worker may have in flight. It equals the number of
/// frames, because under light load a message contains one frame: the shared frames, and the own
/// frames for each of 32 workers.
pub(crate) const FRAME_MESSAGES_MAX: usize = 2048;

/// Message from one worker to another. Messages of each sender arrive in the order in which they
/// were sent.
pub(crate) enum WorkerMessage {
    FrameMessage(FrameMessage),
    /// Fence behind the last frames for a queue that moves to another worker; see
    /// [`crate::handover`].
    Fence(QueueId),
    /// Ingress queue that moves to the receiver, and the latch that the receiver counts down.
    MovedSource(Box<OwnedSource>, Latch),
    /// Egress queue that moves to the receiver; `None` if it had a fault before it was sent.
    MovedSink(QueueId, Option<Box<OwnedSink>>),
    AddressSighting(AddressSighting),
}

/// Frames for one egress queue of another worker. The receiver returns the message with its buffers
/// to the sender.
pub(crate) struct FrameMessage {
    /// Link of the worker that created the message and to which it is returned.
    pub sender: Arc<WorkerMailbox>,
    /// Worker that owns the egress queue.
    pub receiver: WorkerId,
    pub queue: QueueId,
    pub frames: Vec<Frame>,
}

/// Mailboxes by worker id; `None` where no worker runs.
#[derive(Clone, Default)]
pub(crate) struct WorkerMailboxes(Vec<Option<Arc<WorkerMailbox>>>);

impl WorkerMailboxes {
    pub(crate) fn mailbox_of(&self, id: WorkerId) -> Option<&Arc<WorkerMailbox>> {
        self.0.get(usize::from(id.0))?.as_ref()
    }

    /// Returns the mailboxes of all running workers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<WorkerMailbox>> {
        self.0.iter().flatten()
    }
}

impl FromIterator<Option<Arc<WorkerMailbox>>> for WorkerMailboxes {
    fn from_iter<T: IntoIterator<Item = Option<Arc<WorkerMailbox>>>>(links: T) -> Self {
        Self(links.into_iter().collect())
    }
}

/// Command of the control plane to a worker.
pub(crate) enum WorkerCommand {
    AdoptTables(Arc<PublishedTables>, Arc<WorkerMailboxes>, Latch),
    /// Sets the distribution of the team with this port. Changes nothing else, so that no tables
    /// have to be built when a link goes down.
    SetDistribution(PortId, Arc<Distribution>, Latch),
    AttachSource(Box<OwnedSource>),
    AttachSink(Box<OwnedSink>),
    /// Counts the latch down when this queue has arrived from its former owner, or at once if it is
    /// here.
    CountDownOnSink(QueueId, Latch),
    MoveSource(QueueId, WorkerId, Latch),
    /// Drops a queue if the worker has it and its detachment was requested.
    DetachQueue(QueueId),
    ReportAddresses(std::sync::mpsc::Sender<Vec<LearnedAddress>>),
    /// Addresses observed outside of the data plane, to refresh their ages.
    RefreshAddresses(Arc<[AddressSighting]>),
    Stop,
}

/// Mailbox and counters of one worker.
pub(crate) struct WorkerMailbox {
    pub id: WorkerId,
    pub placement: CpuAffinity,
    pub counters: WorkerCounters,
    pub round_progress: RoundProgress,
    messages: ArrayQueue<WorkerMessage>,
    /// Number of learned addresses in `messages`.
    learned: AtomicUsize,
    commands: SegQueue<WorkerCommand>,
    /// Empty frame messages that their receivers have returned to this worker.
    pub returned_messages: ArrayQueue<FrameMessage>,
    waker: OnceLock<Arc<dyn Waker>>,
}

impl WorkerMailbox {
    pub(crate) fn new(id: WorkerId, placement: CpuAffinity) -> Self {
        Self {
            id,
            placement,
            counters: WorkerCounters::default(),
            round_progress: RoundProgress::default(),
            messages: ArrayQueue::new(MESSAGES_MAX),
            learned: AtomicUsize::new(0),
            commands: SegQueue::new(),
            returned_messages: ArrayQueue::new(FRAME_MESSAGES_MAX),
            waker: OnceLock::new(),
        }
    }

    /// Sets the waker of the worker. Must be called before the first command.
    pub(crate) fn set_waker(&self, waker: Arc<dyn Waker>) {
        let _ = self.waker.set(waker);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    pub(crate) fn send_command(&self, command: WorkerCommand) {
        self.commands.push(command);
        self.wake();
    }

    pub(crate) fn poll_command(&self) -> Option<WorkerCommand> {
        self.commands.pop()
    }

    /// Puts a message into the mailbox and wakes the worker.
    ///
    /// # Errors
    /// Returns the message if the mailbox is full.
    pub(crate) fn send(&self, message: WorkerMessage) -> Result<(), WorkerMessage> {
        self.messages.push(message)?;
        self.wake();
        Ok(())
    }

    /// Sends a learned address, unless many are unread or the mailbox is full. The address is then
    /// lost: the worker floods frames to it, or sends them to its former port, until the address is
    /// announced again.
    pub(crate) fn send_address_sighting(&self, learned: AddressSighting) {
        if self.learned.fetch_add(1, Relaxed) >= LEARNED_MAX
            || self.send(WorkerMessage::AddressSighting(learned)).is_err()
        {
            self.learned.fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn poll_message(&self) -> Option<WorkerMessage> {
        let message = self.messages.pop();
        if let Some(WorkerMessage::AddressSighting(_)) = message {
            self.learned.fetch_sub(1, Relaxed);
        }
        message
    }
}

impl Waker for WorkerMailbox {
    fn wake(&self) {
        Self::wake(self);
    }
}

/// Returns a frame message with its buffers to the worker that created it.
pub(crate) fn return_to_sender(message: FrameMessage) {
    let owner = Arc::clone(&message.sender);
    // The queue has room for every frame message that exists.
    let _ = owner.returned_messages.push(message);
}

#[cfg(test)]
mod tests {
    use suimon_frame::MacAddr;
    use suimon_quantity::{Direction, SwitchId, Time};

    use super::*;

    #[test]
    fn learned_addresses_leave_room_for_other_messages() {
        let link = WorkerMailbox::new(WorkerId(0), CpuAffinity::Floating);
        let learned = AddressSighting {
            switch: SwitchId(1),
            vlan: None,
            mac: MacAddr::new([2, 0, 0, 0, 0, 1]),
            port: PortId(1),
            seen_at: Time::from_ns(0),
            moved_from: Some(PortId(2)),
            is_first: false,
        };
        for _ in 0..2 {
            (0..10 * MESSAGES_MAX).for_each(|_| link.send_address_sighting(learned));
            let queue = QueueId { port: PortId(1), direction: Direction::Egress, index: 0 };
            for _ in LEARNED_MAX..MESSAGES_MAX {
                assert!(link.send(WorkerMessage::Fence(queue)).is_ok());
            }
            assert!(link.send(WorkerMessage::Fence(queue)).is_err());
            let messages: Vec<WorkerMessage> = std::iter::from_fn(|| link.poll_message()).collect();
            let sightings = messages
                .iter()
                .filter(|message| matches!(message, WorkerMessage::AddressSighting(_)))
                .count();
            assert_eq!((sightings, messages.len()), (LEARNED_MAX, MESSAGES_MAX));
        }
    }
}
