//! External events of a run.

use suimon_storage_qos::Limits;

use crate::cluster::Fault;

/// External event of a run.
#[derive(Clone, Debug)]
pub(crate) enum Intervention {
    /// Limits of disks change. If the store rejects the change, it has no effect; unless
    /// `may_be_refused` is true, the run fails.
    Limit { disks: Vec<u32>, limits: Limits, may_be_refused: bool },
    /// The demand of a VM becomes unlimited (`all`) or 0.
    Demand { disk: u32, all: bool },
    /// The array completes no request for this time in ns.
    Stall { ns: u64 },
    /// The service times of the array's drives are `percent` of the usual ones for this time in ns.
    Slow { ns: u64, percent: u32 },
    /// Timers fire up to `late_ns` late for this time in ns.
    LateTimers { ns: u64, late_ns: u64 },
    /// An external client keeps `depth` requests outstanding for this time in ns.
    ExternalLoad { ns: u64, depth: u32 },
    /// A fault of the cluster starts and lasts for this time in ns.
    Cluster { fault: Fault, ns: u64 },
}
