//! Adoption of a VM that an earlier daemon started, or that this daemon has lost contact to.

mod driving;

use std::time::Instant;

use super::records::StoredRun;

/// VM that does not respond, or whose process cannot be determined.
pub(super) struct Lost {
    pub(super) stored: StoredRun,
    pub(super) ask_at: Instant,
    /// True if an event has reported it.
    is_told: bool,
}

impl Lost {
    /// Returns a VM that is not to be adopted.
    pub(super) fn not_asked(stored: StoredRun) -> Self {
        Self { stored, ask_at: Instant::now(), is_told: true }
    }
}
