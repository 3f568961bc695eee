//! Effects of a migration on other operations and changes of the VM.

use std::collections::BTreeMap;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, VmConfig, VmState};
use suimon_ports::VmRunState;

use super::VmEntry;
use super::driver::Driver;
use super::entry::RunView;
use super::records::{StoredMigrationState, StoredRun};
use super::work::VmAction;
use crate::Edit;
use crate::shared::Shared;

impl VmEntry {
    /// Checks that a migration to another node can start.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the reason.
    pub(crate) fn check_can_migrate(&self) -> Result<(), ApiError> {
        let view = self.view();
        let name = &self.name;
        let is_frozen = view.running.as_ref().is_some_and(|run| run.frozen_until.is_some());
        let text = match (view.state, &view.migration) {
            (_, Some(migration)) => format!(
                "the VM is already migrating ({}); `suimon operation list` shows the operation",
                migration.peer_node
            ),
            (VmState::Running | VmState::Paused, None) if is_frozen => {
                format!(
                    "the file systems of its guest are frozen; thaw them with `suimon vm thaw \
                     {name}`"
                )
            }
            (VmState::Running | VmState::Paused, None) => return Ok(()),
            (VmState::Stopped, None) => {
                format!("the VM is not running; start it with `suimon vm start {name}`")
            }
            (state, None) => format!("the VM is {state}; only a running or paused VM can migrate"),
        };
        Err(ApiError::new(ErrorCode::Conflict, text).with_resource(self.label()))
    }
}

impl RunView {
    /// Returns the record of the running VM from which the request to the destination is derived.
    /// VFs and a freeze do not migrate.
    pub(crate) fn to_stored_run(&self) -> StoredRun {
        StoredRun {
            folder: self.vm.identity().folder,
            process_id_and_start: None,
            started_unix_ms: self.started_unix_ms,
            start_config: self.start_config.clone(),
            nics: self.nics.clone(),
            disks: self.disks.clone(),
            macs: self.macs.clone(),
            standbys: self.standbys.clone(),
            vfs: BTreeMap::new(),
            is_frozen: false,
            is_paused_on_request: self.is_paused_on_request,
        }
    }
}

impl Driver {
    /// Checks that a migration in progress permits the operation. During an outgoing migration,
    /// only a kill is permitted.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the state of the migration.
    pub(super) fn check_migration_permits(&self, work: VmAction) -> Result<(), ApiError> {
        let text = match &self.migration_record {
            None => return Ok(()),
            Some(StoredMigrationState::Outgoing(_)) if work == VmAction::Kill => return Ok(()),
            Some(StoredMigrationState::Outgoing(migration)) => format!(
                "the VM is migrating to node {}; wait for the end, or cancel it (`suimon \
                 operation list` shows the operation)",
                migration.destination_node
            ),
            Some(StoredMigrationState::HandedOver(migration)) => format!(
                "the VM was handed over to node {}, which does not respond; if that node is \
                 switched off and will not return, `suimon node delete {}` resumes the VM here",
                migration.destination_node, migration.destination_node
            ),
            Some(StoredMigrationState::Migrated(migration)) => {
                format!("the VM has migrated to node {}", migration.destination_node)
            }
            Some(StoredMigrationState::Incoming { source_node: source, .. }) => {
                format!(
                    "the VM is migrating from node {source}; use that node until the VM has \
                     arrived"
                )
            }
        };
        Err(self.error(ErrorCode::Conflict, &text))
    }

    /// Has the control thread publish the switch's tables again, because the VM's location has
    /// changed.
    pub(super) fn notify_location_changed(&self) {
        self.control_sender.wake();
    }

    /// Handles a state notice of a migrating VM and returns true if it was consumed. QEMU stops the
    /// CPUs at the end of a migration; that state is not reported as an event. The next step
    /// becomes due.
    pub(super) fn handle_state_during_migration(&mut self, state: VmRunState) -> bool {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.next_poll_at = std::time::Instant::now();
        }
        match (&self.migration_record, state) {
            (None, _) | (_, VmRunState::Panicked) => false,
            (Some(_), _) => {
                if self.outgoing.is_some() && self.entry.view().state != VmState::HandedOver {
                    self.publish(super::entry::vm_state(state));
                }
                true
            }
        }
    }
}

impl Shared {
    /// Returns an error for each migrating VM that the change would modify, including its NICs,
    /// disks and their QoS policies: the destination uses the values that it received.
    pub(crate) fn check_migrating_vms_unchanged(
        &self,
        edit: &Edit,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Vec<ApiError> {
        let is_changed = |vm: &VmConfig| {
            let nics = |config: &HostConfig| {
                let nics = config.nics.iter().filter(|nic| vm.nics.contains(&nic.name));
                nics.cloned().collect::<Vec<_>>()
            };
            let disks = |config: &HostConfig| {
                let disks = config.disks.iter().filter(|disk| vm.disks.contains(&disk.name));
                disks.cloned().collect::<Vec<_>>()
            };
            // The destination applies the QoS policies that it received.
            let policies = |config: &HostConfig| {
                let of_disks: Vec<Name> =
                    disks(config).into_iter().filter_map(|disk| disk.qos_policy).collect();
                let policies =
                    config.qos_policies.iter().filter(|policy| of_disks.contains(&policy.name));
                policies.cloned().collect::<Vec<_>>()
            };
            to.vm(vm.name.as_str()) != Some(vm)
                || nics(from) != nics(to)
                || disks(from) != disks(to)
                || policies(from) != policies(to)
        };
        let departs =
            |vm: &VmConfig| matches!(edit, Edit::DeleteMigratedVm(name) if vm.name == *name);
        let changed = from.vms.iter().filter(|vm| is_changed(vm) && !departs(vm));
        let errors = changed.filter_map(|vm| {
            let entry = self.vms.find(&vm.name)?;
            let migration = entry.view().migration.clone()?;
            let direction = if migration.is_outgoing { "to" } else { "from" };
            let text = format!(
                "the VM is migrating {direction} node {}; change the VM, its NICs, its disks and \
                 their QoS policies after that",
                migration.peer_node
            );
            Some(ApiError::new(ErrorCode::InUse, text).with_resource(entry.label()))
        });
        errors.collect()
    }
}
