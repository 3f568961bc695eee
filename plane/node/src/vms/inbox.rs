//! Inbox of a VM's driver: requests and merged notices.

mod observer;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use suimon_contract::{IncomingMigrationRequest, MigrateVmRequest, VM_DEVICES_MAX};
use suimon_ports::{VmDevice, VmNotice, VmRunState};

pub(crate) use self::observer::NoticeObserver;
use super::pending_kill::PendingKill;
use super::vfs::VfOrder;
use super::work::VmAction;
use crate::migration::IncomingRequestMessage;
use crate::operations::OperationHandle;

/// Maximum number of notices returned in succession while messages are queued.
const NOTICES_PER_BATCH: u32 = 16;

/// Maximum number of queued requests of the source node about the VM that is migrating to this
/// node. The source repeats its requests, also while the driver waits for a store or for QEMU.
const ARRIVAL_REQUESTS_MAX: usize = 16;

/// Request to a VM's driver.
pub(crate) enum Message {
    /// Execute an operation, and complete the operation in the table; `None` if `autostart` has
    /// requested it.
    Action(VmAction, Option<OperationHandle>),
    /// End the VM's QEMU process immediately, without the guest's cooperation.
    Kill(Arc<PendingKill>),
    /// Execute an order about a NIC's virtual function.
    Vf(VfOrder),
    /// Migrate the VM to another node.
    Migrate(Box<MigrateVmRequest>, OperationHandle),
    /// Start the QEMU process of a VM that is migrating to this node.
    StartIncomingMigration(Arc<IncomingMigrationRequest>, OperationHandle),
    /// Respond to the source node of a VM that is migrating to this node.
    IncomingRequest(IncomingRequestMessage),
    /// Unplug devices whose connection the change in progress will close. The control thread waits
    /// for a limited time.
    ReleaseDevices(BTreeSet<VmDevice>),
    /// Reconcile with desired state, because it has changed or a change was rolled back.
    Reconcile,
    /// Stop the driver and let the VM continue: the daemon ends.
    Detach,
    /// Stop the driver: the VM was removed from desired state.
    Delete,
}

/// Merged notices of a VM since the last [`Inbox::take`]. The size is bounded, because a guest
/// controls the rate of notices.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingNotices {
    /// Run that the notices belong to.
    pub(crate) run_number: u64,
    /// Last run state; `None` if it has not changed.
    pub(crate) state: Option<VmRunState>,
    /// True if the machine was reset.
    pub(crate) is_reset: bool,
    /// Devices released by the guest, at most twice [`VM_DEVICES_MAX`].
    pub(crate) unplugged: BTreeSet<VmDevice>,
    /// End of the VM's process: whether it was orderly, and the reason; `None` while the process
    /// runs.
    pub(crate) ended: Option<(bool, String)>,
}

/// Reason why a VM's driver ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverEnd {
    /// The daemon ends, and the VM continues.
    Detached,
    /// The VM was removed from desired state.
    Deleted,
}

/// Next input of a VM's driver thread.
pub(crate) enum Input {
    Message(Message),
    Notices(PendingNotices),
    /// The deadline has passed without other input.
    DeadlineReached,
}

#[derive(Default)]
struct PendingInput {
    messages: VecDeque<Message>,
    notices: Option<PendingNotices>,
    /// Number of notices returned in succession while messages were queued.
    in_a_row: u32,
    /// Reason of the end of the driver; `None` while it runs.
    closed: Option<DriverEnd>,
}

/// Inbox of a VM's driver. The number of messages is bounded by the operations in progress and
/// [`ARRIVAL_REQUESTS_MAX`]: consecutive messages [`Message::Reconcile`], and consecutive messages
/// [`Message::ReleaseDevices`], are merged.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<PendingInput>,
    arrived: Condvar,
}

impl Inbox {
    /// Appends a message. A request of a source node beyond [`ARRIVAL_REQUESTS_MAX`] replaces the
    /// oldest one, whose caller gets an error. Returns the message if the driver has ended.
    pub(crate) fn put(&self, message: Message) -> Option<Message> {
        let mut waiting = self.lock();
        if waiting.closed.is_some() {
            return Some(message);
        }
        let is_request = |message: &Message| matches!(message, Message::IncomingRequest(_));
        let messages = &mut waiting.messages;
        if is_request(&message) {
            let queued = messages.iter().filter(|message| is_request(message)).count();
            let oldest = messages.iter().position(is_request);
            if let Some(index) = oldest.filter(|_| queued >= ARRIVAL_REQUESTS_MAX) {
                messages.remove(index);
            }
        }
        // Requests of a source node depend on neither. One pass takes all earlier changes into
        // account.
        let last = messages.iter_mut().rev().find(|message| !is_request(message));
        match (last, message) {
            (Some(Message::Reconcile), Message::Reconcile) => return None,
            (Some(Message::ReleaseDevices(queued)), Message::ReleaseDevices(devices)) => {
                queued.extend(devices);
            }
            (_, message) => messages.push_back(message),
        }
        drop(waiting);
        self.arrived.notify_one();
        None
    }

    /// Closes the inbox, because the driver ends. Returns the queued messages.
    pub(crate) fn close(&self, end: DriverEnd) -> VecDeque<Message> {
        let mut waiting = self.lock();
        waiting.closed = Some(end);
        std::mem::take(&mut waiting.messages)
    }

    /// Returns the reason of the end of the driver; `None` while it runs.
    pub(crate) fn end_reason(&self) -> Option<DriverEnd> {
        self.lock().closed
    }

    /// Blocks until there is input or `until` has passed. Notices precede messages, except after
    /// [`NOTICES_PER_BATCH`]: a guest controls their rate. Both precede the deadline.
    pub(crate) fn take(&self, until: Option<Instant>) -> Input {
        let mut waiting = self.lock();
        loop {
            let is_turn = waiting.in_a_row < NOTICES_PER_BATCH || waiting.messages.is_empty();
            if let Some(notices) = waiting.notices.take_if(|_| is_turn) {
                let is_ahead = !waiting.messages.is_empty();
                waiting.in_a_row = if is_ahead { waiting.in_a_row + 1 } else { 0 };
                return Input::Notices(notices);
            }
            if let Some(message) = waiting.messages.pop_front() {
                waiting.in_a_row = 0;
                return Input::Message(message);
            }
            let remaining = until.map(|until| until.saturating_duration_since(Instant::now()));
            waiting = match remaining {
                None => self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(remaining) if remaining.is_zero() => return Input::DeadlineReached,
                Some(remaining) => {
                    let wait_result = self.arrived.wait_timeout(waiting, remaining);
                    wait_result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingInput> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges a notice. Notices of an earlier run are discarded.
    fn merge(&self, run: u64, notice: VmNotice) {
        let mut waiting = self.lock();
        if waiting.notices.as_ref().is_none_or(|notices| notices.run_number < run) {
            waiting.notices = Some(PendingNotices { run_number: run, ..PendingNotices::default() });
        }
        let Some(notices) = waiting.notices.as_mut().filter(|notices| notices.run_number == run)
        else {
            return;
        };
        match notice {
            VmNotice::StateChanged(state) => notices.state = Some(state),
            VmNotice::Reset => notices.is_reset = true,
            VmNotice::Unplugged(device) => {
                if notices.unplugged.len() < 2 * VM_DEVICES_MAX {
                    notices.unplugged.insert(device);
                }
            }
            VmNotice::Ended { is_orderly, reason } => notices.ended = Some((is_orderly, reason)),
        }
        drop(waiting);
        self.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, sync_channel};

    use super::*;
    use crate::migration::IncomingRequest;
    use crate::vms::pending_kill::tests::kill as pending_kill;

    /// The newest requests are kept, because the source node repeats its requests, also while the
    /// driver waits for a store or for QEMU.
    #[test]
    fn the_newest_requests_of_a_source_node_are_kept() {
        let inbox = Inbox::default();
        inbox.put(Message::Reconcile);
        let answers: Vec<_> = (0..1000)
            .map(|_| {
                let (sender, receiver) = sync_channel(1);
                inbox.put(Message::IncomingRequest((IncomingRequest::Query, sender)));
                receiver
            })
            .collect();
        inbox.put(Message::Detach);
        let is_queued: Vec<bool> = answers
            .iter()
            .map(|answer| matches!(answer.try_recv(), Err(TryRecvError::Empty)))
            .collect();
        let queued = is_queued.iter().filter(|queued| **queued).count();
        assert_eq!(queued, 16);
        assert!(is_queued[1000 - queued..].iter().all(|queued| *queued));
        // Other messages stay, in order.
        assert_eq!(inbox.lock().messages.len(), queued + 2);
        assert!(matches!(inbox.take(None), Input::Message(Message::Reconcile)));
    }

    /// Each change of the host, and each recovery of a port or disk, adds one for every VM.
    #[test]
    fn consecutive_reconciliations_and_releases_are_merged() {
        let inbox = Inbox::default();
        let release = |device: &str| {
            Message::ReleaseDevices([VmDevice::Nic(device.to_owned())].into_iter().collect())
        };
        for _ in 0..10_000 {
            inbox.put(Message::Reconcile);
        }
        for _ in 0..100 {
            let (sender, _receiver) = sync_channel(1);
            inbox.put(Message::IncomingRequest((IncomingRequest::Query, sender)));
            inbox.put(Message::Reconcile);
        }
        inbox.lock().messages.retain(|message| !matches!(message, Message::IncomingRequest(_)));
        inbox.put(release("a"));
        inbox.put(release("b"));
        inbox.put(Message::Reconcile);
        assert!(matches!(inbox.take(None), Input::Message(Message::Reconcile)));
        let Input::Message(Message::ReleaseDevices(devices)) = inbox.take(None) else {
            panic!("the releases follow")
        };
        assert_eq!(devices.len(), 2);
        assert!(matches!(inbox.take(None), Input::Message(Message::Reconcile)));
        assert!(inbox.lock().messages.is_empty());
    }

    /// A guest releases devices without a request, and a hostile QEMU reports any names.
    #[test]
    fn released_devices_of_a_guest_are_merged_up_to_a_bound() {
        let inbox = Inbox::default();
        for number in 0..1000 {
            inbox.merge(1, VmNotice::Unplugged(VmDevice::Nic(format!("nic-{number}"))));
            inbox.merge(1, VmNotice::Reset);
        }
        let Input::Notices(notices) = inbox.take(None) else { panic!("notices are queued") };
        assert_eq!(notices.unplugged.len(), 2 * VM_DEVICES_MAX);
        assert!(notices.is_reset && inbox.lock().notices.is_none());
    }

    /// A kill that arrives when the daemon ends must neither hang nor be executed without a driver.
    #[test]
    fn messages_behind_the_end_of_the_driver_are_returned_and_later_ones_refused() {
        let inbox = Inbox::default();
        let (kill, _table) = pending_kill();
        inbox.put(Message::Detach);
        assert!(inbox.put(Message::Kill(Arc::clone(&kill))).is_none());
        assert!(inbox.put(Message::Reconcile).is_none());
        assert!(matches!(inbox.take(None), Input::Message(Message::Detach)));
        assert_eq!(inbox.end_reason(), None);
        let remaining = inbox.close(DriverEnd::Detached);
        assert!(
            matches!(&remaining[0], Message::Kill(queued_kill) if Arc::ptr_eq(queued_kill, &kill))
        );
        assert!(matches!(remaining[1], Message::Reconcile) && remaining.len() == 2);
        assert_eq!(inbox.end_reason(), Some(DriverEnd::Detached));
        let rejected = inbox.put(Message::Kill(Arc::clone(&kill)));
        assert!(
            matches!(rejected, Some(Message::Kill(queued_kill)) if Arc::ptr_eq(&queued_kill, &kill))
        );
        assert!(inbox.lock().messages.is_empty());
    }
}
