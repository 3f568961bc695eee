//! Examples of loads and the resulting moves.

use crate::host;
use crate::host::{PERIOD, queue, workers};
use suimon_quantity::{PortId, Time, WorkerId};
use suimon_vmq::{
    Load, Measurements, Move, MoveReason, NicSpec, PlacementReason, QueueBusy, StayReason, Vmq,
    VmqMode, VmqSpec, WorkerBusy, WorkerSpec, thresholds,
};

/// Placement with measurements of constant loads.
struct Bench {
    vmq: Vmq,
    now: Time,
    /// Load of each queue in percent.
    queues: Vec<u64>,
    /// Load of other work on each worker in percent.
    other: Vec<u64>,
}

impl Bench {
    /// Assigns queues with these loads round robin to `over` workers, then enables dynamic
    /// placement.
    fn new(present: &[WorkerSpec], over: u16, queues: &[u64], other: &[u64]) -> Self {
        let now = Time::from_ns(1 << 40);
        let spec = VmqSpec { mode: VmqMode::Static, max_workers: over, ..VmqSpec::default() };
        let mut vmq = Vmq::new(spec, present, now).unwrap();
        for nic in 0..queues.len() as u32 {
            vmq.set_nic(PortId(nic), NicSpec::default(), 1, now).unwrap();
            vmq.add_queue(queue(nic), now).unwrap();
        }
        assert!(vmq.set_spec(VmqSpec::default(), now).unwrap().is_empty());
        let mut other = other.to_vec();
        other.resize(present.len(), 0);
        Self { vmq, now, queues: queues.to_vec(), other }
    }

    fn observe(&mut self) -> Vec<Move> {
        self.now = self.now + PERIOD;
        let ns = |percent: u64| percent * 2_500_000;
        let mut busy = self.other.clone();
        for (queue, worker) in self.vmq.placement() {
            busy[usize::from(worker.0)] += self.queues[queue.port.0 as usize];
        }
        let measurements = Measurements {
            period: PERIOD,
            queues: (0..)
                .zip(&self.queues)
                .map(|(nic, percent)| QueueBusy { queue: queue(nic), busy_ns: ns(*percent) })
                .collect(),
            workers: (0..)
                .zip(busy)
                .map(|(index, percent)| WorkerBusy {
                    worker: WorkerId(index),
                    busy_ns: ns(percent.min(100)),
                })
                .collect(),
        };
        self.vmq.observe(&measurements, self.now).moves
    }

    fn carry_out(&mut self, moves: &[Move]) {
        for moved in moves {
            self.vmq.handle_moved(moved.queue, moved.to, self.now);
        }
    }

    /// Returns the first moves within `measurements` measurements, as (queue, from, to).
    fn first_moves(&mut self, measurements: usize) -> Vec<(u32, u16, u16)> {
        for _ in 0..measurements {
            let moves = self.observe();
            if !moves.is_empty() {
                self.carry_out(&moves);
                let short =
                    moves.iter().map(|moved| (moved.queue.port.0, moved.from.0, moved.to.0));
                return short.collect();
            }
        }
        Vec::new()
    }

    fn stays(&self, nic: u32) -> StayReason {
        self.vmq.explain(PortId(nic), self.now).unwrap().queues[0].stay_reason
    }
}

/// Name; threads per core; workers in use; queue loads; other work; moves after the second
/// measurement.
type Shedding<'a> = (&'a str, u16, u16, &'a [u64], &'a [u64], &'a [(u32, u16, u16)]);

#[test]
fn hot_workers_shed() {
    let cases: &[Shedding] = &[
        ("below the mark", 1, 1, &[50, 30, 5], &[], &[]),
        ("the smallest that solves it", 1, 1, &[50, 29, 14], &[], &[(1, 0, 1)]),
        (
            "the largest, until one does",
            1,
            1,
            &[14, 15, 16, 17, 18, 16],
            &[],
            &[(4, 0, 1), (0, 0, 1)],
        ),
        ("saturated", 1, 1, &[25, 25, 25, 25], &[], &[(0, 0, 1), (1, 0, 2), (3, 0, 3)]),
        ("alone", 1, 1, &[100], &[], &[]),
        ("almost alone", 1, 1, &[88, 2], &[], &[(1, 0, 1)]),
        ("alone beside other work", 1, 1, &[60], &[30], &[(0, 0, 1)]),
        ("to the emptiest in use", 1, 3, &[50, 30, 10, 40, 0, 0], &[], &[(3, 0, 2)]),
        ("to a parked one if those in use are full", 1, 2, &[50, 70, 40], &[], &[(2, 0, 2)]),
        ("to the other core", 2, 1, &[50, 40], &[], &[(1, 0, 1)]),
        (
            "to the sibling if the other core is busy",
            2,
            1,
            &[50, 40],
            &[0, 70, 0, 70],
            &[(1, 0, 2)],
        ),
        ("nowhere if all are full", 1, 4, &[90, 90, 90, 90], &[], &[]),
        ("away from other work", 1, 1, &[3, 2], &[95], &[(0, 0, 1), (1, 0, 1)]),
    ];
    for (name, threads, over, queues, other, expected) in cases {
        let mut bench = Bench::new(&workers(4, *threads, 1), *over, queues, other);
        assert_eq!(bench.observe(), [], "{name}: one measurement may be chance");
        assert_eq!(bench.first_moves(1), *expected, "{name}");
    }
}

#[test]
fn shedding_keeps_to_the_node_and_to_the_number_of_workers() {
    let present = workers(8, 1, 2);
    let mut bench = Bench::new(&present, 1, &[30, 30, 30], &[]);
    let node_1 = VmqSpec { numa_node: Some(1), max_workers: 2, ..VmqSpec::default() };
    let moves = bench.vmq.set_spec(node_1, bench.now).unwrap();
    assert!(
        moves
            .iter()
            .all(|value| value.reason == MoveReason::NotPermitted && value.to == WorkerId(4))
    );
    assert_eq!(moves.len(), 3);
    bench.carry_out(&moves);
    assert_eq!(bench.first_moves(4), [(2, 4, 5)]);
    bench.queues.fill(100);
    assert_eq!(bench.first_moves(40), [], "there is no third");
}

/// Name; queue loads, alternating on two workers; other work; moves after the hold.
type Packing<'a> = (&'a str, &'a [u64], &'a [u64], &'a [(u32, u16, u16)]);

#[test]
fn under_used_workers_are_emptied_after_the_hold() {
    let cases: &[Packing] = &[
        ("little", &[10, 10, 5, 5], &[], &[(1, 1, 0), (3, 1, 0)]),
        ("nothing", &[0, 0], &[], &[(1, 1, 0)]),
        ("little at the base", &[20, 40], &[], &[(1, 1, 0)]),
        ("too much together", &[25, 40], &[], &[]),
        ("neither under-used", &[31, 29, 0, 2], &[], &[]),
        ("the base has other work", &[10, 10], &[50], &[(0, 0, 1)]),
        ("both have other work", &[10, 10], &[50, 50], &[]),
        ("no other is used", &[10], &[], &[]),
    ];
    let hold = (thresholds::PACK_DELAY_MIN.as_millis() / PERIOD.as_millis()) as usize;
    for (name, queues, other, expected) in cases {
        let mut bench = Bench::new(&workers(4, 1, 1), 2, queues, other);
        assert_eq!(bench.first_moves(hold), [], "{name}");
        if let Some((nic, ..)) = expected.first() {
            assert_eq!(bench.stays(*nic), StayReason::WorkerToBeEmptied { remaining: PERIOD });
        }
        assert_eq!(bench.first_moves(3), *expected, "{name}");
        assert_eq!(bench.first_moves(100), [], "{name}: nothing more");
    }
}

/// The first queue uses its whole worker; the others are packed a minute later.
#[test]
fn beside_a_hot_worker_the_hold_is_longer() {
    let mut bench = Bench::new(&workers(4, 1, 1), 3, &[100, 10, 10], &[]);
    let beside_hot = thresholds::PACK_DELAY_MIN * thresholds::PACK_DELAY_HOT_FACTOR;
    let hold = (beside_hot.as_millis() / PERIOD.as_millis()) as usize;
    assert_eq!(bench.first_moves(hold), []);
    assert_eq!(bench.stays(2), StayReason::WorkerToBeEmptied { remaining: PERIOD });
    assert_eq!(bench.first_moves(3), [(2, 2, 1)]);
}

#[test]
fn an_interruption_restarts_the_hold_time() {
    let mut bench = Bench::new(&workers(4, 1, 1), 2, &[10, 10], &[]);
    for _ in 0..5 {
        assert_eq!(bench.first_moves(14), []);
        bench.queues = vec![10, 70];
        assert_eq!(bench.first_moves(1), []);
        bench.queues = vec![10, 10];
    }
    assert_eq!(bench.first_moves(20), [(1, 1, 0)]);
}

#[test]
fn the_base_is_used_first_and_the_others_are_parked() {
    let mut bench = Bench::new(&workers(4, 1, 1), 4, &[5, 5, 5, 5], &[0, 0, 0, 30]);
    assert_eq!(bench.vmq.parked(), []);
    assert_eq!(bench.first_moves(20).len(), 3);
    assert_eq!(bench.vmq.parked(), [WorkerId(1), WorkerId(2)], "3 has other work");
    let nic = PortId(9);
    bench.vmq.set_nic(nic, NicSpec::default(), 1, bench.now).unwrap();
    assert_eq!(bench.vmq.add_queue(queue(9), bench.now).unwrap().worker, WorkerId(0));
}

#[test]
fn a_move_that_is_not_carried_out_is_tried_again_later() {
    let mut bench = Bench::new(&workers(4, 1, 1), 1, &[50, 40], &[]);
    bench.observe();
    let moves = bench.observe();
    assert_eq!(moves.len(), 1);
    assert_eq!(bench.stays(1), StayReason::MoveInProgress);
    assert_eq!(bench.observe(), [], "it is under way");
    bench.vmq.handle_moved(queue(1), WorkerId(0), bench.now);
    let explained = bench.vmq.explain(PortId(1), bench.now).unwrap().queues[0].clone();
    assert_eq!(explained.reason, PlacementReason::NotMoved { preferred: WorkerId(1) });
    assert_eq!(explained.worker, WorkerId(0));
    let attempts: Vec<bool> = (0..20).map(|_| !bench.first_moves(1).is_empty()).collect();
    assert_eq!(attempts.iter().position(|moved| *moved), Some(0), "the other queue goes instead");
}

#[test]
fn an_externally_moved_queue_stays_until_load_moves_it() {
    let mut bench = Bench::new(&workers(4, 1, 1), 1, &[10, 10, 0], &[]);
    bench.observe();
    bench.vmq.handle_moved_externally(queue(1), WorkerId(2), bench.now);
    bench.vmq.handle_moved_externally(queue(9), WorkerId(2), bench.now);
    let explained = bench.vmq.explain(PortId(1), bench.now).unwrap().queues[0].clone();
    assert_eq!(
        (explained.worker, explained.reason),
        (WorkerId(2), PlacementReason::MovedExternally)
    );
    bench.observe();
    let workers = bench.vmq.workers();
    let observed: Vec<_> =
        workers.iter().map(|view| (view.queues, view.load.ppm(), view.other_load.ppm())).collect();
    assert_eq!(observed, [(2, 100_000, 0), (0, 0, 0), (1, 100_000, 0), (0, 0, 0)]);
    assert!(workers.iter().all(|view| view.permitted));
    let hold = (thresholds::PACK_DELAY_MIN.as_millis() / PERIOD.as_millis()) as usize;
    assert_eq!(bench.first_moves(hold - 1), []);
    assert_eq!(bench.first_moves(2), [(1, 2, 0)], "packed like any other");
    let disabled = VmqSpec { enabled: false, ..VmqSpec::default() };
    assert_eq!(bench.vmq.set_spec(disabled, bench.now).unwrap(), []);
    bench.vmq.handle_moved_externally(queue(2), WorkerId(3), bench.now);
    assert_eq!(bench.first_moves(1), [(2, 3, 0)], "the default queue goes back at once");
    // Queues in transit do not count as moved externally.
    let restricted = VmqSpec { base_worker: Some(WorkerId(1)), ..VmqSpec::default() };
    let moves = bench.vmq.set_spec(restricted, bench.now).unwrap();
    bench.vmq.handle_moved_externally(moves[0].queue, WorkerId(3), bench.now);
    assert_eq!(bench.stays(moves[0].queue.port.0), StayReason::MoveInProgress);
}

#[test]
fn explanations_are_displayed_as_text() {
    let mut bench = Bench::new(&workers(4, 1, 1), 1, &[100], &[]);
    bench.observe();
    bench.observe();
    assert_eq!(bench.stays(0), StayReason::OnlyQueueOfWorker);
    assert_eq!(
        bench.vmq.explain(PortId(0), bench.now).unwrap().to_string(),
        "ingress queue 0 takes 100.0 % of worker 0, whose load is 100.0 % (0.0 % from other \
         work). The queue has been there for 0.5 s: assigned there with weight 100. It is not \
         moved: the worker is above 85.0 %, but has no other queue, so that any other worker \
         would become as loaded."
    );
    let mut bench = Bench::new(&workers(4, 1, 1), 1, &[50, 40], &[]);
    bench.first_moves(2);
    let text = bench.vmq.explain(PortId(1), bench.now).unwrap().to_string();
    let because = "moved from worker 0: the worker was overloaded; the load of the queue is 40.0 \
                   % (predicted 90.0 % → 50.0 % on the former worker, 0.0 % → 40.0 % on the new \
                   one)";
    assert!(text.contains(because), "{text}");
    assert_eq!(bench.vmq.explain(PortId(7), bench.now), None);
    assert_eq!(bench.stays(0), StayReason::NoReasonToMove);
    let explained = bench.vmq.explain(PortId(1), bench.now).unwrap();
    let json = serde_json::to_string(&explained).unwrap();
    assert_eq!(serde_json::from_str::<suimon_vmq::Explanation>(&json).unwrap(), explained);
}

#[test]
fn the_effect_of_a_move_is_measured_after_it() {
    let mut host = host::Host::of(4, 8, 2);
    host.loads = vec![50.0, 40.0];
    host.run(PERIOD * 20);
    let [effect] = host.effects[..] else { panic!("{:?}", host.effects) };
    assert_eq!((effect.queue, effect.from, effect.to), (queue(1), WorkerId(0), WorkerId(1)));
    let percents = [90, 50, 0, 40].map(Load::percent);
    for figures in [effect.predicted, effect.measured] {
        let values = [figures.from_before, figures.from_after, figures.to_before, figures.to_after];
        let is_near = |(left, right): (&Load, &Load)| left.ppm().abs_diff(right.ppm()) < 100;
        assert!(values.iter().zip(&percents).all(is_near), "{figures:?}");
    }
}
