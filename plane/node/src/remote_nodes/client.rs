//! Interface to the API of other nodes.
//!
//! A trait, because this crate contains no HTTP code: the daemon implements it with the API client.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_contract::{
    ApiError, DrainPlan, DrainRequest, ErrorCode, HostStatus, IncomingMigration,
    IncomingMigrationRequest, Name, NodeConfig, Operation, Plan, ResourceKind,
};

use crate::errors::summarize;

/// Error of a request to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerError {
    /// The node answered with these errors.
    Rejected(Vec<ApiError>),
    /// The node did not answer, or the answer is invalid. The outcome of the request is unknown.
    Unreachable(String),
}

/// Purpose of a connection to another node that carries data of a migration. The connection begins
/// as an HTTP request and is upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerStream {
    /// Migration stream of a VM (memory and device state) in QEMU's format.
    Memory,
    /// NBD connection to a disk; the remote node is the server.
    Disk(Name),
}

/// Client of one other node. Calls block until the answer arrives, some seconds at most.
pub trait PeerNode: Send + Sync {
    /// Returns the status of the node's host.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn host(&self) -> Result<HostStatus, PeerError>;

    /// Checks whether a VM can migrate to the node, and returns the changes on the node. Changes
    /// nothing.
    ///
    /// # Errors
    /// The node rejects the VM or cannot be reached.
    fn check_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Plan, PeerError>;

    /// Starts to create the resources of a VM that migrates to the node. Returns the operation of
    /// the node.
    ///
    /// # Errors
    /// The node rejects the VM or cannot be reached.
    fn prepare_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Operation, PeerError>;

    /// Returns the state of an operation of the node. The node delays the answer by some seconds if
    /// the operation is in progress.
    ///
    /// # Errors
    /// The operation does not exist, or the node cannot be reached.
    fn operation(&self, id: u64) -> Result<Operation, PeerError>;

    /// Requests cancellation of an operation of the node. Returns its state.
    ///
    /// # Errors
    /// The operation does not exist, or the node cannot be reached.
    fn cancel_operation(&self, id: u64) -> Result<Operation, PeerError>;

    /// Returns the state of the incoming migration `id` on the node.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError>;

    /// Opens a connection for data of the incoming migration `id`. Returns this node's end.
    ///
    /// # Errors
    /// The node is not ready to receive the data, or cannot be reached.
    fn open_incoming_connection(&self, id: &str, line: &PeerStream) -> Result<OwnedFd, PeerError>;

    /// Makes the node the owner of the VM of the incoming migration `id`, unless the migration was
    /// abandoned. The returned state contains the outcome.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn activate_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError>;

    /// Abandons the incoming migration `id`, unless the node owns the VM already. The returned
    /// state contains the outcome.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn abandon_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError>;

    /// Returns the destinations and obstacles of the node's VMs if it were drained.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn check_drain(&self, request: &DrainRequest) -> Result<DrainPlan, PeerError>;

    /// Starts to drain the node.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn drain(&self, request: &DrainRequest) -> Result<Operation, PeerError>;

    /// Ends the drained state of the node.
    ///
    /// # Errors
    /// The node rejects the request or cannot be reached.
    fn undrain(&self) -> Result<(), PeerError>;
}

/// Factory of clients of other nodes.
pub trait PeerNodes: Send + Sync {
    /// Returns a client for a configured node. Does not connect.
    ///
    /// # Errors
    /// A file in the configuration cannot be used; the error names the key.
    fn node(&self, config: &NodeConfig) -> Result<Arc<dyn PeerNode>, ApiError>;
}

/// Converts a failed request to another node to an API error that names the node.
pub(crate) fn peer_error(node: &Name, error: PeerError) -> ApiError {
    let resource = format!("{}/{node}", ResourceKind::Node.noun());
    match error {
        PeerError::Rejected(errors) => {
            let mut error = summarize(errors);
            let prefix =
                error.resource.take().map_or_else(String::new, |label| format!("{label}: "));
            error.message = format!("node {node} rejected the request: {prefix}{}", error.message);
            error.with_resource(resource)
        }
        PeerError::Unreachable(text) => {
            let text = format!("node {node} does not respond: {text}");
            ApiError::new(ErrorCode::HostError, text).with_resource(resource)
        }
    }
}
