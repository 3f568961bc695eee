//! External events of a run.

use suimon_storage_qos::Limits;

use crate::cluster::Fault;

/// External event of a run.
#[derive(Clone, Debug)]
pub(crate) enum Intervention {
    /// Limits of disks change. A rejected change has no effect; in a scenario it is an error.
    Limit { disks: Vec<u32>, limits: Limits, may_be_refused: bool },
    /// The demand of a VM becomes unlimited or 0.
    Demand { disk: u32, all: bool },
    /// The array completes nothing for some time.
    Stall { ns: u64 },
    /// The array's drives are slowed to a percentage for some time.
    Slow { ns: u64, percent: u32 },
    /// Timers fire late for some time.
    LateTimers { ns: u64, late_ns: u64 },
    /// An external client keeps requests outstanding for some time.
    ExternalLoad { ns: u64, depth: u32 },
    /// A fault of the cluster occurs.
    Cluster { fault: Fault, ns: u64 },
}
