use suimon_contract::{EventKind, HostConfig};
use suimon_forwarding::PortSpec;
use suimon_frame::MacAddr;
use suimon_ports::{DeviceNotice, PortSpec as DeviceSpec};
use suimon_quantity::PortId;
use suimon_switch::PlaneNotice;

use super::*;
use crate::testing::{Harness, host, name, wait_until};

const FIRST: MacAddr = MacAddr::new([0x52, 0x54, 0, 0, 0, 1]);
const OTHER: MacAddr = MacAddr::new([0x52, 0x54, 0, 0, 0, 2]);

/// Two vhost-user NICs and a TAP on one switch. `web` has further keys.
fn config(web: &str) -> HostConfig {
    host(&format!(
        r#"
        [[switch]]
        name = "lan"
        kind = "private"
        [[nic]]
        name = "web"
        switch = "lan"
        backend = "vhost-user"
        socket = "/run/web.sock"
        {web}
        [[nic]]
        name = "db"
        switch = "lan"
        backend = "vhost-user"
        socket = "/run/db.sock"
        [[nic]]
        name = "tap"
        switch = "lan"
        backend = "tap"
        "#
    ))
}

fn port(harness: &Harness, nic: &str) -> PortId {
    let is_of = |spec: &DeviceSpec| match spec {
        DeviceSpec::VhostUser(of) => of.socket.to_string_lossy() == format!("/run/{nic}.sock"),
        DeviceSpec::Tap(of) => of.device == nic,
        _ => false,
    };
    let mut devices = harness.devices.open_devices().into_iter();
    devices.find(|(_, spec)| is_of(spec)).unwrap().0
}

fn spec(harness: &Harness, nic: &str) -> PortSpec {
    let id = port(harness, nic);
    let ports = harness.plane.topology().ports;
    ports.into_iter().find(|port| port.spec.id == id).unwrap().spec
}

fn bound(harness: &Harness, nic: &str) -> Option<MacAddr> {
    harness.node.nic(nic).unwrap().bound_mac
}

fn see(harness: &Harness, nic: &str, mac: MacAddr) {
    harness.plane.tell(PlaneNotice::SourceSeen { port: port(harness, nic), mac });
}

/// A harness where `web` has sent from [`FIRST`].
fn with_bound() -> Harness {
    let harness = Harness::new();
    harness.apply_well(&config(""));
    see(&harness, "web", FIRST);
    wait_until("the address is bound", || bound(&harness, "web") == Some(FIRST));
    harness
}

#[test]
fn the_first_source_address_of_a_guest_is_bound_to_its_nic() {
    let harness = Harness::new();
    harness.apply_well(&config(""));
    assert!(spec(&harness, "web").binds_source && spec(&harness, "db").binds_source);
    assert!(!spec(&harness, "tap").binds_source);
    see(&harness, "web", FIRST);
    let told = harness.wait_event(EventKind::NicAddressBound.id());
    assert_eq!(
        (told.subject.as_str(), told.fields["mac"].as_str()),
        ("nic/web", "52:54:00:00:00:01")
    );
    wait_until("the tables have it", || spec(&harness, "web").bound == Some(FIRST));
    let web = spec(&harness, "web");
    assert!(web.mac.is_none() && !web.binds_source);
    // Neither a second address of the guest nor the same address of another guest is bound.
    see(&harness, "web", OTHER);
    see(&harness, "db", FIRST);
    see(&harness, "tap", OTHER);
    see(&harness, "db", OTHER);
    wait_until("the other guest's is bound", || bound(&harness, "db") == Some(OTHER));
    assert_eq!((bound(&harness, "web"), bound(&harness, "tap")), (Some(FIRST), None));
    assert_eq!(harness.events(EventKind::NicAddressBound.id()).len(), 2);
}

#[test]
fn a_binding_ends_when_the_guest_disconnects() {
    let harness = with_bound();
    let reason = "closed".to_owned();
    harness.devices.tell(port(&harness, "web"), DeviceNotice::LinkDown { reason });
    wait_until("it is released", || bound(&harness, "web").is_none());
    wait_until("the tables are without", || spec(&harness, "web").binds_source);
    see(&harness, "db", FIRST);
    wait_until("another guest may have it", || bound(&harness, "db") == Some(FIRST));
}

#[test]
fn a_guest_that_connects_again_and_again_changes_the_tables_once_in_10_s() {
    let (web, db) = (name("web"), name("db"));
    let mut releases = Releases::default();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    assert!(releases.is_permitted(&web, at(0)));
    assert!(!releases.is_permitted(&web, at(1)) && !releases.is_permitted(&web, at(9)));
    assert!(releases.is_permitted(&db, at(9)), "another NIC");
    assert!(releases.due(at(9)).is_empty());
    assert_eq!(releases.due(at(10)), std::slice::from_ref(&web));
    assert!(releases.due(at(30)).is_empty(), "once");
    assert!(!releases.is_permitted(&web, at(19)) && releases.is_permitted(&db, at(19)));
    releases.retain(|nic| *nic == db);
    assert!(releases.is_permitted(&web, at(19)), "another NIC of that name");
}

#[test]
fn a_binding_outlives_the_daemon_and_is_released_if_its_guest_has_not_come_back() {
    let harness = with_bound();
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    assert_eq!(bound(&harness, "web"), Some(FIRST));
    assert_eq!(spec(&harness, "web").bound, Some(FIRST), "from the first tables on");
    let spoofed = || PlaneNotice::SpoofedSource { port: port(&harness, "db"), mac: FIRST };
    harness.plane.tell(spoofed());
    harness.wait_event(EventKind::NicAddressRefused.id());
    assert_eq!(bound(&harness, "web"), Some(FIRST), "the guest is connected");
    harness.devices.disconnect(port(&harness, "web"));
    harness.plane.tell(spoofed());
    wait_until("it is released", || bound(&harness, "web").is_none());
    assert!(harness.store.keys("nic_addresses").is_empty());
}

#[test]
fn a_configured_address_and_permitted_spoofing_end_a_binding() {
    for key in ["mac = \"52:54:00:00:00:09\"", "mac_spoofing = true"] {
        let harness = with_bound();
        harness.apply_well(&config(key));
        let web = spec(&harness, "web");
        assert!(web.bound.is_none() && !web.binds_source, "{key}");
        assert_eq!(bound(&harness, "web"), None);
        wait_until("it is forgotten", || harness.store.keys("nic_addresses").is_empty());
    }
}

#[test]
fn an_address_configured_for_another_nic_is_not_bound() {
    let harness = with_bound();
    let mut taken = config("");
    taken.nics[1].mac = Some(FIRST);
    harness.apply_well(&taken);
    assert_eq!(spec(&harness, "db").mac, Some(FIRST));
    assert_eq!(bound(&harness, "web"), None);
    see(&harness, "web", FIRST);
    see(&harness, "web", OTHER);
    wait_until("another address is bound", || bound(&harness, "web") == Some(OTHER));
}

#[test]
fn a_move_between_ports_names_both_and_how_many_there_were() {
    let harness = Harness::new();
    harness.apply_well(&config(""));
    let (from, to) = (port(&harness, "tap"), port(&harness, "db"));
    harness.plane.tell(PlaneNotice::AddressMoved { mac: FIRST, from, to, moves: 3 });
    let told = harness.wait_event(EventKind::NicAddressMoved.id());
    assert_eq!(told.subject, "nic/db");
    assert_eq!((told.fields["from"].as_str(), told.fields["moves"].as_str()), ("tap", "3"));
    assert!(told.text.contains("3 moves"), "{}", told.text);
}

/// The VM of `vm` and its NIC, which has no `mac`, and a TAP NIC with further keys.
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
    harness.apply_well(&with_vm(""));
    let addresses = [mac(&harness, "of-vm").unwrap(), mac(&harness, "tap").unwrap()];
    assert_ne!(addresses[0], addresses[1]);
    for address in addresses {
        assert!(address.is_station() && address.octets()[0] & 2 != 0, "{address}");
    }
    let guarded = spec(&harness, "tap");
    assert_eq!(guarded.mac, Some(addresses[1]));
    assert!(!guarded.spoofing_allowed && !guarded.binds_source);
    // The same file again, other keys, and another daemon.
    harness.apply_well(&with_vm("mac_spoofing = true"));
    assert!(spec(&harness, "tap").spoofing_allowed);
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    harness.apply_well(&with_vm(""));
    assert_eq!([mac(&harness, "of-vm"), mac(&harness, "tap")], addresses.map(Some));
    // A NIC that is configured to have the address of another one has it.
    let taken = with_vm(&format!("mac = \"{}\"", addresses[0]));
    harness.apply_well(&taken);
    assert_eq!(mac(&harness, "tap"), Some(addresses[0]));
    assert_ne!(mac(&harness, "of-vm"), Some(addresses[0]));
}

#[test]
fn a_nic_whose_guest_uses_an_unknown_address_is_not_given_one() {
    let mut config = with_vm("");
    let old = config.clone();
    crate::nic_addresses::assign_addresses(
        &mut config,
        &old,
        &(std::sync::Arc::new(|| [9u8; 16]) as _),
    );
    assert_eq!(config, old, "as a former version left it");
    // A VM that is added gets its NIC with an address.
    let mut before = old.clone();
    before.vms.clear();
    crate::nic_addresses::assign_addresses(
        &mut config,
        &before,
        &(std::sync::Arc::new(|| [9u8; 16]) as _),
    );
    assert_eq!(config.nics[0].mac, Some(MacAddr::new([0x0a, 9, 9, 9, 9, 9])));
    assert_eq!(config.nics[1].mac, None);
}
