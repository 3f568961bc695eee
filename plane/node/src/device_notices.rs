//! Notices of a device on their way to the control thread.
//!
//! A front-end causes notices as fast as it sends messages. They wait with their device: however many
//! one device has, the control thread is sent one command, and the notices of other devices are not
//! lost.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::DeviceNotice;
use suimon_quantity::{DiskId, PortId};

use crate::control::Command;

/// Largest number of notices of one device that wait.
pub(crate) const WAITING_MAX: usize = 32;

/// What has the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceOwner {
    Port(PortId),
    Disk(DiskId),
}

/// Notices of one device that was opened.
pub(crate) struct DeviceNotices {
    pub(crate) owner: DeviceOwner,
    /// Generation of the device that was opened.
    pub(crate) generation: u64,
    commands: SyncSender<Command>,
    late: Arc<LateNotices>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    notices: VecDeque<DeviceNotice>,
    /// True if a command for these notices is queued for the control thread, or they are late.
    is_queued: bool,
}

/// Devices with notices for which the control thread's queue had no room. The control thread polls
/// them. Each open device is contained once at most.
#[derive(Default)]
pub(crate) struct LateNotices(Mutex<Vec<Arc<DeviceNotices>>>);

impl LateNotices {
    fn put(&self, notices: Arc<DeviceNotices>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notices);
    }

    /// Removes and returns all devices.
    pub(crate) fn take(&self) -> Vec<Arc<DeviceNotices>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DeviceNotices {
    pub(crate) fn new(
        owner: DeviceOwner,
        generation: u64,
        commands: SyncSender<Command>,
        late: Arc<LateNotices>,
    ) -> Arc<Self> {
        Arc::new(Self { owner, generation, commands, late, waiting: Mutex::default() })
    }

    /// Adds a notice. Of [`WAITING_MAX`] notices the oldest one is dropped: the state of the device is
    /// that of the newest ones.
    pub(crate) fn put(self: &Arc<Self>, notice: DeviceNotice) {
        let mut waiting = self.lock();
        waiting.notices.retain(|before| !is_superseded(before, &notice));
        if waiting.notices.len() == WAITING_MAX {
            let is_event = |of: &DeviceNotice| {
                !matches!(of, DeviceNotice::Lost { .. } | DeviceNotice::Promised(_))
            };
            let oldest = waiting.notices.iter().position(is_event).unwrap_or(0);
            waiting.notices.remove(oldest);
        }
        waiting.notices.push_back(notice);
        if !waiting.is_queued {
            waiting.is_queued = true;
            let sent = self.commands.try_send(Command::DeviceNotices(Arc::clone(self)));
            if let Err(TrySendError::Full(_)) = sent {
                self.late.put(Arc::clone(self));
            }
        }
    }

    /// Removes and returns the notices in the order in which they came.
    pub(crate) fn take(&self) -> VecDeque<DeviceNotice> {
        std::mem::take(&mut self.lock().notices)
    }

    /// Does the same for the command that was sent. The next notice sends another one.
    pub(crate) fn take_queued(&self) -> VecDeque<DeviceNotice> {
        let mut waiting = self.lock();
        waiting.is_queued = false;
        std::mem::take(&mut waiting.notices)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `after` says all that `before` said.
fn is_superseded(before: &DeviceNotice, after: &DeviceNotice) -> bool {
    use DeviceNotice::{LinkChanged, Negotiated, Promised};
    matches!(
        (before, after),
        (Promised(_), Promised(_))
            | (Negotiated { .. }, Negotiated { .. })
            | (LinkChanged(_), LinkChanged(_))
    )
}

#[cfg(test)]
#[path = "device_notices_tests.rs"]
mod tests;
