//! Other nodes in the same process: requests call the [`Node`] directly.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use suimon_contract::{
    ApiError, DrainPlan, DrainRequest, ErrorCode, HostStatus, IncomingMigration,
    IncomingMigrationRequest, NodeConfig, Operation, Plan,
};

use crate::{Node, PeerError, PeerNode, PeerNodes, PeerStream};

/// Time limit of a wait for an operation's end.
const OPERATION_WAIT: Duration = Duration::from_secs(5);

/// Nodes by address. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct FakePeerNodes(Arc<Mutex<Reached>>);

#[derive(Default)]
struct Reached {
    nodes: BTreeMap<String, Weak<Node>>,
    /// Called before each request; a returned error is the result of the request.
    in_the_way: Option<Intercept>,
}

/// Function that receives the node's address and the method, such as `activate_incoming_migration`,
/// and returns an error with which the call fails.
type Intercept = Arc<dyn Fn(&str, &str) -> Option<PeerError> + Send + Sync>;

impl FakePeerNodes {
    /// Makes a node reachable at an address. The node is not kept alive.
    pub(crate) fn connect(&self, address: &str, node: &Arc<Node>) {
        self.lock().nodes.insert(address.to_owned(), Arc::downgrade(node));
    }

    /// Sets a function that is called before each request. It may block, or return an error that
    /// becomes the result.
    pub(crate) fn intercept(
        &self,
        intercept: impl Fn(&str, &str) -> Option<PeerError> + Send + Sync + 'static,
    ) {
        self.lock().in_the_way = Some(Arc::new(intercept));
    }

    fn lock(&self) -> MutexGuard<'_, Reached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerNodes for FakePeerNodes {
    fn node(&self, config: &NodeConfig) -> Result<Arc<dyn PeerNode>, ApiError> {
        if config.ca_certificate.ends_with("missing") {
            let text = format!("{} cannot be used: there is none", config.ca_certificate.display());
            let error = ApiError::new(ErrorCode::HostError, text);
            return Err(error
                .with_resource(format!("node/{}", config.name))
                .with_field("ca_certificate"));
        }
        Ok(Arc::new(FakePeerNode { reached: self.clone(), address: config.address.clone() }))
    }
}

struct FakePeerNode {
    reached: FakePeerNodes,
    address: String,
}

impl FakePeerNode {
    fn reach(&self, call: &str) -> Result<Arc<Node>, PeerError> {
        let intercept = self.reached.lock().in_the_way.clone();
        if let Some(error) = intercept.and_then(|check_call| check_call(&self.address, call)) {
            return Err(error);
        }
        let node = self.reached.lock().nodes.get(&self.address).and_then(Weak::upgrade);
        node.ok_or_else(|| PeerError::Unreachable(format!("nobody listens at {}", self.address)))
    }
}

impl PeerNode for FakePeerNode {
    fn host(&self) -> Result<HostStatus, PeerError> {
        Ok(self.reach("host")?.host_status())
    }

    fn check_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Plan, PeerError> {
        self.reach("check_arrival")?.check_incoming_migration(request).map_err(PeerError::Rejected)
    }

    fn prepare_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Operation, PeerError> {
        self.reach("prepare_arrival")?
            .prepare_incoming_migration(request.clone())
            .map_err(PeerError::Rejected)
    }

    fn operation(&self, id: u64) -> Result<Operation, PeerError> {
        let node = self.reach("operation")?;
        node.wait_operation(id, OPERATION_WAIT).ok_or_else(|| {
            let text = format!("there is no operation {id}");
            PeerError::Rejected(vec![ApiError::new(ErrorCode::NotFound, text)])
        })
    }

    fn cancel_operation(&self, id: u64) -> Result<Operation, PeerError> {
        self.reach("cancel_operation")?.cancel_operation(id).ok_or_else(|| {
            let text = format!("there is no operation {id}");
            PeerError::Rejected(vec![ApiError::new(ErrorCode::NotFound, text)])
        })
    }

    fn incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        self.reach("arrival")?.incoming_migration(id).map_err(peer_error)
    }

    fn open_incoming_connection(&self, id: &str, line: &PeerStream) -> Result<OwnedFd, PeerError> {
        self.reach("line")?.open_incoming_connection(id, line).map_err(peer_error)
    }

    fn activate_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        let answer =
            self.reach("activate_arrival")?.activate_incoming_migration(id).map_err(peer_error);
        // A response can be lost although the request was executed.
        self.reach("activate_arrival answer")?;
        answer
    }

    fn abandon_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        self.reach("abandon_arrival")?.abandon_incoming_migration(id).map_err(peer_error)
    }

    fn check_drain(&self, request: &DrainRequest) -> Result<DrainPlan, PeerError> {
        let node = self.reach("check_drain")?;
        node.check_drain(&node.host_status().name, request).map_err(peer_error)
    }

    fn drain(&self, request: &DrainRequest) -> Result<Operation, PeerError> {
        let node = self.reach("drain")?;
        node.drain(&node.host_status().name, request.clone()).map_err(peer_error)
    }

    fn undrain(&self) -> Result<(), PeerError> {
        let node = self.reach("undrain")?;
        node.undrain(&node.host_status().name).map_err(peer_error)
    }
}

fn peer_error(error: ApiError) -> PeerError {
    PeerError::Rejected(vec![error])
}
