//! Deletion of a VM on the source node after its migration: first its process, then its
//! configuration.

mod driving;

use std::time::Instant;

use crate::operations::OperationHandle;

/// Deletion of a VM on this node that is in progress after the VM's migration to another node.
pub(super) struct SourceCleanup {
    /// Time of the next attempt.
    pub(super) retry_at: Instant,
    /// Operation of the migration, until the request to delete the VM is made.
    waiting: Option<OperationHandle>,
    /// Id of the operation that deletes the VM; `None` until it is requested.
    request: Option<u64>,
}
