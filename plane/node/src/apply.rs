//! Execution of a change of the desired state, as a transaction.
//!
//! Order of the steps:
//! 1. The intent is recorded, with the TAPs and sockets that the change will create.
//! 2. Guests release devices that the next steps close. Devices whose names or files new ones need
//!    are closed.
//! 3. Adapters with SR-IOV, workers and forwarding tables are changed. Unchanged ports keep their
//!    queues.
//! 4. Devices are changed and opened. Guests release devices that step 6 closes.
//! 5. The new desired state and its events are committed. The change takes effect with this commit.
//! 6. Devices that are not part of the new state are closed; the TAPs and socket files that belong
//!    to the daemon are deleted.
//!
//! If a step fails, or the operation is cancelled before step 5, the completed steps are undone in
//! reverse order. A process that crashes before step 5 restarts with the old desired state, after
//! step 5 with the new one.

use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, Plan};
use suimon_ports::{Placement, PortSpec, StoreError};

use crate::checks::{Candidate, device_error};
use crate::control::Controller;
use crate::devices::Devices;
use crate::disks::{DiskStep, DiskUndo, disk_steps, wanted_disks, wanted_sockets};
use crate::event_texts::{change_failed, planned_events};
use crate::needed::Needed;
use crate::operations::OperationHandle;
use crate::plane::placements;
use crate::port_table::Port;
use crate::records::{
    Intent, StoreChange, StoredState, clear_intent, clear_measured, save_intent, save_state,
};
use crate::sriov::{PfStep, PfUndo, pf_steps};
use crate::vms::{Releases, releases};
use crate::wanted::{WantedPorts, claim, wanted_ports};
use crate::{ChangeOptions, Edit, PortKey};

/// One step of a change.
enum Step {
    /// Creates the folders of new VMs, which contain the sockets of their NICs and disks.
    Vms,
    /// Has guests release devices that a later step closes.
    Release(Releases),
    /// Has guests release devices that are closed after the commit. Last step, so that only the
    /// commit can fail after it.
    ReleaseLate(Releases),
    Close(PortKey),
    Pf(Box<PfStep>),
    /// Changes the set of workers.
    Processors,
    /// Retries the set of workers of an earlier configuration. A failure does not concern the
    /// change.
    ProcessorsAgain,
    Tables,
    Change(PortKey, PortSpec),
    Open(PortKey, PortSpec),
    /// Publishes the tables a second time, with the MTU of uplinks that were opened or changed.
    TablesAgain,
    Disk(Box<DiskStep>),
}

/// Inverse of a completed step.
enum Undo {
    /// Deletes VMs that the change created.
    Vms(Vec<Name>),
    /// Returns released devices to the guests of VMs.
    Release,
    /// Reopens the device of an old port.
    Reopen(Arc<Port>),
    /// Restores the previous specification of an old port.
    Restore(Arc<Port>, PortSpec),
    /// Removes a port that the change created.
    Discard(Arc<Port>),
    /// Restores the settings of an adapter.
    Pf(Box<PfUndo>),
    Processors,
    Tables,
    Disk(Box<DiskUndo>),
}

impl Controller {
    /// Carries out a change and reports progress to `operation`. Called by the control thread only.
    pub(crate) fn apply(
        &mut self,
        operation: &OperationHandle,
        edit: &Edit,
        options: ChangeOptions,
    ) -> Result<(), ApiError> {
        self.apply_with(operation, edit, options, Vec::new())
    }

    /// Like [`Controller::apply`]. The store changes `with_it` are committed together with the
    /// change.
    pub(crate) fn apply_with(
        &mut self,
        operation: &OperationHandle,
        edit: &Edit,
        options: ChangeOptions,
        with_it: Vec<StoreChange>,
    ) -> Result<(), ApiError> {
        let candidate = self.shared.check(edit, options).map_err(crate::checks::first_of)?;
        let from = self.shared.desired();
        if candidate.state.config == from.config && candidate.state.file_text == from.file_text {
            operation.set_plan(&Plan::default(), 0);
            self.processors_failing.reschedule(Instant::now());
            self.change_power(edit, &from.config, &from.config);
            return self.reload_files(edit);
        }
        let before = wanted_ports(&from.config);
        let steps = steps(&from.config, &candidate, &before, &self.processors);
        // One additional step for the commit.
        operation.set_plan(&candidate.plan, steps.len() + 1);
        let mut undo = Vec::new();
        self.shared.change_ids(|ids| ids.assign(&candidate.state.config, &candidate.wanted));
        let recorded = self.record_intent(&candidate, edit, &steps);
        let result = recorded
            .map_err(|error| store_error(&error))
            .and_then(|()| self.take_steps(operation, &candidate, &steps, &mut undo))
            .and_then(|()| {
                operation.check_cancelled()?;
                operation.step(steps.len(), "save the new state");
                self.commit(&candidate, edit, with_it).map_err(|error| store_error(&error))
            });
        match result {
            Ok(()) => {
                self.finish(candidate, edit, &before);
                // The files were readable when the change was prepared.
                if let Err(error) = self.reload_files(edit) {
                    tracing::error!(%error, "cannot reload certificates");
                }
            }
            Err(error) => {
                self.roll_back(undo, (&from, &candidate.state.config), &before);
                self.tell_failure(edit, &error);
                return Err(error);
            }
        }
        Ok(())
    }

    fn record_intent(
        &mut self,
        to: &Candidate,
        edit: &Edit,
        steps: &[Step],
    ) -> Result<(), StoreError> {
        let intent = Intent { revision: to.state.revision, kind: edit.kind() };
        self.store.commit(&[save_intent(&intent)?])?;
        self.devices.belongings.record_sockets(wanted_sockets(&to.disks))?;
        self.devices.belongings.record(steps.iter().filter_map(|step| match step {
            Step::Open(_, spec) | Step::Change(_, spec) => Some(spec),
            _ => None,
        }))
    }

    fn take_steps(
        &mut self,
        operation: &OperationHandle,
        to: &Candidate,
        steps: &[Step],
        undo: &mut Vec<Undo>,
    ) -> Result<(), ApiError> {
        self.shared.disks.set_wanted(to.disks.clone());
        for (done, step) in steps.iter().enumerate() {
            operation.check_cancelled()?;
            operation.step(done, &step.to_string());
            self.take_step(to, step, undo)?;
        }
        Ok(())
    }

    fn take_step(
        &mut self,
        Candidate { state, options, .. }: &Candidate,
        step: &Step,
        undo: &mut Vec<Undo>,
    ) -> Result<(), ApiError> {
        let to = &state.config;
        match step {
            Step::Vms => {
                let (made, result) = self.make_vms(to);
                undo.push(Undo::Vms(made));
                result
            }
            Step::Release(releases) => {
                undo.push(Undo::Release);
                let desired = self.shared.desired();
                self.release_devices(releases, &desired.config)
            }
            Step::ReleaseLate(releases) => {
                undo.push(Undo::Release);
                self.release_devices(releases, to)
            }
            Step::Close(key) => {
                if let Some(port) = self.shared.ports.find(key) {
                    Devices::close(&port);
                    undo.push(Undo::Reopen(port));
                }
                Ok(())
            }
            Step::Pf(step) => {
                let (was, result) = self.take_pf_step(step, to);
                undo.extend(was.map(|was| Undo::Pf(Box::new(was))));
                result
            }
            Step::Processors => {
                undo.push(Undo::Processors);
                self.set_processors(to)
            }
            Step::ProcessorsAgain => {
                if let Err(error) = self.restore_processors(to) {
                    tracing::debug!(%error, "workers are retried later");
                }
                Ok(())
            }
            Step::Tables => {
                undo.push(Undo::Tables);
                self.publish(to)
            }
            Step::TablesAgain => self.publish(to),
            Step::Change(key, spec) => self.change_device(key, spec, undo),
            Step::Open(key, spec) => self.open_device(key, spec, undo),
            Step::Disk(step) => {
                let mut of_disks = Vec::new();
                let taken = self.take_disk_step(step, *options, &mut of_disks);
                undo.extend(of_disks.into_iter().map(|step| Undo::Disk(Box::new(step))));
                taken
            }
        }
    }

    fn change_device(
        &mut self,
        key: &PortKey,
        spec: &PortSpec,
        undo: &mut Vec<Undo>,
    ) -> Result<(), ApiError> {
        let Some(port) = self.shared.ports.find(key) else {
            return self.open_device(key, spec, undo);
        };
        let mut state = port.lock();
        let old = std::mem::replace(&mut state.spec, spec.clone());
        let changed = match &mut state.device {
            Some(device) => device.change(spec),
            None => Ok(false),
        };
        if let Err(error) = changed {
            state.spec = old;
            return Err(device_error(key, &error));
        }
        drop(state);
        undo.push(Undo::Restore(port.clone(), old));
        if changed.is_ok_and(|live| live) {
            return Ok(());
        }
        Devices::close(&port);
        self.open_noted(&port)
    }

    fn open_device(
        &mut self,
        key: &PortKey,
        spec: &PortSpec,
        undo: &mut Vec<Undo>,
    ) -> Result<(), ApiError> {
        let port = match self.shared.ports.find(key) {
            // The port exists and gets another device. The list of undo steps already contains
            // `Reopen` for its closed device, which uses the restored specification.
            Some(port) => {
                let old = std::mem::replace(&mut port.lock().spec, spec.clone());
                undo.push(Undo::Restore(port.clone(), old));
                port
            }
            None => {
                let id = self.shared.ids().port(key).ok_or_else(|| {
                    ApiError::new(ErrorCode::Internal, "no identifier was assigned to the port")
                        .about(key.to_string())
                })?;
                let port = Arc::new(Port::new(key.clone(), id, spec.clone()));
                self.shared.ports.insert(port.clone());
                undo.push(Undo::Discard(port.clone()));
                port
            }
        };
        self.open_noted(&port)
    }

    /// Opens a device and records the identity of its socket file.
    fn open_noted(&mut self, port: &Port) -> Result<(), ApiError> {
        self.devices.open(port).map_err(|error| device_error(&port.key, &error))?;
        let spec = port.lock().spec.clone();
        self.devices.belongings.note_opened([&spec]).map_err(|error| store_error(&error))
    }

    pub(crate) fn commit(
        &mut self,
        to: &Candidate,
        edit: &Edit,
        with_it: Vec<StoreChange>,
    ) -> Result<(), StoreError> {
        let drafts = planned_events(to, edit);
        let mut changes = vec![save_state(&to.state)?, clear_intent()];
        changes.extend(with_it);
        let gone = self.shared.disks.measured_and_gone(&to.state.config);
        changes.extend(gone.iter().map(clear_measured));
        self.shared.events.commit(drafts, changes)
    }

    /// Completes a committed change: closes devices, deletes files and notifies the other parts of
    /// the node. Failures are logged only.
    pub(crate) fn finish(&mut self, to: Candidate, edit: &Edit, before: &WantedPorts) {
        for key in before.keys().filter(|key| !to.wanted.contains_key(key)) {
            if let Some(port) = self.shared.ports.remove(key) {
                Devices::close(&port);
                self.devices.promises.forget(key);
            }
        }
        self.finish_disks(&wanted_disks(&self.shared.desired().config), &to);
        self.shared.change_ids(|ids| ids.release(&to.state.config, &to.wanted));
        self.devices.belongings.sweep(&to.wanted, &wanted_sockets(&to.disks));
        let before = self.shared.desired();
        let gone =
            before.config.vms.iter().filter(|vm| to.state.config.vm(vm.name.as_str()).is_none());
        let gone: Vec<Name> = gone.map(|vm| vm.name.clone()).collect();
        self.shared.set_desired(to.state);
        self.prune_bindings();
        self.shared.record_names();
        let after = self.shared.desired();
        self.shared.follow_cluster();
        self.change_power(edit, &before.config, &after.config);
        self.delete_vms(&gone, &before.config);
        self.tell_vms();
        // The adapters have the addresses of the new configuration before the operation succeeds.
        self.look_at_vfs_soon();
        self.drive_iov();
    }

    /// Undoes the steps of a failed change. Devices are reopened only after all conflicting devices
    /// are closed.
    fn roll_back(
        &mut self,
        undo: Vec<Undo>,
        (from, to): (&StoredState, &HostConfig),
        before: &WantedPorts,
    ) {
        self.shared.disks.set_wanted(wanted_disks(&from.config));
        let (undo, of_disks) = split(undo);
        let disks_to_return = self.take_back_disks(of_disks);
        let mut closed = Vec::new();
        let mut made_vms = Vec::new();
        let mut has_released = false;
        for step in undo.into_iter().rev() {
            match step {
                Undo::Reopen(port) => closed.push(port),
                Undo::Restore(port, spec) => {
                    if !restore_live(&port, spec) {
                        Devices::close(&port);
                        closed.push(port);
                    }
                }
                Undo::Discard(port) => {
                    self.shared.ports.remove(&port.key);
                    Devices::close(&port);
                }
                Undo::Vms(names) => made_vms = names,
                Undo::Release => has_released = true,
                Undo::Pf(was) => self.take_back_pf(&was),
                Undo::Processors => {
                    if let Err(error) = self.restore_processors(&from.config) {
                        tracing::error!(%error, "cannot restore the former workers");
                    }
                }
                Undo::Disk(_) => {}
                Undo::Tables => {
                    if let Err(error) = self.publish(&from.config) {
                        tracing::error!(%error, "cannot restore the former forwarding tables");
                    }
                }
            }
        }
        let was_uplink = closed.iter().any(|port| matches!(port.key, PortKey::Uplink(_)));
        for port in closed {
            let is_closed = port.lock().device.is_none();
            let opened = if is_closed { self.devices.open(&port) } else { Ok(()) };
            if let Err(error) = opened {
                self.fail_port(&port, error.to_string());
            }
        }
        if was_uplink {
            if let Err(error) = self.publish(&from.config) {
                tracing::error!(
                    %error,
                    "the forwarding tables do not contain the devices of uplinks"
                );
            }
        }
        self.return_disks(disks_to_return, &from.config);
        if let Err(error) = self.devices.belongings.note_opened(before.values()) {
            tracing::warn!(%error, "cannot record which sockets belong to the daemon");
        }
        self.shared.change_ids(|ids| ids.release(&from.config, before));
        let disks = wanted_disks(&from.config);
        self.devices.belongings.sweep(before, &wanted_sockets(&disks));
        self.delete_vms(&made_vms, to);
        if has_released {
            self.tell_vms();
        }
    }

    pub(crate) fn tell_failure(&mut self, edit: &Edit, error: &ApiError) {
        let draft = change_failed(edit, error);
        if let Err(store) = self.shared.events.commit(vec![draft.clone()], vec![clear_intent()]) {
            tracing::error!(error = %store, "the failed change is still recorded as in progress");
            self.shared.events.append(vec![draft]);
        }
    }
}

/// Returns the steps from configuration `from` to the candidate. `processors` are the current
/// placements of the workers.
fn steps(
    from: &HostConfig,
    to: &Candidate,
    before: &WantedPorts,
    processors: &[Placement],
) -> Vec<Step> {
    let (mut closes, mut changes, mut opens) = (Vec::new(), Vec::new(), Vec::new());
    for (key, spec) in &to.wanted {
        match before.get(key) {
            Some(old) if old == spec => continue,
            Some(old) if claim(old) == claim(spec) => {
                changes.push(Step::Change(key.clone(), spec.clone()));
                continue;
            }
            Some(_) => closes.push(Step::Close(key.clone())),
            None => {}
        }
        opens.push(Step::Open(key.clone(), spec.clone()));
    }
    let disks_before = wanted_disks(from);
    let needed = Needed::of((before, &to.wanted), (&disks_before, &to.disks));
    let gone = before.iter().filter(|(key, _)| !to.wanted.contains_key(key));
    let in_the_way = gone.filter(|(_, spec)| needed.is_held_by_port(spec));
    closes.extend(in_the_way.map(|(key, _)| Step::Close(key.clone())));

    let opens_uplink = opens.iter().chain(&changes).any(|step| {
        matches!(step, Step::Open(PortKey::Uplink(_), _) | Step::Change(PortKey::Uplink(_), _))
    });
    let of_disk = |step| Step::Disk(Box::new(step));
    let disks = disk_steps((from, &disks_before), (&to.state.config, &to.disks), &needed);
    let has_new_vm = to.state.config.vms.iter().any(|vm| from.vm(vm.name.as_str()).is_none());
    let other_folder =
        from.host.effective_vm_folder() != to.state.config.host.effective_vm_folder();
    let mut steps = if has_new_vm || other_folder { vec![Step::Vms] } else { Vec::new() };
    let releases = releases(from, (before, &disks_before), to, &needed);
    steps.extend(releases.early.map(Step::Release));
    steps.extend(closes);
    steps.extend(disks.closes.into_iter().map(of_disk));
    let pfs = pf_steps(from, &to.state.config);
    steps.extend(pfs.into_iter().map(|step| Step::Pf(Box::new(step))));
    let wanted = placements(&to.state.config.host);
    if placements(&from.host) != wanted {
        steps.push(Step::Processors);
    } else if wanted != processors {
        steps.push(Step::ProcessorsAgain);
    }
    steps.push(Step::Tables);
    steps.extend(disks.limits.into_iter().map(of_disk));
    steps.extend(changes);
    steps.extend(opens);
    if opens_uplink {
        steps.push(Step::TablesAgain);
    }
    steps.extend(disks.changes.into_iter().chain(disks.opens).map(of_disk));
    steps.extend(releases.late.map(Step::ReleaseLate));
    steps
}

/// Separates the undo steps of disks from those of ports and tables.
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

/// Restores the previous specification of a port. Returns `false` if the device must be reopened
/// for the specification to take effect.
fn restore_live(port: &Port, old: PortSpec) -> bool {
    let mut state = port.lock();
    let same_device = claim(&state.spec) == claim(&old);
    let device = state.device.as_mut().filter(|_| same_device);
    let live = device.is_some_and(|device| device.change(&old).unwrap_or(false));
    state.spec = old;
    live
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vms => f.write_str("create VMs"),
            Self::Release(_) | Self::ReleaseLate(_) => f.write_str("unplug devices from guests"),
            Self::Close(key) => write!(f, "close {key}"),
            Self::Pf(step) => step.fmt(f),
            Self::Processors | Self::ProcessorsAgain => f.write_str("change the workers"),
            Self::Tables | Self::TablesAgain => f.write_str("publish the forwarding tables"),
            Self::Change(key, _) => write!(f, "change {key}"),
            Self::Open(key, _) => write!(f, "open {key}"),
            Self::Disk(step) => step.fmt(f),
        }
    }
}

pub(crate) fn store_error(error: &StoreError) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string())
}
