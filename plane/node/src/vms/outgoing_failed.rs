//! Failed or cancelled outgoing migration: the VM continues on the source node.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, MigrationPhase, Name, VmState};
use suimon_ports::{MigrationTransferPhase, Vm, VmCommand, VmError, VmErrorKind, VmRunState};

use super::driver::Driver;
use super::entry::vm_state;
use super::migration_limits::SWITCHOVER_TIMEOUT;
use super::outgoing::{OutgoingMigration, SWITCHOVER_POLL_INTERVAL, Stage};
use super::records::{StoredMigration, StoredMigrationState};
use super::texts;
use crate::command::Command;
use crate::disks::OutgoingDisk;

/// Interval between attempts to resume a VM that does not respond.
const TRY_AGAIN: Duration = Duration::from_millis(100);

impl Driver {
    /// Ends an outgoing migration with `error`, and has the VM continue on this node. Blocks until
    /// QEMU has cancelled the migration, at most for `SWITCHOVER_TIMEOUT`. A VM that is not adopted
    /// yet continues when it is; until then the migration stays recorded, for the next daemon.
    pub(super) fn end_failed_outgoing(&mut self, outgoing: OutgoingMigration, error: ApiError) {
        // No other node gets the VM any more, so that other threads may kill it while QEMU does not
        // respond.
        self.entry.set_switchover_in_progress(false);
        let OutgoingMigration {
            migration,
            operation,
            stage,
            handed_over_disks: handed_over,
            store_markers: marks,
            ..
        } = outgoing;
        // Stops the mirrors before the guest continues.
        drop(stage);
        self.roll_back(&migration, handed_over);
        drop(marks);
        // Restores the switch's tables before the guest continues, so that frames reach it.
        if let Some(migration) = &mut self.entry.view().migration {
            migration.phase = MigrationPhase::StopAndCopy;
        }
        self.notify_location_changed();
        if self.unresponsive.is_some() {
            self.cancels_migration_when_adopted = true;
            self.save_migration_record(Some(StoredMigrationState::Outgoing(migration.clone())));
        } else {
            self.end_move(migration.was_paused);
        }
        if let Ok(peer) = self.shared.peer_node(&migration.destination_node) {
            // Best effort: the destination abandons the migration if it receives no requests.
            let _ = peer.abandon_incoming_migration(&migration.id);
        }
        self.append(texts::migration_failed_event(
            &self.entry,
            migration.destination_node.as_str(),
            &error.message,
        ));
        let mut view = self.entry.view();
        view.migration = None;
        match (&self.run, &self.unresponsive) {
            (Some(_), _) => {}
            (None, Some(_)) => view.state = VmState::NotResponding,
            // The VM has ended in the meantime.
            (None, None) => view.state = VmState::Stopped,
        }
        drop(view);
        self.update_space_wait_after_migration();
        if let Some(operation) = operation {
            operation.end(&Err(error));
        }
        // Applies changes that were made during the migration.
        self.reconcile();
    }

    /// Reopens the handed-over disks. The control thread retries failed ones.
    fn roll_back(&mut self, migration: &StoredMigration, handed_over: Vec<OutgoingDisk>) {
        let control = &mut self.control_sender;
        let mut bring_back = |disk: &Name, failure| {
            control.send(Command::ReturnDiskToService { disk: disk.clone(), failure });
        };
        if handed_over.is_empty() {
            // The disks may have been closed by a previous daemon.
            let shared = &self.shared;
            let recorded_disks =
                migration.handed_over_disks.iter().filter(|disk| shared.clear_handover(disk));
            recorded_disks.for_each(|disk| bring_back(disk, None));
        }
        for disk in handed_over {
            let (name, result) = (disk.name().clone(), disk.reclaim());
            drop(disk);
            if let Err(error) = result {
                bring_back(&name, Some(error.to_string()));
            }
        }
    }

    /// Continues a VM that was adopted after its outgoing migration had failed: cancels QEMU's
    /// migration and resumes the VM.
    pub(super) fn continue_adopted_vm(&mut self) {
        if self.unresponsive.is_some() || !std::mem::take(&mut self.cancels_migration_when_adopted)
        {
            return;
        }
        if let Some(StoredMigrationState::Outgoing(migration)) = self.migration_record.clone() {
            self.end_move(migration.was_paused);
            self.update_space_wait_after_migration();
            self.reconcile();
        }
    }

    /// Ends the migration in QEMU and in the records.
    fn end_move(&mut self, was_paused: bool) {
        self.continue_on_source(was_paused);
        self.save_migration_record(None);
        self.report_vm_migrating(false);
    }

    /// Cancels QEMU's migration and resumes the CPUs, unless the VM was paused before or waits for
    /// space. Failures are retried for `SWITCHOVER_TIMEOUT`, except the end of the process.
    fn continue_on_source(&mut self, was_paused: bool) {
        let Some(vm) = self.run.as_ref().map(|run| run.vm.clone()) else { return };
        let limit = Instant::now() + SWITCHOVER_TIMEOUT;
        loop {
            let wait = match cancel_and_resume(&*vm, was_paused) {
                Ok(true) => break,
                Ok(false) => SWITCHOVER_POLL_INTERVAL,
                Err(error) if error.kind == VmErrorKind::NotRunning => return,
                Err(error) => {
                    tracing::warn!(vm = %self.entry.name, %error, "cannot resume the VM after a failed migration; retrying");
                    TRY_AGAIN
                }
            };
            if Instant::now() >= limit {
                let name = &self.entry.name;
                tracing::error!(vm = %name, "the VM was not resumed; run `suimon vm resume {name}`");
                break;
            }
            std::thread::sleep(wait);
        }
        let state = vm.status().state;
        self.publish(vm_state(state));
    }

    /// Resumes an outgoing migration that the previous daemon left in progress.
    pub(super) fn resume_outgoing(&mut self) {
        match self.migration_record.clone() {
            Some(StoredMigrationState::Outgoing(migration)) => {
                let text = "the daemon ended during the migration";
                let error = self.error(ErrorCode::HostError, text);
                let outgoing =
                    OutgoingMigration::new(migration, None, Stage::Switchover(Instant::now()));
                self.end_failed_outgoing(outgoing, error);
            }
            Some(StoredMigrationState::HandedOver(migration)) => {
                let stage = Stage::HandedOver { is_reported: false };
                self.outgoing = Some(OutgoingMigration::new(migration, None, stage));
                self.publish_outgoing_progress();
            }
            Some(StoredMigrationState::Migrated(migration)) => {
                let stage = Stage::HandedOver { is_reported: true };
                self.entry.view().migration =
                    Some(OutgoingMigration::new(migration, None, stage).view());
                self.begin_source_cleanup(None);
            }
            Some(StoredMigrationState::Incoming { .. }) | None => {}
        }
    }
}

/// Cancels QEMU's migration, or resumes the CPUs if none is in progress. Returns true if the VM
/// needs nothing more.
fn cancel_and_resume(vm: &dyn Vm, was_paused: bool) -> Result<bool, VmError> {
    let phase = vm.migration_status()?.phase;
    if !matches!(
        phase,
        MigrationTransferPhase::None
            | MigrationTransferPhase::Done
            | MigrationTransferPhase::Failed(_)
    ) {
        vm.execute(&VmCommand::CancelMigration)?;
        return Ok(false);
    }
    // A VM that waits for space is resumed when there is some.
    let status = vm.status();
    if !was_paused && status.state == VmRunState::Paused && !status.waits_for_space {
        vm.execute(&VmCommand::Resume)?;
    }
    Ok(true)
}
