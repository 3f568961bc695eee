//! State of the check for unused buffers.

use suimon_quantity::Time;

use crate::queue_state::QueueKind;

/// State of the check for unused buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpareLook {
    /// True if a queue may have unused buffers.
    pub(crate) is_wanted: bool,
    /// Time of the last check, or of the first use of a queue after it.
    pub(crate) since: Time,
}

impl SpareLook {
    /// Records that a queue was served.
    #[inline]
    pub(crate) fn handle_served(&mut self, kind: QueueKind, now: Time) {
        if kind != QueueKind::Ring && !self.is_wanted {
            *self = Self { is_wanted: true, since: now };
        }
    }
}
