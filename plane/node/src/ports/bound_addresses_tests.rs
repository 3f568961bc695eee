use suimon_contract::{EventKind, HostConfig};
use suimon_forwarding::ForwardingPortSpec;
use suimon_frame::MacAddr;
use suimon_ports::{DeviceNotice, PortDeviceSpec as DeviceSpec};
use suimon_quantity::PortId;
use suimon_switch::SwitchNotice;

use crate::testing::{Harness, host, wait_until};

const FIRST: MacAddr = MacAddr::new([0x52, 0x54, 0, 0, 0, 1]);
const OTHER: MacAddr = MacAddr::new([0x52, 0x54, 0, 0, 0, 2]);

/// Returns a switch with two vhost-user NICs and a TAP. `web` contains further keys of the first
/// NIC.
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
        DeviceSpec::VhostUser(spec) => spec.socket.to_string_lossy() == format!("/run/{nic}.sock"),
        DeviceSpec::Tap(spec) => spec.device == nic,
        _ => false,
    };
    let mut devices = harness.devices.open_devices().into_iter();
    devices.find(|(_, spec)| is_of(spec)).unwrap().0
}

fn spec(harness: &Harness, nic: &str) -> ForwardingPortSpec {
    let id = port(harness, nic);
    let ports = harness.plane.topology().ports;
    ports.into_iter().find(|port| port.spec.id == id).unwrap().spec
}

fn bound(harness: &Harness, nic: &str) -> Option<MacAddr> {
    harness.node.nic(nic).unwrap().bound_mac
}

fn connect(harness: &Harness, nic: &str) {
    harness.devices.notify(port(harness, nic), DeviceNotice::LinkUp);
}

fn disconnect(harness: &Harness, nic: &str) {
    let reason = "closed".to_owned();
    harness.devices.notify(port(harness, nic), DeviceNotice::LinkDown { reason });
}

/// Starts a node with connected guests on both NICs.
fn connected() -> Harness {
    let harness = Harness::new();
    harness.apply_ok(&config(""));
    ["web", "db"].into_iter().for_each(|nic| connect(&harness, nic));
    harness
}

fn see(harness: &Harness, nic: &str, mac: MacAddr) {
    harness.plane.notify(SwitchNotice::NewSource { port: port(harness, nic), mac });
}

/// Starts a node where `web` has sent from [`FIRST`].
fn with_bound() -> Harness {
    let harness = connected();
    see(&harness, "web", FIRST);
    wait_until("the address is bound", || bound(&harness, "web") == Some(FIRST));
    harness
}

#[test]
fn the_first_source_address_of_a_guest_is_bound_to_its_nic() {
    let harness = connected();
    assert!(spec(&harness, "web").binds_source && spec(&harness, "db").binds_source);
    assert!(!spec(&harness, "tap").binds_source);
    see(&harness, "web", FIRST);
    let event = harness.wait_event(EventKind::NicAddressBound.id());
    assert_eq!(
        (event.subject.as_str(), event.fields["mac"].as_str()),
        ("nic/web", "52:54:00:00:00:01")
    );
    wait_until("the tables contain the address bound to web", || {
        spec(&harness, "web").bound_address == Some(FIRST)
    });
    let web = spec(&harness, "web");
    assert!(web.mac.is_none() && !web.binds_source);
    // Neither a second address of the guest nor the same address of another guest is bound.
    see(&harness, "web", OTHER);
    see(&harness, "db", FIRST);
    see(&harness, "tap", OTHER);
    see(&harness, "db", OTHER);
    wait_until("the address is bound to db", || bound(&harness, "db") == Some(OTHER));
    assert_eq!((bound(&harness, "web"), bound(&harness, "tap")), (Some(FIRST), None));
    harness.wait_events(EventKind::NicAddressBound.id(), 2);
}

#[test]
fn a_binding_ends_when_the_guest_disconnects() {
    let harness = with_bound();
    disconnect(&harness, "web");
    wait_until("no address is bound to web", || bound(&harness, "web").is_none());
    wait_until("the tables contain no address bound to web", || spec(&harness, "web").binds_source);
    see(&harness, "db", FIRST);
    wait_until("the address is bound to db", || bound(&harness, "db") == Some(FIRST));
}

#[test]
fn the_address_of_a_disconnected_guest_is_not_bound() {
    let harness = connected();
    disconnect(&harness, "web");
    see(&harness, "web", FIRST);
    see(&harness, "db", OTHER);
    wait_until("the address is bound to db", || bound(&harness, "db") == Some(OTHER));
    assert_eq!(bound(&harness, "web"), None);
}

#[test]
fn a_new_connection_without_a_reported_disconnection_ends_a_binding() {
    let harness = with_bound();
    connect(&harness, "web");
    wait_until("no address is bound to web", || bound(&harness, "web").is_none());
    see(&harness, "web", OTHER);
    wait_until("the new guest's is bound", || bound(&harness, "web") == Some(OTHER));
}

fn restarted(harness: Harness) -> Harness {
    wait_until("the bound address is recorded", || harness.store.keys("nic_addresses") == ["web"]);
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    assert_eq!(bound(&harness, "web"), Some(FIRST));
    let web = spec(&harness, "web");
    assert_eq!(
        (web.bound_address, web.binds_source),
        (Some(FIRST), true),
        "from the first tables on"
    );
    harness
}

#[test]
fn a_binding_outlives_the_daemon_and_is_confirmed_by_the_next_frame() {
    let harness = restarted(with_bound());
    let event_count = || harness.events(EventKind::NicAddressBound.id()).len();
    let before = event_count();
    connect(&harness, "web");
    let spoofed = SwitchNotice::SpoofedSource { port: port(&harness, "db"), mac: FIRST };
    harness.plane.notify(spoofed);
    harness.wait_event(EventKind::NicAddressRefused.id());
    see(&harness, "web", FIRST);
    wait_until("the binding of web is confirmed", || !spec(&harness, "web").binds_source);
    assert_eq!(spec(&harness, "web").bound_address, Some(FIRST));
    see(&harness, "db", OTHER);
    connect(&harness, "db");
    see(&harness, "db", OTHER);
    wait_until("one more event is emitted", || event_count() == before + 1);
    assert_eq!(bound(&harness, "web"), Some(FIRST));
}

#[test]
fn the_address_of_another_guest_connected_without_a_daemon_is_bound() {
    let harness = restarted(with_bound());
    connect(&harness, "web");
    see(&harness, "web", OTHER);
    wait_until("the address is bound to web", || bound(&harness, "web") == Some(OTHER));
}

#[test]
fn a_guest_that_does_not_reconnect_loses_its_address_to_a_sender() {
    let harness = restarted(with_bound());
    connect(&harness, "db");
    let spoofed = SwitchNotice::SpoofedSource { port: port(&harness, "db"), mac: FIRST };
    harness.plane.notify(spoofed);
    wait_until("no address is bound to web", || bound(&harness, "web").is_none());
    wait_until("the state store contains no bound address", || {
        harness.store.keys("nic_addresses").is_empty()
    });
    see(&harness, "db", FIRST);
    wait_until("the address is bound to db", || bound(&harness, "db") == Some(FIRST));
}

#[test]
fn a_source_whose_guest_is_reported_as_connected_meanwhile_is_bound() {
    let harness = Harness::new();
    harness.apply_ok(&config(""));
    let (devices, web) = (harness.devices.clone(), port(&harness, "web"));
    harness.plane.report_after(
        move || devices.notify(web, DeviceNotice::LinkUp),
        SwitchNotice::NewSource { port: web, mac: FIRST },
    );
    wait_until("the address is bound", || bound(&harness, "web") == Some(FIRST));
}

#[test]
fn a_source_of_a_guest_that_has_left_is_replaced_by_that_of_the_next_one() {
    let harness = connected();
    let (devices, web) = (harness.devices.clone(), port(&harness, "web"));
    let change = move || {
        devices.notify(web, DeviceNotice::LinkDown { reason: "closed".to_owned() });
        devices.notify(web, DeviceNotice::LinkUp);
    };
    harness.plane.report_after(change, SwitchNotice::NewSource { port: web, mac: FIRST });
    wait_until("the address is bound to web", || bound(&harness, "web") == Some(FIRST));
    see(&harness, "web", OTHER);
    wait_until("the next guest's is bound", || bound(&harness, "web") == Some(OTHER));
}

#[test]
fn a_configured_address_and_permitted_spoofing_end_a_binding() {
    for key in ["mac = \"52:54:00:00:00:09\"", "mac_spoofing = true"] {
        let harness = with_bound();
        harness.apply_ok(&config(key));
        let web = spec(&harness, "web");
        assert!(web.bound_address.is_none() && !web.binds_source, "{key}");
        assert_eq!(bound(&harness, "web"), None);
        wait_until("the state store contains no bound address", || {
            harness.store.keys("nic_addresses").is_empty()
        });
    }
}

#[test]
fn an_address_configured_for_another_nic_is_not_bound() {
    let harness = with_bound();
    let mut changed = config("");
    changed.nics[1].mac = Some(FIRST);
    harness.apply_ok(&changed);
    assert_eq!(spec(&harness, "db").mac, Some(FIRST));
    assert_eq!(bound(&harness, "web"), None);
    see(&harness, "web", FIRST);
    see(&harness, "web", OTHER);
    wait_until("the address is bound to web", || bound(&harness, "web") == Some(OTHER));
}

#[test]
fn the_event_of_a_move_names_both_ports_and_the_number_of_moves() {
    let harness = Harness::new();
    harness.apply_ok(&config(""));
    let (from, to) = (port(&harness, "tap"), port(&harness, "db"));
    harness.plane.notify(SwitchNotice::AddressMoved { mac: FIRST, from, to, move_count: 3 });
    let event = harness.wait_event(EventKind::NicAddressMoved.id());
    assert_eq!(event.subject, "nic/db");
    assert_eq!((event.fields["from"].as_str(), event.fields["moves"].as_str()), ("tap", "3"));
    assert!(event.text.contains("last report: 3"), "{}", event.text);
}
