//! Nodes that are drained.

use hyper::Method;
use suimon_contract::{DrainPlan, DrainRequest, Operation};

use crate::resources::body;
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// Every method fails with [`ClientError`]. The node is the daemon's own host, or another that it
/// knows.
impl Client {
    /// What would become of a node's VMs if it were drained.
    pub async fn check_drain(
        &self,
        node: &str,
        request: &DrainRequest,
    ) -> Result<DrainPlan, ClientError> {
        let call = Call::new(Method::POST, format!("{}/drain?dry_run=true", path(node)));
        transport::json(self, call.with_body(body(request)?)).await
    }

    /// Begins to drain a node.
    pub async fn drain_node(
        &self,
        node: &str,
        request: &DrainRequest,
    ) -> Result<Operation, ClientError> {
        let call = Call::new(Method::POST, format!("{}/drain", path(node)));
        transport::json(self, call.with_body(body(request)?)).await
    }

    /// Has VMs come to a node again.
    pub async fn undrain_node(&self, node: &str) -> Result<(), ClientError> {
        let call = Call::new(Method::POST, format!("{}/undrain", path(node)));
        transport::text(self, call).await.map(drop)
    }
}

/// The address of a node, whatever its host is called.
fn path(node: &str) -> String {
    let escaped: String = node.bytes().map(escaped).collect();
    format!("/1.0/nodes/{escaped}")
}

/// A byte of a path's segment (RFC 3986, 2.1 and 2.3).
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
