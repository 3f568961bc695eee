//! Faults: all nodes together never exceed the capacity of the store.

use core::time::Duration;

use crate::cluster;
use crate::cluster::{Clock, Cluster, Dice, Network, SECOND, disk};
use proptest::prelude::*;
use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Demand, DiskKey, DiskLoad, LoadReport, MemberEvent,
    NodeId, NodeLoad, PROTOCOL_VERSION, Parameters, PolicyKey, PolicyLimits, ReportId,
    SharedStoreCapacity, Term,
};
use suimon_quantity::Time;

const ALL: u64 = 1 << 40;
const CAPABILITY: u64 = 100_000;
const POLICY: PolicyKey = PolicyKey(1);
/// Maximum of the shared policy on all nodes together, in normalised operations per second.
const SHARED_MAX: u64 = 20_000;

#[derive(Clone, Debug)]
enum Step {
    /// Sets a disk's minimum, in thousandths of the capacity, and its demand.
    Disk {
        node: u32,
        disk: u64,
        min: u64,
        max: u64,
        demand: u64,
    },
    /// Moves a disk to another node.
    Move {
        from: u32,
        to: u32,
        disk: u64,
    },
    RemoveDisk {
        node: u32,
        disk: u64,
    },
    SharedDisk {
        node: u32,
        demand: u64,
    },
    CutOff {
        node: u32,
        is_cut_off: bool,
    },
    Freeze {
        node: u32,
        seconds: u64,
    },
    Restart {
        node: u32,
    },
    Elect {
        node: u32,
    },
    Network {
        is_bad: bool,
    },
    Policy {
        min: u64,
    },
    RemovePolicy,
    Wait,
}

fn any_demand() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1_u64..CAPABILITY, Just(ALL)]
}

fn step(nodes: u32) -> impl Strategy<Value = Step> {
    let node = move || 1..=nodes;
    prop_oneof![
        6 => (node(), 0_u64..3, 0_u64..500, 0_u64..600, any_demand())
            .prop_map(|(node, disk, min, max, demand)| Step::Disk { node, disk, min, max, demand }),
        2 => (node(), node(), 0_u64..3).prop_map(|(from, to, disk)| Step::Move { from, to, disk }),
        1 => (node(), 0_u64..3).prop_map(|(node, disk)| Step::RemoveDisk { node, disk }),
        2 => (node(), any_demand()).prop_map(|(node, demand)| Step::SharedDisk { node, demand }),
        3 => (node(), any::<bool>())
            .prop_map(|(node, is_cut_off)| Step::CutOff { node, is_cut_off }),
        2 => (node(), 1_u64..40).prop_map(|(node, seconds)| Step::Freeze { node, seconds }),
        2 => node().prop_map(|node| Step::Restart { node }),
        3 => node().prop_map(|node| Step::Elect { node }),
        2 => any::<bool>().prop_map(|is_bad| Step::Network { is_bad }),
        1 => (0_u64..SHARED_MAX / 2).prop_map(|min| Step::Policy { min }),
        1 => Just(Step::RemovePolicy),
        3 => Just(Step::Wait),
    ]
}

/// Returns the identifier of a disk, which stays the same if the disk moves to another node. Each
/// node starts with three disks.
fn key(node: u32, disk: u64) -> DiskKey {
    DiskKey(u64::from(node) * 10 + disk)
}

fn load(node: u32, id: u64, min: u64, max: u64) -> DiskLoad {
    let min = min * CAPABILITY / 1000;
    let max = if max == 0 { 0 } else { min + max * CAPABILITY / 1000 };
    disk(key(node, id).0, min, max, 100)
}

fn carry_out(cluster: &mut Cluster, step: &Step) {
    match *step {
        Step::Disk { node, disk, min, max, demand } => {
            cluster.set_disk(node, load(node, disk, min, max), demand);
        }
        Step::Move { from, to, disk } => {
            let disks = &mut cluster.nodes.get_mut(&from).unwrap().disks;
            if let Some((load, demand)) = disks.remove(&key(from, disk)) {
                cluster.set_disk(to, load, demand);
            }
        }
        Step::RemoveDisk { node, disk } => cluster.remove_disk(node, key(node, disk)),
        Step::SharedDisk { node, demand } => {
            let mut load = disk(u64::from(node) * 10 + 9, 0, 0, 100);
            load.policy = Some(POLICY);
            cluster.set_disk(node, load, demand);
        }
        Step::CutOff { node, is_cut_off } => {
            cluster.nodes.get_mut(&node).unwrap().is_cut_off = is_cut_off;
        }
        Step::Freeze { node, seconds } => {
            let deadline = cluster.now + seconds * SECOND;
            cluster.nodes.get_mut(&node).unwrap().frozen_until = deadline;
        }
        Step::Restart { node } => cluster.restart(node),
        Step::Elect { node } => cluster.elect(node),
        Step::Network { is_bad } => {
            cluster.network = if is_bad { Network::BAD } else { Network::GOOD };
        }
        Step::Policy { min } => {
            let limits = PolicyLimits { min_iops: min, max_iops: Some(SHARED_MAX) };
            cluster.policies.insert(POLICY, limits);
            cluster.send_to_leader(&AllocatorEvent::PolicySet { policy: POLICY, limits });
        }
        Step::RemovePolicy => {
            cluster.policies.remove(&POLICY);
            cluster.send_to_leader(&AllocatorEvent::PolicyRemoved { policy: POLICY });
        }
        Step::Wait => {}
    }
}

/// Ends all faults and advances the time until the state has settled.
fn heal(cluster: &mut Cluster) {
    cluster.network = Network::GOOD;
    for node in cluster.nodes.values_mut() {
        (node.is_cut_off, node.frozen_until) = (false, 0);
    }
    let leader = cluster.leader;
    cluster.elect(leader);
    cluster.run(40 * SECOND);
}

/// Asserts that without faults each node has its minimums, if they are admissible, and that the
/// rest is used if there is demand.
fn judge_settled(cluster: &mut Cluster) {
    let minimums = |cluster: &Cluster, node: u32| -> u64 {
        let disks = cluster.nodes[&node].disks.values();
        disks.filter(|(load, _)| load.policy.is_none()).map(|(load, _)| load.min_iops).sum()
    };
    let ids: Vec<u32> = cluster.nodes.keys().copied().collect();
    let shared = cluster.policies.get(&POLICY).map_or(0, |limits| limits.min_iops);
    let floors = ids.len() as u64 * cluster.terms.base_reservation_iops;
    let sum: u64 = ids.iter().map(|node| minimums(cluster, *node)).sum::<u64>() + floors + shared;
    let is_feasible = sum <= CAPABILITY * 9 / 10;
    for node in &ids {
        let (cap, min) = (cluster.cap(*node), minimums(cluster, *node));
        assert!(
            !is_feasible || cap >= min,
            "node {node} may do {cap} of its {min}; all come to {sum}"
        );
    }
    let caps: u64 = ids.iter().map(|node| cluster.cap(*node)).sum();
    let is_hungry = cluster.nodes.values().any(|node| {
        node.disks.values().any(|(load, demand)| {
            load.policy.is_none() && load.max_iops.is_none() && *demand == ALL
        })
    });
    assert!(!is_hungry || caps * 100 >= CAPABILITY * 95, "{caps} of {CAPABILITY} are used");
    // The shares are stable.
    let before: Vec<u64> = ids.iter().map(|node| cluster.cap(*node)).collect();
    cluster.run(5 * SECOND);
    for (node, before) in ids.iter().zip(before) {
        let cap = cluster.cap(*node);
        assert!(cap.abs_diff(before) <= before / 50 + 2, "node {node}: {before}, then {cap}");
    }
}

fn drive(seed: u64, nodes: u32, falls: bool, steps: &[(u64, Step)]) -> Cluster {
    let capability = SharedStoreCapacity::Declared(CAPABILITY);
    let mut cluster = Cluster::new(Parameters::default(), capability, seed);
    let mut dice = Dice(seed ^ 0x5eed);
    for id in 1..=nodes {
        // Half of the permitted difference for each of two clocks, in either direction.
        let ppm = i64::try_from(dice.below(9_900)).unwrap() - 4_950;
        let offset = dice.below(1 << 50);
        cluster.add_node(id, Clock { offset, ppm }, falls);
    }
    cluster.checks.policy_max.insert(POLICY, SHARED_MAX);
    cluster.elect(1);
    for (ms, step) in steps {
        cluster.run(ms * cluster::MS);
        carry_out(&mut cluster, step);
    }
    let seconds = cluster.now / SECOND;
    for node in cluster.nodes.values() {
        let max = seconds * 4 + 4 * node.incarnation + 4;
        assert!(node.reports <= max, "{} reports in {seconds} s", node.reports);
    }
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// The invariants of `Checks` hold during faults, and the settled state is correct afterwards.
    #[test]
    fn caps_stay_within_the_capacity(
        seed in any::<u64>(),
        nodes in 2_u32..8,
        steps in prop::collection::vec((1_u64..4_000, step(7)), 1..60),
    ) {
        let steps: Vec<_> = steps.into_iter().map(|(ms, step)| (ms, bounded_step(step, nodes))).collect();
        let mut cluster = drive(seed, nodes, false, &steps);
        heal(&mut cluster);
        judge_settled(&mut cluster);
    }

    /// The invariants of `Checks` hold, and the settled state is correct, also with fallback rates
    /// for nodes without contact.
    #[test]
    fn caps_stay_within_the_capacity_with_fallback_rates(
        seed in any::<u64>(),
        nodes in 2_u32..8,
        steps in prop::collection::vec((1_u64..4_000, step(7)), 1..60),
    ) {
        let steps: Vec<_> = steps.into_iter().map(|(ms, step)| (ms, bounded_step(step, nodes))).collect();
        let mut cluster = drive(seed, nodes, true, &steps);
        heal(&mut cluster);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Replaying serialized events leads to the same state and actions.
    #[test]
    fn serialized_events_replay_to_the_same_state(
        seed in any::<u64>(),
        steps in prop::collection::vec((1_u64..4_000, step(3)), 1..30),
    ) {
        let cluster = drive(seed, 3, false, &steps);
        for node in cluster.nodes.values() {
            let text = serde_json::to_string(&node.allocator_events).unwrap();
            let inputs: Vec<(Time, Option<AllocatorEvent>)> = serde_json::from_str(&text).unwrap();
            let mut replayed = [Allocator::new(cluster.terms), Allocator::new(cluster.terms)];
            for ((time, event), (second_time, second_event)) in inputs.iter().zip(&node.allocator_events) {
                for (allocator, event, time) in [(0, event, time), (1, second_event, second_time)] {
                    match event {
                        Some(event) => replayed[allocator].handle(*time, event),
                        None => replayed[allocator].handle_deadline(*time),
                    }
                }
                let [first, second] = &mut replayed;
                let actions: Vec<_> = std::iter::from_fn(|| first.poll_action()).collect();
                let other_actions: Vec<_> = std::iter::from_fn(|| second.poll_action()).collect();
                prop_assert_eq!(&actions, &other_actions);
                let text = serde_json::to_string(&actions).unwrap();
                prop_assert_eq!(serde_json::from_str::<Vec<AllocatorAction>>(&text).unwrap(), other_actions);
            }
            let final_state = format!("{:?}", replayed[0]);
            prop_assert_eq!(final_state, format!("{:?}", node.allocator));
            let text = serde_json::to_string(&node.member_events).unwrap();
            let inputs: Vec<(Time, Option<MemberEvent>)> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(inputs, node.member_events.clone());
        }
    }
}

/// Returns the step with node numbers reduced to a cluster of `nodes` nodes.
fn bounded_step(step: Step, nodes: u32) -> Step {
    let wrap = |node: u32| (node - 1) % nodes + 1;
    match step {
        Step::Disk { node, disk, min, max, demand } => {
            Step::Disk { node: wrap(node), disk, min, max, demand }
        }
        Step::Move { from, to, disk } => Step::Move { from: wrap(from), to: wrap(to), disk },
        Step::RemoveDisk { node, disk } => Step::RemoveDisk { node: wrap(node), disk },
        Step::SharedDisk { node, demand } => Step::SharedDisk { node: wrap(node), demand },
        Step::CutOff { node, is_cut_off } => Step::CutOff { node: wrap(node), is_cut_off },
        Step::Freeze { node, seconds } => Step::Freeze { node: wrap(node), seconds },
        Step::Restart { node } => Step::Restart { node: wrap(node) },
        Step::Elect { node } => Step::Elect { node: wrap(node) },
        other => other,
    }
}

/// Nodes without contact to the leader change to their fallback rates. The other nodes have
/// released the capacity by then.
#[test]
fn fallbacks_are_used() {
    let capability = SharedStoreCapacity::Declared(CAPABILITY);
    let mut cluster = Cluster::new(Parameters::default(), capability, 5);
    for id in 1..=3 {
        cluster.add_node(id, Clock::RIGHT, true);
        let load = disk(u64::from(id), 1_000, 0, 100);
        let load = DiskLoad { fallback_iops: Some(30_000), ..load };
        // Unused capacity is used by others while all nodes are in contact.
        cluster.set_disk(id, load, if id == 1 { 10 } else { ALL });
    }
    cluster.elect(3);
    cluster.run(20 * SECOND);
    assert_eq!(cluster.cap(1), 1_064);
    cluster.nodes.get_mut(&1).unwrap().is_cut_off = true;
    assert!(cluster.cap(2) + cluster.cap(3) > 95_000);
    cluster.run(15 * SECOND);
    assert_eq!(cluster.cap(1), 1_064);
    cluster.run(20 * SECOND);
    assert_eq!(cluster.cap(1), 30_000);
    // Without a leader every node has its own rates.
    for node in cluster.nodes.values_mut() {
        node.is_cut_off = true;
    }
    cluster.run(60 * SECOND);
    assert_eq!([cluster.cap(2), cluster.cap(3)], [30_000; 2]);
}

/// A grant that is delayed by ten seconds has no effect, although it is the latest that its node
/// received: other nodes use the share by then.
#[test]
fn late_grants_have_no_effect() {
    let mut cluster =
        Cluster::new(Parameters::default(), SharedStoreCapacity::Declared(CAPABILITY), 5);
    for id in 1..=2 {
        cluster.add_node(id, Clock::RIGHT, false);
        cluster.set_disk(id, disk(u64::from(id), 1_000, 0, 100), ALL);
    }
    cluster.elect(2);
    cluster.run(10 * SECOND);
    assert!(cluster.cap(1) > 45_000);
    cluster.nodes.get_mut(&1).unwrap().grants_late = 10 * SECOND;
    cluster.run(8 * SECOND);
    cluster.set_disk(1, disk(1, 1_000, 0, 100), 0);
    for _ in 0..30 {
        cluster.run(SECOND);
        assert_eq!(cluster.cap(1), 1_064);
    }
    assert!(cluster.cap(2) > 95_000);
}

/// A clock slower than the terms permit is detected, and its node uses no lease.
#[test]
fn a_slow_clock_gets_no_lease() {
    let capability = SharedStoreCapacity::Declared(CAPABILITY);
    let mut cluster = Cluster::new(Parameters::default(), capability, 5);
    cluster.add_node(1, Clock::RIGHT, false);
    // The clock is off by an hour, but has no drift.
    cluster.add_node(2, Clock { offset: 3_600 * SECOND, ppm: 0 }, false);
    cluster.add_node(3, Clock { offset: 0, ppm: -100_000 }, false);
    for id in 1..=3 {
        cluster.set_disk(id, disk(u64::from(id), 1_000, 0, 100), ALL);
    }
    cluster.elect(1);
    cluster.run(120 * SECOND);
    let notices =
        |id: u32| cluster.nodes[&id].notices.iter().map(|(_, notice)| *notice).collect::<Vec<_>>();
    assert!(format!("{:?}", notices(3)).contains("ClockSlow"), "{:?}", notices(3));
    assert!(!format!("{:?}", notices(2)).contains("ClockSlow"), "{:?}", notices(2));
    assert_eq!(cluster.cap(3), 1_064);
    assert!(cluster.cap(2) > 40_000);
}

/// A node removed by force releases its reservation; if it still runs, it is counted again and
/// reported.
#[test]
fn a_removed_node_that_still_runs_is_counted_again() {
    let capability = SharedStoreCapacity::Declared(CAPABILITY);
    let mut cluster = Cluster::new(Parameters::default(), capability, 5);
    for id in 1..=2 {
        cluster.add_node(id, Clock::RIGHT, false);
        cluster.set_disk(id, disk(u64::from(id), 40_000, 0, 100), ALL);
    }
    cluster.elect(1);
    cluster.run(10 * SECOND);
    cluster.nodes.get_mut(&2).unwrap().is_cut_off = true;
    cluster.run(40 * SECOND);
    assert!(cluster.cap(1) <= CAPABILITY - 40_064, "it may still use what is reserved for it");
    let text = format!("{:?}", cluster.notices);
    assert!(text.contains("NodeSilent"), "{text}");
    // The node still runs although it was reported as gone, which violates the assumption.
    cluster.checks.is_on = false;
    cluster.send_to_leader(&AllocatorEvent::NodeGone { node: NodeId(2) });
    cluster.run(10 * SECOND);
    assert!(cluster.cap(1) > 99_000 && !cluster.records.contains_key(&NodeId(2)));
    cluster.nodes.get_mut(&2).unwrap().is_cut_off = false;
    cluster.run(12 * SECOND);
    assert!(format!("{:?}", cluster.notices).contains("Unaccounted"));
    assert!(cluster.cap(1) + cluster.cap(2) <= CAPABILITY);
}

/// etcd rejects a transaction that writes and deletes the same record.
#[test]
fn a_node_that_returns_before_it_is_forgotten_keeps_its_record() {
    let report = |number| {
        let id = ReportId { incarnation: 1, number };
        let report = LoadReport {
            version: PROTOCOL_VERSION,
            node: NodeId(1),
            id,
            acknowledged: None,
            reserved_iops: 0,
            applies_leases: true,
            load: NodeLoad::default(),
            demand: Demand::default(),
            policies: Vec::new(),
            disks_over_guarantee: Vec::new(),
            disks_below_guarantee: Vec::new(),
        };
        AllocatorEvent::Reported { report }
    };
    let mut allocator = Allocator::new(Parameters::default());
    let capability = SharedStoreCapacity::Declared(CAPABILITY);
    let (records, policies) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    let elected =
        AllocatorEvent::Elected { term: Term(1), capacity: capability, records, policies };
    allocator.handle(now, &elected);
    allocator.handle(now, &report(1));
    let mut written = Vec::new();
    while written.len() < 2 {
        assert!(now < Time::ZERO + Duration::from_secs(60), "{written:?}");
        now = now + Duration::from_millis(10);
        allocator.handle_deadline(now);
        while let Some(action) = allocator.poll_action() {
            let AllocatorAction::Write { grants, removed_nodes: forgotten, .. } = action else {
                continue;
            };
            written.push((grants.into_iter().map(|(node, _)| node).collect::<Vec<_>>(), forgotten));
            allocator.handle(now, &AllocatorEvent::GrantsWritten);
            if written.len() == 1 {
                allocator.handle(now, &AllocatorEvent::NodeGone { node: NodeId(1) });
                allocator.handle(now, &report(2));
            }
        }
    }
    let expected_write = (vec![NodeId(1)], Vec::new());
    assert_eq!(written, [expected_write.clone(), expected_write]);
}
