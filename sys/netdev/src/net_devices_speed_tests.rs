//! Tests of the reported carrier and speed.

use std::time::{Duration, Instant};

use suimon_ports::{ControlFrame, LinkProperties, LinkSpeed, MemberDevices};

use super::*;
use crate::device_query::DeviceQuery;
use crate::link::Link;

const DOWN: LinkProperties = LinkProperties { is_up: false, speed: UNKNOWN };
const UNKNOWN: LinkSpeed = LinkSpeed { mbps: None, full_duplex: None };

fn link_up(mbps: u32, full_duplex: bool) -> LinkProperties {
    LinkProperties {
        is_up: true,
        speed: LinkSpeed { mbps: Some(mbps), full_duplex: Some(full_duplex) },
    }
}

fn expect_facts(
    notices: &std::sync::mpsc::Receiver<(PortId, DeviceNotice)>,
    facts: LinkProperties,
) {
    expect_notice(notices, |notice| *notice == DeviceNotice::LinkChanged(facts));
}

/// TAP that is deleted when this value is dropped.
struct Tap(String);

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["link", "delete", &self.0]).output();
    }
}

#[test]
fn carrier_changes_of_an_uplink_are_reported_with_its_speed() {
    let uplink = uplink(1, None);
    let link = || uplink.devices.link_properties(&uplink.cable.near).unwrap();
    expect_facts(&uplink.notices, link_up(10_000, true));
    assert_eq!(uplink.device.status().speed, link_up(10_000, true).speed);
    assert_eq!(link(), link_up(10_000, true));
    uplink.cable.peer.run("ip link set far0 down");
    expect_facts(&uplink.notices, DOWN);
    assert_eq!((uplink.device.status().speed, link()), (UNKNOWN, DOWN));
    uplink.cable.peer.run("ip link set far0 up");
    expect_facts(&uplink.notices, link_up(10_000, true));
    // Other changes are not reported as link changes.
    run(&format!("ip link set {} mtu 1400", uplink.cable.near));
    run(&format!("ethtool -K {} tso off", uplink.cable.near));
    run(&format!("ip link delete {}", uplink.cable.near));
    let (_, notice) = uplink.notices.recv_timeout(LIMIT).unwrap();
    assert!(is_down(&notice, "") || notice == DeviceNotice::LinkChanged(DOWN), "{notice:?}");
    if notice != DeviceNotice::LinkChanged(DOWN) {
        expect_facts(&uplink.notices, DOWN);
    }
    let error = uplink.devices.link_properties(&uplink.cable.near).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::Missing, "{error}");
}

#[test]
fn a_changed_speed_is_reported_without_a_carrier_change() {
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let tap = Tap(unique("smt"));
    run(&format!("ip tuntap add dev {} mode tap", tap.0));
    let (observer, notices) = Notices::new();
    let spec = uplink_spec(&tap.0, UplinkDriver::Tap);
    let device = devices.open_uplink(PortId(1), &spec, shelf, observer).unwrap();
    expect_notice(
        &notices,
        |notice| matches!(notice, DeviceNotice::LinkChanged(facts) if facts.is_up),
    );
    for (mbps, duplex) in [(2500, "half"), (100, "full")] {
        run(&format!("ethtool -s {} speed {mbps} duplex {duplex}", tap.0));
        let expected = link_up(mbps, duplex == "full");
        expect_facts(&notices, expected);
        assert_eq!(device.status().speed, expected.speed);
        assert_eq!(devices.link_properties(&tap.0).unwrap(), expected);
    }
}

/// The TAP of a NIC has a speed too, which has no meaning.
#[test]
fn the_speed_of_a_nic_is_not_reported() {
    let devices = NetDevices::new().unwrap();
    let (netns, shelf) = (TestNetns::new(), Arc::new(TestQueueHost::default()));
    let (observer, notices) = Notices::new();
    let device = devices.open_tap(PortId(1), &tap_spec("nic0", &netns), shelf, observer).unwrap();
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    netns.run("ip link set nic0 down");
    let (_, notice) = notices.recv_timeout(LIMIT).unwrap();
    assert!(is_down(&notice, "set down"), "{notice:?}");
    assert_eq!(device.status().speed, UNKNOWN);
}

#[test]
fn netlink_and_the_ioctl_return_the_same_speed() {
    let netns = TestNetns::new();
    netns.run("ip link add near0 type veth peer name far0");
    netns.run("ip tuntap add dev tap0 mode tap");
    // A speed above the range of the ioctl's lower field.
    netns.run("ethtool -s tap0 speed 400000 duplex half");
    let namespace = Namespace::open(Some(netns.name())).unwrap();
    let half = LinkSpeed { mbps: Some(400_000), full_duplex: Some(false) };
    let cases = [("near0", link_up(10_000, true).speed), ("lo", UNKNOWN), ("tap0", half)];
    for (device, expected) in cases {
        let speeds = namespace.run(|| {
            let (query, link) = (DeviceQuery::default(), Link::new(device)?);
            Ok([query.speed(link.index()?, device)?, link.speed()?])
        });
        assert_eq!(speeds.unwrap(), [expected; 2], "{device}");
    }
    let missing = namespace.run(|| DeviceQuery::default().speed(77, "none0")).unwrap_err();
    assert_eq!(missing.kind, DeviceErrorKind::Missing, "{missing}");
}

/// The uplink's queues and the control socket are on the same device.
#[test]
fn lacpdus_reach_the_control_socket_beside_the_queues() {
    let uplink = uplink(1, None);
    let mut control = uplink.devices.open_control(&uplink.cable.near).unwrap();
    let (mut far_source, mut far_sink) = uplink.cable.far_queues();
    let mut bytes = MacAddr::SLOW_PROTOCOLS.octets().to_vec();
    bytes.extend([2, 0, 0, 0, 0, 7, 0x88, 0x09, 1, 1]);
    bytes.resize(124, 0x55);
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    far_sink.transmit(&frame).unwrap();
    let mut received = Vec::new();
    let limit = Instant::now() + LIMIT;
    while received.is_empty() && Instant::now() < limit {
        let handle = &mut |frame: ControlFrame<'_>| received.push(frame.bytes.to_vec());
        control.receive(handle).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(received, [bytes.clone()]);
    control.send(&bytes).unwrap();
    let is_it = |frame: &Frame| frame.bytes() == bytes;
    assert!(receive_where(&mut far_source, is_it).is_some());
}
