//! Start of a VM, by its driver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, HostConfig, StorageState, VmConfig, VmState};
use suimon_ports::Vm;

use super::{Autostart, PendingAutostart};
use crate::vms::autostart::clear_autostart;
use crate::vms::driver::Driver;
use crate::vms::inbox::NoticeObserver;
use crate::vms::records::StoredRun;
use crate::vms::spec::{macs, standbys};
use crate::vms::texts;

/// Interval in which the disks of a waiting VM are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Driver {
    /// Starts the VM after a boot of the host, immediately or when its disks are in service.
    /// Interrupted disk jobs may still be running, and stores may be mounted after the daemon's
    /// start.
    pub(in crate::vms) fn start_with_host(&mut self) -> Result<(), ApiError> {
        let desired = self.shared.desired();
        let Some(vm) = desired.config.vm(self.entry.name.as_str()) else { return Ok(()) };
        let Err(error) = self.check_disks(vm) else { return self.start() };
        let before = self.autostart.pending.take();
        if before.as_ref().is_some_and(|before| !before.is_reported) {
            self.append(texts::waits_for_disks_event(&self.entry, &error.message));
        }
        self.entry.view().reason =
            Some(format!("the VM is started as soon as that is possible: {}", error.message));
        let look_at = Instant::now() + POLL_INTERVAL;
        self.autostart.pending =
            Some(PendingAutostart { next_poll_at: look_at, is_reported: before.is_some() });
        Ok(())
    }

    /// Completes a request of [`Controller::begin_autostart`](crate::control::Controller). Emits an
    /// event if it failed, because no operation reports the error.
    pub(in crate::vms) fn end_autostart_request(
        &mut self,
        state: VmState,
        result: &Result<(), ApiError>,
    ) {
        // A failed start attempt has emitted its own event, and a running VM needs none.
        if let (VmState::NotResponding, Err(error)) = (state, result) {
            self.append(texts::not_started_event(&self.entry, &error.message));
        }
        // The record was made before the request.
        self.autostart.is_recorded = true;
        self.delete_ended_autostart(Instant::now());
    }

    /// Continues the autostart: starts the VM once its disks are in service, and deletes the record
    /// of an autostart that has ended.
    pub(in crate::vms) fn poll_autostart(&mut self, now: Instant) {
        if self.autostart.pending.as_ref().is_some_and(|pending| pending.next_poll_at <= now) {
            self.start_if_disks_ready();
        }
        self.delete_ended_autostart(now);
    }

    /// Starts a waiting VM if its disks are in service. Ends the wait if `autostart` was unset or
    /// the VM was started otherwise.
    fn start_if_disks_ready(&mut self) {
        let desired = self.shared.desired();
        let vm = desired.config.vm(self.entry.name.as_str());
        let is_stopped = self.entry.view().state == VmState::Stopped;
        if !is_stopped || !vm.is_some_and(|vm| vm.autostart) {
            self.autostart.pending = None;
            if is_stopped {
                self.entry.view().reason = None;
            }
            return;
        }
        if vm.is_some_and(|vm| self.check_disks(vm).is_ok()) {
            self.autostart.pending = None;
        }
        // A failed start emits its own event.
        let _ = self.start_with_host();
    }

    /// Deletes the record of the autostart if the autostart has ended. A failed attempt is
    /// repeated: otherwise the next daemon would start the VM again.
    fn delete_ended_autostart(&mut self, now: Instant) {
        let autostart = &mut self.autostart;
        let is_waiting = autostart.delete_at.is_some_and(|delete_at| delete_at > now);
        if !autostart.is_recorded || autostart.pending.is_some() || is_waiting {
            return;
        }
        match self.store.commit(&[clear_autostart(&self.entry.name)]) {
            Ok(()) => *autostart = Autostart::default(),
            Err(error) => {
                autostart.delete_at = Some(now + self.peer_request_interval);
                if autostart.failure.record_failure(&error) {
                    self.append(texts::autostart_not_recorded_event(&self.entry, &error));
                }
            }
        }
    }

    /// Starts the VM. A failure sets the reason in the VM's status and emits an event.
    pub(in crate::vms) fn start(&mut self) -> Result<(), ApiError> {
        let desired = self.shared.desired();
        let Some(vm) = desired.config.vm(self.entry.name.as_str()).cloned() else {
            return Err(
                self.error(ErrorCode::NotFound, "the VM is not in the configuration any more")
            );
        };
        self.entry.view().state = VmState::Starting;
        let started = self.start_as(&desired.config, vm);
        if let Err(error) = &started {
            let mut view = self.entry.view();
            (view.state, view.reason) = (VmState::Stopped, Some(error.message.clone()));
            drop(view);
            self.save(None);
            self.append(texts::not_started_event(&self.entry, &error.message));
        }
        started
    }

    fn start_as(&mut self, config: &HostConfig, vm: VmConfig) -> Result<(), ApiError> {
        let host = self.shared.vms.dependencies.host.clone();
        let spec = self.shared.vm_spec(config, &vm, &self.entry)?;
        self.check_disks(&vm)?;
        let mut stored = StoredRun {
            folder: spec.folder.clone(),
            process_id_and_start: None,
            started_unix_ms: (self.shared.clock)(),
            nics: vm.nics.iter().cloned().collect(),
            disks: vm.disks.iter().cloned().collect(),
            macs: macs(&spec),
            standbys: standbys(&spec),
            vfs: BTreeMap::new(),
            start_config: vm,
            is_frozen: false,
            is_paused_on_request: false,
        };
        host.create_folder(&spec.folder, spec.uid).map_err(|error| self.api_error(&error))?;
        host.probe(&spec).map_err(|error| self.api_error(&error))?;
        // Recorded first: if the daemon is killed from here on, the next one finds the process by
        // this record.
        if !self.save(Some(&stored)) {
            let text = "the state directory cannot be written, and a restart of the daemon would \
                        lose the VM; `suimon host show` shows the reason";
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
        self.append(texts::started_event(&self.entry, &identity, &vm.status()));
        self.set_current_run(vm, stored, is_written);
        Ok(())
    }

    /// Checks that all disks of the VM are in service, so that the error names the disk and the
    /// cause. QEMU would only report that the connection was refused.
    fn check_disks(&self, vm: &VmConfig) -> Result<(), ApiError> {
        for name in &vm.disks {
            let Some(entry) = self.shared.disks.find(name) else { continue };
            let (state, reason) = entry.lock().condition();
            if state != StorageState::Ready {
                let label = entry.label();
                let text = match reason {
                    Some(reason) => format!("{label} is not in service: {reason}"),
                    None => {
                        format!(
                            "{label} is not in service; `suimon disk show {name}` shows the \
                             reason"
                        )
                    }
                };
                return Err(self.error(ErrorCode::Conflict, &text));
            }
        }
        Ok(())
    }
}
