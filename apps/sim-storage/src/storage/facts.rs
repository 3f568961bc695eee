//! Facts about storage, for checkers and the trace.

use suimon_sim_kernel::TraceFact;
use suimon_storage_qos::{Limits, StoreEvent};

use crate::cluster::{AsClusterFact, AsDiskFact, ClusterFact, DiskFact};

/// Fact about one disk, one node or the array. Disks have the numbers of the scenario; `cost` is in
/// normalised operations.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// A VM submitted a request.
    Submitted { disk: u32, tag: u32, cost: u32 },
    /// A request was dispatched to the array.
    Dispatched { disk: u32, tag: u32, cost: u32 },
    /// The array completed a request.
    Completed { disk: u32, tag: u32, cost: u32, latency_ns: u64 },
    /// The limits of a disk changed.
    Limits { disk: u32, limits: Limits },
    /// The demand of a VM became unlimited (`all`) or 0.
    Demand { disk: u32, all: bool },
    /// The array or timers are impaired until this time; minimums are not evaluated.
    Disturbed { until_ns: u64 },
    /// The scheduler requested a deadline in the past.
    DeadlineInPast { node: u32, by_ns: u64 },
    /// The scheduler of a node emitted a notice to the operator.
    Notified { node: u32, event: StoreEvent },
    /// Requests of a node start or stop waiting for the node's limit.
    NodeLimitWaitChanged { node: u32, is_so: bool },
    /// Fact about the cluster of the nodes.
    Cluster(ClusterFact),
}

impl AsClusterFact for Fact {
    fn as_cluster_fact(&self) -> Option<&ClusterFact> {
        match self {
            Self::Cluster(fact) => Some(fact),
            _ => None,
        }
    }
}

impl AsDiskFact for Fact {
    fn as_disk_fact(&self) -> Option<DiskFact> {
        let rate = |rate: Option<suimon_quantity::Iops>| rate.map_or(0, |iops| iops.per_second());
        Some(match *self {
            Self::Limits { disk, limits } => DiskFact::Limits {
                disk,
                min_iops: rate(limits.min_iops),
                max_iops: limits.max_iops.map_or(u64::MAX, |iops| iops.per_second()),
            },
            Self::Demand { disk, all: has_all_demand } => {
                DiskFact::Demand { disk, iops: if has_all_demand { u64::MAX } else { 0 } }
            }
            Self::Completed { disk, cost, .. } => {
                DiskFact::OperationsCompleted { disk, operations: u64::from(cost) }
            }
            Self::NodeLimitWaitChanged { node, is_so: is_waiting } => {
                DiskFact::NodeLimitWaitChanged { node, store: 0, is_so: is_waiting }
            }
            Self::Disturbed { until_ns } => DiskFact::StoresDisturbed { until_ns },
            _ => return None,
        })
    }
}

impl TraceFact for Fact {
    fn kind(&self) -> &'static str {
        match self {
            Self::Submitted { .. } => "asked",
            Self::Dispatched { .. } => "let-go",
            Self::Completed { .. } => "answered",
            Self::Limits { .. } => "limits",
            Self::Demand { .. } => "wants",
            Self::Disturbed { .. } => "disturbed",
            Self::DeadlineInPast { .. } => "woken-in-the-past",
            Self::NodeLimitWaitChanged { .. } => "waits",
            Self::Cluster(fact) => fact.kind(),
            Self::Notified { event, .. } => match event {
                StoreEvent::MinimumUnmet(_) => "told-minimum-unmet",
                StoreEvent::MinimumMet { .. } => "told-minimum-met",
                StoreEvent::CapacityLow(_) => "told-capability-low",
                StoreEvent::CapacitySufficient { .. } => "told-capability-enough",
            },
        }
    }

    fn values(&self) -> Vec<u64> {
        let rate = |rate: Option<suimon_quantity::Iops>| rate.map_or(0, |iops| iops.per_second());
        match *self {
            Self::Submitted { disk, tag, cost } | Self::Dispatched { disk, tag, cost } => {
                vec![disk.into(), tag.into(), cost.into()]
            }
            Self::Completed { disk, tag, cost, latency_ns } => {
                vec![disk.into(), tag.into(), cost.into(), latency_ns]
            }
            Self::Limits { disk, limits } => vec![
                disk.into(),
                rate(limits.min_iops),
                rate(limits.max_iops),
                limits.weight.number().into(),
            ],
            Self::Demand { disk, all: has_all_demand } => vec![disk.into(), has_all_demand.into()],
            Self::Disturbed { until_ns } => vec![until_ns],
            Self::DeadlineInPast { node, by_ns } => vec![node.into(), by_ns],
            Self::Notified { node, .. } => vec![node.into()],
            Self::NodeLimitWaitChanged { node, is_so: is_waiting } => {
                vec![node.into(), is_waiting.into()]
            }
            Self::Cluster(fact) => fact.values(),
        }
    }
}
