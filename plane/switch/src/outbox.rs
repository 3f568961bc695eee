//! Messages that must not be lost, queued by receiver while mailboxes are full.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use suimon_quantity::WorkerId;

use crate::worker_mailbox::{WorkerMailbox, WorkerMessage};

/// Messages for workers whose mailboxes are full. A receiver has an entry only while messages for
/// it are queued, so the cost of sending depends on the number of full receivers, not on the number
/// of messages.
#[derive(Default)]
pub(crate) struct WorkerOutbox(BTreeMap<WorkerId, Queued>);

/// Messages for one worker, oldest first.
struct Queued {
    to: Arc<WorkerMailbox>,
    messages: VecDeque<WorkerMessage>,
}

impl WorkerOutbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a message now, or queues it behind earlier messages to the same worker.
    pub(crate) fn send(&mut self, link: &Arc<WorkerMailbox>, message: WorkerMessage) {
        if let Some(queued) = self.0.get_mut(&link.id) {
            queued.messages.push_back(message);
        } else if let Err(message) = link.send(message) {
            let queued = Queued { to: Arc::clone(link), messages: VecDeque::from([message]) };
            self.0.insert(link.id, queued);
        }
    }

    /// Sends queued messages as far as the mailboxes have room. The messages of a receiver whose
    /// mailbox is still full are not examined.
    pub(crate) fn retry(&mut self) {
        self.0.retain(|_, queued| !queued.send_all());
    }
}

impl Queued {
    /// Sends messages in order until the mailbox is full. Returns true if all were sent.
    fn send_all(&mut self) -> bool {
        while let Some(message) = self.messages.pop_front() {
            if let Err(message) = self.to.send(message) {
                self.messages.push_front(message);
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use suimon_quantity::{Direction, PortId, QueueId};

    use super::*;

    fn fence(port: u32) -> WorkerMessage {
        WorkerMessage::Fence(QueueId { port: PortId(port), direction: Direction::Egress, index: 0 })
    }

    fn ports(link: &WorkerMailbox) -> Vec<u32> {
        let fences = std::iter::from_fn(|| link.poll_message());
        fences
            .map(|message| match message {
                WorkerMessage::Fence(queue) => queue.port.0,
                _ => panic!("message of another kind"),
            })
            .collect()
    }

    #[test]
    fn messages_of_a_full_receiver_stay_in_order_and_do_not_delay_others() {
        let [full, quick] = [1, 2].map(|id| Arc::new(WorkerMailbox::new(WorkerId(id), id.into())));
        let mut outbox = WorkerOutbox::default();
        let mut sent = 0;
        while outbox.is_empty() {
            outbox.send(&full, fence(sent));
            sent += 1;
        }
        for port in 0..10 {
            outbox.send(&full, fence(sent));
            sent += 1;
            outbox.send(&quick, fence(port));
        }
        assert_eq!(ports(&quick), (0..10).collect::<Vec<_>>());
        // The mailbox has no room yet, and then room for three messages.
        outbox.retry();
        let mut read: Vec<u32> = Vec::new();
        for _ in 0..3 {
            match full.poll_message() {
                Some(WorkerMessage::Fence(queue)) => read.push(queue.port.0),
                _ => panic!("no fence"),
            }
        }
        outbox.retry();
        assert!(!outbox.is_empty());
        outbox.send(&full, fence(sent));
        sent += 1;
        read.extend(ports(&full));
        outbox.retry();
        assert!(outbox.is_empty());
        read.extend(ports(&full));
        assert_eq!(read, (0..sent).collect::<Vec<_>>());
    }
}
