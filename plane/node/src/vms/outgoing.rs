//! Outgoing live migration: the source node, which drives the migration.
//!
//! A step blocks for some seconds at most, on requests to the destination. The end of the guest, a
//! cancellation and the end of the daemon are handled between steps. [`DiskMirror::finish`] is the
//! exception: it blocks for up to 60 s while the VM is stopped.

mod driving;

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{MigrationPhase, Name, VmMigration};
use suimon_ports::MigrationSpec;

use super::records::{StoredMigration, StoredMigrationState};
use crate::PeerNode;
use crate::disks::{CreatedStoreMarker, DiskMirror, OutgoingDisk};
use crate::operations::OperationHandle;

pub(super) const SWITCHOVER_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Outgoing migration of a VM.
pub(super) struct OutgoingMigration {
    pub(super) migration: StoredMigration,
    /// Migration operation; `None` after a restart of the daemon.
    pub(super) operation: Option<OperationHandle>,
    pub(super) stage: Stage,
    pub(super) next_poll_at: Instant,
    copied: Copied,
    /// Time of the last successful progress query to the destination.
    last_query_at: Instant,
    /// Disks on shared stores, which are handed over instead of copied; empty after a restart of
    /// the daemon.
    pub(super) handed_over_disks: Vec<OutgoingDisk>,
    /// Marks by which the destination verifies that the stores are the same.
    pub(super) store_markers: Vec<CreatedStoreMarker>,
    /// Time since when the migration has been waiting only for the guest to release its VFs.
    vf_release_since: Option<Instant>,
}

pub(super) enum Stage {
    /// The destination prepares the VM; id of its operation.
    Preparing(Box<MigrationParams>, u64),
    CopyingDisks(Box<MigrationParams>, Vec<DiskMirror>),
    CopyingMemory(Box<MigrationParams>, Vec<DiskMirror>),
    /// The VM is stopped and the remaining state is transferred, at most until this time.
    Switchover(Instant),
    /// The destination was requested to activate the VM. `is_reported` is true if an event has
    /// reported the destination as unresponsive.
    HandedOver {
        is_reported: bool,
    },
}

/// Parameters of a migration in progress.
pub(super) struct MigrationParams {
    target_node: Arc<dyn PeerNode>,
    send: MigrationSpec,
    /// Disks whose contents are copied to the destination.
    disks: Vec<Name>,
}

/// Numbers of bytes: copied to the destination (first) and left to copy (second).
#[derive(Clone, Copy, Default)]
struct Copied {
    disks: (u64, u64),
    memory: (u64, u64),
}

impl OutgoingMigration {
    fn phase(&self) -> MigrationPhase {
        match self.stage {
            Stage::Preparing(..) => MigrationPhase::Preparing,
            Stage::CopyingDisks(..) => MigrationPhase::CopyingDisks,
            Stage::CopyingMemory(..) => MigrationPhase::CopyingMemory,
            Stage::Switchover(_) => MigrationPhase::StopAndCopy,
            Stage::HandedOver { .. } => MigrationPhase::HandedOver,
        }
    }

    /// Returns an outgoing migration in this stage, with its next step due immediately.
    pub(super) fn new(
        migration: StoredMigration,
        operation: Option<OperationHandle>,
        stage: Stage,
    ) -> Self {
        let now = Instant::now();
        Self {
            migration,
            operation,
            stage,
            next_poll_at: now,
            copied: Copied::default(),
            last_query_at: now,
            handed_over_disks: Vec::new(),
            store_markers: Vec::new(),
            vf_release_since: None,
        }
    }

    pub(super) fn view(&self) -> VmMigration {
        VmMigration {
            id: self.migration.id.clone(),
            is_outgoing: true,
            peer_node: self.migration.destination_node.to_string(),
            phase: self.phase(),
            disk_bytes_copied: self.copied.disks.0,
            disk_bytes_remaining: self.copied.disks.1,
            memory_bytes_copied: self.copied.memory.0,
            memory_bytes_remaining: self.copied.memory.1,
            disks_copied: self.migration.copied_disks.clone(),
            disks_handed_over: self.migration.handed_over_disks.clone(),
        }
    }

    fn note_disks(&mut self, mirrors: &[DiskMirror]) {
        let progress = || mirrors.iter().map(DiskMirror::progress);
        let copied = progress().map(|progress| progress.copied_bytes).sum();
        self.copied.disks = (copied, progress().map(|progress| progress.remaining_bytes).sum());
    }
}

/// Returns the migration status of a VM that an earlier daemon handed over; `None` if it was not
/// handed over.
pub(super) fn handed_over_view(stored_move: &StoredMigrationState) -> Option<VmMigration> {
    let (migration, is_reported) = match stored_move {
        StoredMigrationState::HandedOver(migration) => (migration, false),
        StoredMigrationState::Migrated(migration) => (migration, true),
        StoredMigrationState::Incoming { .. } | StoredMigrationState::Outgoing(_) => return None,
    };
    Some(OutgoingMigration::new(migration.clone(), None, Stage::HandedOver { is_reported }).view())
}
