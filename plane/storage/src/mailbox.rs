//! Mailboxes of workers for messages about stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use suimon_ports::Waker;
use suimon_quantity::WorkerId;

use crate::store_message::StoreMessage;

/// Largest number of unread messages of a worker. Further messages remain with their sender.
const MAIL_MAX: usize = 1024;

/// Mailboxes of the other workers.
pub(crate) type Peers = Arc<BTreeMap<WorkerId, Arc<Mailbox>>>;

/// Mailbox of one worker for messages about stores.
pub(crate) struct Mailbox {
    pub(crate) mail: ArrayQueue<(WorkerId, StoreMessage)>,
    pub(crate) waker: Arc<dyn Waker>,
}

impl Mailbox {
    pub(crate) fn new(waker: Arc<dyn Waker>) -> Self {
        Self { mail: ArrayQueue::new(MAIL_MAX), waker }
    }

    #[allow(
        clippy::result_large_err,
        reason = "the mail itself goes back, and is not copied often"
    )]
    /// Adds a message, or returns it if there is no room.
    pub(crate) fn send(&self, from: WorkerId, mail: StoreMessage) -> Result<(), StoreMessage> {
        self.mail.push((from, mail)).map_err(|(_, mail)| mail)?;
        self.waker.wake();
        Ok(())
    }

    pub(crate) fn poll(&self) -> Option<(WorkerId, StoreMessage)> {
        self.mail.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mail.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use suimon_quantity::StoreId;
    use suimon_storage_qos::LoanReport;

    use super::*;
    use crate::plane_suspend_tests::NoWaker;

    #[test]
    fn a_full_mailbox_returns_further_messages() {
        let mailbox = Mailbox::new(Arc::new(NoWaker));
        let mail = || StoreMessage::Report {
            store: StoreId(1),
            of: WorkerId(1),
            report: LoanReport::default(),
            spent: Vec::new(),
        };
        for _ in 0..MAIL_MAX {
            assert!(mailbox.send(WorkerId(1), mail()).is_ok());
        }
        assert!(mailbox.send(WorkerId(1), mail()).is_err());
        assert!(mailbox.poll().is_some());
        assert!(mailbox.send(WorkerId(1), mail()).is_ok());
    }
}
