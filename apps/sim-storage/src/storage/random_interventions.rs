//! Events of swarm runs: changes of limits, VMs that start and stop, and faults.

use suimon_cluster_qos::{GUARANTEED_PERCENT_MAX, Parameters};
use suimon_quantity::Iops;
use suimon_sim_kernel::{RandomStream, SECOND_NS};
use suimon_storage_qos::{Limits, Weight};

use crate::cluster::draw_fault;
use crate::storage::intervention::Intervention;
use crate::storage::spec::{StorageScenario, SwarmSpec};

/// Draws the events of the run with this seed, as pairs of time in ns and event.
///
/// In a cluster, whose store has the given capacity, the requested minimums never exceed the
/// reservable capacity: otherwise the set of rejected minimums would depend on the order of
/// reports, which checkers cannot determine.
pub(crate) fn draw_all(
    scenario: &StorageScenario,
    spec: &SwarmSpec,
    seed: u64,
    capacity: u64,
) -> Vec<(u64, Intervention)> {
    let mut random = RandomStream::new(seed, "swarm");
    let disks = scenario.disks().len() as u64;
    let end = spec.seconds * SECOND_NS;
    let mut interventions = Vec::new();
    for _ in 0..random.draw_below(spec.changes + 1) {
        let time = random.draw_below(end);
        interventions.push((time, change(&mut random, disks, spec)));
    }
    for _ in 0..random.draw_below(spec.faults + 1) {
        let time = random.draw_below(end);
        interventions.push((time, fault(&mut random)));
    }
    for _ in 0..random.draw_below(spec.cluster_faults + 1) {
        let time = random.draw_below(end);
        let nodes = scenario.node.len() as u32;
        let members = scenario.cluster.as_ref().map_or(1, |cluster| cluster.etcd.members);
        let (fault, ns) = draw_fault(&mut random, nodes, 1, members);
        interventions.push((time, Intervention::Cluster { fault, ns }));
    }
    // The order by time makes rejections independent of the order of drawing.
    interventions.sort_by_key(|(time, _)| *time);
    if let Some(cluster) = &scenario.cluster {
        let promisable =
            capacity * cluster.declared_capacity_percent / 100 * GUARANTEED_PERCENT_MAX / 100;
        let floors = Parameters::default().base_reservation_iops * scenario.node.len() as u64;
        fit(&mut interventions, disks as usize, promisable.saturating_sub(floors));
    }
    interventions
}

/// Removes changes of limits whose minimums, together with those set before, exceed `max_sum`.
fn fit(interventions: &mut Vec<(u64, Intervention)>, disks: usize, max_sum: u64) {
    let mut minimums = vec![0; disks];
    interventions.retain(|(_, intervention)| {
        let Intervention::Limit { disks, limits, .. } = intervention else { return true };
        let mut changed_minimums = minimums.clone();
        let min = limits.min_iops.map_or(0, |min| min.per_second());
        disks.iter().for_each(|disk| changed_minimums[*disk as usize] = min);
        let fits = changed_minimums.iter().sum::<u64>() <= max_sum;
        if fits {
            minimums = changed_minimums;
        }
        fits
    });
}

fn change(random: &mut RandomStream, disks: u64, spec: &SwarmSpec) -> Intervention {
    let disk = random.draw_below(disks) as u32;
    if random.draw_chance(25) {
        return Intervention::Demand { disk, all: random.draw_chance(50) };
    }
    let further = random.draw_below(disks - u64::from(disk)) as u32;
    let min =
        if random.draw_chance(50) { 0 } else { random.draw_in_range(1, spec.min_iops.max(1)) };
    let max = match random.draw_below(4) {
        0 | 1 => 0,
        // A maximum close to the minimum leaves the least margin to compensate for slow requests.
        2 => min + random.draw_in_range(0, min / 10),
        _ => min + random.draw_in_range(100, 3 * spec.min_iops),
    };
    let weight = Weight::new(random.draw_in_range(1, 1000) as u16).unwrap_or_default();
    let limits =
        Limits { min_iops: Iops::new(min), max_iops: Iops::new(max), weight, ..Limits::default() };
    Intervention::Limit { disks: (disk..=disk + further).collect(), limits, may_be_refused: true }
}

fn fault(random: &mut RandomStream) -> Intervention {
    let ns = random.draw_in_range(SECOND_NS / 100, 10 * SECOND_NS);
    match random.draw_below(4) {
        0 => Intervention::Stall { ns: ns / 4 },
        1 => Intervention::Slow { ns, percent: random.draw_in_range(110, 800) as u32 },
        2 => Intervention::LateTimers { ns, late_ns: random.draw_in_range(100_000, SECOND_NS / 2) },
        _ => Intervention::ExternalLoad { ns, depth: random.draw_in_range(1, 16) as u32 },
    }
}
