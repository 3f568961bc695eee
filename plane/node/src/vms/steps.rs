//! Effects of configuration changes and of the daemon's start on VMs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, VmState};
use suimon_ports::{StateStoreError, VmError, VmErrorKind};
use suimon_quantity::PciAddress;

use super::VmEntry;
use super::autostart::clear_autostart;
use super::control_sender::ControlSender;
use super::driver::Driver;
use super::inbox::Message;
use super::incoming::initial_incoming_view;
use super::outgoing::handed_over_view;
use super::records::{
    StoredMigrationState, StoredRun, StoredVm, load_vms, save_vm, vm_deletion_changes,
};
use super::starting::Autostart;
use super::vfs::UnreturnedVfs;
use crate::control::Controller;
use crate::disks::DiskMigrationState;
use crate::migration::parse_vm_uuid;
use crate::virtual_functions::StoredVfId;

/// VM with the data that the previous daemon recorded.
pub(crate) struct RecordedVm {
    pub(crate) entry: Arc<VmEntry>,
    pub(crate) previous_state: PreviousVmState,
}

/// Run, migration state and virtual functions of a VM that the previous daemon left.
#[derive(Default)]
pub(crate) struct PreviousVmState {
    pub(crate) run: Option<StoredRun>,
    pub(crate) migration: Option<StoredMigrationState>,
    /// Virtual functions of an ended run that are not back at the host, with their NICs.
    pub(crate) unreturned_vfs: Vec<(Name, StoredVfId)>,
}

/// Returns the disks of these VMs that another node may have open: handed-over disks of VMs that
/// were migrated to it, and of VMs whose migration from it was in progress.
pub(crate) fn disks_on_other_nodes(recorded: &[RecordedVm]) -> BTreeMap<Name, DiskMigrationState> {
    let moving_disks = recorded.iter().flat_map(|vm| {
        let (names, mode): (&[Name], DiskMigrationState) = match &vm.previous_state.migration {
            Some(StoredMigrationState::Incoming { handed_over_disks: handed_over, .. }) => {
                (handed_over, DiskMigrationState::AwaitingHandover)
            }
            Some(
                StoredMigrationState::HandedOver(migration)
                | StoredMigrationState::Migrated(migration),
            ) => (&migration.handed_over_disks, DiskMigrationState::HandedOver),
            Some(StoredMigrationState::Outgoing(_)) | None => (&[], DiskMigrationState::HandedOver),
        };
        names.iter().map(move |name| (name.clone(), mode))
    });
    moving_disks.collect()
}

/// Returns the error for a new VM when all user ids are in use.
pub(crate) fn no_free_user_error(name: &Name) -> ApiError {
    let text = "no user ID is free for another VM; delete unneeded VMs";
    ApiError::new(ErrorCode::HostError, text).with_resource(format!("vm/{name}"))
}

impl Controller {
    /// Creates the VMs that `to` adds and prepares the folders of stopped ones, before their
    /// devices are opened. Returns the names of the created VMs, also after a failure.
    pub(crate) fn create_vms(&mut self, to: &HostConfig) -> (Vec<Name>, Result<(), ApiError>) {
        let mut created = Vec::new();
        for vm in &to.vms {
            if let Some(entry) = self.shared.vms.find(&vm.name) {
                // A running VM's folder exists, and `check_vms_stopped` has rejected a change of
                // its path.
                if entry.view().state != VmState::Stopped {
                    continue;
                }
                let folder = to.host.vm_folder_path(&vm.name);
                let prepared =
                    self.shared.vms.dependencies.host.create_folder(&folder, entry.user_id);
                if let Err(error) = prepared {
                    let error = ApiError::new(ErrorCode::HostError, error.text);
                    return (created, Err(error.with_resource(entry.label())));
                }
                continue;
            }
            let result = self.make_vm(to, &vm.name);
            created.push(vm.name.clone());
            if let Err(error) = result {
                return (created, Err(error));
            }
        }
        (created, Ok(()))
    }

    fn make_vm(&mut self, config: &HostConfig, name: &Name) -> Result<(), ApiError> {
        let about_vm = |error: ApiError| error.with_resource(format!("vm/{name}"));
        let user = self.shared.vms.unused_user_id().ok_or_else(|| no_free_user_error(name))?;
        let arrival = self.incoming_vm.clone().filter(|request| request.vm.name == *name);
        let uuid = arrival
            .as_ref()
            .map_or_else(|| Ok(self.new_uuid()), |request| parse_vm_uuid(request))?;
        let moving = arrival.as_ref().map(|request| StoredMigrationState::Incoming {
            id: request.id.clone(),
            source_node: request.source_node.clone(),
            handed_over_disks: request
                .handed_over_disks
                .iter()
                .map(|disk| disk.name.clone())
                .collect(),
        });
        let folder = config.host.vm_folder_path(name);
        let prepared = self.shared.vms.dependencies.host.create_folder(&folder, user);
        prepared.map_err(|error| about_vm(ApiError::new(ErrorCode::HostError, error.text)))?;
        let held_vfs = Vec::new();
        let stored = StoredVm {
            uuid,
            user_id: user,
            run: None,
            migration: moving,
            incoming_migration_id: None,
            unreturned_vfs: held_vfs,
        };
        let result = save_vm(name, &stored).and_then(|change| self.store.commit(&[change]));
        result.map_err(|error| about_vm(crate::errors::store_error(&error)))?;
        let entry = Arc::new(VmEntry::new(name.clone(), uuid, user));
        if let Some(request) = arrival {
            let mut view = entry.view();
            (view.state, view.migration) =
                (VmState::IncomingMigration, Some(initial_incoming_view(&request)));
        }
        self.shared.vms.insert(entry.clone());
        let left_vm = PreviousVmState { migration: stored.migration, ..PreviousVmState::default() };
        self.start_driver(&entry, left_vm).map_err(|error| {
            let text = format!("cannot start a thread for the VM: {error}");
            about_vm(ApiError::new(ErrorCode::HostError, text))
        })
    }

    fn new_uuid(&self) -> [u8; 16] {
        let mut uuid = (self.shared.disks.dependencies.random)();
        // UUID version 4, variant 1 (RFC 9562, section 5.4).
        let [_, _, _, _, _, _, version, _, variant, ..] = &mut uuid;
        *version = (*version & 0x0f) | 0x40;
        *variant = (*variant & 0x3f) | 0x80;
        uuid
    }

    fn start_driver(&self, entry: &Arc<VmEntry>, left_vm: PreviousVmState) -> std::io::Result<()> {
        let PreviousVmState { run, migration: moving, unreturned_vfs: held_vfs } = left_vm;
        let driver = Driver {
            shared: self.shared.clone(),
            store: self.store.clone(),
            entry: entry.clone(),
            run: None,
            unresponsive: None,
            vf_orders: Vec::new(),
            unreturned_vfs: UnreturnedVfs::restore(&held_vfs),
            run_number: 0,
            pending_stop: None,
            autostart: Autostart::default(),
            reset_reported_at: None,
            migration_record: moving,
            outgoing: None,
            incoming: None,
            cancels_migration_when_adopted: false,
            source_cleanup: None,
            is_incoming_abandoned: false,
            control_sender: ControlSender::new(self.devices.commands.clone()),
            peer_request_interval: self.devices.retry_first,
            disks_with_write_errors: BTreeSet::new(),
            space_query_interval: self.devices.retry_first,
        };
        let thread = std::thread::Builder::new()
            .name(format!("vm-{}", entry.name))
            .spawn(move || driver.drive(run))?;
        entry.set_thread(thread);
        Ok(())
    }

    /// Deletes VMs that have been removed from desired state; they are stopped. Failures are logged
    /// and do not stop the deletion.
    pub(crate) fn delete_vms(&mut self, names: &[Name], config: &HostConfig) {
        for name in names {
            let Some(entry) = self.shared.vms.remove(name) else { continue };
            entry.inbox.put(Message::Delete);
            entry.join();
            if let Err(error) =
                self.forget_vm(name, entry.incoming_migration_id.get().map(String::as_str))
            {
                tracing::error!(vm = %name, %error, "cannot delete the record of a VM");
            }
            self.remove_folder(config, name);
        }
    }

    fn forget_vm(&self, name: &Name, arrived: Option<&str>) -> Result<(), StateStoreError> {
        let mut changes =
            vm_deletion_changes(self.store.as_ref(), name, arrived, (self.shared.clock)())?;
        changes.push(clear_autostart(name));
        self.store.commit(&changes)
    }

    fn remove_folder(&self, config: &HostConfig, name: &Name) {
        let folder = config.host.vm_folder_path(name);
        if let Err(error) = self.shared.vms.dependencies.host.remove_folder(&folder) {
            tracing::warn!(vm = %name, %error, "cannot delete the folder of a VM");
        }
    }

    /// Notifies all VM drivers of a change of desired state.
    pub(crate) fn notify_vms(&self) {
        for entry in self.shared.vms.all() {
            entry.inbox.put(Message::Reconcile);
        }
    }

    /// Stops all VM drivers because the daemon ends, and blocks until they have stopped. VMs
    /// continue.
    pub(crate) fn detach_vms(&self) {
        let entries = self.shared.vms.all();
        for entry in &entries {
            entry.inbox.put(Message::Detach);
        }
        for entry in &entries {
            entry.join();
        }
    }

    /// Prepares the folders of recorded VMs at the daemon's start, because the sockets of their
    /// devices are created in them. Returns the recorded runs and migrations.
    ///
    /// # Errors
    /// The state store cannot be read or written.
    pub(crate) fn prepare_stored_vms(
        &mut self,
        config: &HostConfig,
    ) -> Result<Vec<RecordedVm>, StateStoreError> {
        let mut recorded = Vec::new();
        for (name, stored) in load_vms(self.store.as_ref())? {
            if config.vm(name.as_str()).is_none() {
                // The record and the folder stem from a change that was not committed, or from a
                // VM whose deletion was interrupted.
                self.remove_folder(config, &name);
                self.forget_vm(&name, stored.incoming_migration_id.as_deref())?;
                continue;
            }
            let folder = config.host.vm_folder_path(&name);
            let prepared = self.shared.vms.dependencies.host.create_folder(&folder, stored.user_id);
            (self.shared.progress)();
            // A running VM's folder exists.
            if let Err(error) = prepared.or_else(unless_running) {
                tracing::error!(vm = %name, %error, "the VM has no folder and cannot be started");
            }
            let entry = Arc::new(VmEntry::new(name, stored.uuid, stored.user_id));
            stored.incoming_migration_id.iter().for_each(|id| entry.set_incoming_migration_id(id));
            let vfs = stored.run.iter().flat_map(|run| run.vfs.keys());
            let mut view = entry.view();
            view.recorded_vfs = vfs.cloned().collect();
            // Published before the switch's first tables: frames of a handed-over VM arrive from
            // elsewhere.
            view.migration = stored.migration.as_ref().and_then(handed_over_view);
            drop(view);
            self.shared.vms.insert(entry.clone());
            let StoredVm { run, migration: moving, unreturned_vfs: held_vfs, .. } = stored;
            recorded.push(RecordedVm {
                entry,
                previous_state: PreviousVmState {
                    run,
                    migration: moving,
                    unreturned_vfs: held_vfs,
                },
            });
        }
        forget_stale_vfs(&mut recorded);
        Ok(recorded)
    }

    /// Starts the drivers of recorded VMs, which adopt running VMs.
    ///
    /// # Errors
    /// The state store cannot be read or written.
    pub(crate) fn start_stored_vm_drivers(
        &mut self,
        recorded: Vec<RecordedVm>,
    ) -> Result<(), StateStoreError> {
        for RecordedVm { entry, previous_state: left_vm } in recorded {
            if left_vm.run.is_some() {
                let is_arriving =
                    matches!(left_vm.migration, Some(StoredMigrationState::Incoming { .. }));
                entry.view().state =
                    if is_arriving { VmState::IncomingMigration } else { VmState::NotResponding };
            }
            if let Err(error) = self.start_driver(&entry, left_vm) {
                tracing::error!(vm = %entry.name, %error, "no thread can control the VM");
            }
        }
        self.load_autostart()
    }
}

/// Deletes records of VFs that are not back at the host if another VM's run has the same VF. Such a
/// VF was returned and assigned again, and the deletion of the record failed. Otherwise the VM of
/// the record would take the VF from the VM that has it.
fn forget_stale_vfs(vms: &mut [RecordedVm]) {
    let runs = vms.iter().filter_map(|vm| vm.previous_state.run.as_ref());
    let assigned = runs.flat_map(|run| run.vfs.values()).filter_map(StoredVfId::address);
    let assigned: BTreeSet<PciAddress> = assigned.map(|vf| vf.pci_address).collect();
    let is_free =
        |stored: &StoredVfId| stored.address().is_none_or(|vf| !assigned.contains(&vf.pci_address));
    for vm in vms {
        vm.previous_state.unreturned_vfs.retain(|(_, stored)| is_free(stored));
    }
}

fn unless_running(error: VmError) -> Result<(), VmError> {
    if error.kind == VmErrorKind::AlreadyRunning { Ok(()) } else { Err(error) }
}
