//! Deletion of a VM that belongs to another node: first its process, then its configuration.

mod driving;

use std::time::Instant;

use crate::operations::OperationHandle;

/// Deletion in progress.
pub(super) struct Departing {
    /// Time of the next attempt.
    pub(super) again_at: Instant,
    /// Operation of the migration, until the request to delete the VM is made.
    waiting: Option<OperationHandle>,
    /// Operation that deletes the VM.
    request: Option<u64>,
}
