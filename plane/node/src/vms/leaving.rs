//! Outgoing live migration: the source node, which drives the migration.
//!
//! A step blocks for some seconds at most, on requests to the destination. The end of the guest, a
//! cancellation and the end of the daemon are handled between steps. [`DiskMirror::finish`] is the
//! exception: it blocks for up to 60 s while the VM is stopped.

mod driving;

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{MigrationPhase, Name, VmMigration};
use suimon_ports::SendSpec;

use super::records::{StoredLeave, StoredMove};
use crate::FarNode;
use crate::disks::{DiskMirror, DiskToHandOver, HeldMark};
use crate::operations::OperationHandle;

pub(super) const LOOK_WHILE_STILL: Duration = Duration::from_millis(2);

/// Outgoing migration of a VM.
pub(super) struct Leaving {
    pub(super) leave: StoredLeave,
    /// Migration operation; `None` after a restart of the daemon.
    pub(super) operation: Option<OperationHandle>,
    pub(super) stage: Stage,
    pub(super) look_at: Instant,
    copied: Copied,
    /// Time of the last successful progress query to the destination.
    told_at: Instant,
    /// Disks on shared stores, which are handed over instead of copied; empty after a restart of
    /// the daemon.
    pub(super) handed: Vec<DiskToHandOver>,
    /// Marks by which the destination verifies that the stores are the same.
    pub(super) marks: Vec<HeldMark>,
    /// Time since when the migration has been waiting only for the guest to release its VFs.
    asked_at: Option<Instant>,
}

pub(super) enum Stage {
    /// The destination prepares the VM; id of its operation.
    Preparing(Box<Order>, u64),
    Copying(Box<Order>, Vec<DiskMirror>),
    Sending(Box<Order>, Vec<DiskMirror>),
    /// The VM is stopped and the remaining state is transferred, at most until this time.
    Rest(Instant),
    /// The destination was told to activate the VM. `is_told` is true if an event has reported the
    /// destination as unresponsive.
    HandedOver {
        is_told: bool,
    },
}

/// Parameters of a migration in progress.
pub(super) struct Order {
    far: Arc<dyn FarNode>,
    send: SendSpec,
    /// Disks that are copied.
    disks: Vec<Name>,
}

/// Progress as bytes copied and bytes left.
#[derive(Clone, Copy, Default)]
struct Copied {
    disks: (u64, u64),
    memory: (u64, u64),
}

impl Leaving {
    fn phase(&self) -> MigrationPhase {
        match self.stage {
            Stage::Preparing(..) => MigrationPhase::Preparing,
            Stage::Copying(..) => MigrationPhase::CopyingDisks,
            Stage::Sending(..) => MigrationPhase::CopyingMemory,
            Stage::Rest(_) => MigrationPhase::Switching,
            Stage::HandedOver { .. } => MigrationPhase::HandedOver,
        }
    }

    /// Returns an outgoing migration in this stage, with its next step due immediately.
    pub(super) fn new(
        leave: StoredLeave,
        operation: Option<OperationHandle>,
        stage: Stage,
    ) -> Self {
        let now = Instant::now();
        Self {
            leave,
            operation,
            stage,
            look_at: now,
            copied: Copied::default(),
            told_at: now,
            handed: Vec::new(),
            marks: Vec::new(),
            asked_at: None,
        }
    }

    pub(super) fn view(&self) -> VmMigration {
        VmMigration {
            id: self.leave.id.clone(),
            leaves: true,
            node: self.leave.to.to_string(),
            phase: self.phase(),
            disk_bytes_copied: self.copied.disks.0,
            disk_bytes_left: self.copied.disks.1,
            memory_bytes_copied: self.copied.memory.0,
            memory_bytes_left: self.copied.memory.1,
            disks_copied: self.leave.copied.clone(),
            disks_handed_over: self.leave.handed_over.clone(),
        }
    }

    fn note_disks(&mut self, mirrors: &[DiskMirror]) {
        let progress = || mirrors.iter().map(DiskMirror::progress);
        let copied = progress().map(|of| of.copied_bytes).sum();
        self.copied.disks = (copied, progress().map(|of| of.left_bytes).sum());
    }
}

/// Returns the migration status of a VM that an earlier daemon handed over; `None` if it was not
/// handed over.
pub(super) fn handed_over_view(moving: &StoredMove) -> Option<VmMigration> {
    let (leave, is_told) = match moving {
        StoredMove::HandedOver(leave) => (leave, false),
        StoredMove::Left(leave) => (leave, true),
        StoredMove::Arriving { .. } | StoredMove::Leaving(_) => return None,
    };
    Some(Leaving::new(leave.clone(), None, Stage::HandedOver { is_told }).view())
}
