//! Published experiments in virtual time: ten VMs on two nodes write 512 KB at random, one request
//! at a time, to one array of ten disks. A node without information about the others cannot
//! guarantee a minimum there.

use std::collections::BTreeMap;

use crate::cluster::{Clock, Cluster, SECOND, disk};
use suimon_cluster_qos::{DiskKey, Parameters, SharedStoreCapacity};

/// Capacity of the array in normalised operations per second. It has five pairs of mirrored disks;
/// each takes 18.7 ms for a request, which counts as 64 operations. One VM alone gets a fifth of
/// the capacity.
const CAPABILITY: u64 = 17_112;
const ALONE: u64 = CAPABILITY / 5;
/// Number of normalised operations in 1 MB. The VMs write 16, 24 and 8 MB/s.
const MB: u64 = 125;

/// Returns the throughput of each VM, as one queue for requests of one size divides it: limited by
/// the VM's node and, if the array is saturated, an equal share of the array.
fn served(cluster: &Cluster) -> BTreeMap<u64, u64> {
    let all_disks = cluster.nodes.values().flat_map(|node| node.delivered(cluster.now));
    let demands: BTreeMap<u64, u64> =
        all_disks.map(|(DiskKey(disk), iops)| (disk, iops.min(ALONE))).collect();
    share(&demands)
}

/// Returns equal shares of the array's capacity for VMs with these demands; the unused part is
/// divided among the others.
fn share(demands: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let mut order: Vec<(u64, u64)> = demands.iter().map(|(disk, iops)| (*iops, *disk)).collect();
    order.sort_unstable();
    let (mut remaining, mut delivered) = (CAPABILITY, BTreeMap::new());
    for (index, (iops, disk)) in order.iter().enumerate() {
        let share = (remaining / (order.len() - index) as u64).min(*iops);
        delivered.insert(*disk, share);
        remaining -= share;
    }
    delivered
}

struct Experiment {
    cluster: Cluster,
    limits: BTreeMap<u64, (u64, u64)>,
}

impl Experiment {
    fn new() -> Self {
        let capability = SharedStoreCapacity::Declared(CAPABILITY);
        let mut cluster = Cluster::new(Parameters::default(), capability, 3);
        cluster.add_node(1, Clock { offset: 77 * SECOND, ppm: 90 }, false);
        cluster.add_node(2, Clock { offset: 0, ppm: -90 }, false);
        cluster.elect(1);
        let mut experiment = Self { cluster, limits: BTreeMap::new() };
        experiment.set(1..=10, 0, 0);
        experiment
    }

    fn set(&mut self, vms: std::ops::RangeInclusive<u64>, min: u64, max: u64) {
        for vm in vms {
            self.limits.insert(vm, (min, max));
            let node = if vm <= 5 { 1 } else { 2 };
            self.cluster.set_disk(node, disk(vm, min, max, 100), ALONE);
        }
    }

    /// Advances the time by `settle` seconds, then by `seconds`. Returns the lowest and the highest
    /// throughput of each VM in the latter time.
    fn step(&mut self, settle: u64, seconds: u64) -> BTreeMap<u64, (u64, u64)> {
        self.cluster.run(settle * SECOND);
        let mut ranges = BTreeMap::<u64, (u64, u64)>::new();
        for _ in 0..seconds * 4 {
            self.cluster.run(SECOND / 4);
            let delivered = served(&self.cluster);
            for (vm, iops) in delivered {
                let (min, max) = ranges.entry(vm).or_insert((iops, iops));
                (*min, *max) = ((*min).min(iops), (*max).max(iops));
            }
        }
        ranges
    }
}

fn sum(ranges: &BTreeMap<u64, (u64, u64)>) -> u64 {
    ranges.values().map(|(min, _)| min).sum()
}

/// Experiment `qos-cluster-min`. In the published document VM01–05 reached neither 2000 nor 3000.
#[test]
fn qos_cluster_min() {
    // Without coordination of the nodes all VMs get equal shares, whatever a node has guaranteed.
    let shares = share(&(1..=10).map(|vm| (vm, ALONE)).collect());
    assert!(shares.values().all(|iops| *iops < 2000), "{shares:?}: nothing would be shown");

    let mut experiment = Experiment::new();
    // Step 1, no limits: all are equal.
    let ranges = experiment.step(20, 10);
    for (vm, (min, max)) in &ranges {
        assert!(*min * 100 >= 1_711 * 95 && *max <= 1_720, "VM{vm}: {ranges:?}");
    }
    // Step 2, VM01–05 have a minimum of 2000: 80 MB/s, within 5 s.
    experiment.set(1..=5, 2_000, 0);
    let ranges = experiment.step(2, 58);
    let guaranteed: u64 = (1..=5).map(|vm| ranges[&vm].0).sum();
    assert!((1..=5).all(|vm| ranges[&vm].0 * 100 >= 2_000 * 98), "{ranges:?}");
    assert!(guaranteed >= 80 * MB * 98 / 100, "{guaranteed}");
    assert!(sum(&ranges) * 100 >= CAPABILITY * 95, "{ranges:?}");
    // Step 3, minimum 3000: 120 MB/s. The other VMs use the entire rest.
    experiment.set(1..=5, 3_000, 0);
    let ranges = experiment.step(2, 58);
    assert!((1..=5).all(|vm| ranges[&vm].0 * 100 >= 3_000 * 98), "{ranges:?}");
    assert!(sum(&ranges) * 100 >= CAPABILITY * 95, "{ranges:?}");
    // Step 4, a minimum for VM06–10 too: the sum exceeds the capacity and is rejected with the
    // calculation. VMs with earlier guarantees keep them.
    experiment.set(6..=10, 3_000, 0);
    let ranges = experiment.step(5, 55);
    assert!((1..=5).all(|vm| ranges[&vm].0 * 100 >= 3_000 * 98), "{ranges:?}");
    let text = format!("{:?}", experiment.cluster.notices);
    assert!(text.contains("Refused"), "{text}");
    let unmet = experiment.cluster.allocator().unmet_minimums();
    assert!(unmet.iter().any(|unmet| unmet.disk == DiskKey(6)), "{unmet:?}");
    // Step 5, no limits.
    experiment.set(1..=10, 0, 0);
    let ranges = experiment.step(10, 10);
    for (vm, (min, _)) in &ranges {
        assert!(*min * 100 >= 1_711 * 95, "VM{vm}: {ranges:?}");
    }
    assert!(experiment.cluster.checks.sum_max <= CAPABILITY);
}

/// Experiment `qos-cluster-min` while the leader is killed, a node is disconnected and one is
/// stopped: VMs that can reach the array always have their minimums.
#[test]
fn qos_cluster_min_with_faults() {
    let mut experiment = Experiment::new();
    experiment.cluster.run(20 * SECOND);
    experiment.set(1..=5, 3_000, 0);
    experiment.cluster.run(5 * SECOND);
    for fault in 0..4 {
        match fault {
            // The leader's daemon dies, and the other node is elected after ten seconds.
            0 => experiment.cluster.restart(1),
            1 => experiment.cluster.nodes.get_mut(&1).unwrap().is_cut_off = true,
            2 => {
                experiment.cluster.nodes.get_mut(&2).unwrap().frozen_until =
                    experiment.cluster.now + 30 * SECOND;
            }
            _ => experiment.cluster.nodes.get_mut(&1).unwrap().is_cut_off = false,
        }
        let ranges = experiment.step(0, 10);
        assert!((1..=5).all(|vm| ranges[&vm].0 * 100 >= 3_000 * 98), "fault {fault}: {ranges:?}");
        experiment.cluster.elect(if fault == 1 { 2 } else { 1 + fault % 2 });
        let ranges = experiment.step(0, 30);
        assert!((1..=5).all(|vm| ranges[&vm].0 * 100 >= 3_000 * 98), "fault {fault}: {ranges:?}");
    }
    let ranges = experiment.step(30, 10);
    assert!(sum(&ranges) * 100 >= CAPABILITY * 95, "{ranges:?}");
}

/// Experiment `qos-cluster-max`: maximums hold on both nodes, and the other VMs use the rest.
#[test]
fn qos_cluster_max() {
    let mut experiment = Experiment::new();
    experiment.step(20, 1);
    // Steps 2 and 3, VM01–05 are limited to 500, then to 1000; VM06–10 rise to the rest or to the
    // limit of one request at a time.
    for max in [500, 1_000] {
        experiment.set(1..=5, 0, max);
        let ranges = experiment.step(5, 25);
        let rest = ((CAPABILITY - 5 * max) / 5).min(ALONE);
        for (vm, (min, limit)) in &ranges {
            let is_right = if *vm <= 5 {
                *min * 100 >= max * 98 && *limit <= max
            } else {
                *min * 100 >= rest * 95
            };
            assert!(is_right, "VM{vm} with {max}: {ranges:?}");
        }
    }
    // Step 4, all VMs are limited to 8 MB/s.
    experiment.set(6..=10, 0, 1_000);
    let ranges = experiment.step(5, 25);
    assert!(ranges.values().all(|(min, max)| *min * 100 >= 8 * MB * 98 && *max <= 8 * MB));
    // Step 5, no limits.
    experiment.set(1..=10, 0, 0);
    let ranges = experiment.step(10, 10);
    assert!(ranges.values().all(|(min, _)| *min * 100 >= 1_711 * 95), "{ranges:?}");
}
