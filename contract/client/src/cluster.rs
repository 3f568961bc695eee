//! Requests about the cluster that includes the host.

use hyper::Method;
use suimon_contract::{ClusterConfig, ClusterDisk, ClusterStatus};

use crate::resources::json_body;
use crate::transport::{self, ApiRequest};
use crate::{ChangeOptions, ChangeOutcome, Client, ClientError};

const PATH: &str = "/1.0/cluster";

/// Every method fails with [`ClientError`].
impl Client {
    /// Returns the nodes of the cluster, the leader of each store, and the host's grants.
    pub async fn cluster(&self) -> Result<ClusterStatus, ClientError> {
        transport::fetch_json(self, ApiRequest::get(PATH)).await
    }

    /// Creates a cluster with the host as its first node.
    pub async fn init_cluster(
        &self,
        cluster: &ClusterConfig,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::POST, PATH.to_owned(), Some(json_body(cluster)?), options).await
    }

    /// Adds the host to a cluster.
    pub async fn join_cluster(
        &self,
        cluster: &ClusterConfig,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::PUT, PATH.to_owned(), Some(json_body(cluster)?), options).await
    }

    /// Changes the cluster's connection settings by a JSON merge patch (RFC 7386).
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch_cluster(
        &self,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::PATCH, PATH.to_owned(), Some(json_body(patch)?), options).await
    }

    /// Removes the host from the cluster.
    pub async fn leave_cluster(
        &self,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::DELETE, PATH.to_owned(), None, options).await
    }

    /// Returns guaranteed, demanded and delivered IOPS of disks on shared stores, as reported by
    /// all nodes. Each node reports the 8 disks furthest above and the 8 disks furthest below their
    /// guarantee.
    pub async fn cluster_flows(&self) -> Result<Vec<ClusterDisk>, ClientError> {
        transport::fetch_json(self, ApiRequest::get(format!("{PATH}/flows"))).await
    }

    /// Removes a node that has failed permanently.
    pub async fn remove_cluster_node(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("{PATH}/members/{node}");
        transport::fetch_text(self, ApiRequest::new(Method::DELETE, path)).await.map(drop)
    }
}
