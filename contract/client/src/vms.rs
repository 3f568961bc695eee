//! What can be asked of a VM.

use hyper::Method;
use suimon_contract::{FreezeVmRequest, Name, Operation, StopVmRequest, VmConfig, VmGuest};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// Every method gives the operation that was started unless it says otherwise, and fails
/// with [`ClientError`].
impl Client {
    /// Starts the VM.
    pub async fn start_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "start", None).await
    }

    /// Asks the VM's guest to turn itself off, and waits until it has.
    pub async fn stop_vm(
        &self,
        vm: &Name,
        request: &StopVmRequest,
    ) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "stop", Some(body(request)?)).await
    }

    /// Ends the VM at once.
    pub async fn kill_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "kill", None).await
    }

    /// Stops the VM's CPUs.
    pub async fn pause_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "pause", None).await
    }

    /// Lets the VM's CPUs run again.
    pub async fn resume_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "resume", None).await
    }

    /// Starts the VM anew, as a reset button does.
    pub async fn reset_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "reset", None).await
    }

    /// Has the guest's agent hold writes to file systems.
    pub async fn freeze_vm(
        &self,
        vm: &Name,
        request: &FreezeVmRequest,
    ) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "freeze", Some(body(request)?)).await
    }

    /// Has the guest's agent let file systems be written again.
    pub async fn thaw_vm(&self, vm: &Name) -> Result<Operation, ClientError> {
        self.tell_vm(vm, "thaw", None).await
    }

    /// What the agent in the guest tells.
    pub async fn vm_guest(&self, vm: &Name) -> Result<VmGuest, ClientError> {
        transport::json(self, Call::get(format!("{}/guest", item::<VmConfig>(vm)))).await
    }

    /// The VM's NICs and disks as elements of a libvirt domain.
    pub async fn vm_libvirt(&self, vm: &Name) -> Result<String, ClientError> {
        let call = Call::get(format!("{}/libvirt", item::<VmConfig>(vm)));
        transport::text(self, call).await
    }

    /// The VM's serial console: what the guest writes can be read, and what is written the
    /// guest reads.
    pub async fn vm_console(
        &self,
        vm: &Name,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        transport::upgrade(self, &format!("{}/console", item::<VmConfig>(vm)), "suimon-console")
            .await
    }

    async fn tell_vm(
        &self,
        vm: &Name,
        verb: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Operation, ClientError> {
        let mut call = Call::new(Method::POST, format!("{}/{verb}", item::<VmConfig>(vm)));
        call.body = body;
        transport::json(self, call).await
    }
}
