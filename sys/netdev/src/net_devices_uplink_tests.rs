//! Tests of uplinks on one end of a veth pair; the other end is in a namespace.

use std::time::{Duration, Instant};

use super::streams::{Pair, transfer};
use super::*;
use crate::watched_link::WatchSubject;

struct Uplink {
    cable: TestCable,
    shelf: Arc<TestQueueHost>,
    notices: std::sync::mpsc::Receiver<(PortId, DeviceNotice)>,
    device: Box<dyn PortDevice>,
    devices: NetDevices,
}

fn uplink(queue_pairs: u16, mtu: Option<u16>) -> Uplink {
    let cable = TestCable::new();
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, notices) = Notices::new();
    // The far end follows the near one with a delay.
    let (far, far_notices) = Notices::new();
    let namespace = Namespace::open(Some(cable.peer.name())).unwrap();
    let index = namespace.run(|| crate::link::Link::new("far0")?.index()).unwrap();
    let present = suimon_netif::netlink::LinkState::default();
    let (device, has_speed, is_lost_on_rename) = ("far0", false, false);
    let subject = WatchSubject {
        index,
        device,
        initial_state: present,
        reports_speed: has_speed,
        is_lost_on_rename,
    };
    let _watch = devices.watcher.watch(&namespace, subject, PortId(9), far).unwrap();
    let spec = uplink_spec(&cable.near, UplinkDriver::AfPacket);
    let spec = UplinkSpec { queue_pairs, mtu, ..spec };
    devices.probe_uplink(&spec).unwrap();
    let device = devices.open_uplink(PortId(1), &spec, shelf.clone(), observer).unwrap();
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    expect_notice(&far_notices, |notice| *notice == DeviceNotice::LinkUp);
    Uplink { cable, shelf, notices, device, devices }
}

#[test]
fn frames_pass_both_ways_with_their_tags() {
    let uplink = uplink(1, None);
    let (mut far_source, mut far_sink) = uplink.cable.far_queues();
    let (mut near_source, mut near_sink) = (uplink.shelf.source(1, 0), uplink.shelf.sink(1, 0));
    let tag = VlanTag::from_tci(0xa000 | 77);
    for tag in [None, Some(tag), Some(VlanTag::for_vlan(VlanId::new(4094).unwrap()))] {
        let mut frame = plain_frame(600);
        frame.meta.tag = tag;
        near_sink.transmit(&frame).unwrap();
        near_sink.flush().unwrap();
        far_sink.transmit(&frame).unwrap();
        for source in [near_source.as_mut(), &mut far_source] {
            let received = receive_where(source, is_ours).expect("the frame");
            assert_eq!((received.bytes(), received.meta.tag), (frame.bytes(), tag));
        }
    }
    let none = receive_within(Duration::from_secs(2), near_source.as_mut(), |frame| {
        is_ours(frame) && frame.len() == 600 && frame.meta.tag.is_none()
    });
    assert!(none.is_none(), "a sent frame is received by its sender");
}

#[test]
fn a_providers_tag_stays_in_the_bytes() {
    let uplink = uplink(1, None);
    let (_, mut far_sink) = uplink.cable.far_queues();
    let mut near = uplink.shelf.source(1, 0);
    let mut bytes = plain_frame(200).bytes().to_vec();
    bytes.splice(12..12, [0x88, 0xa8, 0x00, 0x05]);
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    far_sink.transmit(&frame).unwrap();
    let received = receive_where(near.as_mut(), is_ours).expect("the frame");
    assert_eq!((received.bytes(), received.meta.tag), (&bytes[..], None));
}

#[test]
fn frames_longer_than_the_mtu_are_lost_and_the_mtu_changes_live() {
    let mut uplink = uplink(1, Some(1400));
    let (mut far_source, _) = uplink.cable.far_queues();
    let mut sink = uplink.shelf.sink(1, 0);
    uplink.cable.peer.run("ip link set far0 mtu 9000");
    assert_eq!(sink.transmit(&plain_frame(1600)).unwrap(), TransmitResult::Accepted);
    assert_eq!(sink.discarded_frames(), 1);
    let spec = uplink_spec(&uplink.cable.near, UplinkDriver::AfPacket);
    let spec = UplinkSpec { mtu: Some(9000), ..spec };
    assert!(uplink.device.apply_spec(&PortDeviceSpec::Uplink(spec.clone())).unwrap());
    sink.transmit(&plain_frame(8000)).unwrap();
    let received = receive_where(&mut far_source, is_ours).unwrap();
    assert_eq!(received.len(), 8000, "the first was lost, the second passed");
    let output = run(&format!("ip link show {}", uplink.cable.near));
    assert!(output.contains("mtu 9000"), "{output}");
    let two = UplinkSpec { queue_pairs: 2, ..spec };
    assert!(!uplink.device.apply_spec(&PortDeviceSpec::Uplink(two)).unwrap());
}

#[test]
fn several_queues_share_the_frames_without_doubling_them() {
    let uplink = uplink(3, None);
    assert_eq!((uplink.shelf.count(1), uplink.device.status().queue_pairs), (6, 3));
    let (_, mut far_sink) = uplink.cable.far_queues();
    let mut sources: Vec<_> = (0..3).map(|index| uplink.shelf.source(1, index)).collect();
    for len in 100..200 {
        far_sink.transmit(&plain_frame(len)).unwrap();
    }
    let mut batch = FrameBatch::new();
    let mut lengths = Vec::new();
    let limit = Instant::now() + LIMIT;
    // More rounds than needed to receive all frames, to detect duplicates.
    let mut remaining = 20;
    while remaining > 0 && Instant::now() < limit {
        remaining -= u32::from(lengths.len() >= 100);
        for source in &mut sources {
            wait_readable(source.as_ref(), 5);
            batch.clear();
            source.receive(&mut batch).unwrap();
            lengths.extend(batch.frames().iter().filter(|frame| is_ours(frame)).map(Frame::len));
        }
    }
    lengths.sort_unstable();
    assert_eq!(lengths, (100..200).collect::<Vec<_>>());
}

#[test]
fn an_uplink_is_lost_when_its_device_is_renamed() {
    let uplink = uplink(1, None);
    let near = &uplink.cable.near;
    let spec = uplink_spec(near, UplinkDriver::AfPacket);
    let before = uplink.devices.uplink_index(&spec);
    assert!(before.is_some());
    run(&format!("ip link set {near} down"));
    run(&format!("ip link set {near} name {near}o"));
    expect_notice(
        &uplink.notices,
        |notice| matches!(notice, DeviceNotice::DeviceLost { reason } if reason.contains("renamed")),
    );
    assert_eq!(uplink.devices.uplink_index(&spec), None);
    run(&format!("ip link set {near}o name {near}"));
    assert_eq!(uplink.devices.uplink_index(&spec), before);
}

#[test]
fn an_uplink_that_was_down_continues_and_a_deleted_one_ends() {
    let uplink = uplink(1, None);
    let near = &uplink.cable.near;
    let (mut source, mut sink) = (uplink.shelf.source(1, 0), uplink.shelf.sink(1, 0));
    let mut batch = FrameBatch::new();
    run(&format!("ip link set {near} down"));
    expect_notice(&uplink.notices, |notice| is_down(notice, "set down"));
    source.receive(&mut batch).unwrap();
    assert_eq!(sink.transmit(&plain_frame(100)).unwrap(), TransmitResult::Accepted);
    assert_eq!(sink.discarded_frames(), 1);
    run(&format!("ip link set {near} up"));
    expect_notice(&uplink.notices, |notice| *notice == DeviceNotice::LinkUp);
    let (mut far_source, mut far_sink) = uplink.cable.far_queues();
    // The socket still holds the error of the time when the device was down; the first frame after
    // that is sent nevertheless.
    sink.transmit(&plain_frame(456)).unwrap();
    assert!(receive_where(&mut far_source, |frame| frame.len() == 456).is_some());
    far_sink.transmit(&plain_frame(321)).unwrap();
    assert_eq!(receive_where(source.as_mut(), is_ours).unwrap().len(), 321);
    sink.transmit(&plain_frame(123)).unwrap();
    assert!(receive_where(&mut far_source, |frame| frame.len() == 123).is_some());
    uplink.cable.peer.run("ip link set far0 down");
    expect_notice(&uplink.notices, |notice| is_down(notice, "no carrier"));
    run(&format!("ip link delete {near}"));
    expect_notice(&uplink.notices, |notice| is_down(notice, "deleted"));
    assert!(!uplink.device.status().link_up);
    let fault = sink.transmit(&plain_frame(100)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Disconnected, "{fault}");
}

/// Sends TCP in large frames, with an optional VLAN tag, from a TAP guest through an uplink to a
/// guest beyond the far end. Returns the counts of the uplink's frames.
fn stream_over_cable(tag: Option<VlanTag>) -> ForwardCounts {
    let uplink = uplink(1, None);
    let pair = Pair::new(OffloadToggles::default(), 1);
    let (mut far_source, mut far_sink) = uplink.cable.far_queues();
    let (mut near_source, mut near_sink) = (uplink.shelf.source(1, 0), uplink.shelf.sink(1, 0));
    let shelf = &pair.shelf;
    let (mut left_in, mut left_out) = (shelf.source(1, 0), shelf.sink(1, 0));
    let (mut right_in, mut right_out) = (shelf.source(2, 0), shelf.sink(2, 0));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| {
            let mut over_cable = ForwardCounts::default();
            let mut batch = FrameBatch::new();
            let mut hop = |from: &mut dyn FrameSource, to: &mut dyn FrameSink, tag| {
                let mut tagged = Tagging { sink: to, tag, scratch: Frame::new(0) };
                let mut counts = ForwardCounts::default();
                pass(from, &mut tagged, &mut batch, &mut counts);
                counts
            };
            while !stop.load(Ordering::Relaxed) {
                hop(left_in.as_mut(), near_sink.as_mut(), tag);
                let counts = hop(&mut far_source, right_out.as_mut(), None);
                over_cable.large += counts.large;
                over_cable.partial += counts.partial;
                hop(right_in.as_mut(), &mut far_sink, tag);
                hop(near_source.as_mut(), left_out.as_mut(), None);
                thread::yield_now();
            }
            over_cable
        });
        transfer(pair.left.name(), pair.right.name(), 8 << 20);
        stop.store(true, Ordering::Relaxed);
        forwarder.join().unwrap()
    })
}

/// Sink that adds a VLAN tag to each frame.
struct Tagging<'a> {
    sink: &'a mut dyn FrameSink,
    tag: Option<VlanTag>,
    scratch: Frame,
}

impl FrameSink for Tagging<'_> {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, suimon_ports::QueueFault> {
        self.scratch.copy_from(frame);
        self.scratch.meta.tag = self.tag;
        self.sink.transmit(&self.scratch)
    }

    fn flush(&mut self) -> Result<(), suimon_ports::QueueFault> {
        self.sink.flush()
    }

    fn offloads(&self) -> Offloads {
        self.sink.offloads()
    }
}

#[test]
fn a_stream_crosses_an_uplink_in_large_frames() {
    let counts = stream_over_cable(None);
    assert!(counts.large > 50, "{counts:?}");
}

#[test]
fn a_stream_crosses_an_uplink_in_large_tagged_frames() {
    let counts = stream_over_cable(Some(VlanTag::for_vlan(VlanId::new(77).unwrap())));
    assert!(counts.large > 50, "{counts:?}");
}

#[test]
fn uplinks_that_cannot_be_are_refused_with_the_choice() {
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, _notices) = Notices::new();
    let cable = TestCable::new();
    let misspelt = format!("{}z", &cable.near[..cable.near.len() - 1]);
    let spec = |device: &str, driver| uplink_spec(device, driver);
    for (spec, kind, part) in [
        (spec(&misspelt, UplinkDriver::AfPacket), DeviceErrorKind::Missing, cable.near.as_str()),
        (spec("no such", UplinkDriver::AfPacket), DeviceErrorKind::Unsupported, "not a valid name"),
        (spec(&cable.near, UplinkDriver::Tap), DeviceErrorKind::Unsupported, "not a TAP"),
    ] {
        for error in [
            devices.probe_uplink(&spec).unwrap_err(),
            devices
                .open_uplink(PortId(1), &spec, shelf.clone(), observer.clone())
                .err()
                .expect("an error"),
        ] {
            assert_eq!((error.kind, error.field), (kind, "device"), "{error}");
            assert!(error.detail.contains(part), "{error}");
        }
    }
}

#[test]
fn an_uplink_may_be_a_tap_that_keeps_its_own_mtu() {
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, _notices) = Notices::new();
    let name = unique("smt");
    run(&format!("ip tuntap add dev {name} mode tap"));
    run(&format!("ip link set {name} mtu 1450"));
    let spec = uplink_spec(&name, UplinkDriver::Tap);
    let mut device = devices.open_uplink(PortId(1), &spec, shelf.clone(), observer).unwrap();
    assert_eq!(device.status().mtu, 1450);
    let larger = UplinkSpec { mtu: Some(1600), ..spec };
    assert!(device.apply_spec(&PortDeviceSpec::Uplink(larger.clone())).unwrap());
    let output = run(&format!("ip link show {name}"));
    // The view of this host, the reverse of that on a guest's TAP.
    let sink = shelf.sink(1, 0);
    let all_enabled = OffloadToggles::default();
    for (offload, beside) in [
        (OffloadToggles { rx_checksum: false, ..all_enabled }, crate::offload::ALL),
        (OffloadToggles { tx_checksum: false, ..all_enabled }, Offloads::NONE),
    ] {
        let spec = UplinkSpec { offload, ..larger.clone() };
        assert!(device.apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
        assert_eq!(sink.offloads(), beside, "{offload:?}");
    }
    drop((device, sink));
    devices.remove_tap(&name, None).unwrap();
    assert!(output.contains("mtu 1600"), "{output}");
}

/// A partial checksum in a received header is recognized. If checksum offload is off, the frame
/// leaves with a complete checksum. The offload settings change while the uplink is open.
#[test]
fn partial_checksums_of_the_far_stack_are_recognized() {
    let mut uplink = uplink(1, None);
    let mut near = uplink.shelf.source(1, 0);
    uplink.cable.peer.run("ip address add 10.9.9.1/24 dev far0");
    uplink.cable.peer.run("ip neighbour add 10.9.9.2 lladdr 02:00:00:00:00:07 dev far0");
    let namespace = Namespace::open(Some(uplink.cable.peer.name())).unwrap();
    let send = || {
        let socket = std::net::UdpSocket::bind("10.9.9.1:0").unwrap();
        socket.send_to(b"hello", "10.9.9.2:99").unwrap();
        Ok(())
    };
    let mut received = || {
        namespace.run(send).unwrap();
        receive_where(near.as_mut(), |frame| frame.bytes().ends_with(b"hello")).unwrap()
    };
    let form = |frame: &Frame| (frame.meta.checksum, frame.meta.egress_form);
    let request = Checksum::Partial { start: 34, offset: 6 };
    let frame = received();
    assert_eq!(form(&frame), (request, EgressForm::Any), "{frame:?}");
    let offload = OffloadToggles { rx_checksum: false, ..OffloadToggles::default() };
    let spec = UplinkSpec { offload, ..uplink_spec(&uplink.cable.near, UplinkDriver::AfPacket) };
    assert!(uplink.device.apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
    let mut frame = received();
    // The egress then computes a valid checksum over the datagram.
    assert_eq!(form(&frame), (request, EgressForm::Complete), "{frame:?}");
    let pseudo = Sum::pseudo_ipv4([10, 9, 9, 1], [10, 9, 9, 2], 17, 13);
    assert_eq!(frame.bytes()[40..42], pseudo.word().to_be_bytes());
    complete_checksum(&mut frame);
    assert_eq!(form(&frame), (Checksum::Verified, EgressForm::Complete), "{frame:?}");
    assert_eq!(pseudo.concat(Sum::from_bytes(&frame.bytes()[34..47])).word(), 0xffff);
}

#[test]
fn offload_toggles_of_an_uplink_apply_to_egress_and_change_live() {
    let mut uplink = uplink(1, None);
    let near = uplink.cable.near.clone();
    let sink = uplink.shelf.sink(1, 0);
    assert_eq!(sink.offloads(), crate::offload::ALL);
    let all_enabled = OffloadToggles::default();
    let only_checksum = Offloads { checksum: true, ..Offloads::NONE };
    for (offload, accepted) in [
        (OffloadToggles { segmentation: false, ..all_enabled }, only_checksum),
        (OffloadToggles { tx_checksum: false, ..all_enabled }, Offloads::NONE),
        (OffloadToggles { rx_checksum: false, ..all_enabled }, crate::offload::ALL),
        (all_enabled, crate::offload::ALL),
    ] {
        let spec = UplinkSpec { offload, ..uplink_spec(&near, UplinkDriver::AfPacket) };
        assert!(uplink.device.apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
        assert_eq!(sink.offloads(), accepted, "{offload:?}");
        assert_eq!(uplink.device.status().egress_offloads, crate::offload::ALL);
    }
}

#[test]
fn the_features_of_an_uplinks_device_are_reported_and_a_tap_has_none() {
    let devices = NetDevices::new().unwrap();
    let cable = TestCable::new();
    let spec = uplink_spec(&cable.near, UplinkDriver::AfPacket);
    let features = || devices.uplink_features(&spec).unwrap().unwrap();
    assert!(features().state(DeviceFeature::TxTcp4Segmentation).is_active);
    run(&format!("ethtool -K {} tso off", cable.near));
    assert!(
        !features().state(DeviceFeature::TxTcp4Segmentation).is_active,
        "the features are queried each time"
    );
    let missing = uplink_spec("smnone", UplinkDriver::AfPacket);
    assert_eq!(devices.uplink_features(&missing).unwrap_err().kind, DeviceErrorKind::Missing);
    let tap = uplink_spec(&cable.near, UplinkDriver::Tap);
    assert_eq!(devices.uplink_features(&tap).unwrap(), None);
}

#[path = "net_devices_speed_tests.rs"]
mod speed;
