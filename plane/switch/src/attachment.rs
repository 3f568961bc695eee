//! Attachment of a queue, from its host's view to the worker that drops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::latch::Latch;

/// Attachment of one queue, shared by the control plane and the worker that has the queue.
#[derive(Debug)]
pub(crate) struct Attachment {
    is_revoked: AtomicBool,
    dropped: Latch,
}

/// Part of an owned queue that reports when the queue was dropped. Must be its last field, so that
/// it is dropped after the queue.
#[derive(Debug)]
pub(crate) struct Attached(Arc<Attachment>);

impl Attachment {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { is_revoked: AtomicBool::new(false), dropped: Latch::new(1) })
    }

    /// Requests the queue back: a worker that receives it afterwards drops it.
    pub(crate) fn revoke(&self) {
        self.is_revoked.store(true, Relaxed);
    }

    /// Blocks until the queue was dropped, at most `at_most`. Returns false on timeout.
    pub(crate) fn wait_dropped(&self, at_most: Duration) -> bool {
        self.dropped.wait(at_most)
    }
}

impl Attached {
    pub(crate) fn new(attachment: &Arc<Attachment>) -> Self {
        Self(Arc::clone(attachment))
    }

    pub(crate) fn attachment(&self) -> &Arc<Attachment> {
        &self.0
    }

    /// Returns true if the queue was requested back.
    pub(crate) fn is_revoked(&self) -> bool {
        self.0.is_revoked.load(Relaxed)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.dropped.count_down();
    }
}
