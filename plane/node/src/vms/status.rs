//! Observed state of VMs for the API.

use std::time::Instant;

use suimon_contract::{ApiError, ResourceKind, VmAccelerator, VmConfig, VmStatus};
use suimon_ports as ports;

use super::entry::RunView;
use crate::errors::not_found;
use crate::shared::Shared;

impl Shared {
    /// Returns the status of all configured VMs.
    pub(crate) fn vms(&self) -> Vec<VmStatus> {
        let desired = self.desired();
        desired.config.vms.iter().map(|vm| self.vm_status(vm)).collect()
    }

    /// Returns the status of one VM.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`](suimon_contract::ErrorCode) if no VM has this name.
    pub(crate) fn vm(&self, name: &str) -> Result<VmStatus, ApiError> {
        let desired = self.desired();
        let vm = desired.config.vm(name).ok_or_else(|| not_found(ResourceKind::Vm, name))?;
        Ok(self.vm_status(vm))
    }

    fn vm_status(&self, config: &VmConfig) -> VmStatus {
        let mut status = VmStatus::stopped(config.clone());
        let Some(entry) = self.vms.find(&config.name) else { return status };
        let view = entry.view();
        status.state = view.state;
        status.reason.clone_from(&view.reason);
        status.migration.clone_from(&view.migration);
        if let Some(run) = &view.running {
            self.add_run(&mut status, run);
        }
        status
    }

    fn add_run(&self, status: &mut VmStatus, run: &RunView) {
        status.settings_pending_start = waits_for_start(&run.start_config, &status.config);
        status.settings_pending_start.extend(run.failed_plugs.iter().cloned());
        status.process_id = Some(run.process_id);
        status.user_id = run.user_id;
        status.uptime_s = Some(run.vm.uptime().as_secs());
        status.accelerator = Some(run.accelerator);
        status.cpus = Some(run.cpus);
        status.nics = run.nics.iter().cloned().collect();
        status.disks = run.disks.iter().cloned().collect();
        status.qemu_version = Some(run.qemu_version.clone());
        status.agent_connected = Some(run.vm.status().has_agent);
        let remaining_s =
            |until: Instant| until.saturating_duration_since(Instant::now()).as_secs();
        status.time_to_thaw_s = run.frozen_until.map(remaining_s);
    }
}

/// Returns the configuration keys whose changed values take effect at the VM's next start.
fn waits_for_start(as_started: &VmConfig, desired: &VmConfig) -> Vec<String> {
    let table = |vm: &VmConfig| serde_json::to_value(vm).unwrap_or_default();
    let (before, after) = (table(as_started), table(desired));
    let keys = ResourceKind::Vm
        .keys()
        .iter()
        .filter(|key| key.effect == suimon_contract::ChangeEffect::NextVmStart);
    let changed = keys.filter(|key| before.get(key.name) != after.get(key.name));
    changed.map(|key| key.name.to_owned()).collect()
}

/// Returns the API value of an accelerator.
pub(super) const fn accelerator(accelerator: ports::VmAccelerator) -> VmAccelerator {
    match accelerator {
        ports::VmAccelerator::Kvm => VmAccelerator::Kvm,
        ports::VmAccelerator::Tcg => VmAccelerator::Tcg,
    }
}
