//! Migrations as the daemon asks for them.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_contract::{
    ApiError, Arrival, ArrivalRequest, DOWNTIME_MS_MAX, ErrorCode, Kind, MigrateVmRequest, Name,
    Operation, Plan,
};

use super::{ArrivalAnswer, ArrivalCall, arrival_request};
use crate::checks::first_of;
use crate::control::Command;
use crate::edit::not_found;
use crate::shared::Shared;
use crate::vms::Message;
use crate::{FarError, FarLine, FarNode, Node};

/// Why another node did not do it, in the API's words.
pub(crate) fn far_error(node: &Name, error: FarError) -> ApiError {
    let about = format!("{}/{node}", Kind::Node.word());
    match error {
        FarError::Refused(errors) => {
            let mut error = first_of(errors);
            let at = error.resource.take().map_or_else(String::new, |at| format!("{at}: "));
            error.message = format!("node {node} rejected the request: {at}{}", error.message);
            error.about(about)
        }
        FarError::Unreachable(text) => {
            let text = format!("node {node} does not respond: {text}");
            ApiError::new(ErrorCode::HostError, text).about(about)
        }
    }
}

impl Shared {
    /// Another node, as it is configured.
    ///
    /// # Errors
    /// It is not, or its files cannot be used.
    pub(crate) fn far_node(&self, name: &Name) -> Result<Arc<dyn FarNode>, ApiError> {
        let desired = self.desired();
        let node = desired.config.nodes.iter().find(|node| node.name == *name);
        self.far_nodes.node(node.ok_or_else(|| not_found(Kind::Node, name))?)
    }

    /// What a VM would take with it now.
    pub(crate) fn departure(&self, vm: &Name) -> Result<ArrivalRequest, ApiError> {
        let entry = self.vms.find(vm).ok_or_else(|| not_found(Kind::Vm, vm))?;
        let running = entry.view().running.clone();
        let Some(run) = running else {
            let text = format!("the VM is not running; start it with `suimon vm start {vm}`");
            return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
        };
        let told = |error: suimon_ports::VmError| {
            ApiError::new(ErrorCode::HostError, error.text).about(entry.label())
        };
        let layout = run.vm.layout().map_err(told)?;
        arrival_request(self, &entry, &run.stored(), (&run.vm.facts(), &layout))
    }

    /// Begins to move a VM to another node: the operation's number.
    ///
    /// # Errors
    /// There is no such VM or node, or the VM does not run.
    pub(crate) fn begin_migration(
        &self,
        vm: &Name,
        request: MigrateVmRequest,
    ) -> Result<u64, ApiError> {
        self.check_migrate_request(vm, &request)?;
        self.far_node(&request.to)?;
        let entry = self.vms.find(vm).ok_or_else(|| not_found(Kind::Vm, vm))?;
        let operation = self.operations.add("vm migrate", &entry.label(), false)?;
        let id = operation.id();
        entry.inbox.put(Message::Migrate(Box::new(request), operation));
        Ok(id)
    }

    fn check_migrate_request(&self, vm: &Name, request: &MigrateVmRequest) -> Result<(), ApiError> {
        let refuse = |field: &str, text: String| {
            let error = ApiError::new(ErrorCode::InvalidValue, text);
            Err(error.about(format!("vm/{vm}")).field(field))
        };
        if !(1..=DOWNTIME_MS_MAX).contains(&request.downtime_ms) {
            let text = format!("must be from 1 to {DOWNTIME_MS_MAX}, not {}", request.downtime_ms);
            return refuse("downtime_ms", text);
        }
        if request.bandwidth.is_some_and(|bandwidth| bandwidth.bytes() == 0) {
            return refuse("bandwidth", "must be more than 0; omit it for no limit".to_owned());
        }
        let entry = self.vms.find(vm).ok_or_else(|| not_found(Kind::Vm, vm))?;
        entry.check_can_leave()
    }
}

impl Node {
    /// Whether a VM could go to another node, and what that would change there.
    ///
    /// # Errors
    /// All that stands against it; never empty.
    pub fn check_migration(
        &self,
        vm: &Name,
        request: &MigrateVmRequest,
    ) -> Result<Plan, Vec<ApiError>> {
        let shared = self.shared();
        let alone = |error: ApiError| vec![error];
        shared.check_migrate_request(vm, request).map_err(alone)?;
        let far = shared.far_node(&request.to).map_err(alone)?;
        let arrival = shared.departure(vm).map_err(alone)?;
        let _marks = shared.mark_stores(&arrival.stores).map_err(alone)?;
        far.check_arrival(&arrival).map_err(|error| alone(far_error(&request.to, error)))
    }

    /// Begins to move a VM to another node.
    ///
    /// # Errors
    /// There is no such VM or node, or the VM does not run.
    pub fn migrate_vm(&self, vm: &Name, request: MigrateVmRequest) -> Result<Operation, ApiError> {
        let id = self.shared().begin_migration(vm, request)?;
        self.known_operation(id)
    }

    /// Whether a VM of another node could come, and what that would change here.
    ///
    /// # Errors
    /// All that stands against it; never empty.
    pub fn check_arrival(&self, request: &ArrivalRequest) -> Result<Plan, Vec<ApiError>> {
        let candidate = self.shared().check_arrival(&Arc::new(request.clone()))?;
        Ok(candidate.plan)
    }

    /// Begins to make what a VM of another node needs here.
    ///
    /// # Errors
    /// All that stands against it; never empty.
    pub fn prepare_arrival(&self, request: ArrivalRequest) -> Result<Operation, Vec<ApiError>> {
        let shared = self.shared();
        let request = Arc::new(request);
        shared.check_arrival(&request)?;
        let subject = format!("vm/{}", request.vm.name);
        let operation = shared.operations.add("vm arrive", &subject, true);
        let operation = operation.map_err(|error| vec![error])?;
        let id = operation.id();
        self.send(Command::Arrive { operation, request })?;
        self.known_operation(id).map_err(|error| vec![error])
    }

    /// What became of a VM that came, or comes.
    ///
    /// # Errors
    /// The state store does not answer.
    pub fn arrival(&self, id: &str) -> Result<Arrival, ApiError> {
        self.settle(id, ArrivalCall::Ask)
    }

    /// The near end of a connection for what is copied to a VM that comes.
    ///
    /// # Errors
    /// None waits for that.
    pub fn arrival_line(&self, id: &str, line: &FarLine) -> Result<OwnedFd, ApiError> {
        match self.shared().ask_arrival(id, ArrivalCall::Line(line.clone()))? {
            ArrivalAnswer::Line(line) => Ok(line),
            ArrivalAnswer::State(_) => Err(ApiError::new(
                ErrorCode::Conflict,
                "the VM does not wait for this step any more",
            )),
        }
    }

    /// The VM that came is this node's from now on, unless that was abandoned.
    ///
    /// # Errors
    /// Not all of it is there yet, or it cannot be recorded.
    pub fn activate_arrival(&self, id: &str) -> Result<Arrival, ApiError> {
        self.settle(id, ArrivalCall::Activate)
    }

    /// The VM does not come, unless it is this node's already.
    ///
    /// # Errors
    /// It cannot be recorded.
    pub fn abandon_arrival(&self, id: &str) -> Result<Arrival, ApiError> {
        self.settle(id, ArrivalCall::Abandon)
    }

    fn settle(&self, id: &str, call: ArrivalCall) -> Result<Arrival, ApiError> {
        match self.shared().ask_arrival(id, call)? {
            ArrivalAnswer::State(state) => Ok(Arrival { id: id.to_owned(), state }),
            ArrivalAnswer::Line(_) => {
                Err(ApiError::new(ErrorCode::Internal, "unexpected reply of the VM's thread"))
            }
        }
    }
}
