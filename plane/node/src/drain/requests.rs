//! Requests to drain hosts, and to end the drained state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;

use suimon_contract::{
    ApiError, DOWNTIME_MS_MAX, DrainPlan, DrainRequest, DrainStatus, ErrorCode, EventKind, Name,
    Operation, ResourceKind, VmState,
};
use suimon_ports::{StateStore, StateStoreError};

use super::{DRAIN, HOST, State, StoredDrain, load};
use crate::errors::not_found;
use crate::events::EventDraft;
use crate::operations::OperationHandle;
use crate::remote_nodes::peer_error;
use crate::shared::Shared;
use crate::state::encode;
use crate::{Node, PeerNode};

/// Node that a request addresses.
enum Target {
    This,
    Other(Name, Arc<dyn PeerNode>),
}

impl Shared {
    /// Returns the drained state; `None` if the host is not drained.
    pub(crate) fn drain_status(&self) -> Option<DrainStatus> {
        let state = self.drain.state();
        let stored = state.stored.as_ref()?;
        Some(DrainStatus {
            since_unix_ms: stored.since_unix_ms,
            // A VM may have been started since.
            is_drained: stored.is_empty && self.no_vm_runs(),
            operation: state.operation,
        })
    }

    fn no_vm_runs(&self) -> bool {
        self.vms.all().iter().all(|entry| entry.view().state == VmState::Stopped)
    }

    /// Checks that the host accepts VMs.
    ///
    /// # Errors
    /// The host is drained.
    pub(crate) fn check_not_drained(&self) -> Result<(), ApiError> {
        if self.drain.state().stored.is_none() {
            return Ok(());
        }
        let name = self.host_name();
        let text = format!(
            "node {name} is drained and accepts no VM; `suimon node undrain {name}` ends that"
        );
        Err(ApiError::new(ErrorCode::Conflict, text).with_resource("host"))
    }

    fn resolve_node(&self, name: &str) -> Result<Target, ApiError> {
        let desired = self.desired();
        let cluster = desired.config.cluster.as_ref();
        if name == self.host_name() || cluster.is_some_and(|cluster| cluster.node.as_str() == name)
        {
            return Ok(Target::This);
        }
        let name: Name = name.parse().map_err(|_| not_found(ResourceKind::Node, name))?;
        let peer = self.peer_node(&name)?;
        Ok(Target::Other(name, peer))
    }

    fn check_drain_request(&self, request: &DrainRequest) -> Result<(), ApiError> {
        let refuse = |field: &str, text: String| {
            Err(ApiError::new(ErrorCode::InvalidValue, text)
                .with_resource("host")
                .with_field(field))
        };
        if !(1..=DOWNTIME_MS_MAX).contains(&request.downtime_ms) {
            let text = format!("must be from 1 to {DOWNTIME_MS_MAX}, not {}", request.downtime_ms);
            return refuse("downtime_ms", text);
        }
        if request.bandwidth_max_bytes_per_s.is_some_and(|bandwidth| bandwidth.bytes() == 0) {
            let text = "must be more than 0; omit it for no limit";
            return refuse("bandwidth", text.to_owned());
        }
        let desired = self.desired();
        let is_node = |name: &Name| desired.config.nodes.iter().any(|node| node.name == *name);
        match request.destinations.iter().find(|name| !is_node(name)) {
            Some(name) => Err(not_found(ResourceKind::Node, name).with_field("to")),
            None => Ok(()),
        }
    }

    /// Loads the drained state and resumes an unfinished drain of an earlier daemon process.
    pub(crate) fn resume_drain(self: &Arc<Self>) -> Result<(), StateStoreError> {
        let Some(stored) = load(self.store.as_ref())? else { return Ok(()) };
        let is_empty = stored.is_empty;
        let mut state = self.drain.state();
        state.stored = Some(stored);
        if !is_empty {
            let operation = self.add_drain();
            if let Err(error) = operation.and_then(|handle| self.begin_emptying(&mut state, handle))
            {
                tracing::error!(%error, "VMs stay on the host although the host is drained");
            }
        }
        Ok(())
    }

    fn drain_this(self: &Arc<Self>, request: DrainRequest) -> Result<Operation, ApiError> {
        self.check_drain_request(&request)?;
        let mut state = self.drain.state();
        if let Some(operation) = state.operation {
            let text = format!(
                "the host is already being drained; wait for it with `suimon operation watch \
                 {operation}`"
            );
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource("host"));
        }
        let operation = self.add_drain()?;
        let before = state.stored.clone();
        let since = before.as_ref().map(|stored| stored.since_unix_ms);
        let since_unix_ms = since.unwrap_or_else(|| (self.clock)());
        let stored = StoredDrain { request, since_unix_ms, is_empty: false };
        self.save_drain(Some(&stored))?;
        state.stored = Some(stored);
        // The lock is held: two requests do not start two threads, and the thread waits for it.
        let id = match self.begin_emptying(&mut state, operation) {
            Ok(id) => id,
            Err(error) => {
                self.save_drain(before.as_ref())?;
                state.stored = before;
                return Err(error);
            }
        };
        if before.is_none() {
            let text = "Draining of the host began: it accepts no VM, and running VMs migrate to \
                        other nodes.";
            self.events.append(vec![EventDraft::new(EventKind::NodeDrained, "host", text)]);
        }
        drop(state);
        let lost = || {
            let text = "the operation was removed from the list of operations; `suimon node list` \
                        shows whether the drain continues";
            ApiError::new(ErrorCode::Internal, text)
        };
        self.operations.find(id).ok_or_else(lost)
    }

    fn undrain_this(&self) -> Result<(), ApiError> {
        let mut state = self.drain.state();
        if state.stored.is_none() {
            return Ok(());
        }
        self.save_drain(None)?;
        state.stored = None;
        if let Some(operation) = state.operation {
            self.operations.cancel(operation);
        }
        drop(state);
        let text = "Draining of the host ended: it accepts VMs again.";
        self.events.append(vec![EventDraft::new(EventKind::NodeUndrained, "host", text)]);
        Ok(())
    }

    pub(super) fn save_drain(&self, stored: Option<&StoredDrain>) -> Result<(), ApiError> {
        let value = stored.map(|stored| encode(DRAIN, stored)).transpose();
        let value = value.map_err(|error| crate::errors::store_error(&error))?;
        let result = self.store.commit(&[(HOST, DRAIN.to_owned(), value)]);
        result.map_err(|error| crate::errors::store_error(&error))
    }

    fn add_drain(&self) -> Result<OperationHandle, ApiError> {
        self.operations.add("node drain", "host", false)
    }

    /// Starts the thread that migrates VMs and returns the id of its operation.
    fn begin_emptying(
        self: &Arc<Self>,
        state: &mut State,
        operation: OperationHandle,
    ) -> Result<u64, ApiError> {
        operation.begin();
        let id = operation.id();
        state.operation = Some(id);
        let shared = Arc::clone(self);
        let thread = Builder::new().name("suimon-drain".to_owned()).spawn(move || {
            let result = shared.migrate_all(&operation);
            shared.drain.state().operation = None;
            operation.end(&result);
        });
        match thread {
            Ok(thread) => {
                state.thread = Some(thread);
                Ok(id)
            }
            Err(error) => {
                state.operation = None;
                let text = format!("cannot start the thread that drains the host: {error}");
                Err(ApiError::new(ErrorCode::HostError, text).with_resource("host"))
            }
        }
    }

    /// Stops and joins the drain thread. Migrations in progress continue in the drivers of their
    /// VMs.
    pub(crate) fn stop_draining(&self) {
        self.drain.stops.store(true, Ordering::Release);
        let thread = self.drain.state().thread.take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that drains the host panicked");
        }
    }
}

impl Node {
    /// Returns the destinations and obstacles of the VMs of a node if it were drained. Changes
    /// nothing.
    ///
    /// # Errors
    /// The node does not exist or does not answer, or the request is invalid.
    pub fn check_drain(&self, node: &str, request: &DrainRequest) -> Result<DrainPlan, ApiError> {
        let shared = self.shared();
        match shared.resolve_node(node)? {
            Target::This => {
                shared.check_drain_request(request)?;
                Ok(shared.plan_drain(request))
            }
            Target::Other(name, peer) => {
                peer.check_drain(request).map_err(|error| peer_error(&name, error))
            }
        }
    }

    /// Drains a node: no VM is accepted by it, and its running VMs migrate to other nodes.
    ///
    /// # Errors
    /// The node does not exist or does not answer, a drain is in progress, or the request is
    /// invalid.
    pub fn drain(&self, node: &str, request: DrainRequest) -> Result<Operation, ApiError> {
        let shared = self.shared();
        let (name, peer) = match shared.resolve_node(node)? {
            Target::This => return shared.drain_this(request),
            Target::Other(name, peer) => (name, peer),
        };
        let remote_operation = peer.drain(&request).map_err(|error| peer_error(&name, error))?;
        let subject = format!("{}/{name}", ResourceKind::Node.noun());
        let operation = shared.operations.add("node drain", &subject, false)?;
        operation.begin();
        let id = operation.id();
        let follower = Arc::clone(shared);
        let follow = move || {
            let result =
                follower.mirror_remote_drain((&name, peer.as_ref()), remote_operation, &operation);
            operation.end(&result);
        };
        let thread = Builder::new().name("suimon-drain-far".to_owned()).spawn(follow);
        thread.map_err(|error| {
            let text =
                format!("draining continues, but no thread can be started to watch it: {error}");
            ApiError::new(ErrorCode::HostError, text)
        })?;
        self.known_operation(id)
    }

    /// Ends the drained state of a node. VMs that left the node do not return.
    ///
    /// # Errors
    /// The node does not exist or does not answer, or the state store cannot be written.
    pub fn undrain(&self, node: &str) -> Result<(), ApiError> {
        let shared = self.shared();
        match shared.resolve_node(node)? {
            Target::This => shared.undrain_this(),
            Target::Other(name, peer) => peer.undrain().map_err(|error| peer_error(&name, error)),
        }
    }
}
