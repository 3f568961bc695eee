//! Tests of opening, changes and the end of AF_XDP uplinks.

use std::sync::Arc;

use suimon_frame::{MacAddr, VlanId, VlanTag};
use suimon_ports::{
    DeviceErrorKind, DeviceNotice, FaultKind, FrameSink, PortDeviceSpec, TransmitResult,
    UplinkSpec, XdpHook,
};
use suimon_quantity::PortId;

use super::host_frames::HostAddresses;
use super::program::AttachedProgram;
use super::tests::{Bench, lengths_up_to, patterned, spec};
use crate::NetDevices;
use crate::link::Link;
use crate::testing::*;

/// Returns no host addresses.
fn no_addresses() -> HostAddresses {
    HostAddresses { mac: MacAddr::default(), ips: Vec::new() }
}

#[test]
fn frames_longer_than_the_mtu_are_lost_and_the_mtu_changes_live_within_its_chunks() {
    let mut bench = Bench::new(Some(1400));
    bench.cable.peer.run("ip link set far0 mtu 1600");
    assert_eq!(bench.sink.transmit(&patterned(1423)).unwrap(), TransmitResult::Accepted);
    assert_eq!(bench.sink.discarded_frames(), 1);
    let mut change = |mtu| {
        let spec = UplinkSpec { mtu: Some(mtu), ..bench.spec.clone() };
        bench.device.as_mut().unwrap().apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap()
    };
    assert!(change(1600) && !change(3000) && !change(9000));
    assert_eq!(bench.status().xdp.unwrap().chunk_bytes, 2048);
    bench.exchange(&patterned(1614));
    let spec = UplinkSpec { queue_pairs: 2, ..bench.spec.clone() };
    assert!(!bench.device.as_mut().unwrap().apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
}

#[test]
fn an_uplink_that_was_down_continues_and_a_deleted_one_is_lost() {
    let mut bench = Bench::new(None);
    let near = bench.cable.near.clone();
    run(&format!("ip link set {near} down"));
    expect_notice(&bench.notices, |notice| is_down(notice, "set down"));
    // The first frame reports the error; the following ones are lost.
    for _ in 0..3 {
        bench.send(&patterned(77));
    }
    assert_eq!(bench.sink.discarded_frames(), 2);
    run(&format!("ip link set {near} up"));
    expect_notice(&bench.notices, |notice| *notice == DeviceNotice::LinkUp);
    bench.wait_for_far_carrier();
    bench.send(&patterned(456));
    assert!(receive_where(&mut bench.far_source, |frame| frame.len() == 456).is_some());
    bench.exchange(&patterned(1000));
    bench.cable.peer.run("ip link set far0 down");
    expect_notice(&bench.notices, |notice| is_down(notice, "no carrier"));
    for _ in 0..5000 {
        assert_eq!(bench.sink.transmit(&patterned(100)).unwrap(), TransmitResult::Accepted);
        bench.sink.flush().unwrap();
    }
    run(&format!("ip link delete {near}"));
    expect_notice(&bench.notices, |notice| is_down(notice, "deleted"));
    expect_notice(
        &bench.notices,
        |notice| matches!(notice, DeviceNotice::DeviceLost { reason } if reason.contains(&near)),
    );
    assert!(!bench.status().link_up);
    bench.sink.transmit(&patterned(100)).unwrap();
    let fault = bench.sink.flush().unwrap_err();
    assert_eq!(fault.kind, FaultKind::Disconnected, "{fault}");
}

#[test]
fn the_program_is_detached_with_the_device_and_another_program_is_kept() {
    let mut bench = Bench::new(None);
    let near = bench.cable.near.clone();
    let has_program = || run(&format!("ip link show {near}")).contains("xdp");
    let rx_vlan_offload = || Link::new(&near).unwrap().rx_vlan_offload().unwrap();
    assert!(has_program() && !rx_vlan_offload());
    // The uplink is open: probing does not reject its own program.
    bench.devices.probe_uplink(&bench.spec).unwrap();
    let other_devices = NetDevices::new().unwrap();
    let error = other_devices.probe_uplink(&bench.spec).unwrap_err();
    assert_eq!((error.kind, error.field), (DeviceErrorKind::Busy, "device"), "{error}");
    assert!(error.detail.contains(&format!("ip link set dev {near} xdp off")), "{error}");
    drop(bench.device.take());
    assert!(!has_program() && rx_vlan_offload());
    assert_eq!(bench.shelf.count(1), 0);

    let index = Link::new(&near).unwrap().index().unwrap();
    let anothers = AttachedProgram::new(index, 1, false, no_addresses()).unwrap();
    let (observer, _notices) = Notices::new();
    let open = || {
        let shelf = Arc::new(TestQueueHost::default());
        bench.devices.open_uplink(PortId(2), &bench.spec, shelf, observer.clone())
    };
    let error = open().err().expect("an error");
    assert_eq!(error.kind, DeviceErrorKind::Busy, "{error}");
    drop(anothers);
    // The earlier sockets may take some time to release their queue.
    drop((bench.source, bench.sink));
    let reopened = open().unwrap();
    assert!(has_program());
    drop(reopened);
    assert!(!has_program());
}

#[test]
fn as_many_queues_as_the_device_receives_with() {
    let devices = NetDevices::new().unwrap();
    let refused = |cable: &TestCable, queue_pairs, part: &str| {
        let spec = UplinkSpec { queue_pairs, ..spec(&cable.near, None) };
        let shelf = Arc::new(TestQueueHost::default());
        let open = devices.open_uplink(PortId(1), &spec, shelf, Notices::new().0);
        for error in [devices.probe_uplink(&spec).unwrap_err(), open.err().expect("an error")] {
            assert_eq!((error.kind, error.field), (DeviceErrorKind::Unsupported, "queues"));
            assert!(error.detail.contains(part), "{error}");
        }
    };
    refused(&TestCable::new(), 2, "set queues = 1");
    // Newer kernels give each end of a veth pair as many queues as there are CPUs, unless
    // specified.
    let cable =
        TestCable::with_queues("numtxqueues 3 numrxqueues 3", "numtxqueues 1 numrxqueues 1");
    refused(&cable, 1, "set queues = 3");
    refused(&cable, 4, "set queues = 3");

    let spec = UplinkSpec { queue_pairs: 3, ..spec(&cable.near, None) };
    let shelf = Arc::new(TestQueueHost::default());
    let (observer, notices) = Notices::new();
    let device = devices.open_uplink(PortId(1), &spec, shelf.clone(), observer).unwrap();
    expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
    assert_eq!((shelf.count(1), device.status().queue_pairs), (6, 3));
    let (mut far_source, mut far_sink) = cable.far_queues();
    for queue in 0..3 {
        let mut sink = shelf.sink(1, queue);
        sink.transmit(&patterned(200 + usize::from(queue))).unwrap();
        sink.flush().unwrap();
        assert!(
            receive_where(&mut far_source, |frame| {
                is_ours(frame) && frame.len() == 200 + usize::from(queue)
            })
            .is_some()
        );
    }
    // The far end sends with one queue, so one receives here.
    while far_sink.transmit(&patterned(300)).unwrap() != TransmitResult::Accepted {
        std::thread::yield_now();
    }
    let mut source = shelf.source(1, 0);
    assert!(receive_where(source.as_mut(), is_ours).is_some());
}

/// The driver of a device with fewer queues than its peer sends with runs no XDP program.
#[test]
fn where_the_driver_runs_no_program_the_kernel_does() {
    let cable = TestCable::with_queues("", "numtxqueues 2 numrxqueues 2");
    cable.peer.run("ethtool -L far0 rx 2 tx 2");
    for mtu in [1500, 9000] {
        cable.peer.run(&format!("ip link set far0 mtu {mtu}"));
    }
    let mut bench = Bench::on(cable, Some(9000));
    assert_eq!((bench.state().hook, bench.state().zero_copy), (XdpHook::Generic, false));
    for len in lengths_up_to(9014) {
        bench.exchange(&patterned(len));
    }
    let mut frame = patterned(9014);
    frame.meta.tag = Some(VlanTag::for_vlan(VlanId::new(9).unwrap()));
    bench.exchange(&frame);
}
