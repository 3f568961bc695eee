//! Static assignment and the default queue.

use crate::host::{queue, workers};
use suimon_quantity::{Direction, PortId, QueueId, Time, WorkerId};
use suimon_vmq::{
    Move, MoveReason, NicSpec, PlacementReason, QueueError, StayReason, Vmq, VmqMode, VmqSpec,
    VmqSpecError,
};

const NOW: Time = Time::from_ns(1 << 40);

fn spec(max_workers: u16) -> VmqSpec {
    VmqSpec { mode: VmqMode::Static, max_workers, ..VmqSpec::default() }
}

/// Returns a placement with one NIC of each weight, which has one queue.
fn of_weights(spec: VmqSpec, weights: &[u8]) -> Vmq {
    let mut vmq = Vmq::new(spec, &workers(8, 2, 1), NOW).unwrap();
    for (nic, vmq_weight) in (0..).zip(weights) {
        let nic_spec = NicSpec { vmq_weight: *vmq_weight, queues: 1 };
        vmq.set_nic(PortId(nic), nic_spec, 1, NOW).unwrap();
        assert_eq!(vmq.add_queue(queue(nic), NOW).unwrap().moves, []);
    }
    vmq
}

fn worker_numbers(vmq: &Vmq) -> Vec<u16> {
    vmq.placement().map(|(_, worker)| worker.0).collect()
}

fn carry_out(vmq: &mut Vmq, moves: &[Move]) {
    for moved in moves {
        vmq.handle_moved(moved.queue, moved.to, NOW);
    }
}

#[test]
fn queues_are_assigned_round_robin_by_weight_and_siblings_come_last() {
    assert_eq!(worker_numbers(&of_weights(spec(4), &[100; 6])), [0, 1, 2, 3, 0, 1]);
    // Workers 4 to 7 are siblings of 0 to 3.
    assert_eq!(worker_numbers(&of_weights(spec(6), &[100; 7])), [0, 1, 2, 3, 4, 5, 0]);
    assert_eq!(worker_numbers(&of_weights(spec(2), &[100, 10, 10, 10, 80])), [0, 1, 1, 1, 1]);
    assert_eq!(worker_numbers(&of_weights(spec(2), &[10, 100, 10, 10, 80])), [0, 1, 0, 0, 0]);
}

#[test]
fn added_and_removed_queues_move_no_others() {
    let mut vmq = of_weights(spec(4), &[100; 8]);
    let before = worker_numbers(&vmq);
    assert!(vmq.remove_queue(queue(2), NOW));
    assert!(vmq.remove_queue(queue(6), NOW));
    assert!(!vmq.remove_queue(queue(6), NOW));
    assert_eq!(vmq.add_queue(queue(6), NOW).unwrap().worker, WorkerId(2));
    assert_eq!(vmq.add_queue(queue(2), NOW).unwrap().worker, WorkerId(2));
    assert_eq!(worker_numbers(&vmq), before);
}

#[test]
fn a_change_of_the_specification_reassigns_with_few_moves() {
    let mut vmq = of_weights(spec(2), &[100; 8]);
    let moves = vmq.set_spec(spec(4), NOW).unwrap();
    assert_eq!(moves.len(), 4, "{moves:?}");
    assert!(
        moves.iter().all(|entry| entry.reason == MoveReason::AssignedStatically { weight: 100 })
    );
    carry_out(&mut vmq, &moves);
    let moves = vmq.set_spec(spec(4), NOW).unwrap();
    assert_eq!(moves, [], "the same again");
    let moves = vmq.set_spec(spec(1), NOW).unwrap();
    assert_eq!(moves.len(), 6, "{moves:?}");
    assert!(moves.iter().all(|entry| entry.reason == MoveReason::WorkerLimit { max_workers: 1 }));
    assert!(worker_numbers(&vmq).iter().all(|worker| *worker == 0));
}

#[test]
fn queues_leave_a_removed_worker_and_use_an_added_one() {
    let mut vmq = of_weights(spec(4), &[100; 4]);
    let without_1: Vec<_> =
        workers(8, 2, 1).into_iter().filter(|entry| entry.number != WorkerId(1)).collect();
    let moves = vmq.set_workers(&without_1, NOW).unwrap();
    let [moved] = moves[..] else { panic!("{moves:?}") };
    assert_eq!(
        (moved.queue, moved.to, moved.reason),
        (queue(1), WorkerId(5), MoveReason::NotPermitted)
    );
    carry_out(&mut vmq, &moves);
    let based = VmqSpec { base_worker: Some(WorkerId(1)), ..spec(4) };
    assert!(matches!(vmq.set_spec(based.clone(), NOW), Err(VmqSpecError::UnknownBase { .. })));
    assert_eq!(vmq.spec(), &spec(4), "nothing was changed");
    let moves = vmq.configure(based, &workers(8, 2, 1), NOW).unwrap();
    assert!(!moves.is_empty());
    carry_out(&mut vmq, &moves);
    assert_eq!(worker_numbers(&vmq).iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn weight_0_and_vmq_off_use_the_default_queue_of_the_base() {
    let mut vmq = of_weights(spec(4), &[100, 100, 0, 100]);
    assert_eq!(worker_numbers(&vmq), [0, 1, 0, 2]);
    let explanation_of = |vmq: &Vmq, nic| vmq.explain(PortId(nic), NOW).unwrap().queues[0].clone();
    assert_eq!(
        (explanation_of(&vmq, 2).reason, explanation_of(&vmq, 2).stay_reason),
        (PlacementReason::DefaultQueue, StayReason::DefaultQueue)
    );

    let without_vmq = NicSpec { vmq_weight: 0, queues: 1 };
    let moves = vmq.set_nic(PortId(1), without_vmq, 1, NOW).unwrap();
    assert_eq!(moves.len(), 1);
    assert_eq!((moves[0].to, moves[0].reason), (WorkerId(0), MoveReason::DefaultQueue));
    carry_out(&mut vmq, &moves);
    let moves = vmq.set_nic(PortId(1), NicSpec::default(), 1, NOW).unwrap();
    assert_eq!(
        (moves[0].to, moves[0].reason),
        (WorkerId(1), MoveReason::AssignedStatically { weight: 100 })
    );
    carry_out(&mut vmq, &moves);

    let moves = vmq.set_spec(VmqSpec { enabled: false, ..spec(4) }, NOW).unwrap();
    assert_eq!(moves.len(), 2);
    carry_out(&mut vmq, &moves);
    assert_eq!(worker_numbers(&vmq), [0; 4]);
    let moves = vmq.set_spec(spec(4), NOW).unwrap();
    carry_out(&mut vmq, &moves);
    assert_eq!(explanation_of(&vmq, 2).reason, PlacementReason::DefaultQueue);
    assert_eq!(worker_numbers(&vmq).iter().filter(|worker| **worker == 0).count(), 2);
}

/// The default queue needs the base worker; if the maximum number is in use, another is emptied
/// at once.
#[test]
fn the_default_queue_brings_the_base_into_use() {
    let from_1 = VmqSpec {
        base_worker: Some(WorkerId(1)),
        mode: VmqMode::Dynamic,
        max_workers: 1,
        ..spec(1)
    };
    let mut vmq = of_weights(from_1.clone(), &[100, 100]);
    assert_eq!(worker_numbers(&vmq), [1, 1]);
    let from_0 = VmqSpec { base_worker: None, ..from_1 };
    assert_eq!(vmq.set_spec(from_0, NOW).unwrap(), [], "they may stay");
    vmq.set_nic(PortId(2), NicSpec { vmq_weight: 0, queues: 1 }, 1, NOW).unwrap();
    let added = vmq.add_queue(queue(2), NOW).unwrap();
    assert_eq!(added.worker, WorkerId(0));
    assert_eq!(added.moves.len(), 2);
    assert!(
        added.moves.iter().all(|entry| entry.reason == MoveReason::WorkerLimit { max_workers: 1 })
    );
    assert_eq!(worker_numbers(&vmq), [0; 3]);
}

#[test]
fn invalid_queues_and_weights_are_refused_with_valid_values() {
    let mut vmq = of_weights(spec(4), &[100]);
    let two = QueueId { index: 1, ..queue(0) };
    let texts = [
        vmq.add_queue(queue(0), NOW).unwrap_err(),
        vmq.add_queue(queue(5), NOW).unwrap_err(),
        vmq.add_queue(two, NOW).unwrap_err(),
    ]
    .map(|error: QueueError| error.to_string());
    assert_eq!(
        texts,
        [
            "queue 0 (ingress) of NIC 0 exists already; remove it first",
            "NIC 5 is not on this team or uplink; add the NIC before its queues",
            "NIC 0: queue index 1 is outside of 0 to 0",
        ]
    );
    let mut refused = |vmq_weight, queues, queues_max| {
        let nic_spec = NicSpec { vmq_weight, queues };
        vmq.set_nic(PortId(0), nic_spec, queues_max, NOW).unwrap_err().to_string()
    };
    assert_eq!(refused(101, 1, 1), "NIC 0: vmq_weight 101 is outside of 0 to 100");
    let expected =
        "NIC 0: 9 queues are not possible; the device has 8 free queues for it, set 1 to 8";
    assert_eq!(refused(1, 9, 8), expected);
    assert!(refused(1, 0, 8).ends_with("set 1 to 8"));
    assert!(refused(1, 1, 0).ends_with("set vmq_weight to 0 for the default queue"));
    assert_eq!(vmq.placement().count(), 1);
    let other_way = QueueId { direction: Direction::Egress, ..queue(0) };
    assert!(vmq.add_queue(other_way, NOW).is_ok());
}
