//! Requests about live migrations of VMs, by a user or by the other node of the migration.

use hyper::Method;
use suimon_contract::{
    IncomingMigration, IncomingMigrationRequest, MigrateVmRequest, Name, Operation, Plan, VmConfig,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::resources::{json_body, resource_path};
use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Upgrade protocol of a connection that carries QEMU's migration stream.
pub const MEMORY_PROTOCOL: &str = "suimon-memory";
/// Upgrade protocol of a connection that carries NBD.
pub const NBD_PROTOCOL: &str = "suimon-nbd";

const PATH: &str = "/1.0/arrivals";

/// Purpose of a connection to an incoming migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStreamKind<'n> {
    /// Memory and device state of the VM, in QEMU's migration stream.
    Memory,
    /// NBD stream that copies the named disk.
    Disk(&'n Name),
}

/// Every method fails with [`ClientError`].
impl Client {
    /// Starts the live migration of a VM to another node.
    pub async fn migrate_vm(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Operation, ClientError> {
        let call =
            ApiRequest::new(Method::POST, format!("{}/migrate", resource_path::<VmConfig>(vm)));
        transport::fetch_json(self, call.with_body(json_body(request)?)).await
    }

    /// Returns the changes that a migration of the VM would make on the other node.
    pub async fn check_migration(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Plan, ClientError> {
        let path = format!("{}/migrate?dry_run=true", resource_path::<VmConfig>(vm));
        transport::fetch_json(
            self,
            ApiRequest::new(Method::POST, path).with_body(json_body(request)?),
        )
        .await
    }

    /// Returns the changes that an incoming migration of a VM would make on this node.
    pub async fn check_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Plan, ClientError> {
        let call = ApiRequest::new(Method::POST, format!("{PATH}?dry_run=true"));
        transport::fetch_json(self, call.with_body(json_body(request)?)).await
    }

    /// Starts the creation of the resources for an incoming migration on this node.
    pub async fn prepare_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Operation, ClientError> {
        let call = ApiRequest::new(Method::POST, PATH).with_body(json_body(request)?);
        transport::fetch_json(self, call).await
    }

    /// Returns the state of the incoming migration with this id.
    pub async fn incoming_migration(&self, id: &str) -> Result<IncomingMigration, ClientError> {
        transport::fetch_json(self, ApiRequest::get(arrival(id))).await
    }

    /// Makes this node the owner of the VM, unless the incoming migration was cancelled. The
    /// returned state shows the result.
    pub async fn activate_incoming_migration(
        &self,
        id: &str,
    ) -> Result<IncomingMigration, ClientError> {
        let call = ApiRequest::new(Method::POST, format!("{}/activate", arrival(id)));
        transport::fetch_json(self, call).await
    }

    /// Cancels an incoming migration that is not activated yet. The returned state shows the
    /// result.
    pub async fn abandon_incoming_migration(
        &self,
        id: &str,
    ) -> Result<IncomingMigration, ClientError> {
        transport::fetch_json(self, ApiRequest::new(Method::DELETE, arrival(id))).await
    }

    /// Opens a connection to a prepared incoming migration. The connection carries the bytes of
    /// both directions unchanged.
    pub async fn open_migration_stream(
        &self,
        id: &str,
        line: MigrationStreamKind<'_>,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let (path, protocol) = match line {
            MigrationStreamKind::Memory => (format!("{}/memory", arrival(id)), MEMORY_PROTOCOL),
            MigrationStreamKind::Disk(disk) => {
                (format!("{}/disks/{disk}", arrival(id)), NBD_PROTOCOL)
            }
        };
        transport::upgrade(self, &path, protocol).await
    }
}

/// Returns the URL path of an incoming migration. Its identifier consists of hexadecimal digits;
/// other characters are removed.
fn arrival(id: &str) -> String {
    let id: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{PATH}/{id}")
}
