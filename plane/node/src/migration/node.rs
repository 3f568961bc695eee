//! Migration requests of the API.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_contract::{
    ApiError, DOWNTIME_MS_MAX, ErrorCode, IncomingMigration, IncomingMigrationRequest,
    MigrateVmRequest, Name, Operation, Plan, ResourceKind,
};

use super::{IncomingRequest, IncomingResponse, incoming_migration_request};
use crate::command::Command;
use crate::errors::not_found;
use crate::shared::Shared;
use crate::vms::Message;
use crate::{Node, PeerNode, PeerStream};

impl Shared {
    /// Returns the client of a configured node.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if the node is not configured; other errors if its certificate or
    /// token cannot be read.
    pub(crate) fn peer_node(&self, name: &Name) -> Result<Arc<dyn PeerNode>, ApiError> {
        let desired = self.desired();
        let node = desired.config.nodes.iter().find(|node| node.name == *name);
        self.peer_nodes.node(node.ok_or_else(|| not_found(ResourceKind::Node, name))?)
    }

    /// Returns the request that a migration of the VM would send to its destination now.
    pub(crate) fn outgoing_request(&self, vm: &Name) -> Result<IncomingMigrationRequest, ApiError> {
        let entry = self.vms.find(vm).ok_or_else(|| not_found(ResourceKind::Vm, vm))?;
        let running = entry.view().running.clone();
        let Some(run) = running else {
            let text = format!("the VM is not running; start it with `suimon vm start {vm}`");
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
        };
        let failure = |error: suimon_ports::VmError| {
            ApiError::new(ErrorCode::HostError, error.text).with_resource(entry.label())
        };
        let layout = run.vm.hardware().map_err(failure)?;
        incoming_migration_request(self, &entry, &run.to_stored_run(), (&run.vm.status(), &layout))
    }

    /// Starts a migration and returns the id of its operation.
    ///
    /// # Errors
    /// The VM or the node does not exist, or the VM cannot be migrated now.
    pub(crate) fn begin_migration(
        &self,
        vm: &Name,
        request: MigrateVmRequest,
    ) -> Result<u64, ApiError> {
        self.check_migrate_request(vm, &request)?;
        self.peer_node(&request.destination)?;
        let entry = self.vms.find(vm).ok_or_else(|| not_found(ResourceKind::Vm, vm))?;
        let operation = self.operations.add("vm migrate", &entry.label(), false)?;
        let id = operation.id();
        entry.submit(Message::Migrate(Box::new(request), operation));
        Ok(id)
    }

    fn check_migrate_request(&self, vm: &Name, request: &MigrateVmRequest) -> Result<(), ApiError> {
        let refuse = |field: &str, text: String| {
            let error = ApiError::new(ErrorCode::InvalidValue, text);
            Err(error.with_resource(format!("vm/{vm}")).with_field(field))
        };
        if !(1..=DOWNTIME_MS_MAX).contains(&request.downtime_ms) {
            let text = format!("must be from 1 to {DOWNTIME_MS_MAX}, not {}", request.downtime_ms);
            return refuse("downtime_ms", text);
        }
        if request.bandwidth_max_bytes_per_s.is_some_and(|bandwidth| bandwidth.bytes() == 0) {
            return refuse("bandwidth", "must be more than 0; omit it for no limit".to_owned());
        }
        let entry = self.vms.find(vm).ok_or_else(|| not_found(ResourceKind::Vm, vm))?;
        entry.check_can_migrate()
    }
}

impl Node {
    /// Checks that a VM can be migrated to another node, and returns the changes on that node.
    /// Blocks for some seconds at most.
    ///
    /// # Errors
    /// The reasons why it cannot be migrated; never empty.
    pub fn check_migration(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Plan, Vec<ApiError>> {
        let shared = self.shared();
        let to_errors = |error: ApiError| vec![error];
        shared.check_migrate_request(vm, request).map_err(to_errors)?;
        let peer = shared.peer_node(&request.destination).map_err(to_errors)?;
        let arrival = shared.outgoing_request(vm).map_err(to_errors)?;
        let _marks = shared.create_store_markers(&arrival.stores).map_err(to_errors)?;
        let checked = peer.check_incoming_migration(&arrival);
        checked.map_err(|error| {
            to_errors(shared.migration_request_error(&request.destination, peer.as_ref(), error))
        })
    }

    /// Starts a migration of a VM to another node.
    ///
    /// # Errors
    /// The VM or the node does not exist, or the VM is not running.
    pub fn migrate_vm(&self, vm: &Name, request: MigrateVmRequest) -> Result<Operation, ApiError> {
        let id = self.shared().begin_migration(vm, request)?;
        self.known_operation(id)
    }

    /// Checks that a VM of another node can migrate to this node, and returns the changes on this
    /// node.
    ///
    /// # Errors
    /// The reasons why the VM cannot migrate to this node; never empty.
    pub fn check_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Plan, Vec<ApiError>> {
        let candidate = self.shared().check_incoming_migration(&Arc::new(request.clone()))?;
        Ok(candidate.plan)
    }

    /// Starts to prepare this node for a VM that another node migrates to it. Returns the
    /// operation.
    ///
    /// # Errors
    /// The reasons why the VM cannot migrate to this node; never empty.
    pub fn prepare_incoming_migration(
        &self,
        request: IncomingMigrationRequest,
    ) -> Result<Operation, Vec<ApiError>> {
        let shared = self.shared();
        let request = Arc::new(request);
        shared.check_incoming_migration(&request)?;
        let subject = format!("vm/{}", request.vm.name);
        let operation = shared.operations.add("vm arrive", &subject, true);
        let operation = operation.map_err(|error| vec![error])?;
        let id = operation.id();
        self.send(Command::CreateIncomingVm { operation, request })?;
        self.known_operation(id).map_err(|error| vec![error])
    }

    /// Returns the state of the incoming migration `id`. The request also shows that the source
    /// node is alive: a migration without requests is abandoned after a time.
    ///
    /// # Errors
    /// The state store or the VM's driver does not respond.
    pub fn incoming_migration(&self, id: &str) -> Result<IncomingMigration, ApiError> {
        self.settle(id, IncomingRequest::Query)
    }

    /// Opens a connection for the memory or a disk of the VM of the incoming migration `id`.
    /// Returns this node's end.
    ///
    /// # Errors
    /// No such migration is in progress, or it is not ready for this connection.
    pub fn open_incoming_connection(
        &self,
        id: &str,
        line: &PeerStream,
    ) -> Result<OwnedFd, ApiError> {
        match self
            .shared()
            .send_incoming_request(id, IncomingRequest::OpenConnection(line.clone()))?
        {
            IncomingResponse::Connection(line) => Ok(line),
            IncomingResponse::State(_) => Err(ApiError::new(
                ErrorCode::Conflict,
                "the VM does not accept this connection any more; its migration has ended",
            )),
        }
    }

    /// Makes this node the owner of the VM of the incoming migration `id`, unless the migration was
    /// abandoned before. May be repeated. The returned state contains the outcome.
    ///
    /// # Errors
    /// The VM's state is incomplete, or the activation cannot be recorded.
    pub fn activate_incoming_migration(&self, id: &str) -> Result<IncomingMigration, ApiError> {
        self.settle(id, IncomingRequest::Activate)
    }

    /// Cancels an incoming migration that is not activated yet. Idempotent.
    ///
    /// # Errors
    /// The state store or the VM's driver does not respond.
    pub fn abandon_incoming_migration(&self, id: &str) -> Result<IncomingMigration, ApiError> {
        self.settle(id, IncomingRequest::Abandon)
    }

    fn settle(&self, id: &str, call: IncomingRequest) -> Result<IncomingMigration, ApiError> {
        match self.shared().send_incoming_request(id, call)? {
            IncomingResponse::State(state) => Ok(IncomingMigration { id: id.to_owned(), state }),
            IncomingResponse::Connection(_) => {
                Err(ApiError::new(ErrorCode::Internal, "unexpected reply of the VM's thread"))
            }
        }
    }
}
