//! Desired state of other nodes, the destinations of live migration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// `[[node]]`: another host with Suimon, and how to reach its API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Name of the node, unique among nodes, as used by `suimon vm migrate --to`.
    pub name: Name,
    /// Host name or IP address and TCP port of the API of the node, such as `192.0.2.2:8443` or
    /// `node2.example.net:8443`.
    pub address: String,
    /// Absolute path of a PEM file with CA certificates that sign the certificate of the node, or
    /// with that certificate itself.
    #[schema(value_type = String)]
    pub ca_certificate: PathBuf,
    /// Absolute path of a file whose first line is the API token of the node. The file must have no
    /// permissions for others (`chmod o=`).
    #[schema(value_type = String)]
    pub token_file: PathBuf,
    /// Name that the certificate of the node must contain; the host in `address` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}

impl NodeConfig {
    /// Returns the name or IP address that the node's certificate must contain.
    pub fn effective_server_name(&self) -> String {
        let name = self.server_name.clone();
        name.unwrap_or_else(|| Self::server_name_of(&self.address).to_owned())
    }

    /// Returns the host name or IP address in an address with a port, without the brackets of IPv6.
    pub fn server_name_of(address: &str) -> &str {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}
