//! Text output of other nodes.

use suimon_contract::{DrainStatus, NodeConfig, NodeStatus};

use crate::columns;
use crate::detail_text::{DetailText, health};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};

impl TextOutput for NodeConfig {
    fn table(statuses: &[NodeStatus]) -> Table {
        let mut table = Table::new(&columns::NODES);
        for node in statuses {
            table.add_row([
                node.config.name.to_string(),
                node.config.address.clone(),
                or_dash(node.host_name.as_ref()),
                or_dash(node.version.as_ref()),
                or_dash(node.drain.as_ref().map(drain_progress)),
                health(&node.condition),
            ]);
        }
        table
    }

    fn details(status: &NodeStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        lines.add("host", or_dash(status.host_name.as_ref()));
        lines.add("version", or_dash(status.version.as_ref()));
        if let Some(drain) = &status.drain {
            lines.add("drained", drain_progress(drain));
        }
        lines.into_text()
    }
}

/// Formats the progress of a drain.
pub(crate) const fn drain_progress(drain: &DrainStatus) -> &'static str {
    match (drain.is_drained, drain.operation) {
        (true, _) => "empty",
        (false, Some(_)) => "VMs migrate",
        (false, None) => "has VMs",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_shown_with_their_reported_state() {
        let nodes: Vec<NodeStatus> = serde_json::from_value(json!([
            {
                "config": {
                    "name": "left", "address": "192.0.2.2:8443",
                    "ca_certificate": "/etc/suimon/left.pem", "token_file": "/etc/suimon/left.token",
                    "server_name": "left.example.net",
                },
                "condition": {"health": "up"}, "host": "left1", "version": "0.1.0",
                "drain": {"since_unix_ms": 1, "is_empty": true},
            },
            {
                "config": {
                    "name": "right", "address": "right:8443", "ca_certificate": "/etc/suimon/nodes.pem",
                    "token_file": "/etc/suimon/right.token",
                },
                "condition": {"health": "down", "reason": "nobody listens at right:8443"},
            },
        ]))
        .unwrap();
        insta::assert_snapshot!(NodeConfig::details(&nodes[0]));
        insta::assert_snapshot!(NodeConfig::table(&nodes).render());
    }
}
