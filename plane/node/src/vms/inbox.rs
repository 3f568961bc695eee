//! What a VM's driver is told.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use suimon_contract::{ArrivalRequest, MigrateVmRequest, VM_DEVICES_MAX};
use suimon_ports::{VmDevice, VmNotice, VmObserver, VmRunState};

use super::vfs::VfOrder;
use super::work::VmWork;
use crate::moving::Asked;
use crate::operations::OperationHandle;

/// What comes from those who want something of the VM.
pub(crate) enum Message {
    /// Do this; `None` if nobody asked but the configuration.
    Work(VmWork, Option<OperationHandle>),
    /// Do this about a NIC's virtual function.
    Vf(VfOrder),
    /// Move it to another node.
    Migrate(Box<MigrateVmRequest>, OperationHandle),
    /// It comes from another node: start what waits for it.
    Arrive(Arc<ArrivalRequest>, OperationHandle),
    /// What that node asks.
    OfArrival(Asked),
    /// The change under way takes these devices from it, and waits for a while.
    Release(BTreeSet<VmDevice>),
    /// The configuration has changed, or a change of it was taken back.
    Look,
    /// Let the VM go on without a driver: the daemon ends.
    Leave,
    /// The VM is not desired any more.
    Delete,
}

/// What a VM has done since it was last asked. However much that was, it takes no more room
/// than this: a guest decides how often it says something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Which run of the VM it is about.
    pub(crate) run: u64,
    /// Whether its CPUs run now, if that has changed.
    pub(crate) state: Option<VmRunState>,
    /// Whether it was started anew.
    pub(crate) is_reset: bool,
    /// Devices that the guest has let go of, of those that it has.
    pub(crate) unplugged: BTreeSet<VmDevice>,
    /// The end of the VM's process: whether it was orderly, and the reason.
    pub(crate) ended: Option<(bool, String)>,
}

/// The next thing that a driver hears.
pub(crate) enum Heard {
    Message(Message),
    News(News),
    /// Nothing, and it is time for what waits.
    Time,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    news: Option<News>,
}

/// See the module. Messages are bounded by the operations under way.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

impl Inbox {
    pub(crate) fn put(&self, message: Message) {
        self.lock().messages.push_back(message);
        self.arrived.notify_one();
    }

    /// What has happened comes before what is asked for.
    pub(crate) fn take(&self, until: Option<Instant>) -> Heard {
        let mut waiting = self.lock();
        loop {
            if let Some(news) = waiting.news.take() {
                return Heard::News(news);
            }
            if let Some(message) = waiting.messages.pop_front() {
                return Heard::Message(message);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            waiting = match left {
                None => self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Heard::Time,
                Some(left) => {
                    let waited = self.arrived.wait_timeout(waiting, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to what a run has done. What an earlier run did is forgotten with it.
    fn hear(&self, run: u64, notice: VmNotice) {
        let mut waiting = self.lock();
        if waiting.news.as_ref().is_none_or(|news| news.run < run) {
            waiting.news = Some(News { run, ..News::default() });
        }
        let Some(news) = waiting.news.as_mut().filter(|news| news.run == run) else { return };
        match notice {
            VmNotice::State(state) => news.state = Some(state),
            VmNotice::Reset => news.is_reset = true,
            VmNotice::Unplugged(device) => {
                if news.unplugged.len() < 2 * VM_DEVICES_MAX {
                    news.unplugged.insert(device);
                }
            }
            VmNotice::Ended { is_orderly, reason } => news.ended = Some((is_orderly, reason)),
        }
        drop(waiting);
        self.arrived.notify_one();
    }
}

/// Hears of one run of a VM.
pub(crate) struct Ear {
    pub(crate) entry: Arc<super::VmEntry>,
    pub(crate) run: u64,
}

impl VmObserver for Ear {
    fn handle_notice(&self, notice: VmNotice) {
        self.entry.inbox.hear(self.run, notice);
    }
}
