//! Scenarios of kind `fleet`.

use serde::Deserialize;
use suimon_sim_kernel::InvalidKeys;

use crate::cluster::ClusterSpec;

/// Fleet scenario. Its events are drawn from the seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// Description of the scenario for readers of the file.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) nodes: u32,
    pub(crate) stores: u32,
    /// Number of stores of each node.
    pub(crate) stores_per_node: u32,
    /// Disks of each node in each of its stores.
    pub(crate) disks_per_store: u32,
    /// Capacity of each store in normalised operations per second.
    pub(crate) store_iops: u64,
    /// Largest drift of clocks in parts per million.
    pub(crate) clock_ppm: u32,
    pub(crate) cluster: ClusterSpec,
    pub(crate) disks: DisksSpec,
    pub(crate) faults: FaultsSpec,
}

/// Demands and minimums of disks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DisksSpec {
    /// Percentage of disks with unlimited demand.
    pub(crate) greedy_percent: u32,
    /// Percentage of disks without demand. The remaining disks have a limited demand.
    pub(crate) idle_percent: u32,
    /// Mean time in s between changes of a disk's demand.
    pub(crate) change_s: u64,
    /// Percentage of disks with a minimum.
    pub(crate) minimum_percent: u32,
    /// Percentage of disks with a maximum.
    pub(crate) maximum_percent: u32,
    /// Number of changes of minimums in a run.
    pub(crate) limit_changes: u64,
}

/// Number of faults in a run, and recovery times.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultsSpec {
    /// Largest number of faults in a run.
    pub(crate) count: u64,
    /// Time in s after a fault within which changes made during the fault may take effect late.
    pub(crate) recovery_s: u64,
    /// Time in s after a pause of a node within which its minimums need not be delivered.
    pub(crate) node_recovery_s: u64,
}

impl FleetScenario {
    /// Returns the numbers of the stores that a node uses.
    pub(crate) fn node_stores(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = u64::from(node) * u64::from(self.stores_per_node);
        (0..u64::from(self.stores_per_node))
            .map(move |offset| ((first + offset) % u64::from(self.stores)) as u32)
    }

    /// Returns the node and store of each disk. The disks of a node in a store have consecutive
    /// numbers.
    pub(crate) fn disk_locations(&self) -> Vec<(u32, u32)> {
        let node_locations = |node: u32| {
            self.node_stores(node).flat_map(move |store| {
                std::iter::repeat_n((node, store), self.disks_per_store as usize)
            })
        };
        (0..self.nodes).flat_map(node_locations).collect()
    }

    /// Returns the declared capacity of a store in normalised operations per second.
    pub(crate) const fn declared_iops(&self) -> u64 {
        self.store_iops * self.cluster.declared_capacity_percent / 100
    }

    /// Reports keys of the scenario with invalid values.
    pub(crate) fn check_keys(&self, invalid: &mut InvalidKeys) {
        invalid.check_range("seconds", self.seconds, 1, 86_400);
        invalid.check_range("nodes", self.nodes.into(), 1, 100_000);
        invalid.check_range("stores", self.stores.into(), 1, 100_000);
        let per_node = u64::from(self.stores_per_node);
        invalid.check_range("stores_per_node", per_node, 1, u64::from(self.stores.max(1)));
        invalid.check_range("disks_per_store", self.disks_per_store.into(), 1, 1024);
        invalid.check_range("store_iops", self.store_iops, 1, 1 << 40);
        invalid.check_range("clock_ppm", self.clock_ppm.into(), 0, 100_000);
        let DisksSpec { greedy_percent, idle_percent, change_s, .. } = self.disks;
        let sum = u64::from(greedy_percent) + u64::from(idle_percent);
        invalid.check_range("disks.greedy_percent and disks.idle_percent", sum, 0, 100);
        invalid.check_range("disks.change_s", change_s, 1, 1_000_000);
        invalid.check_range("disks.minimum_percent", self.disks.minimum_percent.into(), 0, 100);
        invalid.check_range("disks.maximum_percent", self.disks.maximum_percent.into(), 0, 100);
        invalid.check_range("disks.limit_changes", self.disks.limit_changes, 0, 1_000_000);
        invalid.check_range("faults.count", self.faults.count, 0, 1000);
        invalid.check_range("faults.recovery_s", self.faults.recovery_s, 0, 3600);
        invalid.check_range("faults.node_recovery_s", self.faults.node_recovery_s, 0, 3600);
        self.cluster.check(invalid);
    }
}
