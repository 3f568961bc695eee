//! Incoming migration of a VM, by its driver.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ErrorCode, IncomingMigrationRequest, IncomingMigrationState, MigrationPhase, Name,
    VmState,
};
use suimon_ports::{MigrationTransferPhase, StateStoreError, Vm, VmCommand, VmError};

use super::PendingIncomingMigration;
use crate::PeerStream;
use crate::disks::ServedDisk;
use crate::migration::{
    IncomingRequest, IncomingRequestMessage, IncomingResponse, incoming_vm_spec,
};
use crate::operations::OperationHandle;
use crate::vms::adoption::UnresponsiveVm;
use crate::vms::driver::Driver;
use crate::vms::inbox::NoticeObserver;
use crate::vms::migration_limits::SILENCE_INTERVALS_MAX;
use crate::vms::records::{StoredMigrationState, StoredRun, StoredVm, save_vm};
use crate::vms::spec::{macs, standbys};
use crate::vms::texts;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl Driver {
    /// Starts the VM's QEMU process, which waits for the migration stream.
    pub(in crate::vms) fn begin_incoming(
        &mut self,
        request: &IncomingMigrationRequest,
        operation: &OperationHandle,
    ) {
        let is_arriving = |stored_move: &StoredMigrationState| {
            matches!(
                stored_move,
                StoredMigrationState::Incoming { id, .. } if *id == request.id
            )
        };
        if self.is_incoming_abandoned || !self.migration_record.as_ref().is_some_and(is_arriving) {
            let text = "the migration was cancelled meanwhile";
            return operation.end(&Err(self.error(ErrorCode::Conflict, text)));
        }
        operation.report_progress(0, 1, "start the VM, which waits for its memory");
        self.append(texts::incoming_started_event(&self.entry, &request.source_node));
        match self.start_waiting(request) {
            Ok(()) => {
                let now = Instant::now();
                self.incoming = Some(PendingIncomingMigration {
                    id: request.id.clone(),
                    from: request.source_node.clone(),
                    is_paused: request.is_paused,
                    disks: Vec::new(),
                    handed_over: request
                        .handed_over_disks
                        .iter()
                        .map(|disk| disk.name.clone())
                        .collect(),
                    stores: request.stores.clone(),
                    last_message_at: now,
                    next_poll_at: now + POLL_INTERVAL,
                });
                operation.end(&Ok(()));
            }
            Err(error) => {
                operation.end(&Err(error.clone()));
                self.cancel_incoming(&request.source_node, &error.message);
            }
        }
    }

    fn start_waiting(&mut self, request: &IncomingMigrationRequest) -> Result<(), ApiError> {
        let desired = self.shared.desired();
        let spec = incoming_vm_spec(&self.shared, &desired.config, request, &self.entry)?;
        let host = self.shared.vms.dependencies.host.clone();
        let mut stored = StoredRun {
            folder: spec.folder.clone(),
            process_id_and_start: None,
            started_unix_ms: (self.shared.clock)(),
            nics: request.vm.nics.iter().cloned().collect(),
            disks: request.vm.disks.iter().cloned().collect(),
            start_config: request.vm_at_start.clone(),
            macs: macs(&spec),
            standbys: standbys(&spec),
            vfs: BTreeMap::new(),
            is_frozen: false,
            is_paused_on_request: request.is_paused,
        };
        if !self.save(Some(&stored)) {
            let text = "the state directory cannot be written; `suimon host show` shows the reason";
            return Err(self.error(ErrorCode::HostError, text));
        }
        self.run_number += 1;
        let observer =
            Arc::new(NoticeObserver { entry: self.entry.clone(), run_number: self.run_number });
        let vm: Arc<dyn Vm> =
            host.start(&spec, observer).map_err(|error| self.api_error(&error))?.into();
        let identity = vm.identity();
        stored.process_id_and_start = Some((identity.pid, identity.started_ticks));
        let is_written = self.save(Some(&stored));
        self.set_current_run(vm, stored, is_written);
        self.publish(VmState::IncomingMigration);
        Ok(())
    }

    /// Responds to a request of the source node.
    pub(in crate::vms) fn handle_incoming_request(
        &mut self,
        (call, answer): IncomingRequestMessage,
    ) {
        // The migration may have been activated or abandoned while the request was queued.
        let settled_state = match &self.migration_record {
            None => Some(IncomingMigrationState::Active),
            Some(_) if self.is_incoming_abandoned => Some(IncomingMigrationState::Abandoned),
            Some(_) => None,
        };
        if let (Some(state), false) =
            (settled_state, matches!(call, IncomingRequest::OpenConnection(_)))
        {
            let _ = answer.try_send(Ok(IncomingResponse::State(state)));
            return;
        }
        let answered = match (call, &mut self.incoming) {
            (IncomingRequest::OpenConnection(PeerStream::Memory), Some(arriving)) => {
                arriving.last_message_at = Instant::now();
                self.memory_line().map(IncomingResponse::Connection)
            }
            (IncomingRequest::OpenConnection(PeerStream::Disk(disk)), Some(arriving)) => {
                arriving.last_message_at = Instant::now();
                self.disk_line(&disk).map(IncomingResponse::Connection)
            }
            (IncomingRequest::Query, Some(arriving)) => {
                arriving.last_message_at = Instant::now();
                Ok(IncomingResponse::State(IncomingMigrationState::InProgress))
            }
            (IncomingRequest::Query, None) => {
                Ok(IncomingResponse::State(IncomingMigrationState::InProgress))
            }
            (IncomingRequest::Activate, Some(_)) => self.activate().map(IncomingResponse::State),
            // Permitted also before QEMU is started.
            (IncomingRequest::Abandon, _) => {
                if let Some(StoredMigrationState::Incoming { source_node: source, .. }) =
                    self.migration_record.clone()
                {
                    self.cancel_incoming(&source, "the source node has cancelled the migration");
                }
                Ok(IncomingResponse::State(IncomingMigrationState::Abandoned))
            }
            (_, None) => {
                let text = "QEMU of the arriving VM is not started yet; retry";
                Err(self.error(ErrorCode::Conflict, text))
            }
        };
        let _ = answer.try_send(answered);
    }

    /// Returns a connected pair of sockets: the end for the source node's connection, and the end
    /// for the disk's NBD server.
    fn line(&self) -> Result<(OwnedFd, OwnedFd), ApiError> {
        let pair = UnixStream::pair().map_err(|error| {
            let text = format!("the connection for a disk of the VM cannot be opened: {error}");
            self.error(ErrorCode::HostError, &text)
        })?;
        Ok((pair.0.into(), pair.1.into()))
    }

    fn memory_line(&self) -> Result<OwnedFd, ApiError> {
        let Some(run) = &self.run else { return Err(self.not_there()) };
        run.vm.migrate_in().map_err(|error| self.api_error(&error))
    }

    fn disk_line(&mut self, disk: &Name) -> Result<OwnedFd, ApiError> {
        let is_its_own = self.run.as_ref().is_some_and(|run| run.stored.disks.contains(disk));
        if !is_its_own {
            let text = format!("disk/{disk} is not a disk of the VM");
            return Err(self.error(ErrorCode::NotFound, &text));
        }
        let (near, peer) = self.line()?;
        let served_disk = ServedDisk::start(&self.shared, disk, peer)?;
        if let Some(arriving) = &mut self.incoming {
            arriving.disks.push(served_disk);
        }
        Ok(near)
    }

    fn not_there(&self) -> ApiError {
        let text = "the VM has no QEMU process here any more; its log may have the reason";
        self.error(ErrorCode::Conflict, text)
    }

    /// Activates the VM: this node owns it from here on, and its CPUs are resumed unless it was
    /// paused on the source. Errors leave the VM with the source.
    fn activate(&mut self) -> Result<IncomingMigrationState, ApiError> {
        let (Some(arriving), Some(run)) = (&mut self.incoming, &self.run) else {
            return Err(self.not_there());
        };
        let vm = run.vm.clone();
        let status = vm.migration_status();
        if !matches!(&status, Ok(status) if status.phase == MigrationTransferPhase::Done) {
            let reason = match status.map(|status| status.phase) {
                Ok(MigrationTransferPhase::Failed(reason)) => reason,
                Ok(_) => "the transfer has not ended".to_owned(),
                Err(error) => error.to_string(),
            };
            let text = format!(
                "the VM's memory was not received completely: {reason}; migrate the VM again"
            );
            return Err(self.error(ErrorCode::Conflict, &text));
        }
        // Completes all writes to the copied disks before the CPUs run.
        for disk in &arriving.disks {
            disk.end()?;
        }
        let handed_over = arriving.handed_over.clone();
        let recorded = self.open_handed_over().and_then(|()| {
            self.record_activation().map_err(|error| crate::errors::store_error(&error))
        });
        if let Err(error) = recorded {
            // The source opens the disks again after it has abandoned the migration.
            self.close_handed_over(&handed_over);
            return Err(error);
        }
        handed_over.iter().for_each(|disk| self.shared.accept_incoming(disk));
        let Some(arriving) = self.incoming.take() else { return Err(self.not_there()) };
        self.migration_record = None;
        self.entry.view().migration = None;
        self.notify_location_changed();
        if !arriving.is_paused {
            self.execute_best_effort(&*vm, &VmCommand::Resume);
        }
        self.execute_best_effort(&*vm, &VmCommand::AnnounceAddresses);
        self.append(texts::incoming_activated_event(&self.entry, &arriving.from));
        self.update_space_wait_after_migration();
        self.update_failover_state();
        self.reconcile();
        Ok(IncomingMigrationState::Active)
    }

    /// Opens the disks that the source has closed, after a check that their stores are the same.
    fn open_handed_over(&self) -> Result<(), ApiError> {
        let Some(arriving) = &self.incoming else { return Err(self.not_there()) };
        let desired = self.shared.desired();
        self.shared.check_store_markers(&desired.config, &arriving.stores, &arriving.from)?;
        arriving.handed_over.iter().try_for_each(|disk| self.shared.open_incoming(disk))
    }

    fn close_handed_over(&self, disks: &[Name]) {
        for disk in disks {
            if let Err(error) = self.shared.close_incoming(disk) {
                tracing::error!(%disk, %error, "a disk of another node is closed later");
            }
        }
    }

    /// Executes a command after the activation. A failure is logged; it does not undo the
    /// activation.
    fn execute_best_effort(&self, vm: &dyn Vm, command: &VmCommand) {
        let result: Result<(), VmError> = vm.execute(command);
        if let Err(error) = result {
            tracing::error!(
                vm = %self.entry.name,
                %error,
                ?command,
                "cannot end the VM of a failed migration"
            );
        }
    }

    fn record_activation(&self) -> Result<(), StateStoreError> {
        let (Some(arriving), Some(run)) = (&self.incoming, &self.run) else { return Ok(()) };
        let stored = StoredVm {
            uuid: self.entry.uuid,
            user_id: self.entry.user_id,
            run: Some(run.stored.clone()),
            migration: None,
            incoming_migration_id: Some(arriving.id.clone()),
            unreturned_vfs: self.unreturned_vfs.stored(Some(&run.stored)),
        };
        self.store.commit(&[save_vm(&self.entry.name, &stored)?])?;
        self.entry.set_incoming_migration_id(&arriving.id);
        Ok(())
    }

    /// Updates the migration phase in the VM's status, and abandons the migration if the VM's
    /// process has ended or the source has sent no request for [`SILENCE_INTERVALS_MAX`].
    pub(in crate::vms) fn poll_incoming(&mut self, now: Instant) {
        let Some(arriving) = self.incoming.as_mut().filter(|arriving| arriving.next_poll_at <= now)
        else {
            return;
        };
        arriving.next_poll_at = now + POLL_INTERVAL;
        let is_copied = !arriving.disks.is_empty();
        let status = self.run.as_ref().map(|run| run.vm.migration_status());
        let is_sent =
            matches!(&status, Some(Ok(status)) if status.phase == MigrationTransferPhase::Copying);
        let phase = match (is_copied, is_sent) {
            (_, true) => MigrationPhase::CopyingMemory,
            (true, false) => MigrationPhase::CopyingDisks,
            (false, false) => MigrationPhase::Preparing,
        };
        let (source, silent) = (arriving.from.clone(), now - arriving.last_message_at);
        if let Some(view) = &mut self.entry.view().migration {
            view.phase = phase;
        }
        if self.run.is_none() {
            self.cancel_incoming(&source, "its QEMU process ended; its log may have the reason");
        } else if silent >= self.peer_request_interval * SILENCE_INTERVALS_MAX {
            let text = format!("the source node has sent nothing for {} s", silent.as_secs());
            self.cancel_incoming(&source, &text);
        }
    }

    /// Cancels the incoming migration: closes the disks, kills the process and requests the
    /// deletion of the VM on this node. It cannot be activated afterwards; requests of the source
    /// are answered with "abandoned", or with an error that the VM does not exist.
    pub(in crate::vms) fn cancel_incoming(&mut self, source: &str, reason: &str) {
        if std::mem::replace(&mut self.is_incoming_abandoned, true) {
            return;
        }
        self.incoming = None;
        self.entry.view().migration = None;
        if let Some(StoredMigrationState::Incoming { handed_over_disks: handed_over, .. }) =
            &self.migration_record
        {
            self.close_handed_over(handed_over);
        }
        self.append(texts::incoming_failed_event(&self.entry, source, reason));
        self.begin_source_cleanup(None);
    }

    /// Abandons an incoming migration that was in progress when the previous daemon ended: its
    /// connections are lost.
    pub(in crate::vms) fn abandon_recorded_incoming(&mut self, stored_run: Option<StoredRun>) {
        let Some(StoredMigrationState::Incoming { source_node: source, .. }) =
            self.migration_record.clone()
        else {
            return;
        };
        self.unresponsive = stored_run.map(UnresponsiveVm::unqueried);
        self.cancel_incoming(&source, "the daemon ended during the migration");
    }
}
