//! Tests of ports and their limits, counters, faults, captures and offloads, on real threads.

use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole};
use suimon_frame::{Offloads, VnetHeader};
use suimon_ports::QueueHost;
use suimon_quantity::{BitRate, Direction, PortId, SwitchId};
use suimon_switch::{CaptureBufferLimits, DataPlane, SwitchNotice};

use crate::bench::{Bench, DEADLINE, Guest, attach, frame, number, wait_for};

#[test]
fn a_guest_that_misbehaves_loses_its_own_queue_only() {
    let bench = Bench::new(1, 3);
    bench.introduce();
    bench.guests[0].sender.report_violation();
    let mut notice = None;
    wait_for("the notice", || {
        notice = bench.plane.poll_notice();
        notice.is_some()
    });
    let Some(SwitchNotice::QueueFault { queue, fault }) = notice else { panic!("{notice:?}") };
    assert_eq!((queue.port, queue.direction), (PortId(0), Direction::Ingress));
    assert_eq!(fault.detail, "it misbehaved");
    bench.guests[1].sender.send(&frame(1, 2, 5));
    wait_for("another guest's frame", || bench.guests[2].receiver.poll().is_some());
    // The guest reconnects with new rings.
    let port = bench.guests[0].port;
    bench.plane.detach_port(port);
    assert!(!bench.guests[0].receiver.is_attached());
    let attached = attach(&bench.plane, port);
    attached.sender.send(&frame(0, 2, 6));
    wait_for("its frame", || bench.guests[2].receiver.poll().is_some());
}

/// A fault that the control plane has not read yet is not taken for one of the port's next device.
#[test]
fn the_fault_of_a_queue_is_not_reported_after_its_device_was_closed() {
    let bench = Bench::new(1, 3);
    bench.introduce();
    let port = bench.guests[0].port;
    let report_violation = |guest: &Guest| {
        guest.sender.report_violation();
        wait_for("the end of the queue", || !guest.sender.is_attached());
    };
    report_violation(&bench.guests[0]);
    bench.plane.detach_port(port);
    let attached = attach(&bench.plane, port);
    assert!(bench.plane.poll_notice().is_none());
    // A fault of the next device is reported.
    report_violation(&attached);
    let notice = bench.plane.poll_notice();
    let Some(SwitchNotice::QueueFault { queue, .. }) = notice else { panic!("{notice:?}") };
    assert_eq!(queue.port, port);
    bench.plane.detach_port(port);
    assert!(bench.plane.poll_notice().is_none());
}

#[test]
fn a_live_change_of_one_port_does_not_affect_others() {
    let mut bench = Bench::new(1, 3);
    bench.introduce();
    bench.topology.ports.retain(|port| port.spec.id != PortId(0));
    bench.plane.publish(bench.topology.clone()).unwrap();
    bench.guests[1].sender.send(&frame(1, 2, 1));
    wait_for("the frame", || bench.guests[2].receiver.poll().is_some());
    let counters = bench.plane.port_counters(PortId(1));
    assert_eq!(counters.rx_frames, 2, "the counters continue: the first frame and this one");
    assert_eq!(counters.flooded, 1, "what was learned is still known");
}

#[test]
fn counters_of_a_port_continue_when_its_queues_are_replaced() {
    let mut bench = Bench::new(1, 2);
    bench.introduce();
    let counters = |plane: &DataPlane| {
        let [sender, receiver] = [0, 1].map(|port| plane.port_counters(PortId(port)));
        [sender.rx_frames, sender.rx_bytes, receiver.tx_frames, receiver.tx_bytes]
    };
    // Each guest has been introduced to the other with a frame of 60 bytes.
    for round in 1..=3_u64 {
        bench.guests[0].sender.send(&frame(0, 1, 0));
        wait_for("the frame", || bench.guests[1].receiver.poll().is_some());
        let expected = [1 + round, 60 * (1 + round), 1 + round, 60 * (1 + round)];
        wait_for("the counters", || counters(&bench.plane) == expected);
        bench.guests = (0..2).map(|id| attach(&bench.plane, PortId(id))).collect();
        assert_eq!(counters(&bench.plane), expected, "with new queues");
    }
    bench.plane.detach_port(PortId(0));
    assert_eq!(counters(&bench.plane)[0], 4, "without queues");
    bench.plane.stop();
    assert_eq!(counters(&bench.plane)[2..], [4, 240], "without processors");
}

#[test]
fn bandwidth_is_held_by_waiting_not_by_dropping() {
    let mut bench = Bench::new(1, 2);
    bench.introduce();
    // 480 kbit/s are 1000 frames of 60 bytes per second, after a burst of 64 KiB.
    bench.topology.ports[0].bandwidth = BitRate::new(480_000);
    // Taken before the first frame, so that load can only make the measured time longer.
    let started = Instant::now();
    bench.plane.publish(bench.topology.clone()).unwrap();
    for number in 0..2600 {
        bench.guests[0].sender.send(&frame(0, 1, number));
    }
    for expected in 0..2600 {
        let mut bytes = None;
        wait_for("a frame", || {
            bytes = bench.guests[1].receiver.poll();
            bytes.is_some()
        });
        assert_eq!(number(&bytes.unwrap()), expected);
    }
    let elapsed = started.elapsed();
    assert!(elapsed > Duration::from_millis(1400), "1500 frames beyond the burst took {elapsed:?}");
    assert_eq!(bench.plane.port_counters(PortId(0)).rx_dropped, []);
}

#[test]
fn a_storm_is_limited_and_reported_once() {
    let mut bench = Bench::new(1, 2);
    bench.introduce();
    bench.topology.ports[0].storm_limit_fps = Some(100);
    let passed = || bench.plane.port_counters(PortId(1)).tx_frames;
    let dropped = || match bench.plane.port_counters(PortId(0)).rx_dropped[..] {
        [] => 0,
        [("storm_limit", frames)] => frames,
        ref others => panic!("{others:?}"),
    };
    let before = passed();
    let started = Instant::now();
    bench.plane.publish(bench.topology.clone()).unwrap();
    for number in 0..500 {
        bench.guests[0].sender.send(&frame(0, 0xff, number));
    }
    // The received frames are counted before the storm limit is applied.
    wait_for("all frames to be forwarded or dropped", || dropped() + passed() - before == 500);
    // A burst of 20 frames, plus 100 frames per second of elapsed time.
    let passed_max = 20 + started.elapsed().as_millis() as u64 / 10;
    let passed = passed() - before;
    assert!(passed <= passed_max, "{passed} at 100 a second in {:?}", started.elapsed());
    let notice = bench.plane.poll_notice();
    assert!(matches!(notice, Some(SwitchNotice::StormLimited { port: PortId(0) })), "{notice:?}");
    assert!(bench.plane.poll_notice().is_none());
}

#[test]
fn a_capture_sees_both_directions_of_its_port_only() {
    let bench = Bench::new(1, 3);
    bench.introduce();
    let capture = bench.plane.start_capture(PortId(1), CaptureBufferLimits::default());
    // Sent one after the other, because the order in which queues of different guests are served is
    // undefined.
    for (number, (from, to)) in (1..).zip([(0, 1), (1, 0), (0, 2)]) {
        bench.guests[from].sender.send(&frame(from, to, number));
        wait_for("the frame", || bench.guests[to].receiver.poll().is_some());
    }
    let mut captured_frames = Vec::new();
    capture.read(DEADLINE, 10, |captured| {
        captured_frames.push((captured.direction, number(captured.bytes())));
    });
    assert_eq!(captured_frames, [(Direction::Egress, 1), (Direction::Ingress, 2)]);
}

impl Bench {
    /// Sends a large frame and returns the lengths of the `count` frames that arrive.
    fn lengths_at(&self, to: usize, from: usize, count: usize) -> Vec<usize> {
        let (header, bytes) = large_frame(from, to);
        self.guests[from].sender.send_with(&header, &bytes);
        let mut lengths = Vec::new();
        wait_for("the frames", || {
            lengths.extend(self.guests[to].receiver.poll().map(|bytes| bytes.len()));
            lengths.len() == count
        });
        lengths
    }
}

/// Returns a TCP/IPv4 frame with 1000 bytes of payload to be segmented into two of 500 bytes.
fn large_frame(from: usize, to: usize) -> (VnetHeader, Vec<u8>) {
    let mut bytes = frame(from, to, 0);
    bytes.truncate(12);
    bytes.extend_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    bytes.extend_from_slice(&(20 + 20 + 1000_u16).to_be_bytes());
    bytes.extend_from_slice(&[0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend_from_slice(&[0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff]);
    bytes.extend_from_slice(&[0; 4]);
    bytes.resize(14 + 20 + 20 + 1000, 7);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: 54,
        gso_size: 500,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 1,
    };
    (header, bytes)
}

#[test]
fn large_frames_reach_only_ports_that_support_them() {
    let mut bench = Bench::new(1, 3);
    bench.topology.ports[0].spec =
        ForwardingPortSpec::new(PortId(0), SwitchId(1), PortRole::Uplink);
    bench.plane.publish(bench.topology.clone()).unwrap();
    bench.introduce();
    assert_eq!(bench.lengths_at(2, 1, 2), [554, 554], "it takes no large frames");
    bench.guests[2].receiver.set_offloads(Offloads::TCP);
    assert_eq!(bench.lengths_at(2, 1, 1), [1054], "it does now");
    assert_eq!(bench.lengths_at(2, 0, 1), [1054], "from the uplink too");
    bench.topology.ports[2].receive_coalescing = false;
    bench.plane.publish(bench.topology.clone()).unwrap();
    assert_eq!(
        bench.lengths_at(2, 0, 2),
        [554, 554],
        "not any more what the uplink's device joined"
    );
    assert_eq!(bench.lengths_at(2, 1, 1), [1054], "but what a guest sent");
    assert_eq!(bench.plane.port_counters(PortId(2)).software_segmented, 2);
}
