//! Start of a VM, including autostart of a VM whose disks are not in service yet.

mod driving;

use std::time::Instant;

use crate::state::ReportedFailure;

/// Autostart of a VM, and its record in the state store.
#[derive(Default)]
pub(super) struct Autostart {
    /// Set while the VM waits for its disks to be in service.
    pending: Option<PendingAutostart>,
    /// True if the state store contains the record that the autostart has not ended.
    is_recorded: bool,
    /// Time of the next attempt to delete the record, if an attempt has failed.
    delete_at: Option<Instant>,
    failure: ReportedFailure,
}

impl Autostart {
    /// Returns the time at which [`Driver::poll_autostart`](super::driver::Driver::poll_autostart)
    /// is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let pending = self.pending.as_ref().map(|pending| pending.next_poll_at);
        [pending, self.delete_at].into_iter().flatten().min()
    }
}

/// Autostart that waits until the VM's disks are in service.
struct PendingAutostart {
    next_poll_at: Instant,
    /// True if an event has reported it. A wait of one interval emits no event.
    is_reported: bool,
}
