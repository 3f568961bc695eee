//! Desired state of the host's cluster membership.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// `[cluster]`: the cluster that this host is a node of, and the cluster's etcd. Stores with
/// `shared = true` are limited to the share that the cluster grants this node. Without this table
/// the host is not in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Name of the cluster. Nodes with the same name and etcd form one cluster.
    pub name: Name,
    /// Name of this host in the cluster; unique among its nodes.
    pub node: Name,
    /// URLs of etcd's members, such as `https://192.0.2.10:2379`.
    pub endpoints: Vec<String>,
    /// Certificates for `https` endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClusterTls>,
    /// User name for etcd; absent if etcd has no authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Absolute path of a file whose first line is the user's password. The file must not be
    /// readable by other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
}

/// `[cluster.tls]`: certificates for connections to etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterTls {
    /// Absolute path of a PEM file with the CA certificates that sign the certificates of etcd's
    /// members.
    #[schema(value_type = String)]
    pub authority: PathBuf,
    /// Absolute path of this node's certificate, in PEM; absent if etcd requires no client
    /// certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub certificate: Option<PathBuf>,
    /// Absolute path of the certificate's private key, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key: Option<PathBuf>,
}
