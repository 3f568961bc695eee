//! Requests to drain nodes.

use hyper::Method;
use suimon_contract::{DrainPlan, DrainRequest, Operation};

use crate::resources::json_body;
use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Methods about a node: the daemon's own host, or another node of the cluster. Each fails with
/// [`ClientError`].
impl Client {
    /// Returns the migrations of VMs that draining a node would cause.
    pub async fn check_drain(
        &self,
        node: &str,
        request: &DrainRequest,
    ) -> Result<DrainPlan, ClientError> {
        let call = ApiRequest::new(Method::POST, format!("{}/drain?dry_run=true", path(node)));
        transport::fetch_json(self, call.with_body(json_body(request)?)).await
    }

    /// Starts to drain a node of its VMs.
    pub async fn drain_node(
        &self,
        node: &str,
        request: &DrainRequest,
    ) -> Result<Operation, ClientError> {
        let call = ApiRequest::new(Method::POST, format!("{}/drain", path(node)));
        transport::fetch_json(self, call.with_body(json_body(request)?)).await
    }

    /// Permits the placement of VMs on a drained node again.
    pub async fn undrain_node(&self, node: &str) -> Result<(), ClientError> {
        let call = ApiRequest::new(Method::POST, format!("{}/undrain", path(node)));
        transport::fetch_text(self, call).await.map(drop)
    }
}

/// Returns the URL path of a node. Its host name may contain any characters.
fn path(node: &str) -> String {
    let escaped: String = node.bytes().map(escaped).collect();
    format!("/1.0/nodes/{escaped}")
}

/// Percent-encodes a byte of a path segment (RFC 3986, 2.1 and 2.3).
fn escaped(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment() {
        assert_eq!(path("one.example.net"), "/1.0/nodes/one.example.net");
        assert_eq!(path("a/b é"), "/1.0/nodes/a%2Fb%20%C3%A9");
    }
}
