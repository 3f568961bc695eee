//! What nodes ask each other about VMs that move.

use hyper::Method;
use suimon_contract::{Arrival, ArrivalRequest, MigrateVmRequest, Name, Operation, Plan, VmConfig};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// The protocol of a connection that carries what QEMU sends of a VM.
pub const MEMORY_PROTOCOL: &str = "suimon-memory";
/// The protocol of a connection that carries NBD.
pub const NBD_PROTOCOL: &str = "suimon-nbd";

const PATH: &str = "/1.0/arrivals";

/// What a connection to an arrival carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalLine<'n> {
    /// Memory and devices, as QEMU sends them.
    Memory,
    /// NBD, to this disk.
    Disk(&'n Name),
}

/// Every method fails with [`ClientError`].
impl Client {
    /// Begins to move a VM to another node while it runs.
    pub async fn migrate_vm(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Operation, ClientError> {
        let call = Call::new(Method::POST, format!("{}/migrate", item::<VmConfig>(vm)));
        transport::json(self, call.with_body(body(request)?)).await
    }

    /// What a VM's coming would change on the other node.
    pub async fn check_migration(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Plan, ClientError> {
        let path = format!("{}/migrate?dry_run=true", item::<VmConfig>(vm));
        transport::json(self, Call::new(Method::POST, path).with_body(body(request)?)).await
    }

    /// What a VM's coming would change here.
    pub async fn check_arrival(&self, request: &ArrivalRequest) -> Result<Plan, ClientError> {
        let call = Call::new(Method::POST, format!("{PATH}?dry_run=true"));
        transport::json(self, call.with_body(body(request)?)).await
    }

    /// Begins to make what a VM needs that comes.
    pub async fn prepare_arrival(
        &self,
        request: &ArrivalRequest,
    ) -> Result<Operation, ClientError> {
        let call = Call::new(Method::POST, PATH).with_body(body(request)?);
        transport::json(self, call).await
    }

    /// What became of an arrival.
    pub async fn arrival(&self, id: &str) -> Result<Arrival, ClientError> {
        transport::json(self, Call::get(arrival(id))).await
    }

    /// The VM is this node's from now on, unless it was abandoned; the answer tells.
    pub async fn activate_arrival(&self, id: &str) -> Result<Arrival, ClientError> {
        let call = Call::new(Method::POST, format!("{}/activate", arrival(id)));
        transport::json(self, call).await
    }

    /// The VM does not come, unless it is active already; the answer tells.
    pub async fn abandon_arrival(&self, id: &str) -> Result<Arrival, ClientError> {
        transport::json(self, Call::new(Method::DELETE, arrival(id))).await
    }

    /// A connection for what is copied to an arrival that waits. It carries bytes of both
    /// directions as they are.
    pub async fn arrival_line(
        &self,
        id: &str,
        line: ArrivalLine<'_>,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let (path, protocol) = match line {
            ArrivalLine::Memory => (format!("{}/memory", arrival(id)), MEMORY_PROTOCOL),
            ArrivalLine::Disk(disk) => (format!("{}/disks/{disk}", arrival(id)), NBD_PROTOCOL),
        };
        transport::upgrade(self, &path, protocol).await
    }
}

/// The address of an arrival. What is no digit is in no identifier.
fn arrival(id: &str) -> String {
    let id: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{PATH}/{id}")
}
