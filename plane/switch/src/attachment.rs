//! Attachment of a queue: state by which the control plane requests the queue back and waits until
//! its worker has dropped it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::latch::Latch;

/// State of one queue from attaching to dropping, shared by the control plane and the worker that
/// owns the queue.
#[derive(Debug)]
pub(crate) struct Attachment {
    is_revoked: AtomicBool,
    dropped: Latch,
}

/// Field of an owned queue that reports the drop of the queue. Must be the last field, so that it
/// is dropped after the queue.
#[derive(Debug)]
pub(crate) struct DropReporter(Arc<Attachment>);

impl Attachment {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { is_revoked: AtomicBool::new(false), dropped: Latch::new(1) })
    }

    /// Requests the queue back. A worker that takes ownership of the queue afterwards drops it.
    pub(crate) fn revoke(&self) {
        self.is_revoked.store(true, Relaxed);
    }

    /// Blocks until the owning worker has dropped the queue, at most `at_most`. Returns false on
    /// timeout.
    pub(crate) fn wait_dropped(&self, at_most: Duration) -> bool {
        self.dropped.wait(at_most)
    }
}

impl DropReporter {
    pub(crate) fn new(attachment: &Arc<Attachment>) -> Self {
        Self(Arc::clone(attachment))
    }

    pub(crate) fn attachment(&self) -> &Arc<Attachment> {
        &self.0
    }

    /// Returns true if the control plane has requested the queue back.
    pub(crate) fn is_revoked(&self) -> bool {
        self.0.is_revoked.load(Relaxed)
    }
}

impl Drop for DropReporter {
    fn drop(&mut self) {
        self.0.dropped.count_down();
    }
}
