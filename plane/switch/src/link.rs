//! What processors send each other, and what the control plane sends them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_queue::{ArrayQueue, SegQueue};
use suimon_forwarding::{Entry, Learned};
use suimon_ports::{Placement, Waker};
use suimon_quantity::{PortId, ProcessorId, QueueId};
use suimon_teaming::Distribution;

use crate::owned::{OwnedSink, OwnedSource};
use crate::post::Parcel;
use crate::published::Published;
use crate::tally::ProcessorTally;

/// Mail a mailbox takes; what is beyond waits with its sender.
const MAIL_MAX: usize = 4096;

/// Parcels a processor may have under way to others at a time. As many as frames,
/// because under light load a parcel holds one: those that are shared, and those of its own
/// for each of 32 processors.
pub(crate) const PARCELS_MAX: usize = 2048;

/// What one processor puts into another's mailbox. Each sender's mail arrives in
/// the order in which it was sent.
pub(crate) enum Mail {
    Parcel(Parcel),
    /// See [`crate::handover`].
    Fence(QueueId),
    /// The queue itself, and who waits for its arrival.
    Source(Box<OwnedSource>, Latch),
    /// The queue itself; without it if it had to be given up before it left.
    Sink(QueueId, Option<Box<OwnedSink>>),
    Learned(Learned),
}

/// What the control plane asks of a processor.
pub(crate) enum Command {
    Adopt(Arc<Published>, Latch),
    /// The team with this port has another distribution than was published. Nothing
    /// else changes, so that no tables are made anew while a link is down.
    Distribute(PortId, Arc<Distribution>, Latch),
    AttachSource(Box<OwnedSource>),
    AttachSink(Box<OwnedSink>),
    /// Tell when this queue has arrived from its former owner.
    ExpectSink(QueueId, Latch),
    MoveSource(QueueId, ProcessorId, Latch),
    Detach(QueueId, Latch),
    Addresses(std::sync::mpsc::Sender<Vec<Entry>>),
    /// Who was heard of elsewhere.
    Heard(Arc<[Learned]>),
    Stop,
}

/// The way to one processor.
pub(crate) struct Link {
    pub id: ProcessorId,
    pub placement: Placement,
    pub tally: ProcessorTally,
    mail: ArrayQueue<Mail>,
    commands: SegQueue<Command>,
    /// Parcels that came home empty.
    pub returns: ArrayQueue<Parcel>,
    waker: OnceLock<Arc<dyn Waker>>,
}

impl Link {
    pub(crate) fn new(id: ProcessorId, placement: Placement) -> Self {
        Self {
            id,
            placement,
            tally: ProcessorTally::default(),
            mail: ArrayQueue::new(MAIL_MAX),
            commands: SegQueue::new(),
            returns: ArrayQueue::new(PARCELS_MAX),
            waker: OnceLock::new(),
        }
    }

    /// Tells the link how to wake its processor; before the first command.
    pub(crate) fn set_waker(&self, waker: Arc<dyn Waker>) {
        let _ = self.waker.set(waker);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    pub(crate) fn command(&self, command: Command) {
        self.commands.push(command);
        self.wake();
    }

    pub(crate) fn poll_command(&self) -> Option<Command> {
        self.commands.pop()
    }

    /// Puts mail into the mailbox, or gives it back if that is full.
    pub(crate) fn send(&self, mail: Mail) -> Result<(), Mail> {
        self.mail.push(mail)?;
        self.wake();
        Ok(())
    }

    pub(crate) fn poll_mail(&self) -> Option<Mail> {
        self.mail.pop()
    }
}

impl Waker for Link {
    fn wake(&self) {
        Self::wake(self);
    }
}

/// Mail that must not be lost, for mailboxes that were full; in order.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<(Arc<Link>, Mail)>,
}

impl Outbox {
    /// Whether mail for this processor is waiting, so that nothing may be sent
    /// past it.
    pub(crate) fn is_waiting_for(&self, id: ProcessorId) -> bool {
        self.waiting.iter().any(|(link, _)| link.id == id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends now or later, but after everything sent before.
    pub(crate) fn send(&mut self, link: &Arc<Link>, mail: Mail) {
        if self.is_waiting_for(link.id) {
            self.waiting.push_back((Arc::clone(link), mail));
        } else if let Err(mail) = link.send(mail) {
            self.waiting.push_back((Arc::clone(link), mail));
        }
    }

    /// Tries what is waiting once more.
    pub(crate) fn retry(&mut self) {
        for (link, mail) in std::mem::take(&mut self.waiting) {
            self.send(&link, mail);
        }
    }
}

/// Counts down to nought and lets whoever waits for that go on.
#[derive(Clone)]
pub(crate) struct Latch(Arc<(Mutex<usize>, Condvar)>);

impl Latch {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    pub(crate) fn count_down(&self) {
        let (count, changed) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        if *count == 0 {
            changed.notify_all();
        }
    }

    /// Whether the count was nought within `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let (count, changed) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            count = changed.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
