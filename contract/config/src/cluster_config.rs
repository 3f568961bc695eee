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
    /// Name of the cluster. Hosts with the same name and the same etcd form one cluster. Another
    /// name needs `suimon cluster leave` first.
    pub name: Name,
    /// Name of this host in the cluster, unique among its nodes. Another name needs `suimon cluster
    /// leave` first.
    pub node: Name,
    /// URLs of all etcd members, such as `https://192.0.2.10:2379`.
    pub endpoints: Vec<String>,
    /// Certificates for connections to `https` endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClusterTls>,
    /// User name for etcd; no authentication by user if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Absolute path of a file whose first line is the password of the etcd user. The file must
    /// have no permissions for others (`chmod o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
}

/// `[cluster.tls]`: certificates for connections to etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterTls {
    /// Absolute path of a PEM file with the CA certificates that sign the certificates of the etcd
    /// members.
    #[schema(value_type = String)]
    pub ca_certificate: PathBuf,
    /// Absolute path of a PEM file with the client certificate of this host; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub certificate: Option<PathBuf>,
    /// Absolute path of a PEM file with the private key of the client certificate. The file must
    /// have no permissions for others (`chmod o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key: Option<PathBuf>,
}
