//! Steps of a change that concern VMs: creation of their folders, and release of devices.

use std::fmt;

use suimon_contract::{ApiError, HostConfig, Name};

use super::releasing::{DevicesToRelease, devices_to_release};
use crate::change::ValidatedChange;
use crate::control::Controller;
use crate::disks::RequiredDisks;
use crate::ports::RequiredPorts;
use crate::transaction::{AcquiredResources, ChangePhase};

/// Step of a change that concerns VMs.
pub(crate) enum VmStep {
    /// Creates the folders of new VMs, which contain the sockets of their NICs and disks.
    Create,
    /// Has guests release devices that a later step closes.
    ReleaseDevicesClosedBeforeCommit(DevicesToRelease),
    /// Has guests release devices that are closed after the commit. Last step, so that only the
    /// commit can fail after it.
    ReleaseDevicesClosedAfterCommit(DevicesToRelease),
}

/// Action that reverts a step.
pub(crate) enum VmUndo {
    /// Deletes VMs that the change created.
    Delete(Vec<Name>),
    /// Returns released devices to the guests.
    ReturnDevices,
}

impl VmStep {
    /// Returns the phase in which the step is executed.
    pub(crate) const fn phase(&self) -> ChangePhase {
        match self {
            Self::Create => ChangePhase::CreateVms,
            Self::ReleaseDevicesClosedBeforeCommit(_) => {
                ChangePhase::ReleaseDevicesClosedBeforeCommit
            }
            Self::ReleaseDevicesClosedAfterCommit(_) => {
                ChangePhase::ReleaseDevicesClosedAfterCommit
            }
        }
    }
}

/// Returns the steps of a change from one configuration to the candidate. `ports` and `disks` are
/// those of `from`.
pub(crate) fn vm_steps(
    from: &HostConfig,
    before: (&RequiredPorts, &RequiredDisks),
    to: &ValidatedChange,
    acquired: &AcquiredResources,
) -> Vec<VmStep> {
    let config = &to.state.config;
    let has_new_vm = config.vms.iter().any(|vm| from.vm(vm.name.as_str()).is_none());
    let other_folder = from.host.effective_vm_folder() != config.host.effective_vm_folder();
    let (early_releases, late_releases) = devices_to_release(from, before, to, acquired);
    let mut steps = Vec::new();
    if has_new_vm || other_folder {
        steps.push(VmStep::Create);
    }
    if !early_releases.is_empty() {
        steps.push(VmStep::ReleaseDevicesClosedBeforeCommit(early_releases));
    }
    if !late_releases.is_empty() {
        steps.push(VmStep::ReleaseDevicesClosedAfterCommit(late_releases));
    }
    steps
}

impl Controller {
    /// Executes a step towards the configuration `to`. Returns its reversal, also if it fails.
    pub(crate) fn execute_vm_step(
        &mut self,
        step: &VmStep,
        to: &HostConfig,
    ) -> (VmUndo, Result<(), ApiError>) {
        match step {
            VmStep::Create => {
                let (vm_names, result) = self.create_vms(to);
                (VmUndo::Delete(vm_names), result)
            }
            VmStep::ReleaseDevicesClosedBeforeCommit(releases) => {
                let desired = self.shared.desired();
                (VmUndo::ReturnDevices, self.release_devices(releases, &desired.config))
            }
            VmStep::ReleaseDevicesClosedAfterCommit(releases) => {
                (VmUndo::ReturnDevices, self.release_devices(releases, to))
            }
        }
    }
}

impl fmt::Display for VmStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create VMs",
            Self::ReleaseDevicesClosedBeforeCommit(_)
            | Self::ReleaseDevicesClosedAfterCommit(_) => "unplug devices from guests",
        })
    }
}
