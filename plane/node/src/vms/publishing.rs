//! Publication of a VM's state: to the state store, to the view that the API reads, and as events.

use suimon_contract::{ApiError, ErrorCode, VmState};
use suimon_ports::VmError;

use super::driver::Driver;
use super::entry::RunView;
use super::records::{StoredRun, StoredVm, save_vm};
use crate::events::EventDraft;

impl Driver {
    /// Records the VM with this run in the state store. Returns true if the store accepted the
    /// record.
    pub(super) fn save(&self, run: Option<&StoredRun>) -> bool {
        let vm = StoredVm {
            uuid: self.entry.uuid,
            user_id: self.entry.user_id,
            run: run.cloned(),
            migration: self.migration_record.clone(),
            incoming_migration_id: self.entry.incoming_migration_id.get().cloned(),
            unreturned_vfs: self.unreturned_vfs.stored(run),
        };
        let saved = save_vm(&self.entry.name, &vm).and_then(|change| self.store.commit(&[change]));
        if let Err(error) = &saved {
            tracing::error!(vm = %self.entry.name, %error, "cannot save the state of a running VM");
        }
        saved.is_ok()
    }

    /// Records the current run, if the VM is running.
    pub(super) fn save_run(&mut self) {
        let is_written = self.run.as_ref().is_some_and(|run| self.save(Some(&run.stored)));
        if let Some(run) = &mut self.run {
            run.is_recorded = is_written;
        }
    }

    /// Records the VM as it is: running, unresponsive or stopped.
    pub(super) fn save_record(&mut self) {
        match (&self.run, &self.unresponsive) {
            (Some(_), _) => self.save_run(),
            (None, lost) => {
                self.save(lost.as_ref().map(|lost| &lost.stored));
            }
        }
    }

    /// Publishes the observed state without a change of [`VmState`].
    pub(super) fn publish_again(&self) {
        let state = self.entry.view().state;
        self.publish(state);
    }

    /// Publishes the observed state to the VM's view.
    pub(super) fn publish(&self, state: VmState) {
        let running = self.run.as_ref().map(|run| {
            let status = run.vm.status();
            RunView {
                process_id: run.vm.identity().pid,
                started_unix_ms: run.stored.started_unix_ms,
                start_config: run.stored.start_config.clone(),
                accelerator: super::status::accelerator(status.accelerator),
                cpus: status.cpus,
                qemu_version: status.qemu_version,
                user_id: status.uid,
                nics: run.stored.nics.clone(),
                disks: run.stored.disks.clone(),
                macs: run.stored.macs.clone(),
                standbys: run.stored.standbys.clone(),
                failover_nics: run.vfs.failover_nics.clone(),
                vfs: run.stored.vfs.keys().cloned().collect(),
                failed_plugs: run.failed_plugs.clone(),
                frozen_until: run.frozen.map(|frozen| frozen.thaw_at),
                is_paused_on_request: run.stored.is_paused_on_request,
                vm: run.vm.clone(),
            }
        });
        let reason = self.space_reason();
        let mut view = self.entry.view();
        view.state = state;
        view.reason = reason;
        view.waits_for_space = self.waits_for_space();
        view.running = running;
        view.recorded_vfs.clear();
    }

    pub(super) fn append(&self, draft: EventDraft) {
        self.shared.events.append(vec![draft]);
    }

    pub(super) fn error(&self, code: ErrorCode, text: &str) -> ApiError {
        ApiError::new(code, text).with_resource(self.entry.label())
    }

    /// Returns the error of a request that requires a running VM.
    pub(super) fn not_running_error(&self) -> ApiError {
        let text =
            format!("the VM is not running; start it with `suimon vm start {}`", self.entry.name);
        self.error(ErrorCode::Conflict, &text)
    }

    /// Converts a VM's error to an API error.
    pub(super) fn api_error(&self, error: &VmError) -> ApiError {
        self.entry.error_of(error)
    }
}
