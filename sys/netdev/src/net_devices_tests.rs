//! Tests of devices on the real kernel: TAPs in namespaces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use suimon_frame::{
    Checksum, EgressForm, Frame, FrameBatch, MacAddr, Offloads, Sum, VlanId, VlanTag,
    complete_checksum,
};
use suimon_ports::{
    DeviceFeature, DeviceNotice, FaultKind, FrameSink, FrameSource, OffloadToggles, PortDeviceSpec,
    TransmitResult,
};

use super::*;
use crate::namespace::Namespace;
use crate::testing::*;

fn tap_spec(device: &str, netns: &TestNetns) -> TapSpec {
    TapSpec {
        device: device.to_owned(),
        netns: Some(netns.name().to_owned()),
        queue_pairs: 1,
        mac: None,
        keeps_mac: false,
        mtu: 1500,
        offload: OffloadToggles::default(),
        may_use_kernel_path: false,
    }
}

#[test]
fn a_tap_is_created_configured_kept_adopted_and_removed() {
    let netns = TestNetns::new();
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, notices) = Notices::new();
    let spec = TapSpec { mac: Some(mac(9)), mtu: 9000, ..tap_spec("tap0", &netns) };
    devices.probe_tap(&spec).unwrap();
    assert!(!devices.tap_exists("tap0", spec.netns.as_deref()), "probing makes nothing");

    let device = devices.open_tap(PortId(1), &spec, shelf.clone(), observer.clone()).unwrap();
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    let status = device.status();
    assert_eq!((status.link_up, status.mac, status.mtu), (true, Some(mac(9)), 9000));
    assert_eq!((status.queue_pairs, shelf.count(1)), (1, 2));
    let output = netns.run("ip -d link show tap0");
    assert!(output.contains("mtu 9000") && output.contains("02:00:00:00:00:09"), "{output}");
    assert!(output.contains("LOWER_UP") && output.contains("persist on"), "{output}");
    assert!(output.contains("alias suimon"), "{output}");

    let busy = devices.open_tap(PortId(2), &spec, shelf.clone(), observer.clone()).err().unwrap();
    assert_eq!((busy.kind, busy.field), (DeviceErrorKind::Busy, "device"), "{busy}");
    drop(device);
    assert_eq!(shelf.count(1), 0);
    assert!(devices.tap_exists("tap0", spec.netns.as_deref()));
    let changed = TapSpec { mac: None, mtu: 1400, ..spec.clone() };
    let device = devices.open_tap(PortId(3), &changed, shelf.clone(), observer).unwrap();
    assert_eq!((device.status().mac, device.status().mtu), (Some(mac(9)), 1400));
    drop(device);
    assert!(devices.remove_tap("tap0", spec.netns.as_deref()).unwrap());
    assert!(!devices.tap_exists("tap0", spec.netns.as_deref()));
    assert!(devices.remove_tap("tap0", spec.netns.as_deref()).unwrap());
    assert!(devices.remove_tap("tap0", Some("suimon-none")).unwrap());
}

/// A TAP of another program with the name of a NIC's device is used, and kept when the NIC is
/// deleted. The same applies to a TAP of a daemon with another state directory.
#[test]
fn only_taps_that_were_created_are_removed() {
    let inner = TestNetns::new();
    inner.run("ip tuntap add dev theirs mode tap");
    inner.run("ip tuntap add dev several mode tap multi_queue");
    let devices = NetDevices::new().unwrap().with_owner("/var/lib/suimon");
    let other = NetDevices::new().unwrap().with_owner("/var/lib/other");
    let (observer, _notices) = Notices::new();
    let netns = Some(inner.name());
    let open = |device: &str, queue_pairs| {
        let spec = TapSpec { queue_pairs, ..tap_spec(device, &inner) };
        let shelf = Arc::new(TestQueueHost::default());
        drop(devices.open_tap(PortId(1), &spec, shelf, observer.clone()).unwrap());
    };
    for (device, queue_pairs) in [("theirs", 1), ("several", 3)] {
        open(device, queue_pairs);
        assert!(!devices.remove_tap(device, netns).unwrap());
        assert!(devices.tap_exists(device, netns), "{device}");
    }
    for (device, queue_pairs) in [("one", 1), ("two", 2)] {
        open(device, queue_pairs);
        // A second opening takes the device over and leaves its alias.
        open(device, queue_pairs);
        assert!(!other.remove_tap(device, netns).unwrap());
        assert!(devices.tap_exists(device, netns), "{device}");
        assert!(devices.remove_tap(device, netns).unwrap());
        assert!(!devices.tap_exists(device, netns), "{device}");
    }
    // The same name afterwards belongs to the program that created it last.
    open("one", 1);
    inner.run("ip link delete one");
    inner.run("ip tuntap add dev one mode tap");
    assert!(!devices.remove_tap("one", netns).unwrap());
    assert!(devices.tap_exists("one", netns));
}

#[test]
fn the_alias_of_taps_fits_the_kernel() {
    assert_eq!(tap_mark(""), "suimon");
    assert_eq!(tap_mark("/var/lib/suimon"), "suimon /var/lib/suimon");
    let long = tap_mark(&format!("/{}/state", "ä".repeat(300)));
    assert!(long.len() <= ALIAS_BYTES_MAX && long.len() > ALIAS_BYTES_MAX - 2, "{long}");
    assert!(long.ends_with("/state"), "{long}");
}

/// The namespace persists while this process holds it, but is not reachable by name.
#[test]
fn a_tap_whose_namespace_loses_its_name_is_reported_as_lost() {
    let netns = TestNetns::new();
    let name = netns.name().to_owned();
    let devices = NetDevices::new().unwrap();
    let (observer, notices) = Notices::new();
    let spec = tap_spec("tap0", &netns);
    let queues = Arc::new(TestQueueHost::default());
    let device = devices.open_tap(PortId(1), &spec, queues.clone(), observer).unwrap();
    // Names of other namespaces have no effect.
    drop(TestNetns::new());
    let lost = |notice: &DeviceNotice| match notice {
        DeviceNotice::DeviceLost { reason } => {
            assert!(reason.contains(&name) && reason.contains("deleted"), "{reason}");
            true
        }
        _ => false,
    };
    run(&format!("ip netns delete {name}"));
    expect_notice(&notices, lost);
    drop(device);
    let (observer, notices) = Notices::new();
    let refused = devices.open_tap(PortId(1), &spec, queues.clone(), observer.clone());
    assert_eq!(refused.err().unwrap().kind, DeviceErrorKind::Missing);
    run(&format!("ip netns add {name}"));
    let device = devices.open_tap(PortId(1), &spec, queues, observer).unwrap();
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    assert!(netns.run("ip link show tap0").contains("tap0"));
    // The name now refers to another namespace.
    run(&format!("ip netns delete {name}"));
    run(&format!("ip netns add {name}"));
    expect_notice(&notices, lost);
    drop(device);
}

#[test]
fn a_tap_that_is_down_loses_frames_and_one_that_is_deleted_ends_its_queues() {
    let netns = TestNetns::new();
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, notices) = Notices::new();
    let spec = tap_spec("tap0", &netns);
    let device = devices.open_tap(PortId(1), &spec, shelf.clone(), observer).unwrap();
    let (mut source, mut sink) = (shelf.source(1, 0), shelf.sink(1, 0));
    netns.run("ip link set tap0 down");
    expect_notice(&notices, |notice| is_down(notice, "tap0 was set down"));
    assert_eq!(sink.transmit(&plain_frame(100)).unwrap(), TransmitResult::Accepted);
    assert_eq!(sink.discarded_frames(), 1);
    let mut batch = FrameBatch::new();
    source.receive(&mut batch).unwrap();
    assert!(!device.status().link_up);
    netns.run("ip link set tap0 up mtu 1280");
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    assert_eq!(device.status().mtu, 1280, "changes by the host are reported");
    netns.run("ip link delete tap0");
    expect_notice(&notices, |notice| is_down(notice, "deleted"));
    let fault = receive_fault(source.as_mut());
    assert_eq!(fault.kind, FaultKind::Disconnected, "{fault}");
    assert!(fault.detail.contains("tap0"));
    assert_eq!(sink.transmit(&plain_frame(100)).unwrap_err().kind, FaultKind::Disconnected);
}

#[test]
fn unusable_taps_are_refused_with_the_field_and_a_remedy() {
    let netns = TestNetns::new();
    netns.run("ip link add veth0 type veth peer name veth1");
    netns.run("ip tuntap add dev single mode tap");
    netns.run("ip tuntap add dev several mode tap multi_queue");
    netns.run("ip tuntap add dev tun0 mode tun");
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, _notices) = Notices::new();
    let open = |spec: &TapSpec| {
        devices.open_tap(PortId(1), spec, shelf.clone(), observer.clone()).map(drop)
    };
    let base = tap_spec("tap0", &netns);
    let spec_with = |device: &str, queue_pairs, mtu| TapSpec {
        device: device.to_owned(),
        queue_pairs,
        mtu,
        ..base.clone()
    };
    let missing_netns = TapSpec { netns: Some("suimon-none".to_owned()), ..base.clone() };
    for (spec, kind, field, part, probed) in [
        (spec_with("veth0", 1, 1500), DeviceErrorKind::Unsupported, "device", "af_packet", true),
        (spec_with("tun0", 1, 1500), DeviceErrorKind::Unsupported, "device", "not a TAP", true),
        (
            spec_with("a/b", 1, 1500),
            DeviceErrorKind::Unsupported,
            "device",
            "not a valid name",
            true,
        ),
        (
            spec_with("tap%d", 1, 1500),
            DeviceErrorKind::Unsupported,
            "device",
            "not a valid name",
            true,
        ),
        (
            spec_with("new", 0, 1500),
            DeviceErrorKind::Unsupported,
            "queues",
            "outside of 1 to 64",
            true,
        ),
        (
            spec_with("new", 65, 1500),
            DeviceErrorKind::Unsupported,
            "queues",
            "outside of 1 to 64",
            true,
        ),
        (spec_with("single", 2, 1500), DeviceErrorKind::Unsupported, "queues", "queues = 1", false),
        (spec_with("new", 1, 20), DeviceErrorKind::Unsupported, "mtu", "new to 20", false),
        (missing_netns, DeviceErrorKind::Missing, "netns", "ip netns add", true),
    ] {
        let error = open(&spec).unwrap_err();
        assert_eq!((error.kind, error.field), (kind, field), "{error}");
        assert!(error.detail.contains(part), "{error}");
        assert_eq!(devices.probe_tap(&spec).is_err(), probed);
    }
    assert!(!devices.tap_exists("new", base.netns.as_deref()), "nothing half-made stays");
    assert!(!devices.remove_tap("veth0", base.netns.as_deref()).unwrap());
    open(&spec_with("single", 1, 1500)).unwrap();
    open(&spec_with("several", 1, 1500)).unwrap();
    open(&spec_with("several", 3, 1500)).unwrap();
}

#[test]
fn changes_are_live_or_need_reopening_and_a_rejected_one_changes_nothing() {
    let netns = TestNetns::new();
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, _notices) = Notices::new();
    let spec = tap_spec("tap0", &netns);
    let mut device = devices.open_tap(PortId(1), &spec, shelf.clone(), observer).unwrap();
    let sink = shelf.sink(1, 0);
    assert_eq!(sink.offloads(), crate::offload::ALL);
    for changed in [
        TapSpec { device: "tap1".to_owned(), ..spec.clone() },
        TapSpec { netns: None, ..spec.clone() },
        TapSpec { queue_pairs: 2, ..spec.clone() },
    ] {
        assert!(!device.apply_spec(&PortDeviceSpec::Tap(changed)).unwrap());
    }
    assert!(
        !device
            .apply_spec(&PortDeviceSpec::Uplink(uplink_spec("tap0", UplinkDriver::Tap)))
            .unwrap()
    );
    let offload = OffloadToggles { rx_checksum: false, ..OffloadToggles::default() };
    let live = TapSpec { mtu: 2000, mac: Some(mac(3)), offload, ..spec.clone() };
    assert!(device.apply_spec(&PortDeviceSpec::Tap(live.clone())).unwrap());
    assert_eq!(sink.offloads(), Offloads::NONE);
    assert!(netns.run("ip link show tap0").contains("mtu 2000"));
    // A group address: rejected after the MTU was set.
    let group = TapSpec { mtu: 3000, mac: Some(MacAddr::BROADCAST), ..spec.clone() };
    let error = device.apply_spec(&PortDeviceSpec::Tap(group)).unwrap_err();
    assert_eq!(error.field, "mac", "{error}");
    let output = netns.run("ip link show tap0");
    assert!(output.contains("mtu 2000") && output.contains("02:00:00:00:00:03"), "{output}");
    assert_eq!(sink.offloads(), Offloads::NONE);
    assert_eq!(
        device.status().egress_offloads,
        crate::offload::ALL,
        "the offloads that the device supports"
    );
}

#[test]
fn an_address_that_was_changed_on_a_tap_stays_if_that_is_permitted() {
    let netns = TestNetns::new();
    let devices = NetDevices::new().unwrap();
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, _notices) = Notices::new();
    let spec = TapSpec { mac: Some(mac(9)), keeps_mac: true, ..tap_spec("tap0", &netns) };
    let open = |port, spec: &TapSpec| {
        devices.open_tap(PortId(port), spec, shelf.clone(), observer.clone()).unwrap()
    };
    let device = open(1, &spec);
    assert!(netns.run("ip link show tap0").contains("02:00:00:00:00:09"), "a new device");
    netns.run("ip link set tap0 address 02:00:00:00:00:44");
    drop(device);
    let mut device = open(2, &spec);
    let mut change = |new_spec: TapSpec, expected: &str, subject: &str| {
        assert!(device.apply_spec(&PortDeviceSpec::Tap(new_spec)).unwrap());
        let output = netns.run("ip link show tap0");
        assert!(output.contains(expected), "{subject}: {output}");
    };
    change(TapSpec { mtu: 2000, ..spec.clone() }, "02:00:00:00:00:44", "opened again, another MTU");
    let other = TapSpec { mac: Some(mac(8)), ..spec.clone() };
    change(other.clone(), "02:00:00:00:00:08", "configured anew");
    netns.run("ip link set tap0 address 02:00:00:00:00:44");
    change(TapSpec { keeps_mac: false, ..other }, "02:00:00:00:00:08", "not permitted any more");
}

#[path = "net_devices_stream_tests.rs"]
mod streams;
#[path = "net_devices_uplink_tests.rs"]
mod uplink;
