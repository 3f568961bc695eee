//! Deletion of a VM that was migrated to another node, by its driver.

use std::time::Instant;

use suimon_contract::{OperationState, VmState};
use suimon_ports::{VmError, VmErrorKind};

use super::SourceCleanup;
use crate::command::Command;
use crate::operations::OperationHandle;
use crate::vms::driver::Driver;
use crate::vms::records::StoredMigrationState;

/// Interval between attempts to delete the remains of a VM, in units of
/// `Driver::peer_request_interval`.
const DEPART_AGAIN: u32 = 10;

impl Driver {
    /// Kills the VM's process, then requests the control thread to delete the VM, its NICs and its
    /// disks on this node, and to complete `waiting` afterwards. Repeated until the VM is deleted:
    /// a process in an uninterruptible system call survives a kill, and the change can be cancelled
    /// or fail.
    pub(in crate::vms) fn begin_source_cleanup(&mut self, waiting: Option<OperationHandle>) {
        self.source_cleanup =
            Some(SourceCleanup { retry_at: Instant::now(), waiting, request: None });
        self.retry_deletion(Instant::now());
    }

    /// Repeats the deletion of a migrated VM if it is due and the VM still exists.
    pub(in crate::vms) fn retry_deletion(&mut self, now: Instant) {
        let Some(mut departing) =
            self.source_cleanup.take_if(|departing| departing.retry_at <= now)
        else {
            return;
        };
        let killed = self.kill_process();
        let (mut text, with_file) = match &self.migration_record {
            Some(StoredMigrationState::Migrated(migration)) => (
                format!("it has migrated to node {}", migration.destination_node),
                migration.deletes_files,
            ),
            _ => ("the migration failed".to_owned(), true),
        };
        if let Err(error) = &killed {
            tracing::error!(vm = %self.entry.name, %error, "cannot kill the process of a VM that another node runs");
            text = format!("{text}; killing its process failed and is repeated: {error}");
        }
        let mut view = self.entry.view();
        // As long as the process exists, other changes cannot delete the VM.
        view.state = if killed.is_ok() { VmState::Stopped } else { VmState::NotResponding };
        view.running = None;
        view.reason = Some(text);
        drop(view);
        if killed.is_ok() && !self.is_in_progress(departing.request) {
            departing.request = self.request_deletion(departing.waiting.take(), with_file);
        }
        departing.retry_at = Instant::now() + self.peer_request_interval * DEPART_AGAIN;
        self.source_cleanup = Some(departing);
    }

    fn is_in_progress(&self, operation: Option<u64>) -> bool {
        let operation = operation.and_then(|id| self.shared.operations.find(id));
        operation.is_some_and(|found_operation| found_operation.state == OperationState::Running)
    }

    /// Returns the id of the operation that deletes the VM; `None` if no operation can be
    /// registered now.
    fn request_deletion(
        &mut self,
        waiting: Option<OperationHandle>,
        with_file: bool,
    ) -> Option<u64> {
        match self.shared.operations.add("vm depart", &self.entry.label(), true) {
            Ok(operation) => {
                let id = operation.id();
                let vm = self.entry.name.clone();
                self.control_sender.send(Command::DeleteMigratedVm {
                    operation,
                    migration_operation: waiting,
                    vm,
                    deletes_files: with_file,
                });
                Some(id)
            }
            // The VM was migrated. Its remains are deleted when another operation can be
            // registered, which the end of this one may permit.
            Err(_) => {
                waiting.iter().for_each(|waiting| waiting.end(&Ok(())));
                None
            }
        }
    }

    /// Kills the VM's process, whether it is adopted or does not respond, and releases its VFs.
    /// Succeeds if there is no process.
    ///
    /// # Errors
    /// The process may still run; the driver keeps it for the next attempt.
    pub(in crate::vms) fn kill_process(&mut self) -> Result<(), VmError> {
        let identity = match (&self.run, &self.unresponsive) {
            (Some(run), _) => Some(run.vm.identity()),
            (None, Some(lost)) => self.query_identity(&lost.stored)?,
            (None, None) => None,
        };
        match identity.map_or(Ok(()), |vm| self.shared.vms.dependencies.host.kill(&vm)) {
            Ok(()) | Err(VmError { kind: VmErrorKind::NotRunning, .. }) => {
                self.handle_killed_process();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Handles the end of the VM's process: releases its VFs.
    pub(in crate::vms) fn handle_killed_process(&mut self) {
        if let Some(run) = self.run.take() {
            self.release_all(&run.stored.vfs);
        }
        if let Some(lost) = self.unresponsive.take() {
            self.release_all(&lost.stored.vfs);
        }
    }
}
