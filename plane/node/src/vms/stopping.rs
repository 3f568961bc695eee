//! Graceful stop: shutdown request to the guest, until it has powered off, the timeout has expired
//! or the operation is cancelled.

mod driving;

use std::time::Instant;

use suimon_contract::StopVmRequest;

use crate::operations::OperationHandle;

/// Pending graceful stop of a VM.
pub(super) struct PendingStop {
    operation: Option<OperationHandle>,
    /// Time of the next check for a cancellation.
    next_poll_at: Instant,
    until: Instant,
    request: StopVmRequest,
}

impl PendingStop {
    /// Returns the operation of the request; `None` if it has ended.
    pub(super) fn into_operation(self) -> Option<OperationHandle> {
        self.operation
    }

    /// Returns the time of the next check.
    pub(super) fn deadline(&self) -> Instant {
        match &self.operation {
            Some(_) => self.until.min(self.next_poll_at),
            None => self.until,
        }
    }
}
