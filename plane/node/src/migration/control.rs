//! Migration steps of the control thread.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, IncomingMigrationRequest, Name};

use crate::control::Controller;
use crate::errors::summarize;
use crate::operations::OperationHandle;
use crate::vms::Message;
use crate::{ChangeOptions, Edit};

impl Controller {
    /// Creates the VM of an incoming migration, its NICs and its disks. The VM's driver then starts
    /// the QEMU process and completes `operation`.
    pub(crate) fn create_incoming_vm(
        &mut self,
        operation: OperationHandle,
        request: &Arc<IncomingMigrationRequest>,
    ) {
        self.write_drafts();
        if !operation.begin() {
            return;
        }
        let result = self.make_arrival(&operation, request);
        self.write_drafts();
        let entry = self.shared.vms.find(&request.vm.name);
        match (result, entry) {
            (Ok(()), Some(entry)) => {
                operation.allow_concurrent_changes();
                entry.submit(Message::StartIncomingMigration(request.clone(), operation));
            }
            (Ok(()), None) => {
                let text = "the VM was created but not found";
                operation.end(&Err(ApiError::new(ErrorCode::Internal, text)));
            }
            (Err(error), _) => operation.end(&Err(error)),
        }
    }

    fn make_arrival(
        &mut self,
        operation: &OperationHandle,
        request: &Arc<IncomingMigrationRequest>,
    ) -> Result<(), ApiError> {
        // Checked again, because the configuration may have changed since the request was accepted.
        self.shared.check_incoming_migration(request).map_err(summarize)?;
        self.incoming_vm = Some(request.clone());
        let edit = Edit::CreateIncomingVm(request.clone());
        let result = self.apply(operation, &edit, ChangeOptions::default());
        self.incoming_vm = None;
        result
    }

    /// Deletes a VM that was migrated to another node, or whose incoming migration failed, with its
    /// NICs and disks. `with_file` also deletes the files of its disks, except handed-over ones.
    pub(crate) fn delete_migrated_vm(
        &mut self,
        operation: &OperationHandle,
        vm: Name,
        with_file: bool,
    ) {
        self.write_drafts();
        if !operation.begin() {
            return;
        }
        let options = ChangeOptions {
            forces_minimums: true,
            deletes_files: with_file,
            ..ChangeOptions::default()
        };
        let result = self.apply(operation, &Edit::DeleteMigratedVm(vm), options);
        self.write_drafts();
        operation.end(&result);
    }
}
