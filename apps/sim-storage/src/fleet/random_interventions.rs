//! Demands, minimums and faults, drawn from a seed.

use suimon_cluster_qos::{GUARANTEED_PERCENT_MAX, Parameters};
use suimon_sim_kernel::{RandomStream, SECOND_NS};

use crate::cluster::{Fault, draw_fault};
use crate::fleet::node_store_disks::FluidDisk;
use crate::fleet::spec::FleetScenario;

/// External event of a run.
#[derive(Clone, Debug)]
pub(crate) enum Intervention {
    /// The minimum of a disk changes.
    Limit { disk: u32, min_iops: u64 },
    /// A fault starts; its duration is in ns.
    Fault { fault: Fault, ns: u64 },
}

/// Reservable capacity of each store that is not used by minimums.
struct Room(Vec<u64>);

impl Room {
    fn new(scenario: &FleetScenario, locations: &[(u32, u32)]) -> Self {
        let promisable = scenario.declared_iops() * GUARANTEED_PERCENT_MAX / 100;
        let mut available = vec![promisable; scenario.stores as usize];
        let floor = Parameters::default().base_reservation_iops;
        for (_, store) in locations.iter().step_by(scenario.disks_per_store as usize) {
            available[*store as usize] = available[*store as usize].saturating_sub(floor);
        }
        Self(available)
    }

    /// Replaces the minimum `previous` of a disk by `requested`, or by the available capacity if
    /// that is less. Returns the new minimum.
    fn take(&mut self, store: u32, previous: u64, requested: u64) -> u64 {
        let available = &mut self.0[store as usize];
        *available += previous;
        let min = requested.min(*available);
        *available -= min;
        min
    }
}

/// Returns the capacity of all stores divided by the number of disks, at least 1.
fn fair(scenario: &FleetScenario, locations: usize) -> u64 {
    (scenario.declared_iops() * u64::from(scenario.stores) / locations.max(1) as u64).max(1)
}

/// Draws the initial state of all disks, and later events as pairs of time in ns and event.
pub(crate) fn draw_all(
    scenario: &FleetScenario,
    locations: &[(u32, u32)],
    seed: u64,
) -> (Vec<FluidDisk>, Vec<(u64, Intervention)>) {
    let mut random = RandomStream::new(seed, "fleet");
    let mut available = Room::new(scenario, locations);
    let fair = fair(scenario, locations.len());
    let spec = &scenario.disks;
    let mut disks = Vec::with_capacity(locations.len());
    for (_, store) in locations {
        let requested = if random.draw_chance(spec.minimum_percent) {
            random.draw_in_range(1, 2 * fair)
        } else {
            0
        };
        let min = available.take(*store, 0, requested);
        let has_max = random.draw_chance(spec.maximum_percent);
        let max = has_max.then(|| min + random.draw_in_range(fair / 2, 4 * fair).max(1));
        disks.push(FluidDisk::new(min, max));
    }
    let end = scenario.seconds * SECOND_NS;
    let mut interventions = Vec::new();
    let mut changes: Vec<(u64, u32)> = (0..random.draw_below(spec.limit_changes + 1))
        .map(|_| (random.draw_below(end), random.draw_below(locations.len() as u64) as u32))
        .collect();
    changes.sort_unstable();
    let mut minimums: Vec<u64> = disks.iter().map(|disk| disk.min_iops).collect();
    for (time, disk) in changes {
        let requested = if random.draw_chance(30) { 0 } else { random.draw_in_range(1, 2 * fair) };
        let max_iops = disks[disk as usize].max_iops.unwrap_or(u64::MAX);
        let previous = &mut minimums[disk as usize];
        *previous = available.take(locations[disk as usize].1, *previous, requested.min(max_iops));
        interventions.push((time, Intervention::Limit { disk, min_iops: *previous }));
    }
    for _ in 0..random.draw_below(scenario.faults.count + 1) {
        let time = random.draw_below(end);
        let members = scenario.cluster.etcd.members;
        let (fault, ns) = draw_fault(&mut random, scenario.nodes, scenario.stores, members);
        interventions.push((time, Intervention::Fault { fault, ns }));
    }
    (disks, interventions)
}

/// Draws a disk's next demand in normalised operations per second, and its duration in ns.
pub(crate) fn next_demand(
    scenario: &FleetScenario,
    locations: usize,
    random: &mut RandomStream,
) -> (u64, u64) {
    let spec = &scenario.disks;
    let percentile = random.draw_below(100) as u32;
    let demand = if percentile < spec.greedy_percent {
        u64::MAX / 4
    } else if percentile < spec.greedy_percent + spec.idle_percent {
        0
    } else {
        random.draw_in_range(1, 2 * fair(scenario, locations))
    };
    let mean = spec.change_s * SECOND_NS;
    (demand, random.draw_in_range(mean / 2, mean + mean / 2))
}
