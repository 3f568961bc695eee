//! Desired state of VMQ: assignment of a team's or uplink's queues to workers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Method of assigning queues to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmqMode {
    /// Once, when a NIC is added, evenly by weight.
    Static,
    /// By load: few workers at low load, many at high load.
    #[default]
    Dynamic,
}

/// `[team.vmq]` and `[uplink.vmq]`: assignment of queues to workers. Workers are numbered from 0 in
/// the order of `[host] worker_cpus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VmqConfig {
    /// True if VMQ distributes the queues of the ports of the switch over workers. If false, the
    /// base worker (`base_worker`) services all of them.
    pub enabled: bool,
    /// Assignment of queues to workers: `static` (once, by `vmq_weight`) or `dynamic` (by load).
    pub mode: VmqMode,
    /// Number of the lowest permitted worker, the base worker, which is used first; the lowest
    /// worker if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_worker: Option<u16>,
    /// Largest number of workers used at the same time. It may exceed the number of existing
    /// workers.
    pub max_workers: u16,
    /// Number of the highest permitted worker, not below `base_worker`; the highest worker if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_worker_number: Option<u16>,
    /// NUMA node: only workers that are pinned to its CPUs (`worker_cpus`) are permitted; workers
    /// of any node if absent. Workers that are not pinned count as node 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
}

impl VmqConfig {
    /// Returns true if every key has its default value.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for VmqConfig {
    /// Returns the defaults. The number of workers is Hyper-V's default for an adapter.
    fn default() -> Self {
        Self {
            enabled: true,
            mode: VmqMode::default(),
            base_worker: None,
            max_workers: 4,
            max_worker_number: None,
            numa_node: None,
        }
    }
}
