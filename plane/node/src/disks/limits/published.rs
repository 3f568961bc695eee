//! Limits that the storage plane has.

use std::collections::{BTreeMap, BTreeSet};

use suimon_quantity::DiskId;
use suimon_storage_qos::{
    Capacity, LimitsSource, MeasuredLatency, PolicyId, PolicySpec, StoreSpec,
};

/// Settings of a store that the storage plane has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishedStore {
    pub(super) spec: Option<StoreSpec>,
    pub(super) capacity: Capacity,
    pub(super) latency: Option<MeasuredLatency>,
    pub(super) disks: BTreeMap<DiskId, LimitsSource>,
    pub(super) policies: BTreeMap<PolicyId, PolicySpec>,
    /// Policies that span nodes: the cluster thread sets this node's share of their limits.
    pub(super) spanning_policies: BTreeSet<PolicyId>,
}
