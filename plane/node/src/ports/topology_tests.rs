//! Identifiers of switches and ports.

use suimon_contract::HostConfig;

use crate::testing::{Harness, host};

/// Long-running hosts create and delete NICs and switches of ever new names.
#[test]
fn identifiers_of_deleted_switches_and_ports_are_not_kept() {
    let harness = Harness::new();
    let mut ports = Vec::new();
    for round in 0..20 {
        let config = host(&format!(
            r#"
            [[switch]]
            name = "lan{round}"
            kind = "private"
            [[nic]]
            name = "web{round}"
            switch = "lan{round}"
            backend = "tap"
            mac = "52:54:00:00:00:01"
            device = "web{round}"
            "#
        ));
        harness.apply_ok(&config);
        let ids = harness.node.shared().ids();
        assert_eq!((ids.switches.len(), ids.ports.len()), (1, 1));
        ports.extend(ids.ports.into_values());
    }
    let given = ports.len();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), given, "no identifier is assigned twice");
    harness.apply_ok(&HostConfig::default());
    let ids = harness.node.shared().ids();
    assert!(ids.switches.is_empty() && ids.ports.is_empty());
}
