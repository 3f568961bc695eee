//! Validation of the configuration of other nodes.

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, NodeConfig};

/// Reports invalid combinations of one node's keys.
pub(crate) fn check_node(
    location: FindingLocation,
    node: &NodeConfig,
    findings: &mut Vec<Finding>,
) {
    if node.ca_certificate == node.token_file {
        let text = "is also the file of CA certificates, which is not secret; name another file \
                    for the token";
        findings.push(location.finding(ErrorCode::InvalidValue, "token_file", text));
    }
}

#[cfg(test)]
mod tests {
    use crate::{ErrorCode, NodeConfig, Plan, PlanAction, parse_resource, parse_toml, to_toml};

    const GOOD: &str = r#"
        [[node]]
        name = "left"
        address = "192.0.2.2:8443"
        ca_certificate = "/etc/suimon/left.pem"
        token_file = "/etc/suimon/left.token"
        server_name = "left.example.net"
        [[node]]
        name = "right"
        address = "right.example.net:8443"
        ca_certificate = "/etc/suimon/nodes.pem"
        token_file = "/etc/suimon/right.token"
    "#;

    #[test]
    fn a_host_file_with_nodes_is_read_and_written() {
        let config = parse_toml(GOOD, None).unwrap();
        assert_eq!(config.nodes.len(), 2);
        assert_eq!(config.nodes[0].effective_server_name(), "left.example.net");
        assert_eq!(config.nodes[1].effective_server_name(), "right.example.net");
        let text = to_toml(&config);
        assert!(text.contains("[[node]]\nname = \"right\"\n"), "{text}");
        assert_eq!(parse_toml(&text, None).unwrap(), config);
    }

    #[test]
    fn an_address_is_the_name_that_is_checked() {
        for (address, name) in [
            ("192.0.2.2:8443", "192.0.2.2"),
            ("[2001:db8::2]:8443", "2001:db8::2"),
            ("node2:8443", "node2"),
        ] {
            let mut node = parse_toml(GOOD, None).unwrap().nodes.remove(1);
            node.address = address.to_owned();
            let text = serde_json::to_vec(&node).unwrap();
            let read: NodeConfig = parse_resource(&text).unwrap();
            assert_eq!(read.effective_server_name(), name);
        }
    }

    #[test]
    fn errors_contain_the_key_and_line() {
        let address = "192.0.2.2:8443";
        for (from, to, field, part) in [
            (address, "192.0.2.2", "address", "and a port"),
            (address, "192.0.2.2:0", "address", "and a port"),
            (address, "0.0.0.0:8443", "address", "and a port"),
            (address, "192.0.2:8443", "address", "and a port"),
            (address, "192.0.2.256:8443", "address", "and a port"),
            (address, "2001:db8::2:8443", "address", "[2001:db8::2]:8443"),
            (address, "https://left:8443", "address", "and a port"),
            (address, "left:65536", "address", "and a port"),
            (address, "left:+84", "address", "and a port"),
            (address, ":8443", "address", "and a port"),
            ("/etc/suimon/left.pem", "left.pem", "ca_certificate", "an absolute path"),
            ("/etc/suimon/left.token", "~/token", "token_file", "an absolute path"),
            ("left.token", "left.pem", "token_file", "not secret"),
            ("left.example.net", "left_.example", "server_name", "a DNS name"),
            ("server_name", "sever_name", "sever_name", "did you mean `server_name`"),
        ] {
            let errors = parse_toml(&GOOD.replacen(from, to, 1), None).unwrap_err();
            let error = &errors[0];
            assert_eq!(error.field.as_deref(), Some(field), "{to}: {errors:?}");
            assert_eq!(error.resource.as_deref(), Some("node/left"), "{errors:?}");
            assert!(error.message.contains(part), "{errors:?}");
            assert!(error.line.is_some(), "{errors:?}");
        }
        for (from, to, code) in [
            ("\"right\"", "\"left\"", ErrorCode::DuplicateName),
            ("right.example.net:8443", "192.0.2.2:8443", ErrorCode::Conflict),
        ] {
            let errors = parse_toml(&GOOD.replacen(from, to, 1), None).unwrap_err();
            assert_eq!(errors[0].code, code, "{errors:?}");
        }
    }

    #[test]
    fn every_change_is_live() {
        let before = parse_toml(GOOD, None).unwrap();
        let mut after = before.clone();
        let removed = after.nodes.remove(0);
        after.nodes[0].address = removed.address;
        after.nodes[0].token_file = removed.token_file;
        let plan = Plan::between(&before, &after);
        let steps: Vec<_> =
            plan.steps.iter().map(|step| (step.action, step.resource.as_str())).collect();
        // The address becomes free before another node takes it over.
        let expected = [(PlanAction::Delete, "node/left"), (PlanAction::ChangeLive, "node/right")];
        assert_eq!(steps, expected);
    }
}
