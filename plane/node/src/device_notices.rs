//! Queues of device notices for the control thread.
//!
//! A vhost-user front-end causes notices at the rate of its messages. Each device has its own
//! bounded queue. A device occupies at most one command in the control thread's queue, regardless
//! of its number of notices, so that notices of other devices are not displaced.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::DeviceNotice;
use suimon_quantity::{DiskId, PortId};

/// Maximum number of queued notices of a device.
pub(crate) const QUEUED_NOTICES_MAX: usize = 32;

/// Port or disk that a device belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceOwner {
    Port(PortId),
    Disk(DiskId),
}

/// Queue of the control thread, as far as device notices use it.
pub(crate) trait NoticeAnnouncer: Send + Sync {
    /// Queues a command to handle the notices of a device. Returns false if the control thread's
    /// queue is full.
    fn announce(&self, notices: Arc<DeviceNotices>) -> bool;
}

/// Notice queue of an open device.
pub(crate) struct DeviceNotices {
    pub(crate) owner: DeviceOwner,
    /// Generation of the device when it was opened.
    pub(crate) generation: u64,
    commands: Box<dyn NoticeAnnouncer>,
    late: Arc<UnannouncedNotices>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    notices: VecDeque<DeviceNotice>,
    /// True if a command for these notices is queued for the control thread, or the device is in
    /// [`UnannouncedNotices`].
    is_queued: bool,
}

/// Devices with notices for which the control thread's queue had no room. The control thread polls
/// them. Each open device is contained once at most.
#[derive(Default)]
pub(crate) struct UnannouncedNotices(Mutex<Vec<Arc<DeviceNotices>>>);

impl UnannouncedNotices {
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
        commands: impl NoticeAnnouncer + 'static,
        late: Arc<UnannouncedNotices>,
    ) -> Arc<Self> {
        let commands = Box::new(commands);
        Arc::new(Self { owner, generation, commands, late, waiting: Mutex::default() })
    }

    /// Adds a notice, and removes notices that it supersedes. If [`QUEUED_NOTICES_MAX`] notices are
    /// queued, drops the oldest one. Notices of a lost device and of negotiated features are
    /// dropped last, because the newest of them determine the state of the device.
    pub(crate) fn put(self: &Arc<Self>, notice: DeviceNotice) {
        let mut waiting = self.lock();
        waiting.notices.retain(|before| !is_superseded(before, &notice));
        if waiting.notices.len() == QUEUED_NOTICES_MAX {
            let is_event = |other: &DeviceNotice| {
                !matches!(
                    other,
                    DeviceNotice::DeviceLost { .. } | DeviceNotice::FeaturesCommitted(_)
                )
            };
            let oldest = waiting.notices.iter().position(is_event).unwrap_or(0);
            waiting.notices.remove(oldest);
        }
        waiting.notices.push_back(notice);
        if !waiting.is_queued {
            waiting.is_queued = true;
            if !self.commands.announce(Arc::clone(self)) {
                self.late.put(Arc::clone(self));
            }
        }
    }

    /// Removes and returns the notices, oldest first.
    pub(crate) fn take(&self) -> VecDeque<DeviceNotice> {
        std::mem::take(&mut self.lock().notices)
    }

    /// Like [`take`](Self::take), called when the queued command is handled. The next notice queues
    /// another command.
    pub(crate) fn take_announced(&self) -> VecDeque<DeviceNotice> {
        let mut waiting = self.lock();
        waiting.is_queued = false;
        std::mem::take(&mut waiting.notices)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `after` makes `before` obsolete.
fn is_superseded(before: &DeviceNotice, after: &DeviceNotice) -> bool {
    use DeviceNotice::{FeaturesCommitted, LinkChanged, Negotiated};
    matches!(
        (before, after),
        (FeaturesCommitted(_), FeaturesCommitted(_))
            | (Negotiated { .. }, Negotiated { .. })
            | (LinkChanged(_), LinkChanged(_))
    )
}

#[cfg(test)]
#[path = "device_notices_tests.rs"]
mod tests;
