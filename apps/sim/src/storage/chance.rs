//! Events of swarm runs: changes of limits, VMs that start and stop, and faults.

use suimon_cluster_qos::{PROMISED_PERCENT_MAX, Terms};
use suimon_quantity::Iops;
use suimon_storage_qos::{Limits, Weight};

use crate::cluster::draw;
use crate::kernel::{Dice, SECOND};
use crate::storage::deed::Deed;
use crate::storage::spec::{StorageScenario, SwarmSpec};

/// Draws the events of the run with this seed, with their times.
///
/// In a cluster, whose store has the given capacity, the requested minimums never exceed the
/// reservable capacity: the set of rejected minimums would depend on the order of reports, which
/// checkers cannot determine.
pub(crate) fn deeds(
    scenario: &StorageScenario,
    spec: &SwarmSpec,
    seed: u64,
    can: u64,
) -> Vec<(u64, Deed)> {
    let mut dice = Dice::new(seed, "swarm");
    let disks = scenario.disks().len() as u64;
    let end = spec.seconds * SECOND;
    let mut deeds = Vec::new();
    for _ in 0..dice.below(spec.changes + 1) {
        let at = dice.below(end);
        deeds.push((at, change(&mut dice, disks, spec)));
    }
    for _ in 0..dice.below(spec.faults + 1) {
        let at = dice.below(end);
        deeds.push((at, fault(&mut dice)));
    }
    for _ in 0..dice.below(spec.cluster_faults + 1) {
        let at = dice.below(end);
        let nodes = scenario.node.len() as u32;
        let members = scenario.cluster.as_ref().map_or(1, |cluster| cluster.etcd.members);
        let (fault, ns) = draw(&mut dice, nodes, 1, members);
        deeds.push((at, Deed::Cluster { fault, ns }));
    }
    // Sorted, so that rejections do not depend on the order of drawing.
    deeds.sort_by_key(|(at, _)| *at);
    if let Some(cluster) = &scenario.cluster {
        let promisable = can * cluster.declared_percent / 100 * PROMISED_PERCENT_MAX / 100;
        let floors = Terms::default().floor_iops * scenario.node.len() as u64;
        fit(&mut deeds, disks as usize, promisable.saturating_sub(floors));
    }
    deeds
}

/// Removes minimums that, with the earlier ones, exceed the reservable capacity.
fn fit(deeds: &mut Vec<(u64, Deed)>, disks: usize, most: u64) {
    let mut minimums = vec![0; disks];
    deeds.retain(|(_, deed)| {
        let Deed::Limit { disks, limits, .. } = deed else { return true };
        let mut then = minimums.clone();
        let min = limits.min_iops.map_or(0, |min| min.per_second());
        disks.iter().for_each(|disk| then[*disk as usize] = min);
        let fits = then.iter().sum::<u64>() <= most;
        if fits {
            minimums = then;
        }
        fits
    });
}

fn change(dice: &mut Dice, disks: u64, spec: &SwarmSpec) -> Deed {
    let disk = dice.below(disks) as u32;
    if dice.percent(25) {
        return Deed::Want { disk, all: dice.percent(50) };
    }
    let more = dice.below(disks - u64::from(disk)) as u32;
    let min = if dice.percent(50) { 0 } else { dice.within(1, spec.min_iops.max(1)) };
    let max = match dice.below(4) {
        0 | 1 => 0,
        // Maximums close to the minimum leave the least margin to compensate for slow requests.
        2 => min + dice.within(0, min / 10),
        _ => min + dice.within(100, 3 * spec.min_iops),
    };
    let weight = Weight::new(dice.within(1, 1000) as u16).unwrap_or_default();
    let limits =
        Limits { min_iops: Iops::new(min), max_iops: Iops::new(max), weight, ..Limits::default() };
    Deed::Limit { disks: (disk..=disk + more).collect(), limits, may_be_refused: true }
}

fn fault(dice: &mut Dice) -> Deed {
    let ns = dice.within(SECOND / 100, 10 * SECOND);
    match dice.below(4) {
        0 => Deed::Stall { ns: ns / 4 },
        1 => Deed::Slow { ns, percent: dice.within(110, 800) as u32 },
        2 => Deed::LateTimers { ns, late_ns: dice.within(100_000, SECOND / 2) },
        _ => Deed::Foreign { ns, depth: dice.within(1, 16) as u32 },
    }
}
