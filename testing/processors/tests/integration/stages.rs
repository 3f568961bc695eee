//! Tests of the time per processing stage that workers report, on real threads. In the first tests
//! the clock is virtual and advances only by the costs of queue operations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_frame::{Offloads, Sum, VnetHeader};
use suimon_ports::QueueHost;
use suimon_processor_tests::{
    Clock, EndlessSource, Gate, Receiver, Sender, Supply, TimedSink, TimedSource, mac,
    plane_of_nics, queue, small_frame,
};
use suimon_quantity::{Direction, SwitchId};
use suimon_switch::{DataPlane, Stage, StageTimes, WorkerStatus};
use suimon_wait::WorkerThreads;

const BATCHES: u64 = 5000;
const BATCH_FRAMES: u64 = 32;
const RECEIVE_NS: u64 = 300;
const EMPTY_NS: u64 = 100;
const TRANSMIT_NS: u64 = 20;
const FLUSH_NS: u64 = 500;
/// Time for which a worker without work polls before it sleeps.
const SPIN_NS: u64 = 50_000;

/// Waits until the state of the worker fulfils a condition, and returns the state.
fn wait_worker(
    plane: &DataPlane,
    description: &str,
    condition: impl Fn(&WorkerStatus) -> bool,
) -> WorkerStatus {
    let started = Instant::now();
    loop {
        let worker = plane.workers().remove(0);
        if condition(&worker) {
            return worker;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "not {description}: {worker:?}");
        suimon_processor_tests::sleep_briefly();
    }
}

fn sum(times: &StageTimes) -> u64 {
    times.awake_ns() + times.ns(Stage::Idle)
}

#[test]
fn all_of_a_workers_time_is_reported_once() {
    let clock = Clock::default();
    let plane = plane_of_nics(Arc::new(clock.runtime()), 2);
    let slow = TimedSink { clock: clock.clone(), transmit_ns: TRANSMIT_NS, flush_ns: FLUSH_NS };
    plane.attach_sink(queue(1, Direction::Egress), Box::new(slow));
    let source = TimedSource {
        frames: EndlessSource::new(small_frame(0, 1)),
        gate: Gate::opened(),
        left: BATCHES,
        clock: clock.clone(),
        receive_ns: RECEIVE_NS,
        empty_ns: EMPTY_NS,
    };
    plane.attach_source(queue(0, Direction::Ingress), source.source());
    let idle_worker =
        wait_worker(&plane, "asleep", |worker| worker.batches == BATCHES && worker.is_asleep);
    let times = idle_worker.stages;
    let [copy_in, copy_out] = [RECEIVE_NS, TRANSMIT_NS * BATCH_FRAMES].map(|ns| ns * BATCHES);
    let near = |stage, expected: u64| {
        let stage_ns = times.ns(stage);
        assert!(
            stage_ns.abs_diff(expected) <= expected / 1000,
            "{stage:?}: {stage_ns}, not {expected}"
        );
    };
    near(Stage::CopyIn, copy_in);
    near(Stage::CopyOut, copy_out);
    near(Stage::Notify, FLUSH_NS * BATCHES);
    for stage in [Stage::Classify, Stage::Coalesce, Stage::Segment, Stage::Checksum] {
        assert_eq!(times.ns(stage), 0, "{stage:?}: no queue did anything meanwhile");
    }
    // After the last round with frames the worker polled, which does not count as idle time.
    let round_ns = RECEIVE_NS + TRANSMIT_NS * BATCH_FRAMES + FLUSH_NS;
    assert!(times.ns(Stage::Poll) + round_ns >= SPIN_NS, "{times:?}");
    assert_eq!(times.ns(Stage::Idle), 0, "{times:?}");
    assert_eq!(sum(&times), clock.ns());
    plane.stop();
}

#[test]
fn a_worker_polls_for_the_configured_time() {
    // The last value means more polls than the number after which a busy worker arms an idle ring.
    for patience in [0, 80, 200].map(Duration::from_micros) {
        let clock = Clock::default();
        let plane = plane_of_nics(Arc::new(clock.runtime()), 2);
        plane.set_polling_time(patience);
        let source = TimedSource {
            frames: EndlessSource::new(small_frame(0, 1)),
            gate: Gate::opened(),
            left: 10,
            clock: clock.clone(),
            receive_ns: RECEIVE_NS,
            empty_ns: EMPTY_NS,
        };
        plane.attach_source(queue(0, Direction::Ingress), source.source());
        let idle_worker =
            wait_worker(&plane, "asleep", |worker| worker.batches == 10 && worker.is_asleep);
        let polled = Duration::from_nanos(idle_worker.stages.ns(Stage::Poll));
        let slack = Duration::from_micros(10);
        assert!(polled + slack >= patience && polled <= patience + slack, "{polled:?}");
        plane.stop();
    }
}

#[test]
fn a_sleeping_worker_counts_as_idle_up_to_the_query() {
    let clock = Clock::default();
    let runtime = clock.runtime();
    let plane = plane_of_nics(Arc::new(runtime.clone()), 2);
    let mut idle = 0;
    for seconds in [1, 3600, 86_400] {
        // The worker may have been woken between the two checks.
        let sleeps_still = |sleeps| plane.workers()[0].sleeps == sleeps;
        let at_rest = wait_worker(&plane, "at rest", |worker| {
            worker.is_asleep && runtime.is_sleeping() && sleeps_still(worker.sleeps)
        });
        let sleeps = at_rest.sleeps;
        let ns = seconds * 1_000_000_000;
        clock.pass(ns);
        let worker = plane.workers().remove(0);
        idle += ns;
        assert_eq!(worker.stages.ns(Stage::Idle), idle);
        assert_eq!(sum(&worker.stages), clock.ns());
        assert_eq!(worker.sleeps, sleeps, "it was not woken for that");
        // After a wake-up the worker reports the same idle time.
        plane.addresses(SwitchId(1));
        let woken_worker = wait_worker(&plane, "woken", |worker| worker.sleeps > sleeps);
        assert_eq!(woken_worker.stages.ns(Stage::Idle), idle);
    }
    plane.stop();
}

/// Returns a TCP/IPv4 frame with 20 000 bytes of payload, to be segmented at 1448 bytes.
fn large() -> (VnetHeader, Vec<u8>) {
    const PAYLOAD_BYTES: u16 = 20_000;
    let mut bytes = [&[mac(1), mac(0)].concat()[..], &[0x08, 0x00, 0x45, 0]].concat();
    bytes.extend((40 + PAYLOAD_BYTES).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = Sum::from_bytes(&bytes[14..]).checksum();
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend([0x10, 0x10, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff]);
    let pseudo = Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, 20 + PAYLOAD_BYTES);
    bytes.extend(pseudo.word().to_be_bytes());
    bytes.resize(bytes.len() + 2 + usize::from(PAYLOAD_BYTES), 7);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: 54,
        gso_size: 1448,
        csum_start: 34,
        csum_offset: 16,
        ..VnetHeader::default()
    };
    (header, bytes)
}

#[test]
fn segments_and_checksums_have_stages_of_their_own() {
    let small_segment = |(mut header, mut bytes): (VnetHeader, Vec<u8>)| {
        (header.gso_type, header.gso_size, header.hdr_len) = (0, 0, 0);
        bytes.truncate(14 + 40 + 1000);
        bytes[16..18].copy_from_slice(&1040_u16.to_be_bytes());
        bytes[24..26].fill(0);
        let checksum = Sum::from_bytes(&bytes[14..34]).checksum();
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        (header, bytes)
    };
    let large_frame = small_segment(large());
    // Frame, offloads of the egress queue, and whether segmentation and checksums are needed.
    let cases = [
        (large(), Offloads::NONE, [true, true]),
        (large(), Offloads::TCP.without_segmentation(), [true, false]),
        (large(), Offloads::TCP, [false, false]),
        (large_frame.clone(), Offloads::NONE, [false, true]),
        (large_frame, Offloads::TCP, [false, false]),
    ];
    for ((header, bytes), offloads, needs) in cases {
        let plane = plane_of_nics(Arc::new(WorkerThreads), 2);
        let (receiver, sink) = Receiver::pair();
        receiver.set_offloads(offloads);
        plane.attach_sink(queue(1, Direction::Egress), sink);
        let (sender, source) = Sender::pair();
        plane.attach_source(queue(0, Direction::Ingress), source);
        sender.send_with(&header, &bytes);
        // The first round that moves frames is always measured.
        let worker = wait_worker(&plane, "done", |worker| {
            worker.is_asleep && worker.stages.ns(Stage::CopyOut) > 0
        });
        let has_time = [Stage::Segment, Stage::Checksum].map(|stage| worker.stages.ns(stage) > 0);
        assert_eq!(has_time, needs, "{header:?} to {offloads:?}: {worker:?}");
        let pieces = std::iter::from_fn(|| receiver.poll()).count();
        assert_eq!(pieces, if needs[0] { 14 } else { 1 });
        plane.stop();
    }
}
