//! Desired state of other nodes, to which VMs can go.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// `[[node]]`: another host with Suimon, as this one reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Unique among nodes.
    pub name: Name,
    /// The address and port of its API, like `192.0.2.2:8443` or `node2.example.net:8443`.
    pub address: String,
    /// Absolute path of the certificates, in PEM, of which one has signed the node's own, or is
    /// it.
    #[schema(value_type = String)]
    pub authority: PathBuf,
    /// Absolute path of a file whose first line is the token of the node's API. Nobody else may
    /// read it.
    #[schema(value_type = String)]
    pub token_file: PathBuf,
    /// The name that its certificate is for; that in `address` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}
