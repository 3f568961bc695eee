//! Start of a VM, including autostart of a VM whose disks are not in service yet.

mod driving;

use std::time::Instant;

/// Autostart that waits until the VM's disks are in service.
pub(super) struct PendingAutostart {
    pub(super) next_poll_at: Instant,
    /// True if an event has reported it. A wait of one interval emits no event.
    is_reported: bool,
}
