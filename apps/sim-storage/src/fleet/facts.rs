//! Facts about a fleet, for checkers and the trace.

use suimon_sim_kernel::TraceFact;

use crate::cluster::{AsClusterFact, AsDiskFact, ClusterFact, DiskFact};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    Disk(DiskFact),
    Cluster(ClusterFact),
}

impl AsClusterFact for Fact {
    fn as_cluster_fact(&self) -> Option<&ClusterFact> {
        match self {
            Self::Cluster(fact) => Some(fact),
            Self::Disk(_) => None,
        }
    }
}

impl AsDiskFact for Fact {
    fn as_disk_fact(&self) -> Option<DiskFact> {
        match self {
            Self::Disk(fact) => Some(*fact),
            Self::Cluster(_) => None,
        }
    }
}

impl TraceFact for Fact {
    fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(fact) => fact.kind(),
            Self::Disk(DiskFact::Limits { .. }) => "limits",
            Self::Disk(DiskFact::Demand { .. }) => "wants",
            Self::Disk(DiskFact::OperationsCompleted { .. }) => "done",
            Self::Disk(DiskFact::NodeLimitWaitChanged { .. }) => "waits",
            Self::Disk(DiskFact::StoresDisturbed { .. }) => "disturbed",
        }
    }

    fn values(&self) -> Vec<u64> {
        match *self {
            Self::Cluster(fact) => fact.values(),
            Self::Disk(DiskFact::Limits { disk, min_iops, .. }) => vec![disk.into(), min_iops],
            Self::Disk(DiskFact::Demand { disk, iops }) => vec![disk.into(), iops],
            Self::Disk(DiskFact::OperationsCompleted { disk, operations }) => {
                vec![disk.into(), operations]
            }
            Self::Disk(DiskFact::NodeLimitWaitChanged { node, store, is_so: is_waiting }) => {
                vec![node.into(), store.into(), is_waiting.into()]
            }
            Self::Disk(DiskFact::StoresDisturbed { until_ns }) => vec![until_ns],
        }
    }
}
