//! Properties that hold for any events.

use crate::host;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::host::{Host, PERIOD, workers};
use proptest::prelude::*;
use suimon_quantity::{Direction, PortId, QueueId, Time, WorkerId};
use suimon_vmq::{
    Load, Measurements, Move, MoveReason, NicSpec, QueueBusy, Vmq, VmqMode, VmqSpec, WaterMarks,
    WorkerBusy, WorkerSpec, thresholds,
};

fn any_spec() -> impl Strategy<Value = VmqSpec> {
    let mode = prop_oneof![1 => Just(VmqMode::Static), 3 => Just(VmqMode::Dynamic)];
    let number = || prop::option::weighted(0.3, (0u16..9).prop_map(WorkerId));
    let node = prop::option::weighted(0.3, 0u16..3);
    let parks = prop::bool::weighted(0.8);
    let marks = prop_oneof![2 => Just((85, 30)), 1 => (50u32..=95, 0u32..=20)];
    let marks = marks
        .prop_map(|(high, low)| WaterMarks { high: Load::percent(high), low: Load::percent(low) });
    let worker_limits = (number(), 0u16..9, number(), node);
    (prop::bool::weighted(0.9), mode, worker_limits, marks, parks).prop_map(
        |(enabled, mode, worker_limits, water, parking)| {
            let (base_worker, max_workers, max_worker_number, numa_node) = worker_limits;
            VmqSpec {
                enabled,
                mode,
                base_worker,
                max_workers,
                max_worker_number,
                numa_node,
                water_marks: water,
                parking,
            }
        },
    )
}

fn any_workers() -> impl Strategy<Value = Vec<WorkerSpec>> {
    (1u16..9, 1u16..3, 1u16..3)
        .prop_map(|(cores, threads, nodes)| workers(cores * threads, threads, nodes.min(cores)))
}

#[derive(Clone, Debug)]
enum Op {
    Spec(VmqSpec),
    Workers(Vec<WorkerSpec>),
    Nic(u32, u8, u16),
    RemoveNic(u32),
    AddQueue(QueueId),
    RemoveQueue(QueueId),
    /// Measured loads of queues and workers in percent; the list repeats.
    Observe(Vec<u8>),
    /// Index of a move that fails, if there is such a move; all others are carried out.
    Refuse(usize),
}

fn any_queue() -> impl Strategy<Value = QueueId> {
    (0u32..4, any::<bool>(), 0u16..3).prop_map(|(nic, ingress, index)| QueueId {
        port: PortId(nic),
        direction: if ingress { Direction::Ingress } else { Direction::Egress },
        index,
    })
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => any_spec().prop_map(Op::Spec),
        1 => any_workers().prop_map(Op::Workers),
        2 => (0u32..4, prop_oneof![Just(0u8), 1u8..=101], 0u16..4)
            .prop_map(|(nic, weight, queues)| Op::Nic(nic, weight, queues)),
        1 => (0u32..4).prop_map(Op::RemoveNic),
        4 => any_queue().prop_map(Op::AddQueue),
        1 => any_queue().prop_map(Op::RemoveQueue),
        8 => prop::collection::vec(0u8..=100, 1..20).prop_map(Op::Observe),
        1 => (0usize..4).prop_map(Op::Refuse),
    ]
}

/// Returns the workers that a configuration permits, according to a simple reference
/// implementation.
fn permitted(spec: &VmqSpec, workers: &[WorkerSpec]) -> BTreeSet<WorkerId> {
    let on_node = |worker: &&WorkerSpec| spec.numa_node.is_none_or(|node| worker.numa_node == node);
    let base = spec.base_worker.unwrap_or(WorkerId(0));
    let highest = spec.max_worker_number.unwrap_or(WorkerId(u16::MAX));
    let numbers = workers.iter().filter(on_node).map(|worker| worker.number);
    numbers.filter(|number| (base..=highest).contains(number)).collect()
}

fn measurements(
    queues: &BTreeSet<QueueId>,
    present: &[WorkerSpec],
    percents: &[u8],
) -> Measurements {
    let mut percents = percents.iter().cycle().map(|percent| u64::from(*percent) * 2_500_000);
    let mut busy_ns = || percents.next().unwrap();
    Measurements {
        period: PERIOD,
        queues: queues
            .iter()
            .map(|queue| QueueBusy { queue: *queue, busy_ns: busy_ns() })
            .collect(),
        workers: present
            .iter()
            .map(|worker| WorkerBusy { worker: worker.number, busy_ns: busy_ns() })
            .collect(),
    }
}

/// Checks that the predicted loads of a move agree with its reason.
fn check_cause(moved: &Move, spec: &VmqSpec) -> Result<(), TestCaseError> {
    let mark_below = |margin: u32| Load::from_ppm(spec.water_marks.high.ppm() - margin * 10_000);
    let (shed_to, fit_mark) = (mark_below(10), mark_below(25));
    prop_assert_ne!(moved.from, moved.to);
    let predicted = moved.predicted;
    match moved.reason {
        MoveReason::Overloaded { queue_load, is_worker_saturated: saturated } => {
            prop_assert!(predicted.from_before > shed_to, "{:?}", moved);
            // Unless the demand is unknown, the destination has room or the load improves.
            let is_room = predicted.to_after <= shed_to;
            let is_better =
                predicted.to_after + thresholds::LOAD_REDUCTION_MIN <= predicted.from_before;
            prop_assert!(is_room || is_better || saturated, "{:?}", moved);
            prop_assert!(queue_load > Load::ZERO);
        }
        MoveReason::OverloadedByOtherWork { other_load } => {
            prop_assert!(other_load > spec.water_marks.high);
            prop_assert!(predicted.to_after <= shed_to, "{:?}", moved);
        }
        MoveReason::Underused { emptiable_for: for_time, .. } => {
            prop_assert!(predicted.to_after <= fit_mark, "{:?}", moved);
            prop_assert!(for_time >= thresholds::PACK_DELAY_MIN);
            prop_assert!(spec.parking);
        }
        _ => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Queues are only on permitted workers, at most as many as permitted, and none is lost; every
    /// move has the correct source and a valid reason.
    #[test]
    fn queues_are_where_they_may_be(ops in prop::collection::vec(any_op(), 1..80)) {
        let mut now = Time::from_ns(1 << 40);
        let mut workers = workers(8, 2, 2);
        let mut spec = VmqSpec::default();
        let mut vmq = Vmq::new(spec.clone(), &workers, now).unwrap();
        let mut queues: BTreeSet<QueueId> = BTreeSet::new();
        let mut refuse = None;
        for op in ops {
            now = now + PERIOD;
            let before: Vec<_> = vmq.placement().collect();
            let moves = match op {
                Op::Spec(new) => match vmq.set_spec(new.clone(), now) {
                    Ok(moves) => { spec = new; moves }
                    Err(_) => Vec::new(),
                },
                Op::Workers(new) => match vmq.set_workers(&new, now) {
                    Ok(moves) => { workers = new; moves }
                    Err(_) => Vec::new(),
                },
                Op::Nic(nic, vmq_weight, queues) => {
                    let nic_spec = NicSpec { vmq_weight, queues };
                    vmq.set_nic(PortId(nic), nic_spec, 3, now).unwrap_or_default()
                }
                Op::RemoveNic(nic) => {
                    vmq.remove_nic(PortId(nic), now);
                    queues.retain(|queue| queue.port != PortId(nic));
                    Vec::new()
                }
                Op::AddQueue(queue) => vmq.add_queue(queue, now).map_or(Vec::new(), |added| {
                    queues.insert(queue);
                    added.moves
                }),
                Op::RemoveQueue(queue) => {
                    prop_assert_eq!(vmq.remove_queue(queue, now), queues.remove(&queue));
                    Vec::new()
                }
                Op::Observe(percents) => {
                    vmq.observe(&measurements(&queues, &workers, &percents), now).moves
                }
                Op::Refuse(index) => { refuse = Some(index); Vec::new() }
            };
            let mut is_refused = false;
            for (index, moved) in moves.iter().enumerate() {
                check_cause(moved, &spec)?;
                prop_assert!(before.contains(&(moved.queue, moved.from)), "{moved:?}");
                // A queue cannot stay on a worker that does not exist.
                is_refused = refuse == Some(index) && workers.iter().any(|worker| worker.number == moved.from);
                let worker = if is_refused { moved.from } else { moved.to };
                vmq.handle_moved(moved.queue, worker, now);
                if is_refused { refuse = None; break; }
            }
            if is_refused {
                // Unreported moves are still outstanding.
                for moved in moves { vmq.handle_moved(moved.queue, moved.to, now); }
                now = now + thresholds::MOVE_RETRY_DELAY;
                let settled = vmq.set_workers(&workers, now).unwrap();
                for moved in settled { vmq.handle_moved(moved.queue, moved.to, now); }
            }
            let placement: Vec<_> = vmq.placement().collect();
            prop_assert_eq!(placement.iter().map(|(queue, _)| *queue).collect::<BTreeSet<_>>(), queues.clone());
            let used: BTreeSet<_> = placement.iter().map(|(_, worker)| *worker).collect();
            let permitted = permitted(&spec, &workers);
            prop_assert!(used.is_subset(&permitted), "{used:?} {permitted:?}");
            prop_assert!(used.len() <= usize::from(spec.max_workers), "{used:?} {spec:?}");
            for parked in vmq.parked() {
                prop_assert!(!used.contains(&parked) && permitted.contains(&parked));
            }
            for nic in 0..4 {
                if let Some(explanation) = vmq.explain(PortId(nic), now) {
                    prop_assert!(!explanation.to_string().is_empty());
                }
            }
        }
    }

    /// After any events and with any configuration, a low load is soon on one worker.
    #[test]
    fn little_load_packs_to_one_worker(
        workers in any_workers(),
        spec in any_spec(),
        high in prop::collection::vec(0.0f64..200.0, 1..20),
        low_percent in 0.0f64..25.0,
    ) {
        let water_marks = WaterMarks::default();
        let spec =
            VmqSpec { enabled: true, mode: VmqMode::Dynamic, parking: true, water_marks, ..spec };
        prop_assume!(Vmq::new(spec.clone(), &workers, Time::ZERO).is_ok());
        let mut host = Host::new(spec, workers, high.len());
        host.loads.clone_from(&high);
        host.run(Duration::from_secs(20));
        let end = host.now;
        host.loads.fill(low_percent / high.len() as f64);
        host.run(Duration::from_secs(10));
        prop_assert_eq!(host.used().len(), 1);
        host.run(Duration::from_secs(60));
        prop_assert!(host.last_move(end).unwrap_or_default() < Duration::from_secs(10));
    }

    /// With parking disabled, queues stay where load has moved them.
    #[test]
    fn without_parking_nothing_is_packed(
        workers in any_workers(),
        spec in any_spec(),
        high in prop::collection::vec(0.0f64..200.0, 1..20),
    ) {
        let spec =
            VmqSpec { enabled: true, mode: VmqMode::Dynamic, parking: false, ..spec };
        prop_assume!(Vmq::new(spec.clone(), &workers, Time::ZERO).is_ok());
        let mut host = Host::new(spec, workers, high.len());
        host.loads.clone_from(&high);
        host.run(Duration::from_secs(20));
        let used = host.used();
        host.loads.fill(1.0);
        host.run(Duration::from_secs(300));
        prop_assert_eq!(host.used(), used);
    }

    /// Arbitrary measurements at arbitrary times cause no panic, no move to an unknown worker, and
    /// no more moves than the budget permits.
    #[test]
    fn invalid_measurements_cause_no_failure(
        samples in prop::collection::vec(
            (any::<u64>(), any::<u64>(), 0u32..6, any::<u64>(), 0u16..10, any::<u64>()), 1..60,
        ),
    ) {
        let mut host = Host::of(4, 8, 4);
        let mut moves = 0;
        for (time_ns, period_ns, nic, queue_ns, worker, worker_ns) in samples {
            let measurements = Measurements {
                period: Duration::from_nanos(period_ns),
                queues: vec![QueueBusy { queue: host::queue(nic), busy_ns: queue_ns }; 2],
                workers: vec![
                    WorkerBusy { worker: WorkerId(worker), busy_ns: worker_ns }; 2
                ],
            };
            let now = Time::from_ns(time_ns);
            for moved in host.vmq.observe(&measurements, now).moves {
                prop_assert!(moved.to.0 < 8);
                host.vmq.handle_moved(moved.queue, moved.to, now);
                moves += 1;
            }
        }
        prop_assert!(moves <= 60 * 4);
    }

    /// The same events produce the same results.
    #[test]
    fn the_same_events_have_the_same_results(high in prop::collection::vec(0.0f64..200.0, 1..12), workers_max in 1u16..8) {
        let run = || {
            let mut host = Host::of(workers_max, 8, high.len());
            host.loads.clone_from(&high);
            host.run(Duration::from_secs(15));
            host.loads.fill(0.5);
            host.run(Duration::from_secs(15));
            host.moves
        };
        prop_assert_eq!(run(), run());
    }
}
