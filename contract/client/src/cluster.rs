//! What can be asked of the cluster that the host is a node of.

use hyper::Method;
use suimon_contract::{ClusterConfig, ClusterDisk, ClusterStatus};

use crate::resources::body;
use crate::transport::{self, Call};
use crate::{ChangeOptions, Client, ClientError, Outcome};

const PATH: &str = "/1.0/cluster";

/// Every method fails with [`ClientError`].
impl Client {
    /// Its nodes, who divides which store, and what the host may do of each.
    pub async fn cluster(&self) -> Result<ClusterStatus, ClientError> {
        transport::json(self, Call::get(PATH)).await
    }

    /// Makes this cluster, of which the host is the first node.
    pub async fn init_cluster(
        &self,
        cluster: &ClusterConfig,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, PATH.to_owned(), Some(body(cluster)?), options).await
    }

    /// Makes the host a node of this cluster.
    pub async fn join_cluster(
        &self,
        cluster: &ClusterConfig,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PUT, PATH.to_owned(), Some(body(cluster)?), options).await
    }

    /// Changes how the cluster is reached by a JSON merge patch (RFC 7386).
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch_cluster(
        &self,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PATCH, PATH.to_owned(), Some(body(patch)?), options).await
    }

    /// The host is by itself from then on.
    pub async fn leave_cluster(&self, options: ChangeOptions) -> Result<Outcome, ClientError> {
        self.change(Method::DELETE, PATH.to_owned(), None, options).await
    }

    /// What disks of all nodes do on shared stores, as far as reports name them.
    pub async fn cluster_flows(&self) -> Result<Vec<ClusterDisk>, ClientError> {
        transport::json(self, Call::get(format!("{PATH}/flows"))).await
    }

    /// Takes a node out that is gone for good.
    pub async fn remove_cluster_node(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("{PATH}/members/{node}");
        transport::text(self, Call::new(Method::DELETE, path)).await.map(drop)
    }
}
