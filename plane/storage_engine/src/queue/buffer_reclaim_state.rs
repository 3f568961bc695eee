//! State of the periodic check for unused buffers of NBD connections.

use suimon_quantity::Time;

use crate::queue::QueueKind;

/// State of the periodic check for unused buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BufferReclaim {
    /// True if a queue may have unused buffers.
    pub(crate) is_pending: bool,
    /// Time of the last check, or of the first use of a queue after it.
    pub(crate) since: Time,
}

impl BufferReclaim {
    /// Records that a queue of this kind was served, after which it may have unused buffers.
    #[inline]
    pub(crate) fn handle_served(&mut self, kind: QueueKind, now: Time) {
        if kind != QueueKind::Ring && !self.is_pending {
            *self = Self { is_pending: true, since: now };
        }
    }
}
