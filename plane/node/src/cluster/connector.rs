//! Connector to the stores (etcd) of clusters.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{ApiError, ClusterConfig, Name};
use suimon_ports::ClusterKvStore;

/// Timeout of a call to the cluster's store. Shorter than a lease, so that one delayed call does
/// not lose two leases.
pub const CLUSTER_TIMEOUT: Duration = Duration::from_millis(1500);

/// Returns the common prefix of all keys of a cluster.
#[must_use]
pub fn cluster_prefix(cluster: &Name) -> String {
    format!("/suimon/{cluster}/")
}

/// Connector to the stores of clusters.
pub trait ClusterStoreConnector: Send + Sync {
    /// Connects to the store of a cluster. Calls on the returned store time out after
    /// [`CLUSTER_TIMEOUT`]; all keys begin with [`cluster_prefix`]. Blocks until the store has
    /// answered once.
    ///
    /// # Errors
    /// The store does not answer, or rejects the credentials.
    fn connect(&self, config: &ClusterConfig) -> Result<Arc<dyn ClusterKvStore>, ApiError>;
}
