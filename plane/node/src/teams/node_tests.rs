//! Tests of teams in a node with its threads.

use std::time::{Duration, Instant};

use suimon_contract::{Health, OperationState, TeamMemberState};
use suimon_ports::{DeviceNotice, FaultKind, QueueFault};
use suimon_quantity::{Direction, QueueId, Time};
use suimon_switch::{AddressView, CaptureBufferLimits, SwitchNotice};
use suimon_teaming::MemberId;

use super::test_bench::{DOWN, with_team};
use crate::testing::{Harness, name, wait_until};
use crate::{Edit, PortKey, ResourceEdit};

use TeamMemberState::{Active, Failed};

const STATIC: &str = "mode = \"static\"\nalgorithm = \"transport-ports\"";
const FAST: &str = "mode = \"lacp\"\nlacp_timer = \"fast\"";

fn with(keys: &str) -> Harness {
    let harness = Harness::new();
    harness.plane.run_clock();
    harness.apply_ok(&with_team(&["a", "b"], keys));
    harness
}

fn states(harness: &Harness) -> Vec<TeamMemberState> {
    harness.node.team("both").unwrap().members.iter().map(|member| member.state).collect()
}

/// Returns true if frames leave by the device according to the plane's distribution.
fn is_used(harness: &Harness, device: &str) -> bool {
    let port = harness.devices.port_of(device).unwrap();
    let topology = harness.plane.topology();
    let distribution = &topology.teams[0].distribution;
    let slot = distribution.slot(MemberId(port.0)).unwrap();
    let mut states = (0..256_u32).filter_map(|number| {
        let mut frame = suimon_frame::Frame::new(0);
        let mut bytes = [0_u8; 60];
        bytes[0..6].copy_from_slice(&[2, 8, 8, 8, 8, number as u8]);
        bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        bytes[12..16].copy_from_slice(&[0x08, 0, 0x45, 0]);
        bytes[23] = 17;
        bytes[34..38].copy_from_slice(&number.to_be_bytes());
        frame.set_bytes(&bytes);
        let origin = distribution.ingress_context(topology.ports[0].spec.id);
        distribution.choose(&distribution.key(&frame, origin))
    });
    states.any(|choice| choice.member == slot)
}

#[test]
fn a_node_creates_changes_and_deletes_a_team() {
    let harness = with(STATIC);
    assert_eq!(states(&harness), [Active, Active]);
    harness.assert_consistent(&[]);
    harness.wait_events(4101, 1);
    assert_eq!(harness.node.team("both").unwrap().switch, Some(name("wan")));
    assert_eq!(harness.node.uplink("a").unwrap().switch, Some(name("wan")));
    assert_eq!(harness.node.top().uplinks[0].switch, Some(name("wan")));
    harness.apply_ok(&with_team(&["a", "b"], "mode = \"switch-independent\""));
    assert_eq!(harness.wait_event(4102).fields["mode"], "\"switch-independent\"");
    let mut config = with_team(&["a", "b"], STATIC);
    config.teams.clear();
    config.switches[0].uplink = Some(name("a"));
    harness.apply_ok(&config);
    harness.wait_events(4103, 1);
    assert!(harness.node.teams().is_empty());
    harness.assert_consistent(&[]);
    assert_eq!(harness.node.uplink("b").unwrap().switch, None);
}

/// A carrier is lost while the control thread is blocked opening a device.
#[test]
fn a_lost_carrier_is_handled_during_a_change() {
    let harness = with(STATIC);
    let gate = harness.devices.hold();
    let nic = crate::testing::host(
        "[[switch]]\nname = \"wan\"\nkind = \"private\"\n[[nic]]\nname = \"new\"\n\
         switch = \"wan\"\nbackend = \"tap\"\n",
    );
    let add = Edit::Nic(ResourceEdit::Add(nic.nics[0].clone()));
    let operation = harness.node.submit(add).unwrap();
    wait_until("the change is opening a device", || {
        harness.node.operation(operation.id).unwrap().state == OperationState::Running
    });
    harness.devices.set_link("a", DOWN);
    wait_until("the member is not used", || !is_used(&harness, "a"));
    wait_until("TeamMemberFailed is emitted once", || harness.events(4107).len() == 1);
    let state = harness.node.operation(operation.id).unwrap().state;
    assert_eq!(state, OperationState::Running, "the change is still under way");
    drop(gate);
    let operation = harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    assert!(!is_used(&harness, "a"), "the tables of the change contain the lost link");
    harness.devices.set_link("a", crate::testing::LINK);
    wait_until("member a is used", || is_used(&harness, "a"));
}

#[test]
fn a_device_that_fails_is_not_used_until_it_is_open_again() {
    let harness = with(STATIC);
    let port = harness.devices.port_of("a").unwrap();
    harness.devices.set_missing("a", true);
    let queue = QueueId { port, direction: Direction::Egress, index: 0 };
    let fault =
        QueueFault { kind: FaultKind::SystemCallFailed, detail: "it was unplugged".to_owned() };
    harness.plane.notify(SwitchNotice::QueueFault { queue, fault });
    wait_until("member a has failed", || states(&harness) == [Failed, Active]);
    wait_until("the reason contains the missing device", || {
        harness.node.team("both").unwrap().members[0].reason.contains("Missing")
    });
    wait_until("the socket of member a is closed", || harness.members.open_sockets("a") == 0);
    assert_eq!(harness.node.switch("wan").unwrap().condition.health, Health::Up);
    harness.devices.set_missing("a", false);
    wait_until("both members are active", || states(&harness) == [Active, Active]);
    wait_until("the socket of member a is open", || harness.members.open_sockets("a") == 1);
    assert_eq!(harness.devices.port_of("a"), Some(port));
    // The device is deleted while it is open.
    harness.devices.notify(port, DeviceNotice::DeviceLost { reason: "it was moved".to_owned() });
    wait_until("TeamMemberFailed is emitted 2 times", || harness.events(4107).len() == 2);
    wait_until("both members are active", || states(&harness) == [Active, Active]);
}

/// The first cause disappears, and the retry finds another one.
#[test]
fn a_team_shows_the_present_reasons_why_its_members_fail() {
    let harness = with(STATIC);
    for device in ["a", "b"] {
        let port = harness.devices.port_of(device).unwrap();
        harness.devices.set_missing(device, true);
        let reason = "it was unplugged".to_owned();
        harness.devices.notify(port, DeviceNotice::DeviceLost { reason });
    }
    wait_until("both members have failed", || states(&harness) == [Failed, Failed]);
    let of_team = || harness.node.team("both").unwrap().condition.reason.unwrap_or_default();
    let of_switch = || harness.node.switch("wan").unwrap().condition.reason.unwrap_or_default();
    wait_until("team and switch contain the present reasons", || {
        [of_team(), of_switch()]
            .iter()
            .all(|reason| reason.contains("; a: refused: Missing; b: refused: Missing"))
    });
}

#[test]
fn the_next_process_creates_the_team_again() {
    let (store, devices) = with(STATIC).kill();
    devices.set_link("b", DOWN);
    let harness = Harness::start(store, devices);
    assert_eq!(states(&harness), [Active, Failed], "at once, when it is open");
    assert!(is_used(&harness, "a") && !is_used(&harness, "b"));
    harness.assert_consistent(&[]);
    wait_until("the socket of member b is open", || harness.members.open_sockets("b") == 1);
}

/// A change that fails after the tables were published restores the team.
#[test]
fn a_change_that_fails_leaves_the_team_as_it_was() {
    let harness = with(STATIC);
    let before = harness.node.team("both").unwrap();
    harness.devices.fail_at(Some(0));
    let operation = harness.apply(&with_team(&["a", "c"], "mode = \"switch-independent\""));
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    let mut after = harness.node.team("both").unwrap();
    for (member, previous) in after.members.iter_mut().zip(&before.members) {
        (member.rx_bps, member.tx_bps) = (previous.rx_bps, previous.tx_bps);
    }
    assert_eq!(after, before);
    assert!(is_used(&harness, "a") && is_used(&harness, "b"));
    harness.assert_consistent(&[]);
}

#[test]
fn lacpdus_are_sent_periodically_and_a_last_one_at_the_end() {
    // Taken before the start, so that the lower bound holds however late this thread is scheduled.
    let started = Instant::now();
    let harness = with(FAST);
    let mut sent_count = 0;
    wait_until("three LACPDUs are sent", || {
        sent_count += harness.members.take_sent("a").len();
        sent_count >= 3
    });
    assert!(started.elapsed() > Duration::from_millis(900), "no more than three in a second");
    harness.members.take_sent("b");
    harness.node.stop();
    assert_eq!(harness.members.open_sockets("a"), 0, "everything is closed");
    let state = harness.node.team("both").unwrap();
    assert_eq!(state.config.name, name("both"));
}

#[test]
fn a_team_can_be_captured_and_has_a_label() {
    let harness = with(STATIC);
    let team = harness.plane.topology().teams[0].port;
    let key = PortKey::Team(name("both"));
    let capture = harness.node.capture(&key, CaptureBufferLimits::default()).unwrap();
    assert_eq!(capture.operation().unwrap().subject, "team/both");
    drop(capture);
    let mac = suimon_frame::MacAddr::new([2, 0, 0, 0, 0, 9]);
    let age = Some(Time::ZERO.since(Time::ZERO));
    let view = AddressView { mac, vlan: None, port: team, is_static: false, age };
    harness.plane.set_addresses(vec![view]);
    assert_eq!(harness.node.addresses("wan").unwrap()[0].port, "both");
    let missing = PortKey::Team(name("other"));
    assert!(harness.node.capture(&missing, CaptureBufferLimits::default()).is_err());
}
