//! Tests of the busy time that is attributed to each queue, on real threads: first with a virtual
//! clock, then with the host's clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::MacAddr;
use suimon_ports::{QueueHost, WorkerRuntime};
use suimon_processor_tests::{
    Clock, EndlessSource, Gate, Receiver, Sender, Supply, TimedSink, TimedSource, mac,
    plane_of_nics, queue, small_frame,
};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId, WorkerId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::WorkerThreads;

fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited in vain for {description}");
        suimon_processor_tests::sleep_briefly();
    }
}

fn busy_ns(plane: &DataPlane, id: QueueId) -> u64 {
    plane.queues().iter().find(|view| view.id == id).unwrap().busy_ns
}

/// Returns the total busy time of all queues, and the working time of all workers. Queues are read
/// first, so their total cannot include later work.
fn total_times(plane: &DataPlane) -> (u64, u64) {
    let queues = plane.queues().iter().map(|view| view.busy_ns).sum();
    let workers = plane.workers();
    for view in &workers {
        assert!(view.working_ns <= view.stages.awake_ns(), "{view:?}");
    }
    (queues, workers.iter().map(|view| view.working_ns).sum())
}

#[test]
fn time_is_charged_to_the_queues_that_used_it() {
    // Until the first round is timed, which is at most the 128th (`stages.rs`), both sources are
    // charged alike: 128 times 1.35 us, which is 3 % of the smaller one's time.
    const BATCHES: u64 = 20_000;
    const FRAMES: u64 = 32;
    let clock = Clock::default();
    let plane = plane_of_nics(Arc::new(clock.runtime()), 4);
    let slow = |transmit_ns, flush_ns| TimedSink { clock: clock.clone(), transmit_ns, flush_ns };
    plane.attach_sink(queue(2, Direction::Egress), Box::new(slow(20, 500)));
    plane.attach_sink(queue(3, Direction::Egress), Box::new(slow(20, 500)));
    let gate = Gate::default();
    for (port, receive_ns, batches_left) in [(0, 300, BATCHES), (1, 3000, BATCHES / 2), (3, 0, 0)] {
        let frames = EndlessSource::new(small_frame(port, 2));
        let (gate, clock) = (gate.clone(), clock.clone());
        let source =
            TimedSource { frames, gate, left: batches_left, clock, receive_ns, empty_ns: 10 };
        plane.attach_source(queue(port.into(), Direction::Ingress), source.source());
    }
    // Opening the gate starts all sources in the same round.
    gate.open();
    wait_for("the batches", || {
        let worker = plane.workers().remove(0);
        worker.is_asleep && worker.batches == BATCHES + BATCHES / 2
    });
    let near = |id: QueueId, expected: u64| {
        let busy = busy_ns(&plane, id);
        assert!(busy.abs_diff(expected) <= expected / 20, "{id:?}: {busy}, not {expected}");
    };
    near(queue(0, Direction::Ingress), 300 * BATCHES);
    near(queue(1, Direction::Ingress), 3000 * BATCHES / 2);
    // The sink is flushed once per round, and both sources are polled in each round.
    near(queue(2, Direction::Egress), 20 * FRAMES * BATCHES * 3 / 2 + 500 * BATCHES);
    // Neither unsuccessful polls nor mere attachment count as busy time of a queue.
    assert_eq!(busy_ns(&plane, queue(3, Direction::Ingress)), 0);
    assert_eq!(busy_ns(&plane, queue(3, Direction::Egress)), 0);
    let (queues, workers) = total_times(&plane);
    assert!(queues <= workers && queues >= workers - workers / 1000);
    assert!(workers < clock.ns(), "it looked for more in vain");
    let working_ns = plane.workers().remove(0).working_ns;
    clock.pass(1_000_000_000);
    assert_eq!(plane.workers().remove(0).working_ns, working_ns, "and slept");
    plane.stop();
}

#[test]
fn busy_time_grows_with_load_where_the_load_is_and_nowhere_else() {
    let runtime = Arc::new(WorkerThreads);
    let cpus = runtime.allowed_cpus();
    assert!(cpus.len() >= 2, "this test needs 2 CPUs");
    let plane = DataPlane::start(&cpus[..2], runtime).unwrap();
    let switch = SwitchId(1);
    let port = |id: u8| PortTopology {
        spec: ForwardingPortSpec {
            mac: Some(MacAddr::new(mac(id))),
            ..ForwardingPortSpec::new(PortId(id.into()), switch, PortRole::Nic)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    let ports = (0..4).map(port).collect();
    let switches = vec![SwitchSpec::new(switch)];
    plane.publish(Topology { switches, ports, teams: Vec::new() }).unwrap();
    let guests: Vec<(Sender, Receiver)> = (0..4)
        .map(|port| {
            let (sender, source) = Sender::pair();
            let (receiver, sink) = Receiver::pair();
            plane.attach_source(queue(port, Direction::Ingress), source);
            plane.attach_sink(queue(port, Direction::Egress), sink);
            (sender, receiver)
        })
        .collect();
    let (from, to) = (queue(0, Direction::Ingress), queue(1, Direction::Egress));
    let mut before = (0, 0);
    // With one worker, with two, and with one again: the measured cost moves with the queue.
    for (from_at, to_at) in [(0, 0), (0, 1), (1, 1), (1, 0)] {
        plane.move_queue(from, WorkerId(from_at)).unwrap();
        plane.move_queue(to, WorkerId(to_at)).unwrap();
        for _ in 0..50 {
            for _ in 0..64 {
                guests[0].0.send(&small_frame(0, 1));
            }
            let mut received = 0;
            wait_for("the frames", || {
                received += usize::from(guests[1].1.poll().is_some());
                received == 64
            });
        }
        wait_for("sleep", || plane.workers().iter().all(|view| view.is_asleep));
        let now = (busy_ns(&plane, from), busy_ns(&plane, to));
        assert!(now.0 > before.0 && now.1 > before.1, "{before:?}, then {now:?}");
        before = now;
        let (queues, workers) = total_times(&plane);
        assert!(queues <= workers, "{queues} of {workers}");
        assert_eq!(queues, now.0 + now.1, "the others had nothing to do");
    }
    plane.stop();
}

#[test]
fn new_queues_start_where_their_port_is_at_home() {
    let runtime = Arc::new(WorkerThreads);
    let cpus = runtime.allowed_cpus();
    let plane = DataPlane::start(&cpus[..2], runtime).unwrap();
    plane.set_initial_workers([(PortId(0), WorkerId(1)), (PortId(1), WorkerId(7))].into());
    for port in 0..3 {
        for direction in [Direction::Ingress, Direction::Egress] {
            let id = queue(port, direction);
            match direction {
                Direction::Ingress => plane.attach_source(id, Sender::pair().1),
                Direction::Egress => plane.attach_sink(id, Receiver::pair().1),
            }
        }
    }
    let workers: Vec<u16> = plane.queues().iter().map(|view| view.worker.0).collect();
    assert_eq!(workers[..2], [1, 1], "chosen");
    assert_eq!(workers[2..4], [0, 0], "the chosen one does not run: where there are fewest");
    plane.stop();
}
