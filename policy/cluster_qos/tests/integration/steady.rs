//! Behaviour without faults.

use crate::cluster::{Clock, Cluster, SECOND, disk};
use suimon_cluster_qos::{
    AllocatorEvent, Notice, Parameters, PolicyKey, PolicyLimits, SharedStoreCapacity,
    UnmetMinimumCause,
};

const ALL: u64 = 1 << 40;

fn cluster_of(nodes: u32, capability: u64) -> Cluster {
    let mut cluster =
        Cluster::new(Parameters::default(), SharedStoreCapacity::Declared(capability), 1);
    for id in 1..=nodes {
        cluster.add_node(id, Clock::RIGHT, false);
    }
    cluster.elect(1);
    cluster
}

/// Nodes with unlimited demand share by weight, and the whole capacity is used.
#[test]
fn spare_capacity_is_divided_by_weight() {
    let mut cluster = cluster_of(3, 100_000);
    for (node, weight) in [(1, 100), (2, 200), (3, 100)] {
        cluster.set_disk(node, disk(u64::from(node), 0, 0, weight), ALL);
    }
    cluster.run(10 * SECOND);
    let caps: Vec<u64> = (1..=3).map(|node| cluster.cap(node)).collect();
    assert!(caps.iter().sum::<u64>() >= 99_900, "{caps:?}");
    assert!(caps[1].abs_diff(2 * caps[0]) < 200 && caps[0].abs_diff(caps[2]) < 200, "{caps:?}");
}

/// A minimum set while other nodes use the whole capacity is effective within two seconds, and
/// unused shares are used by others.
#[test]
fn minimums_are_effective_at_once_and_idle_shares_are_used() {
    let mut cluster = cluster_of(4, 100_000);
    for node in 1..=4 {
        cluster.set_disk(node, disk(u64::from(node), 0, 0, 100), ALL);
    }
    cluster.run(10 * SECOND);
    cluster.set_disk(1, disk(1, 80_000, 0, 100), ALL);
    cluster.run(2 * SECOND);
    assert!(cluster.cap(1) >= 80_000, "{}", cluster.cap(1));
    // Its demand is small: the others get the unreserved capacity.
    cluster.set_disk(1, disk(1, 80_000, 0, 100), 100);
    cluster.run(10 * SECOND);
    let other_caps: u64 = (2..=4).map(|node| cluster.cap(node)).sum();
    assert!(other_caps * 100 >= (100_000 - 80_064) * 95, "{other_caps}");
    // Without the reservation, the other nodes get the whole capacity.
    cluster.set_disk(1, disk(1, 0, 0, 100), 100);
    cluster.run(10 * SECOND);
    let other_caps: u64 = (2..=4).map(|node| cluster.cap(node)).sum();
    assert!(other_caps >= 95_000, "{other_caps}");
}

/// Shares are stable while nothing changes, and few writes occur.
#[test]
fn no_oscillation_and_bounded_writes() {
    let mut cluster = cluster_of(8, 200_000);
    for node in 1..=8 {
        let demand = if node % 2 == 0 { ALL } else { 3_000 * u64::from(node) };
        cluster.set_disk(node, disk(u64::from(node), 1_000 * u64::from(node), 0, 100), demand);
    }
    cluster.run(20 * SECOND);
    let (reports, granted, writes) = (cluster.reports, cluster.granted, cluster.writes);
    let mut ranges: Vec<(u64, u64)> =
        (1..=8).map(|node| (cluster.cap(node), cluster.cap(node))).collect();
    for _ in 0..600 {
        cluster.run(SECOND / 10);
        for (node, (min, max)) in (1..=8).zip(&mut ranges) {
            (*min, *max) = ((*min).min(cluster.cap(node)), (*max).max(cluster.cap(node)));
        }
    }
    for (min, max) in &ranges {
        assert!(max - min <= max / 50, "{ranges:?}");
    }
    let per_node = |count: u64| count as f64 / 60.0 / 8.0;
    assert!(per_node(cluster.reports - reports) <= 1.1, "{}", cluster.reports - reports);
    assert!(per_node(cluster.granted - granted) <= 1.1, "{}", cluster.granted - granted);
    assert!((cluster.writes - writes) as f64 / 60.0 <= 4.1, "{}", cluster.writes - writes);
}

/// Nodes with a demand within their reservations send few reports.
#[test]
fn idle_nodes_send_few_messages() {
    let mut cluster = cluster_of(8, 200_000);
    for node in 1..=8 {
        cluster.set_disk(node, disk(u64::from(node), 1_000, 0, 100), 10);
    }
    cluster.run(20 * SECOND);
    let (reports, granted) = (cluster.reports, cluster.granted);
    cluster.run(100 * SECOND);
    assert!(cluster.reports - reports <= 8 * 11, "{}", cluster.reports - reports);
    assert!(cluster.granted - granted <= 8 * 11, "{}", cluster.granted - granted);
    // A node gets its minimum immediately when its demand becomes unlimited.
    cluster.set_disk(3, disk(3, 1_000, 0, 100), ALL);
    cluster.run(3 * SECOND / 2);
    assert!(cluster.cap(3) > 180_000, "{}", cluster.cap(3));
}

#[test]
fn unsatisfiable_minimums_are_rejected_with_the_calculation() {
    let mut cluster = cluster_of(2, 10_000);
    cluster.set_disk(1, disk(1, 6_000, 0, 100), ALL);
    cluster.run(5 * SECOND);
    cluster.set_disk(2, disk(2, 3_000, 0, 100), ALL);
    cluster.run(70 * SECOND);
    let refused = cluster.notices.iter().find_map(|(_, notice)| match notice {
        Notice::ReservationRefused { admission: promises, .. } => Some(promises.to_string()),
        _ => None,
    });
    assert_eq!(
        refused.unwrap(),
        "all nodes together have 6064 IOPS reserved, and 3064 IOPS more were requested; the \
         permitted sum is 9000 IOPS, 90 % of the store's capacity of 10000 IOPS (configured): lower \
         minimums by 128 IOPS"
    );
    assert!(cluster.cap(1) >= 6_064);
    // A query of unmet minimums returns the cause immediately.
    let unmet = cluster.allocator().unmet_minimums();
    assert_eq!(
        (unmet.len(), unmet[0].disk.0, unmet[0].cause),
        (1, 2, UnmetMinimumCause::NotAdmitted)
    );
    let aggressor = unmet[0].disks_over_guarantee[0];
    assert_eq!(
        (aggressor.node.0, aggressor.disk.0, aggressor.delivered_iops - aggressor.guaranteed_iops),
        (1, 1, 2_000)
    );
    cluster.set_disk(1, disk(1, 4_000, 0, 100), ALL);
    cluster.run(5 * SECOND);
    assert!(cluster.cap(2) >= 3_064, "{}", cluster.cap(2));
}

/// An unmet minimum names the disks that use the capacity, and their nodes.
#[test]
fn aggressors_are_named() {
    let mut cluster = cluster_of(2, 10_000);
    cluster.set_disk(1, disk(11, 0, 0, 100), ALL);
    cluster.set_disk(1, disk(12, 0, 0, 300), ALL);
    cluster.set_disk(2, disk(21, 9_500, 0, 100), ALL);
    cluster.run(65 * SECOND);
    let unmet = cluster.notices.iter().find_map(|(_, notice)| match notice {
        Notice::MinimumUnmet(unmet) => Some(unmet.clone()),
        _ => None,
    });
    let unmet = unmet.unwrap();
    assert_eq!((unmet.node.0, unmet.disk.0, unmet.cause), (2, 21, UnmetMinimumCause::NotAdmitted));
    assert_eq!(
        (unmet.disks_over_guarantee[0].node.0, unmet.disks_over_guarantee[0].disk.0),
        (1, 12)
    );
    assert!(
        unmet.disks_over_guarantee[0].delivered_iops
            > 2 * unmet.disks_over_guarantee[1].delivered_iops
    );
}

/// Disks on three nodes share a maximum of 9000, and the minimum counts once.
#[test]
fn a_policy_limits_disks_on_several_nodes_together() {
    let mut cluster = cluster_of(3, 100_000);
    let policy = PolicyKey(7);
    let limits = PolicyLimits { min_iops: 3_000, max_iops: Some(9_000) };
    cluster.policies.insert(policy, limits);
    cluster.checks.policy_max.insert(policy, 9_000);
    cluster.send_to_leader(&AllocatorEvent::PolicySet { policy, limits });
    for node in 1..=3 {
        let mut load = disk(u64::from(node), 0, 0, 100);
        load.policy = Some(policy);
        cluster.set_disk(node, load, if node == 1 { ALL } else { 500 });
    }
    cluster.run(15 * SECOND);
    let cap_of = |cluster: &Cluster, node: u32| {
        let node = &cluster.nodes[&node];
        let cap = node.policy_caps.iter().find(|cap| cap.policy == policy);
        let cap = cap.copied();
        cap.map_or(0, |cap| cap.max.unwrap().iops_at(node.clock.at(cluster.now)))
    };
    // Half is divided equally and indefinitely, the rest by demand.
    assert_eq!([cap_of(&cluster, 2), cap_of(&cluster, 3)], [1_500, 1_500]);
    assert_eq!(cap_of(&cluster, 1), 6_000);
    let reserved: u64 = (1..=3).map(|node| cluster.durable_state(node).store.reserved_iops).sum();
    assert_eq!(reserved, 3_000 + 3 * 64);
    // A policy deleted while in use stays in effect, and this is reported.
    cluster.policies.remove(&policy);
    cluster.send_to_leader(&AllocatorEvent::PolicyRemoved { policy });
    cluster.run(5 * SECOND);
    assert!(cluster.notices.iter().any(|(_, notice)| matches!(notice, Notice::PolicyInUse { .. })));
    assert_eq!(cap_of(&cluster, 1), 6_000);
    // The next leader does not have the policy. Its disks stop instead of running without limits.
    cluster.elect(2);
    cluster.run(10 * SECOND);
    assert!(
        cluster.notices.iter().any(|(_, notice)| matches!(notice, Notice::PolicyUnknown { .. }))
    );
    assert_eq!([cap_of(&cluster, 1), cap_of(&cluster, 2)], [0, 0]);
}

/// A closed-loop client submits only as fast as requests complete. If the store causes a rate below
/// the minimum, the minimum is unmet nevertheless.
#[test]
fn a_minimum_is_unmet_on_a_slow_store_whatever_the_demand() {
    let mut cluster = cluster_of(2, 10_000);
    cluster.set_disk(1, disk(1, 6_000, 0, 100), ALL);
    cluster.set_disk(2, disk(2, 0, 0, 1), ALL);
    cluster.run(5 * SECOND);
    for (node, store_iops) in [(1, 2_000), (2, 300)] {
        let node = cluster.nodes.get_mut(&node).unwrap();
        (node.store_does, node.latency_ns) = (Some(store_iops), 3_000_000);
    }
    cluster.run(70 * SECOND);
    let unmet = cluster.notices.iter().find_map(|(_, notice)| match notice {
        Notice::MinimumUnmet(unmet) => Some(unmet.clone()),
        _ => None,
    });
    let unmet = unmet.unwrap();
    assert_eq!((unmet.node.0, unmet.disk.0, unmet.cause), (1, 1, UnmetMinimumCause::ExternalLoad));
    assert_eq!((unmet.guaranteed_iops, unmet.delivered_iops), (6_000, 2_000));
    let aggressor = unmet.disks_over_guarantee[0];
    assert_eq!((aggressor.node.0, aggressor.disk.0, aggressor.guaranteed_iops), (2, 2, 0));
    assert!(aggressor.delivered_iops > 0);
}

/// After a short unlimited demand that drops, other nodes wait no longer than one report, one grant
/// and its acknowledgement.
#[test]
fn shares_without_demand_are_used_by_others_within_a_second() {
    let mut cluster = cluster_of(2, 100_000);
    cluster.set_disk(1, disk(1, 0, 0, 100), ALL);
    cluster.set_disk(2, disk(2, 0, 0, 100), 1_000);
    cluster.run(10 * SECOND);
    assert!(cluster.cap(1) > 95_000, "{}", cluster.cap(1));
    cluster.set_disk(2, disk(2, 0, 0, 100), ALL);
    cluster.run(3 * SECOND);
    assert!(cluster.cap(1) < 60_000, "{}", cluster.cap(1));
    cluster.set_disk(2, disk(2, 0, 0, 100), 1_000);
    cluster.run(9 * SECOND / 10);
    assert!(cluster.cap(1) > 95_000, "{}", cluster.cap(1));
}

/// A saturated node does not report how much more it demands. Others do not give up half of the
/// spare capacity for a small demand.
#[test]
fn a_small_unmet_demand_takes_little_from_others() {
    let mut cluster = cluster_of(2, 100_000);
    cluster.set_disk(1, disk(1, 0, 0, 100), ALL);
    cluster.set_disk(2, disk(2, 2_000, 0, 100), 1_000);
    cluster.run(10 * SECOND);
    cluster.set_disk(2, disk(2, 2_000, 0, 100), 2_200);
    for _ in 0..60 {
        cluster.run(SECOND / 20);
        assert!(cluster.cap(1) > 90_000, "{}", cluster.cap(1));
    }
    assert!(cluster.cap(2) >= 2_200, "{}", cluster.cap(2));
}

/// The assumed use does not grow further before the effect of the last grant is reported.
#[test]
fn a_large_unmet_demand_grows_stepwise() {
    for phase in 0..10 {
        let mut cluster = cluster_of(5, 100_000);
        for node in [1, 3] {
            cluster.set_disk(node, disk(u64::from(node), 0, 0, 100), ALL);
        }
        for node in [2, 4, 5] {
            cluster.set_disk(node, disk(u64::from(node), 0, 0, 100), 2_200);
        }
        cluster.run(10 * SECOND + phase * SECOND / 10);
        // Other demands change too, so that the capacity is divided repeatedly.
        cluster.set_disk(2, disk(2, 0, 0, 100), 6_600);
        // Nodes report once a second.
        for round in 0..18 {
            if round % 5 == 0 {
                cluster.set_disk(4, disk(4, 0, 0, 100), 2_200 + round * 20);
            }
            cluster.run(SECOND / 20);
            assert!(cluster.cap(2) <= 12_000, "{phase} {round}: {}", cluster.cap(2));
        }
        cluster.run(3 * SECOND);
        assert!(cluster.cap(2) >= 6_600, "{}", cluster.cap(2));
    }
}

/// The store delivers half of its capacity: spare capacity shrinks, guarantees do not.
#[test]
fn external_load_is_reported_and_minimums_stay() {
    let mut cluster = cluster_of(2, 100_000);
    cluster.set_disk(1, disk(1, 30_000, 0, 100), ALL);
    cluster.set_disk(2, disk(2, 0, 0, 100), ALL);
    cluster.run(20 * SECOND);
    assert!(cluster.cap(2) > 30_000);
    let mut reported_at = None;
    for _ in 0..120 {
        // An external load takes half of the store; nodes get the rest in proportion to their
        // demand.
        let caps = cluster.cap(1) + cluster.cap(2);
        for node in [1, 2] {
            let share = 50_000 * cluster.cap(node) / caps.max(50_000);
            let node = cluster.nodes.get_mut(&node).unwrap();
            (node.store_does, node.latency_ns) = (Some(share), 3_000_000);
        }
        cluster.run(SECOND / 2);
        reported_at = reported_at.or(cluster.notices.iter().find_map(|(_, notice)| match notice {
            Notice::ExternalLoad { delivered_iops, .. } => Some(*delivered_iops),
            _ => None,
        }));
    }
    assert!(reported_at.unwrap() <= 51_000, "{reported_at:?}");
    assert!(cluster.cap(1) >= 30_064);
    let measured = cluster.nodes[&1].store_does.unwrap();
    assert!(measured >= 30_000, "{measured}");
}
