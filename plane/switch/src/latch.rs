//! Latches with which the control plane waits for workers.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for a worker to execute a command. Workers execute commands between two batches, so
/// this is only exceeded if the host does not schedule the worker.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Latch that unblocks its waiters when its count reaches zero.
#[derive(Clone, Debug)]
pub(crate) struct Latch(Arc<(Mutex<usize>, Condvar)>);

impl Latch {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    pub(crate) fn count_down(&self) {
        let (count, changed) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        if *count == 0 {
            changed.notify_all();
        }
    }

    /// Blocks until the count is zero, at most `timeout`. Returns false on timeout.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let (count, changed) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
            count =
                changed.wait_timeout(count, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
