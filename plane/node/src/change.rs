//! Execution of a change of the desired state by the resource kinds that take part in it.
//!
//! The order of the steps is in `transaction/order.rs`, their execution and rollback in
//! `transaction/run.rs`. This file lists the kinds: [`Step`] and [`Undo`] have one variant per kind
//! and contain no steps of their own.

mod check;
mod edit;
mod texts;
mod validated_change;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, Name, Plan};
use suimon_ports::{CpuAffinity, StateStoreError};

use crate::adapters::{PfStep, PfUndo, pf_steps};
use crate::control::Controller;
use crate::disks::{
    DiskStep, DiskUndo, Disks, add_disk_resources, disk_steps, required_disks, required_sockets,
};
use crate::errors::{store_error, summarize};
use crate::operations::OperationHandle;
use crate::ports::{
    PortStep, PortUndo, RequiredPorts, add_port_resources, port_steps, required_ports,
};
use crate::state::{Intent, StoreChange, StoredState, clear_intent, save_intent, save_state};
use crate::transaction::{self, AcquiredResources, ChangePhase, Participants};
use crate::vmq::{WorkersStep, workers_step};
use crate::vms::{VmStep, VmUndo, vm_steps};

pub use self::edit::{ChangeOptions, ClusterEdit, Edit, PowerEdit, ResourceEdit};
use self::texts::{change_committed_events, change_rolled_back_event};
pub(crate) use self::validated_change::ValidatedChange;

/// Step of a change. Each variant contains the step of one resource kind.
enum Step {
    Vm(VmStep),
    Port(PortStep),
    Pf(Box<PfStep>),
    Workers(WorkersStep),
    /// Publishes the forwarding tables of all switches to the workers.
    Tables,
    /// Publishes the tables a second time, with the MTU of uplinks that were opened or changed.
    UplinkTables,
    Disk(Box<DiskStep>),
}

/// Reversal of an executed step. Each variant contains the reversal of one resource kind.
enum Undo {
    Vm(VmUndo),
    Port(PortUndo),
    Pf(Box<PfUndo>),
    Workers,
    Tables,
    Disk(Box<DiskUndo>),
}

impl Step {
    const fn phase(&self) -> ChangePhase {
        match self {
            Self::Vm(step) => step.phase(),
            Self::Port(step) => step.phase(),
            Self::Pf(_) => ChangePhase::ConfigureAdapters,
            Self::Workers(_) => ChangePhase::ChangeWorkers,
            Self::Tables => ChangePhase::PublishTables,
            Self::UplinkTables => ChangePhase::PublishUplinkTables,
            Self::Disk(step) => step.phase(),
        }
    }
}

/// Change in progress on a host.
struct HostChange<'c> {
    controller: &'c mut Controller,
    edit: &'c Edit,
    from: Arc<StoredState>,
    to: &'c ValidatedChange,
    /// Ports of the state before the change.
    before: &'c RequiredPorts,
    /// Store changes that are committed together with the change.
    store_changes: Vec<StoreChange>,
}

impl Controller {
    /// Carries out a change and reports progress to `operation`. Called by the control thread only.
    pub(crate) fn apply(
        &mut self,
        operation: &OperationHandle,
        edit: &Edit,
        options: ChangeOptions,
    ) -> Result<(), ApiError> {
        self.apply_with_store_changes(operation, edit, options, Vec::new())
    }

    /// Like [`Controller::apply`]. The store changes `store_changes` are committed together with
    /// the change.
    pub(crate) fn apply_with_store_changes(
        &mut self,
        operation: &OperationHandle,
        edit: &Edit,
        options: ChangeOptions,
        store_changes: Vec<StoreChange>,
    ) -> Result<(), ApiError> {
        let candidate = self.shared.check(edit, options).map_err(summarize)?;
        let from = self.shared.desired();
        let is_same = candidate.state.config == from.config;
        let is_same = is_same && candidate.state.file_text == from.file_text;
        if is_same && !candidate.images.is_created_disk_reopened {
            operation.set_plan(&Plan::default(), 0);
            self.workers_retry.reschedule(Instant::now());
            self.change_power(edit, &from.config, &from.config);
            return self.reload_files(edit);
        }
        let before = required_ports(&from.config);
        let steps = steps(&from, &candidate, &before, &self.worker_placements);
        // One additional step for the commit.
        operation.set_plan(&candidate.plan, steps.len() + 1);
        self.shared.change_ids(|ids| ids.assign(&candidate.state.config, &candidate.required));
        let mut change = HostChange {
            controller: self,
            edit,
            from,
            to: &candidate,
            before: &before,
            store_changes,
        };
        match transaction::run(&mut change, operation, &steps) {
            Ok(()) => {
                self.finish(candidate, edit, &before);
                // The files were readable when the change was prepared.
                if let Err(error) = self.reload_files(edit) {
                    tracing::error!(%error, "cannot reload certificates");
                }
                Ok(())
            }
            Err(error) => {
                self.report_failure(edit, &error);
                Err(error)
            }
        }
    }

    pub(crate) fn commit(
        &mut self,
        change: &ValidatedChange,
        edit: &Edit,
        store_changes: Vec<StoreChange>,
    ) -> Result<(), StateStoreError> {
        let drafts = change_committed_events(change, edit);
        let mut changes = vec![save_state(&change.state)?, clear_intent()];
        changes.extend(store_changes);
        changes.extend(self.shared.disks.removed_store_record_changes(&change.state.config));
        let new_disks = self.new_disks_among(&change.disks);
        changes.extend(self.new_disk_changes(&new_disks)?);
        let unchecked_disks = self.present_unchecked_disks(&change.disks);
        changes.extend(self.unchecked_disk_changes(&unchecked_disks)?);
        let created = self.shared.disks.created_images_in_service(&change.disks);
        changes.extend(Disks::created_image_changes(&created));
        self.shared.events.commit(drafts, changes)?;
        self.new_disks = new_disks;
        self.unchecked_disks = unchecked_disks;
        self.shared.disks.forget_created_images(&created);
        Ok(())
    }

    /// Completes a committed change: closes devices and deletes files that the new state does not
    /// contain, and notifies the node's other threads. Failures are logged only.
    pub(crate) fn finish(&mut self, change: ValidatedChange, edit: &Edit, before: &RequiredPorts) {
        self.close_removed_ports(before, &change.required);
        self.finish_disks(&required_disks(&self.shared.desired().config), &change);
        self.shared.change_ids(|ids| ids.release(&change.state.config, &change.required));
        self.devices
            .created
            .delete_unrequired(change.required.values(), &required_sockets(&change.disks));
        let before = self.shared.desired();
        let removed_vms = before
            .config
            .vms
            .iter()
            .filter(|vm| change.state.config.vm(vm.name.as_str()).is_none());
        let removed_vms: Vec<Name> = removed_vms.map(|vm| vm.name.clone()).collect();
        self.shared.set_desired(change.state);
        self.prune_bindings();
        self.shared.record_names();
        let after = self.shared.desired();
        self.shared.notify_cluster_driver();
        self.change_power(edit, &before.config, &after.config);
        self.delete_vms(&removed_vms, &before.config);
        self.notify_vms();
        // The adapters have the addresses of the new configuration before the operation succeeds.
        self.schedule_vf_query();
        self.drive_vfs();
    }

    pub(crate) fn report_failure(&mut self, edit: &Edit, error: &ApiError) {
        let draft = change_rolled_back_event(edit, error);
        if let Err(store) = self.shared.events.commit(vec![draft.clone()], vec![clear_intent()]) {
            tracing::error!(error = %store, "the failed change is still recorded as in progress");
            self.shared.events.append(vec![draft]);
        }
    }
}

impl HostChange<'_> {
    /// Records the intent, and the TAPs and sockets that the steps create.
    fn record(&mut self, steps: &[Step]) -> Result<(), StateStoreError> {
        let intent = Intent { revision: self.to.state.revision, kind: self.edit.kind() };
        self.controller.store.commit(&[save_intent(&intent)?])?;
        let created = &mut self.controller.devices.created;
        created.record_sockets(required_sockets(&self.to.disks))?;
        created.record(steps.iter().filter_map(|step| match step {
            Step::Port(step) => step.opened_spec(),
            _ => None,
        }))
    }
}

impl Participants for HostChange<'_> {
    type Step = Step;
    type Undo = Undo;

    fn record_intent(&mut self, steps: &[Step]) -> Result<(), ApiError> {
        self.record(steps).map_err(|error| store_error(&error))?;
        self.controller.shared.disks.set_required(self.to.disks.clone());
        Ok(())
    }

    fn execute(&mut self, step: &Step, undo: &mut Vec<Undo>) -> Result<(), ApiError> {
        let to = &self.to.state.config;
        match step {
            Step::Vm(step) => {
                let (undone, result) = self.controller.execute_vm_step(step, to);
                undo.push(Undo::Vm(undone));
                result
            }
            Step::Port(step) => {
                let mut of_ports = Vec::new();
                let result = self.controller.execute_port_step(step, &mut of_ports);
                undo.extend(of_ports.into_iter().map(Undo::Port));
                result
            }
            Step::Pf(step) => {
                let (undo_state, result) = self.controller.execute_pf_step(step, to);
                undo.extend(undo_state.map(|undo_state| Undo::Pf(Box::new(undo_state))));
                result
            }
            Step::Workers(WorkersStep::Change) => {
                undo.push(Undo::Workers);
                self.controller.set_workers(to)
            }
            Step::Workers(WorkersStep::Retry) => {
                if let Err(error) = self.controller.restore_workers(to) {
                    tracing::debug!(%error, "workers are retried later");
                }
                Ok(())
            }
            Step::Tables => {
                undo.push(Undo::Tables);
                self.controller.publish(to)
            }
            Step::UplinkTables => self.controller.publish(to),
            Step::Disk(step) => {
                let mut of_disks = Vec::new();
                let result =
                    self.controller.execute_disk_step(step, self.to.options, &mut of_disks);
                undo.extend(of_disks.into_iter().map(|step| Undo::Disk(Box::new(step))));
                result
            }
        }
    }

    fn commit(&mut self) -> Result<(), ApiError> {
        let store_changes = std::mem::take(&mut self.store_changes);
        self.controller
            .commit(self.to, self.edit, store_changes)
            .map_err(|error| store_error(&error))
    }

    /// Undoes the steps of a failed change. Devices are reopened only after all conflicting devices
    /// are closed.
    fn roll_back(&mut self, undo: Vec<Undo>) {
        let (controller, from) = (&mut *self.controller, &self.from.config);
        controller.shared.disks.set_required(required_disks(from));
        let (undo, of_disks) = split(undo);
        let disks_to_return = controller.begin_rollback(of_disks);
        let mut closed = Vec::new();
        let mut made_vms: Vec<Name> = Vec::new();
        let mut has_released = false;
        for step in undo.into_iter().rev() {
            match step {
                Undo::Port(step) => closed.extend(controller.roll_back_port(step)),
                Undo::Vm(VmUndo::Delete(names)) => made_vms = names,
                Undo::Vm(VmUndo::ReturnDevices) => has_released = true,
                Undo::Pf(undo_state) => controller.roll_back_pf(&undo_state),
                Undo::Workers => {
                    if let Err(error) = controller.restore_workers(from) {
                        tracing::error!(%error, "cannot restore the former workers");
                    }
                }
                Undo::Disk(_) => {}
                Undo::Tables => {
                    if let Err(error) = controller.publish(from) {
                        tracing::error!(%error, "cannot restore the former forwarding tables");
                    }
                }
            }
        }
        controller.reopen_ports(closed, from);
        controller.finish_rollback(disks_to_return, from);
        if let Err(error) = controller.devices.created.record_opened(self.before.values()) {
            tracing::warn!(%error, "cannot record which sockets belong to the daemon");
        }
        controller.shared.change_ids(|ids| ids.release(from, self.before));
        let disks = required_disks(from);
        controller
            .devices
            .created
            .delete_unrequired(self.before.values(), &required_sockets(&disks));
        controller.delete_vms(&made_vms, &self.to.state.config);
        if has_released {
            controller.notify_vms();
        }
    }
}

/// Returns the steps from state `from` to the candidate in the order of their execution.
/// `workers` are the current placements of the workers.
fn steps(
    from: &StoredState,
    to: &ValidatedChange,
    before: &RequiredPorts,
    workers: &[CpuAffinity],
) -> Vec<Step> {
    let (from, config) = (&from.config, &to.state.config);
    let disks_before = required_disks(from);
    let mut acquired = AcquiredResources::default();
    add_port_resources(&mut acquired, before, &to.required);
    add_disk_resources(&mut acquired, &disks_before, &to.disks);
    let ports = port_steps(before, &to.required, &acquired);
    let opens_uplink = ports.iter().any(PortStep::opens_uplink);
    let vms = vm_steps(from, (before, &disks_before), to, &acquired);
    let disks = disk_steps((from, &disks_before), (config, &to.disks), &acquired, &to.images);
    let mut steps = vec![Step::Tables];
    steps.extend(opens_uplink.then_some(Step::UplinkTables));
    steps.extend(vms.into_iter().map(Step::Vm));
    steps.extend(ports.into_iter().map(Step::Port));
    steps.extend(pf_steps(from, config).into_iter().map(|step| Step::Pf(Box::new(step))));
    steps.extend(workers_step(&from.host, &config.host, workers).map(Step::Workers));
    steps.extend(disks.into_iter().map(|step| Step::Disk(Box::new(step))));
    // Stable: steps of one phase keep the order of their kind.
    steps.sort_by_key(Step::phase);
    steps
}

/// Splits the reversals into those of other kinds (first) and those of disks (second), each in the
/// given order.
fn split(undo: Vec<Undo>) -> (Vec<Undo>, Vec<DiskUndo>) {
    let (mut others, mut of_disks) = (Vec::new(), Vec::new());
    for step in undo {
        match step {
            Undo::Disk(step) => of_disks.push(*step),
            other => others.push(other),
        }
    }
    (others, of_disks)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vm(step) => step.fmt(f),
            Self::Port(step) => step.fmt(f),
            Self::Pf(step) => step.fmt(f),
            Self::Workers(_) => f.write_str("change the workers"),
            Self::Tables | Self::UplinkTables => f.write_str("publish the forwarding tables"),
            Self::Disk(step) => step.fmt(f),
        }
    }
}

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod failure_tests;
