//! Adoption of a VM that an earlier daemon started, or that this daemon has lost contact to.

mod driving;

use std::time::Instant;

use super::records::StoredRun;

/// VM that does not respond, or whose process id cannot be determined.
pub(super) struct UnresponsiveVm {
    pub(super) stored: StoredRun,
    pub(super) query_at: Instant,
    /// True if an event has reported it.
    is_reported: bool,
}

impl UnresponsiveVm {
    /// Creates the state of a VM that has not been queried, because it is to be killed and not
    /// adopted.
    pub(super) fn unqueried(stored: StoredRun) -> Self {
        Self { stored, query_at: Instant::now(), is_reported: true }
    }
}
