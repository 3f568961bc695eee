//! Incoming live migration: the destination node, which responds to the source.

mod driving;

use std::time::Instant;

use suimon_contract::{IncomingMigrationRequest, MigrationPhase, Name, StoreToken, VmMigration};

use crate::disks::ServedDisk;

/// Incoming migration of a VM.
pub(super) struct PendingIncomingMigration {
    id: String,
    from: String,
    is_paused: bool,
    /// NBD connections through which the source writes the copied disks.
    disks: Vec<ServedDisk>,
    /// Disks that are handed over.
    handed_over: Vec<Name>,
    /// Tokens by which this node verifies that the stores of handed-over disks are those of the
    /// source.
    stores: Vec<StoreToken>,
    last_message_at: Instant,
    pub(super) next_poll_at: Instant,
}

/// Returns the initial migration status of a VM that is migrating to this node.
pub(crate) fn initial_incoming_view(request: &IncomingMigrationRequest) -> VmMigration {
    VmMigration {
        id: request.id.clone(),
        is_outgoing: false,
        peer_node: request.source_node.clone(),
        phase: MigrationPhase::Preparing,
        disk_bytes_copied: 0,
        disk_bytes_remaining: 0,
        memory_bytes_copied: 0,
        memory_bytes_remaining: 0,
        disks_copied: copied_disks(request),
        disks_handed_over: request.handed_over_disks.iter().map(|disk| disk.name.clone()).collect(),
    }
}

/// Returns the names of the VM's disks that are copied, that is, not handed over.
pub(super) fn copied_disks(request: &IncomingMigrationRequest) -> Vec<Name> {
    let is_copied =
        |disk: &Name| request.handed_over_disks.iter().all(|handed_over| handed_over.name != *disk);
    let names = request.disks.iter().map(|disk| &disk.name);
    names.filter(|disk| is_copied(disk)).cloned().collect()
}
