//! Tests of the steering rules that a device gets after changes of NICs, uplinks and teams.

use suimon_contract::{SteeringMode, SteeringStatus};
use suimon_frame::VlanId;

use crate::testing::{Harness, host};

const HOST: &str = r#"
[[switch]]
name = "lan"
kind = "external"
uplink = "up"
[[uplink]]
name = "up"
device = "eth0"
driver = "af_xdp"
queues = 3
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
socket = "/run/web.sock"
mac = "52:54:00:00:00:01"
vlan = 10
"#;

/// Returns the configuration of a NIC with this address.
fn nic(name: &str, address: u8, extra: &str) -> String {
    format!(
        "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
         socket = \"/run/{name}.sock\"\nmac = \"52:54:00:00:00:{address:02x}\"\n{extra}\n"
    )
}

/// Returns the last byte of the address, the VLAN and the queue of each rule.
fn rules_of(harness: &Harness, device: &str) -> Vec<(u8, Option<u16>, u16)> {
    let rules = harness.devices.steering(device).unwrap().into_iter();
    let last = |mac: suimon_frame::MacAddr| mac.octets()[5];
    rules.map(|rule| (last(rule.mac), rule.vlan.map(VlanId::get), rule.queue)).collect()
}

fn rules(harness: &Harness) -> Vec<(u8, Option<u16>, u16)> {
    rules_of(harness, "eth0")
}

fn steering(harness: &Harness) -> SteeringStatus {
    harness.node.uplink("up").unwrap().steering.unwrap()
}

fn named(status: &SteeringStatus) -> Vec<(&str, u16)> {
    status.nics.iter().map(|rule| (rule.nic.as_str(), rule.queue)).collect()
}

#[test]
fn rules_follow_added_removed_and_changed_nics() {
    let harness = Harness::new();
    harness.apply_ok(&host(HOST));
    assert_eq!(rules(&harness), [(1, Some(10), 1)]);
    let with_nics = |extra: &str| host(&format!("{HOST}{extra}"));
    // No queue is left for the third NIC. A NIC without a configured address needs none.
    let db = nic("db", 2, "trunk = [20, 30]");
    let unknown = nic("unknown", 9, "").replace("mac = \"52:54:00:00:00:09\"\n", "");
    let nics = format!("{unknown}{db}{}", nic("log", 3, ""));
    harness.apply_ok(&with_nics(&nics));
    assert_eq!(rules(&harness), [(1, Some(10), 1), (2, None, 2)]);
    let status = steering(&harness);
    assert_eq!(
        (status.mode, status.queues, status.queues_are_exclusive),
        (SteeringMode::Hardware, 3, true)
    );
    assert_eq!(named(&status), [("web", 1), ("db", 2)]);
    let reason = "frames of 1 NIC are classified in software: no receive queue is free";
    assert_eq!(status.reason.as_deref(), Some(reason));
    // Without the first NIC, the third one gets its queue; the second NIC keeps its own.
    let without_web = HOST.split_once("[[nic]]").unwrap().0;
    harness.apply_ok(&host(&format!("{without_web}{nics}")));
    assert_eq!(rules(&harness), [(2, None, 2), (3, None, 1)]);
    assert_eq!(steering(&harness).reason, None);
    // Another address and VLAN; then a NIC without a queue of its own.
    harness.apply_ok(&host(&format!("{without_web}{}", nic("log", 4, "vlan = 7"))));
    assert_eq!(rules(&harness), [(4, Some(7), 1)]);
    let unweighted = nic("log", 4, "vmq_weight = 0");
    harness.apply_ok(&host(&format!("{without_web}{unweighted}")));
    assert_eq!(rules(&harness), []);
    let status = steering(&harness);
    assert_eq!(status.mode, SteeringMode::Software);
    assert!(status.reason.unwrap().contains("no NIC of the switch has"));
}

#[test]
fn a_change_that_fails_leaves_the_rules_as_they_were() {
    let harness = Harness::new();
    harness.apply_ok(&host(HOST));
    harness.devices.fail_at(Some(0));
    let operation = harness.apply(&host(&format!("{HOST}{}", nic("db", 2, ""))));
    assert_eq!(operation.state, suimon_contract::OperationState::Failed);
    assert_eq!(rules(&harness), [(1, Some(10), 1)]);
}

#[test]
fn a_device_that_is_opened_again_gets_its_rules_again() {
    let harness = Harness::new();
    harness.apply_ok(&host(HOST));
    let port = harness.devices.port_of("eth0").unwrap();
    let reason = "gone".to_owned();
    harness.devices.notify(port, suimon_ports::DeviceNotice::DeviceLost { reason });
    crate::testing::wait_until("the uplink to be closed and opened again", || {
        let events = harness.events(suimon_contract::EventKind::UplinkRecovered.id());
        !events.is_empty() && harness.devices.steering("eth0").is_some_and(|rules| rules.len() == 1)
    });
    // Another number of queues requires new sockets.
    harness.apply_ok(&host(&HOST.replace("queues = 3", "queues = 1")));
    assert_eq!(rules(&harness), []);
    let reason = steering(&harness).reason.unwrap();
    assert_eq!(reason, "the device has one receive queue");
    harness.apply_ok(&host(HOST));
    assert_eq!(rules(&harness), [(1, Some(10), 1)]);
}

#[test]
fn each_member_of_a_team_gets_the_rules() {
    let harness = Harness::new();
    let second = "[[uplink]]\nname = \"two\"\ndevice = \"eth1\"\ndriver = \"af_xdp\"\nqueues = 2\n\
                  [[team]]\nname = \"both\"\nmembers = [\"up\", \"two\"]\n\
                  mode = \"static\"\n[team.vmq]\n";
    let team = format!("{}{second}", HOST.replace("uplink = \"up\"", "uplink = \"both\""));
    harness.apply_ok(&host(&team));
    for device in ["eth0", "eth1"] {
        assert_eq!(rules_of(&harness, device), [(1, Some(10), 1)], "{device}");
    }
    harness.apply_ok(&host(&format!("{team}enabled = false\n")));
    for device in ["eth0", "eth1"] {
        assert_eq!(rules_of(&harness, device), [], "{device}");
    }
    assert!(steering(&harness).reason.unwrap().contains("VMQ is off"));
}

#[test]
fn the_reason_why_a_device_does_not_steer_is_shown() {
    let harness = Harness::new();
    harness.devices.refuse_steering("it takes none");
    harness.apply_ok(&host(HOST));
    let status = steering(&harness);
    assert_eq!(
        (status.mode, status.nics.len(), status.queues_are_exclusive),
        (SteeringMode::Software, 0, false)
    );
    assert_eq!(status.reason.as_deref(), Some("it takes none"));
    let of_packets = HOST.replace("af_xdp", "af_packet");
    harness.apply_ok(&host(&of_packets));
    let status = steering(&harness);
    assert!(
        status.to_string().starts_with("software: driver = \"af_packet\" receives"),
        "{status}"
    );
    let unused = "[[uplink]]\nname = \"up\"\ndevice = \"eth0\"\n";
    harness.apply_ok(&host(unused));
    assert_eq!(harness.node.uplink("up").unwrap().steering, None);
}
