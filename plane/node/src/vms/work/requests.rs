//! Requests for operations on a VM.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_contract::{
    ApiError, ErrorCode, FREEZE_SECONDS_MAX, HostConfig, Name, ResourceKind, STOP_SECONDS_MAX,
    VmConfig, VmGuest, VmGuestInterface, VmState,
};
use suimon_ports::{GuestInterface, Vm, VmError, VmErrorKind};

use super::VmAction;
use super::plugged::check_plugged;
use crate::Edit;
use crate::errors::not_found;
use crate::operations::OperationHandle;
use crate::shared::Shared;
use crate::vms::inbox::Message;

impl Shared {
    /// Checks that the operation can be submitted now.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if the VM does not exist, [`ErrorCode::InvalidValue`] for a duration
    /// out of range, [`ErrorCode::Conflict`] if the VM's state does not permit the operation.
    pub(crate) fn check_vm_action(&self, name: &Name, work: VmAction) -> Result<(), ApiError> {
        let entry = self.vms.find(name).ok_or_else(|| not_found(ResourceKind::Vm, name))?;
        let seconds = match work {
            VmAction::Stop(request) => Some((request.timeout_s, STOP_SECONDS_MAX)),
            VmAction::Freeze(request) => Some((request.thaw_after_s, FREEZE_SECONDS_MAX)),
            _ => None,
        };
        if let Some((seconds, max_seconds)) =
            seconds.filter(|(s, max_seconds)| !(1..=*max_seconds).contains(s))
        {
            let text = format!("must be a whole number from 1 to {max_seconds}, not {seconds}");
            let error = ApiError::new(ErrorCode::InvalidValue, text);
            return Err(error.with_resource(entry.label()).with_field("seconds"));
        }
        let (state, waits_for_space) = {
            let view = entry.view();
            (view.state, view.waits_for_space)
        };
        if work == VmAction::Pause && waits_for_space {
            return Ok(());
        }
        work.check(name, state)
    }

    /// Submits the operation to the VM's driver, which reports through `operation`.
    pub(crate) fn submit_vm_action(
        self: &Arc<Self>,
        name: &Name,
        work: VmAction,
        operation: OperationHandle,
    ) {
        match self.vms.find(name) {
            Some(entry) if work == VmAction::Kill => self.submit_kill(entry, operation),
            Some(entry) => entry.submit(Message::Action(work, Some(operation))),
            None => operation.end(&Err(not_found(ResourceKind::Vm, name))),
        }
    }

    /// Returns an error for each VM that must be stopped before the change: VMs to be deleted, VMs
    /// with a changed folder, and VMs with incompatible changes of plugged devices.
    pub(crate) fn check_vms_stopped(
        &self,
        edit: &Edit,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Vec<ApiError> {
        // A VM that has moved to another node is never started here again.
        let departs =
            |vm: &VmConfig| matches!(edit, Edit::DeleteMigratedVm(name) if vm.name == *name);
        let removed =
            from.vms.iter().filter(|vm| to.vm(vm.name.as_str()).is_none() && !departs(vm));
        let errors = removed.filter_map(|vm| {
            let entry = self.vms.find(&vm.name)?;
            let state = entry.view().state;
            let text = format!(
                "the VM is {state}; stop it with `suimon vm stop {}` or `suimon vm kill {}` \
                 before you delete it",
                vm.name, vm.name
            );
            let is_running = state != VmState::Stopped;
            is_running.then(|| ApiError::new(ErrorCode::InUse, text).with_resource(entry.label()))
        });
        let mut errors: Vec<ApiError> = errors.collect();
        errors.extend(check_plugged(&self.vms, from, to));
        if from.host.effective_vm_folder() != to.host.effective_vm_folder() {
            errors.extend(self.running_vm().map(|vm| {
                let text = format!(
                    "{vm} is running, and the sockets of its NICs and disks are in its folder; \
                     stop all VMs before you change vm_folder"
                );
                ApiError::new(ErrorCode::InUse, text).with_resource("host").with_field("vm_folder")
            }));
        }
        errors
    }

    fn running_vm(&self) -> Option<String> {
        let entries = self.vms.all();
        let running = entries.iter().find(|entry| entry.view().state != VmState::Stopped);
        running.map(|entry| entry.label())
    }

    /// Opens a connection to a VM's serial console.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if the VM does not exist, [`ErrorCode::Conflict`] if it is not
    /// running or its console is in use, [`ErrorCode::HostError`] if QEMU does not respond.
    pub(crate) fn vm_console(&self, name: &Name) -> Result<OwnedFd, ApiError> {
        self.query_vm(name, |vm| vm.open_console())
    }

    /// Queries the guest agent of a VM. Blocks for some seconds at most.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if the VM does not exist, [`ErrorCode::Conflict`] if it is not
    /// running or no guest agent runs, [`ErrorCode::HostError`] if the agent or QEMU does not
    /// respond.
    pub(crate) fn vm_guest(&self, name: &Name) -> Result<VmGuest, ApiError> {
        let properties = self.query_vm(name, |vm| vm.guest_info())?;
        let interfaces = properties.interfaces.into_iter();
        let interface = |interface: GuestInterface| {
            VmGuestInterface::new(interface.name, interface.mac, &interface.addresses)
        };
        Ok(VmGuest {
            agent_version: properties.agent_version,
            host_name: properties.host_name,
            operating_system: properties.system.name,
            kernel: properties.system.kernel,
            architecture: properties.system.architecture,
            interfaces: interfaces.map(interface).collect(),
            frozen: properties.is_frozen,
        })
    }

    /// Queries a running VM from the caller's thread, concurrently with the VM's driver.
    fn query_vm<T>(
        &self,
        name: &Name,
        query: impl FnOnce(&dyn Vm) -> Result<T, VmError>,
    ) -> Result<T, ApiError> {
        let entry = self.vms.find(name).ok_or_else(|| not_found(ResourceKind::Vm, name))?;
        let vm = entry.view().running.as_ref().map(|run| run.vm.clone());
        let Some(vm) = vm else {
            let text = format!("the VM is not running; start it with `suimon vm start {name}`");
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
        };
        let result = query(vm.as_ref());
        result.map_err(|error| {
            let code = match error.kind {
                VmErrorKind::Host | VmErrorKind::Timeout => ErrorCode::HostError,
                VmErrorKind::AlreadyRunning
                | VmErrorKind::NotRunning
                | VmErrorKind::Refused
                | VmErrorKind::Busy => ErrorCode::Conflict,
            };
            ApiError::new(code, error.text).with_resource(entry.label())
        })
    }
}
