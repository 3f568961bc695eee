//! Requests about VMs.

use hyper::Method;
use suimon_contract::{FreezeVmRequest, Name, Operation, StopVmRequest, VmConfig, VmGuest};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::resources::{json_body, resource_path};
use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Methods that return the started operation unless stated otherwise. Each fails with
/// [`ClientError`].
impl Client {
    /// Starts the VM on this host.
    pub async fn start_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "start", None).await
    }

    /// Requests a shutdown of the guest. The operation ends when the guest has shut down.
    pub async fn stop_vm(
        &self,
        vm: &Name,
        request: &StopVmRequest,
    ) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "stop", Some(json_body(request)?)).await
    }

    /// Kills the VM without a shutdown of the guest.
    pub async fn kill_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "kill", None).await
    }

    /// Pauses the VM by stopping its CPUs.
    pub async fn pause_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "pause", None).await
    }

    /// Resumes the CPUs of a paused VM.
    pub async fn resume_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "resume", None).await
    }

    /// Resets the VM, as a reset button does.
    pub async fn reset_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "reset", None).await
    }

    /// Freezes the guest's file systems through its agent.
    pub async fn freeze_vm(
        &self,
        vm: &Name,
        request: &FreezeVmRequest,
    ) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "freeze", Some(json_body(request)?)).await
    }

    /// Thaws the guest's file systems through its agent.
    pub async fn thaw_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.execute_vm_action(vm, "thaw", None).await
    }

    /// Returns the guest properties that its agent reports.
    pub async fn vm_guest(&self, vm: &Name) -> Result<VmGuest, ClientError> {
        transport::fetch_json(
            self,
            ApiRequest::get(format!("{}/guest", resource_path::<VmConfig>(vm))),
        )
        .await
    }

    /// Returns the VM's NICs and disks as elements of a libvirt domain.
    pub async fn vm_libvirt_xml(&self, vm: &Name) -> Result<String, ClientError> {
        let call = ApiRequest::get(format!("{}/libvirt", resource_path::<VmConfig>(vm)));
        transport::fetch_text(self, call).await
    }

    /// Opens the VM's serial console: output of the guest is read, and written bytes are the
    /// guest's input.
    pub async fn open_vm_console(
        &self,
        vm: &Name,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        transport::upgrade(
            self,
            &format!("{}/console", resource_path::<VmConfig>(vm)),
            "suimon-console",
        )
        .await
    }

    async fn execute_vm_action(
        &self,
        vm: &Name,
        verb: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Operation, ClientError> {
        let mut call =
            ApiRequest::new(Method::POST, format!("{}/{verb}", resource_path::<VmConfig>(vm)));
        call.body = body;
        transport::fetch_json(self, call).await
    }
}
