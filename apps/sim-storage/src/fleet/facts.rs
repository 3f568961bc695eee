//! Facts about a fleet, for checkers and the trace.

use suimon_sim_kernel::Note;

use crate::cluster::{ClusterFact, OfCluster, OfDisk, OfDisks};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    Disk(OfDisk),
    Cluster(ClusterFact),
}

impl OfCluster for Fact {
    fn cluster(&self) -> Option<&ClusterFact> {
        match self {
            Self::Cluster(fact) => Some(fact),
            Self::Disk(_) => None,
        }
    }
}

impl OfDisks for Fact {
    fn of_disk(&self) -> Option<OfDisk> {
        match self {
            Self::Disk(fact) => Some(*fact),
            Self::Cluster(_) => None,
        }
    }
}

impl Note for Fact {
    fn word(&self) -> &'static str {
        match self {
            Self::Cluster(fact) => fact.word(),
            Self::Disk(OfDisk::Limits { .. }) => "limits",
            Self::Disk(OfDisk::Wants { .. }) => "wants",
            Self::Disk(OfDisk::Done { .. }) => "done",
            Self::Disk(OfDisk::Waits { .. }) => "waits",
            Self::Disk(OfDisk::StoresDisturbed { .. }) => "disturbed",
        }
    }

    fn figures(&self) -> Vec<u64> {
        match *self {
            Self::Cluster(fact) => fact.figures(),
            Self::Disk(OfDisk::Limits { disk, min_iops, .. }) => vec![disk.into(), min_iops],
            Self::Disk(OfDisk::Wants { disk, iops }) => vec![disk.into(), iops],
            Self::Disk(OfDisk::Done { disk, operations }) => vec![disk.into(), operations],
            Self::Disk(OfDisk::Waits { node, store, is_so }) => {
                vec![node.into(), store.into(), is_so.into()]
            }
            Self::Disk(OfDisk::StoresDisturbed { until_ns }) => vec![until_ns],
        }
    }
}
