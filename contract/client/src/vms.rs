//! What can be asked of a VM.

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use suimon_contract::{FreezeVmRequest, Name, Operation, StopVmRequest, VmConfig, VmGuest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

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
        transport::json(self.socket(), Call::get(format!("{}/guest", item::<VmConfig>(vm)))).await
    }

    /// The VM's NICs and disks as elements of a libvirt domain.
    pub async fn vm_libvirt(&self, vm: &Name) -> Result<String, ClientError> {
        let call = Call::get(format!("{}/libvirt", item::<VmConfig>(vm)));
        transport::text(self.socket(), call).await
    }

    /// The VM's serial console: what the guest writes can be read, and what is written the
    /// guest reads.
    pub async fn vm_console(
        &self,
        vm: &Name,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let stream = UnixStream::connect(self.socket()).await.map_err(|source| {
            ClientError::Unreachable { socket: self.socket().to_owned(), source }
        })?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(transport::broken)?;
        tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        let request = Request::builder()
            .uri(format!("{}/console", item::<VmConfig>(vm)))
            .header(header::HOST, "suimond")
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "suimon-console")
            .body(Empty::<Bytes>::new())
            .map_err(|error| ClientError::Broken(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(transport::broken)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(transport::refusal(answer).await);
        }
        let upgraded = hyper::upgrade::on(answer).await.map_err(transport::broken)?;
        Ok(TokioIo::new(upgraded))
    }

    async fn tell_vm(
        &self,
        vm: &Name,
        verb: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Operation, ClientError> {
        let mut call = Call::new(Method::POST, format!("{}/{verb}", item::<VmConfig>(vm)));
        call.body = body;
        transport::json(self.socket(), call).await
    }
}
