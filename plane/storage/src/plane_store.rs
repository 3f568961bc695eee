//! Store in the control plane.

use std::collections::{BTreeMap, BTreeSet};

use suimon_quantity::{TimedRateLimit, WorkerId};
use suimon_storage_qos::{DiskSlot, MeasuredLatency, PolicyId, PolicyShare, Store, StoreSpec};

use crate::shared_budget::SharedBudget;

/// Store with the workers that use it.
pub(crate) struct PlaneStore {
    pub(crate) spec: StoreSpec,
    pub(crate) limits: Store,
    /// Maximum rate of all disks of the store on this node together.
    pub(crate) cap: Option<TimedRateLimit>,
    pub(crate) latency: Option<MeasuredLatency>,
    /// This node's parts of policies that span nodes.
    pub(crate) parts: BTreeMap<PolicyId, PolicyShare>,
    /// Budget that the workers share; `None` if no more than one worker has used the store so far.
    pub(crate) shared: Option<SharedBudget>,
    /// Number of disks in service by worker.
    pub(crate) disks: BTreeMap<WorkerId, usize>,
    /// Workers without a disk in service that may still have requests to account for.
    pub(crate) leaving: BTreeSet<WorkerId>,
}

impl PlaneStore {
    pub(crate) fn slots(&self) -> Vec<DiskSlot> {
        self.limits.disks().filter_map(|disk| self.limits.slot(disk)).collect()
    }
}
