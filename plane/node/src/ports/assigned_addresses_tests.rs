use super::*;
use crate::testing::{Harness, host};

/// Returns the port with this address in the tables of the switch.
fn port_of(harness: &Harness, mac: MacAddr) -> suimon_forwarding::ForwardingPortSpec {
    let ports = harness.plane.topology().ports;
    ports.into_iter().find(|port| port.spec.mac == Some(mac)).unwrap().spec
}

/// Returns a VM with a NIC without `mac`, and a TAP NIC with further keys.
fn with_vm(tap: &str) -> HostConfig {
    host(&format!(
        r#"
        [[switch]]
        name = "lan"
        kind = "private"
        [[nic]]
        name = "of-vm"
        switch = "lan"
        backend = "vhost-user"
        [[nic]]
        name = "tap"
        switch = "lan"
        backend = "tap"
        {tap}
        [[vm]]
        name = "vm"
        memory_bytes = "1 GiB"
        nics = ["of-vm"]
        "#
    ))
}

fn mac(harness: &Harness, nic: &str) -> Option<MacAddr> {
    harness.node.nic(nic).unwrap().config.mac
}

#[test]
fn taps_and_nics_of_vms_get_different_addresses_and_keep_them() {
    let harness = Harness::new();
    harness.apply_ok(&with_vm(""));
    let addresses = [mac(&harness, "of-vm").unwrap(), mac(&harness, "tap").unwrap()];
    assert_ne!(addresses[0], addresses[1]);
    for address in addresses {
        assert!(address.is_station() && address.octets()[0] & 2 != 0, "{address}");
    }
    let guarded = port_of(&harness, addresses[1]);
    assert!(!guarded.spoofing_allowed && !guarded.binds_source);
    // The addresses survive the same file, other keys and a restart.
    harness.apply_ok(&with_vm("mac_spoofing = true"));
    assert!(port_of(&harness, addresses[1]).spoofing_allowed);
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    harness.apply_ok(&with_vm(""));
    assert_eq!([mac(&harness, "of-vm"), mac(&harness, "tap")], addresses.map(Some));
    // A configured address takes precedence over an assigned one.
    let configured = with_vm(&format!("mac = \"{}\"", addresses[0]));
    harness.apply_ok(&configured);
    assert_eq!(mac(&harness, "tap"), Some(addresses[0]));
    assert_ne!(mac(&harness, "of-vm"), Some(addresses[0]));
}

#[test]
fn a_nic_whose_guest_uses_an_unknown_address_gets_none() {
    let mut config = with_vm("");
    let old = config.clone();
    assign_addresses(&mut config, &old, &(std::sync::Arc::new(|| [9u8; 16]) as _));
    assert_eq!(config, old, "as a former version left it");
    // The NIC of an added VM gets an address.
    let mut before = old.clone();
    before.vms.clear();
    assign_addresses(&mut config, &before, &(std::sync::Arc::new(|| [9u8; 16]) as _));
    assert_eq!(config.nics[0].mac, Some(MacAddr::new([0x0a, 9, 9, 9, 9, 9])));
    assert_eq!(config.nics[1].mac, None);
}
