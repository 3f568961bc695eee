//! Other nodes, as this one talks to them.
//!
//! A trait, since the node knows no HTTP: the daemon implements it with the API's client.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_contract::{
    ApiError, Arrival, ArrivalRequest, DrainPlan, DrainRequest, HostStatus, Name, NodeConfig,
    Operation, Plan,
};

/// Why another node did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarError {
    /// It answered, and refused.
    Refused(Vec<ApiError>),
    /// It did not answer, or its answer makes no sense; whether it did anything is not known.
    Unreachable(String),
}

/// What a connection to another node carries once it is upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarLine {
    /// The memory and devices of a VM, as QEMU sends them.
    Memory,
    /// NBD, to a disk; the far side is the server.
    Disk(Name),
}

/// One other node. Each call waits for the answer, which takes some seconds at most.
pub trait FarNode: Send + Sync {
    /// What it is.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn host(&self) -> Result<HostStatus, FarError>;

    /// What the VM's coming would change there; changes nothing.
    ///
    /// # Errors
    /// It cannot come, or the node cannot be reached.
    fn check_arrival(&self, request: &ArrivalRequest) -> Result<Plan, FarError>;

    /// Begins to make what the VM needs there.
    ///
    /// # Errors
    /// It cannot come, or the node cannot be reached.
    fn prepare_arrival(&self, request: &ArrivalRequest) -> Result<Operation, FarError>;

    /// How that goes; waits some seconds for its end.
    ///
    /// # Errors
    /// There is no such operation, or the node cannot be reached.
    fn operation(&self, id: u64) -> Result<Operation, FarError>;

    /// What became of it.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn arrival(&self, id: &str) -> Result<Arrival, FarError>;

    /// A connection for what is copied to an arrival that waits.
    ///
    /// # Errors
    /// It does not wait, or the node cannot be reached.
    fn line(&self, id: &str, line: &FarLine) -> Result<OwnedFd, FarError>;

    /// The VM is that node's from now on, unless it was abandoned; the answer tells.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn activate_arrival(&self, id: &str) -> Result<Arrival, FarError>;

    /// The VM does not come, unless it is active already; the answer tells.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn abandon_arrival(&self, id: &str) -> Result<Arrival, FarError>;

    /// What would become of its VMs if it were drained.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn check_drain(&self, request: &DrainRequest) -> Result<DrainPlan, FarError>;

    /// Begins to drain it.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn drain(&self, request: &DrainRequest) -> Result<Operation, FarError>;

    /// Has VMs come to it again.
    ///
    /// # Errors
    /// It refuses or cannot be reached.
    fn undrain(&self) -> Result<(), FarError>;
}

/// Knows how to reach other nodes.
pub trait FarNodes: Send + Sync {
    /// The node as it is configured. Nothing is connected yet.
    ///
    /// # Errors
    /// A file that it names cannot be used; the key is named.
    fn node(&self, config: &NodeConfig) -> Result<Arc<dyn FarNode>, ApiError>;
}
