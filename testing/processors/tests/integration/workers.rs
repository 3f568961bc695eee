//! Tests of the switching plane on real threads that are pinned to CPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{Offloads, VnetHeader};
use suimon_ports::{
    CpuAffinity, NoTasks, QueueHost, Waker, WorkerRuntime, WorkerTask, WorkerTasks,
};
use suimon_processor_tests::{Receiver, Sender};
use suimon_quantity::{BitRate, Direction, PortId, QueueId, SwitchId, WorkerId};
use suimon_switch::{
    CaptureBufferLimits, DataPlane, MoveError, PortTopology, SwitchNotice, Topology,
};
use suimon_wait::WorkerThreads;

/// Deadline of every condition, generous because the machine may be loaded.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Guest {
    port: PortId,
    pub(crate) sender: Sender,
    receiver: Receiver,
}

pub(crate) struct Bench {
    pub(crate) plane: DataPlane,
    pub(crate) guests: Vec<Guest>,
    pub(crate) topology: Topology,
}

impl Bench {
    pub(crate) fn new(workers: usize, guests: u32) -> Self {
        let runtime = Arc::new(WorkerThreads);
        let cpus = runtime.cpus();
        assert!(cpus.len() >= workers, "this test needs {workers} CPUs");
        let plane = DataPlane::start(&cpus[..workers], runtime).unwrap();
        let switch = SwitchId(1);
        let ports = (0..guests).map(|id| PortTopology {
            spec: ForwardingPortSpec::new(PortId(id), switch, PortRole::Nic),
            bandwidth: None,
            storm_limit_fps: None,
            receive_coalescing: true,
        });
        let topology = Topology {
            switches: vec![SwitchSpec::new(switch)],
            ports: ports.collect(),
            teams: Vec::new(),
        };
        plane.publish(topology.clone()).unwrap();
        let guests = (0..guests).map(|id| attach(&plane, PortId(id))).collect();
        Self { plane, guests, topology }
    }

    /// Sends a frame from every guest, so that the switch learns all addresses.
    fn introduce(&self) {
        for guest in 0..self.guests.len() {
            self.guests[guest].sender.send(&frame(guest, 0xff, 0));
        }
        let is_learned = || self.plane.addresses(SwitchId(1)).len() == self.guests.len();
        wait_for("all addresses to be learned", is_learned);
        let others = self.guests.len() - 1;
        for guest in &self.guests {
            let mut seen_count = 0;
            wait_for("the introductions", || {
                seen_count += usize::from(guest.receiver.poll().is_some());
                seen_count == others
            });
        }
        // The counter of sent frames changes after the receiver can see the frame.
        wait_for("the introductions in the counters", || {
            let counted = |guest: &Guest| self.plane.port_counters(guest.port).tx_frames;
            self.guests.iter().all(|guest| counted(guest) == others as u64)
        });
    }
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

impl Drop for Bench {
    fn drop(&mut self) {
        self.plane.stop();
    }
}

fn attach(plane: &DataPlane, port: PortId) -> Guest {
    let (sender, source) = Sender::pair();
    let (receiver, sink) = Receiver::pair();
    plane.attach_source(queue(port, Direction::Ingress), source);
    plane.attach_sink(queue(port, Direction::Egress), sink);
    Guest { port, sender, receiver }
}

fn queue(port: PortId, direction: Direction) -> QueueId {
    QueueId { port, direction, index: 0 }
}

pub(crate) fn mac(guest: usize) -> [u8; 6] {
    if guest == 0xff { [0xff; 6] } else { [2, 0, 0, 0, 0, guest as u8] }
}

pub(crate) fn frame(from: usize, to: usize, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&mac(to));
    bytes.extend_from_slice(&mac(from));
    bytes.extend_from_slice(&[0x88, 0xb5]);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[14], bytes[15], bytes[16], bytes[17]])
}

pub(crate) fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "waited in vain for {description}");
        suimon_processor_tests::sleep_briefly();
    }
}

const FRAMES: u32 = 60_000;

/// Sends at least [`FRAMES`] numbered frames, and more while `continues` returns true. Limits the
/// number of frames in flight to what a switch can hold without dropping. Returns the number of
/// frames sent.
fn send_in_window(
    sender: &Sender,
    received: &AtomicU32,
    continues: impl Fn() -> bool,
    frame: impl Fn(u32) -> Vec<u8>,
) -> u32 {
    let mut number = 0;
    while number < FRAMES || continues() {
        wait_for("room", || number - received.load(Ordering::Relaxed) < 256);
        sender.send(&frame(number));
        number += 1;
    }
    number
}

#[test]
fn queues_move_under_load_and_nothing_is_lost_or_reordered() {
    let bench = Bench::new(2, 3);
    bench.introduce();
    let received = [AtomicU32::new(0), AtomicU32::new(0)];
    let sent_counts = [AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX)];
    let is_moving = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for from in [0, 1] {
            let (sender, received) = (&bench.guests[from].sender, &received[from]);
            let (sent_count, continues) =
                (&sent_counts[from], || is_moving.load(Ordering::Relaxed));
            scope.spawn(move || {
                let count = send_in_window(sender, received, continues, |n| frame(from, 2, n));
                sent_count.store(count, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            for step in 0..1000_u16 {
                let port = PortId(u32::from(step) % 3);
                let direction = if port.0 == 2 { Direction::Egress } else { Direction::Ingress };
                let to = WorkerId(step / 3 % 2);
                bench.plane.move_queue(queue(port, direction), to).unwrap();
            }
            is_moving.store(false, Ordering::Relaxed);
        });
        let (mut next, mut last) = ([0; 2], Instant::now());
        while next != [0, 1].map(|from: usize| sent_counts[from].load(Ordering::Relaxed)) {
            let Some(bytes) = bench.guests[2].receiver.poll() else {
                assert!(last.elapsed() < DEADLINE, "no frame came after {next:?}");
                suimon_processor_tests::sleep_briefly();
                continue;
            };
            last = Instant::now();
            let from = usize::from(bytes[11]);
            assert_eq!(number(&bytes), next[from], "lost or out of order");
            next[from] += 1;
            received[from].store(next[from], Ordering::Relaxed);
        }
    });
    let moves: u64 = bench.plane.queues().iter().map(|queue| queue.moves).sum();
    // Each of the first steps moves a queue to the worker that already has it.
    assert!(moves >= 990, "only {moves} hand-overs took place");
}

#[test]
fn workers_come_and_go_while_frames_flow() {
    let bench = Bench::new(1, 2);
    bench.introduce();
    let received = AtomicU32::new(0);
    let cpus = WorkerThreads.cpus();
    std::thread::scope(|scope| {
        let (sender, received) = (&bench.guests[0].sender, &received);
        scope.spawn(move || {
            send_in_window(sender, received, || false, |number| frame(0, 1, number))
        });
        scope.spawn(|| {
            let [first, second] = [cpus[0], cpus[1]].map(CpuAffinity::Pinned);
            let floating = CpuAffinity::Floating;
            for choice in [
                &[first, second][..],
                &[second],
                &[floating],
                &[first],
                &[floating, second],
                &[floating, floating, first],
                &[floating; 5],
                &[first, second],
                &[floating, floating],
                &[floating],
            ] {
                bench.plane.set_workers(choice).unwrap();
                let now = bench.plane.workers();
                let mut now: Vec<_> = now.iter().map(|view| view.placement.cpu()).collect();
                let mut expected: Vec<_> = choice.iter().map(|placement| placement.cpu()).collect();
                now.sort_unstable();
                expected.sort_unstable();
                assert_eq!(now, expected);
            }
        });
        for expected in 0..FRAMES {
            let mut bytes = None;
            wait_for("the next frame", || {
                bytes = bench.guests[1].receiver.poll();
                bytes.is_some()
            });
            assert_eq!(number(&bytes.unwrap()), expected);
            received.store(expected + 1, Ordering::Relaxed);
        }
    });
    assert!(bench.plane.set_workers::<u16>(&[]).is_err());
    assert!(bench.plane.set_workers(&[cpus[0], cpus[0]]).is_err());
    assert!(bench.plane.set_workers(&[u16::MAX]).is_err());
    assert_eq!(bench.plane.workers().len(), 1, "a refused change changes nothing");
}

/// Work that cannot be moved off its workers while the value is true.
struct Immovable(AtomicBool);

impl WorkerTasks for Immovable {
    fn create(&self, _: WorkerId, _: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        Box::new(NoTasks)
    }

    fn retire(&self, workers: &[WorkerId]) -> Vec<WorkerId> {
        if self.0.load(Ordering::SeqCst) { workers.to_vec() } else { Vec::new() }
    }

    fn handle_workers_ended(&self) {}
}

#[test]
fn a_worker_whose_work_cannot_be_moved_does_not_stop() {
    let works = Arc::new(Immovable(AtomicBool::new(true)));
    let (of_plane, runtime) = (Arc::clone(&works), Arc::new(WorkerThreads));
    let plane = DataPlane::start_with(&[CpuAffinity::Floating; 2], runtime, of_plane).unwrap();
    for _ in 0..2 {
        let error = plane.set_workers(&[CpuAffinity::Floating]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("workers that respond: 1. They continue"), "{error}");
        assert_eq!(plane.workers().len(), 2);
    }
    works.0.store(false, Ordering::SeqCst);
    plane.set_workers(&[CpuAffinity::Floating]).unwrap();
    assert_eq!(plane.workers().len(), 1);
    plane.stop();
}

#[test]
fn an_idle_worker_sleeps_and_wakes_for_a_frame() {
    let bench = Bench::new(1, 8);
    bench.introduce();
    wait_for("sleep", || bench.plane.workers()[0].asleep);
    let before = bench.plane.workers()[0].clone();
    std::thread::sleep(Duration::from_millis(1500));
    let after = bench.plane.workers()[0].clone();
    assert!(after.sleeps - before.sleeps <= 3, "an idle processor has no tick");
    bench.guests[3].sender.send(&frame(3, 4, 9));
    wait_for("the frame", || bench.guests[4].receiver.poll().is_some());
}

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
fn a_queue_that_does_not_exist_cannot_be_moved() {
    let bench = Bench::new(1, 1);
    let id = queue(PortId(0), Direction::Ingress);
    let missing_worker = WorkerId(7);
    assert_eq!(
        bench.plane.move_queue(id, missing_worker),
        Err(MoveError::NoSuchWorker(missing_worker))
    );
    let unknown = QueueId { index: 3, ..id };
    assert_eq!(bench.plane.move_queue(unknown, WorkerId(0)), Err(MoveError::NoSuchQueue(unknown)));
}

#[test]
fn live_change_of_one_port_leaves_others_alone() {
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
fn counters_of_a_port_go_on_when_its_queues_come_and_go() {
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
fn a_storm_is_limited_and_told_once() {
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
    let capture = bench.plane.capture(PortId(1), CaptureBufferLimits::default());
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
fn large_frames_reach_only_who_takes_them() {
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

#[test]
fn under_overload_every_frame_is_delivered_in_order_or_counted_as_dropped() {
    let bench = Bench::new(2, 2);
    bench.introduce();
    bench.plane.move_queue(queue(PortId(0), Direction::Ingress), WorkerId(0)).unwrap();
    bench.plane.move_queue(queue(PortId(1), Direction::Egress), WorkerId(1)).unwrap();
    let before = bench.plane.port_counters(PortId(1)).tx_frames;
    for number in 0..FRAMES {
        bench.guests[0].sender.send(&frame(0, 1, number));
    }
    let accounted = || {
        let counters = bench.plane.port_counters(PortId(1));
        let dropped: u64 = counters.tx_dropped.iter().map(|(_, frames)| frames).sum();
        (counters.tx_frames - before, dropped)
    };
    wait_for("all frames to be accounted for", || {
        let (delivered, dropped) = accounted();
        delivered + dropped == u64::from(FRAMES)
    });
    let mut received = 0;
    let mut last = None;
    while let Some(bytes) = bench.guests[1].receiver.poll() {
        assert!(last < Some(number(&bytes)), "out of order");
        last = Some(number(&bytes));
        received += 1;
    }
    assert_eq!(received, accounted().0, "what was counted as sent has arrived");
}
