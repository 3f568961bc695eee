//! Desired state of the cluster that the host is a node of.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// `[cluster]`: the cluster that this host is a node of, and its etcd. Stores with `shared = true`
/// are held to what the cluster gives this node of them. Without it a host is by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// The cluster's name: nodes with the same name and etcd are in the same cluster.
    pub name: Name,
    /// This host's name in it, which no other node has.
    pub node: Name,
    /// URLs of etcd's members, such as `https://192.0.2.10:2379`.
    pub endpoints: Vec<String>,
    /// With `https`: whom to believe and who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClusterTls>,
    /// The user of etcd that this node is, if etcd wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Absolute path of a file whose first line is the user's password. Nobody else may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
}

/// `[cluster.tls]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterTls {
    /// Absolute path of the certificates, in PEM, of which one has signed those of etcd's members.
    #[schema(value_type = String)]
    pub authority: PathBuf,
    /// Absolute path of this node's certificate, in PEM, if etcd wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub certificate: Option<PathBuf>,
    /// Absolute path of its private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key: Option<PathBuf>,
}
