//! Requested kill of a VM, which the driver or another thread executes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::operations::OperationHandle;

/// Time within which the driver must begin a kill.
const GRACE: Duration = Duration::from_millis(250);

/// Requested kill of a VM. One thread executes it.
pub(crate) struct PendingKill {
    operation: OperationHandle,
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No thread has begun the kill.
    Queued,
    /// The driver executes the kill.
    Begun,
    /// The other thread kills the process.
    Killing,
    /// The other thread has killed the process, or has failed.
    Ended { is_killed: bool },
}

impl PendingKill {
    /// Returns a kill that no thread has begun.
    pub(super) fn new(operation: OperationHandle) -> Self {
        Self { operation, stage: Mutex::new(Stage::Queued), changed: Condvar::new() }
    }

    /// Returns the operation of the request.
    pub(super) const fn operation(&self) -> &OperationHandle {
        &self.operation
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the kill in the driver. Blocks while the other thread kills the process. Returns true
    /// if that thread has killed it.
    pub(super) fn begin(&self) -> bool {
        let is_killing = |stage: &mut Stage| *stage == Stage::Killing;
        let stage = self.changed.wait_while(self.lock(), is_killing);
        let mut stage = stage.unwrap_or_else(PoisonError::into_inner);
        let is_killed = *stage == Stage::Ended { is_killed: true };
        *stage = Stage::Begun;
        self.changed.notify_all();
        is_killed
    }

    /// Waits until the driver begins the kill. Returns true if it has not done so in time; the
    /// driver then waits for [`Self::end`].
    pub(super) fn is_late(&self) -> bool {
        let is_queued = |stage: &mut Stage| *stage == Stage::Queued;
        let waited = self.changed.wait_timeout_while(self.lock(), GRACE, is_queued);
        let (mut stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *stage != Stage::Queued || !self.operation.begin() {
            return false;
        }
        *stage = Stage::Killing;
        true
    }

    pub(super) fn end(&self, is_killed: bool) {
        *self.lock() = Stage::Ended { is_killed };
        self.changed.notify_all();
    }
}
