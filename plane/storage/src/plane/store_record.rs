//! Record of a store in the control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use suimon_quantity::{TimedRateLimit, WorkerId};
use suimon_storage_engine::SharedBudget;
use suimon_storage_qos::{
    Capacity, DiskSlot, MeasuredLatency, PolicyId, PolicyShare, Store, StoreSpec,
};

use crate::command::pending_changes::PendingMaximums;
use crate::sync::lock;

/// Record of a store with the workers that use it.
pub(crate) struct StoreRecord {
    pub(crate) spec: StoreSpec,
    pub(crate) limits: Store,
    /// Maximum rate of all disks of the store on this node together.
    pub(crate) cap: Option<TimedRateLimit>,
    pub(crate) latency: Option<MeasuredLatency>,
    /// This node's shares of policies that span nodes.
    pub(crate) policy_shares: BTreeMap<PolicyId, PolicyShare>,
    /// Budget that the workers share; `None` if no more than one worker has used the store since it
    /// was last without users.
    pub(crate) shared: Option<SharedBudget>,
    /// Number of disks in service by worker.
    pub(crate) disks_per_worker: BTreeMap<WorkerId, usize>,
    /// Workers without a disk in service that may still have the store, until their requests have
    /// ended and their grants are returned.
    pub(crate) leaving_workers: BTreeSet<WorkerId>,
    /// Pending maximums for each worker that uses the store alone.
    pub(crate) pending_maximums: BTreeMap<WorkerId, Arc<PendingMaximums>>,
    /// True if the store was removed.
    pub(crate) is_removed: bool,
}

impl StoreRecord {
    /// Creates a store without limits, disks and workers.
    pub(crate) fn new(spec: StoreSpec) -> Self {
        Self {
            spec,
            limits: Store::new(Capacity::Unknown),
            cap: None,
            latency: None,
            policy_shares: BTreeMap::new(),
            shared: None,
            disks_per_worker: BTreeMap::new(),
            leaving_workers: BTreeSet::new(),
            pending_maximums: BTreeMap::new(),
            is_removed: false,
        }
    }

    fn readable(&self) -> StoreQueryState {
        let slots = self.limits.disks().filter_map(|disk| self.limits.slot(disk)).collect();
        let users = self.disks_per_worker.keys().chain(&self.leaving_workers).copied().collect();
        StoreQueryState { slots: Arc::new(slots), shared: self.shared.clone(), users }
    }
}

/// Part of a store's state that status queries need. It is stored separately, because a change of
/// the store may hold the store's lock while it waits for a worker.
#[derive(Clone, Default)]
pub(crate) struct StoreQueryState {
    /// Slots of all disks with limits on the store.
    pub(crate) slots: Arc<Vec<DiskSlot>>,
    pub(crate) shared: Option<SharedBudget>,
    /// Workers that may have state of the store: those with disks, and leaving ones.
    pub(crate) users: BTreeSet<WorkerId>,
}

/// Record of a store with its lock. A change of one store waits for workers of that store only.
pub(crate) struct StoreEntry {
    store: Mutex<StoreRecord>,
    readable: Mutex<StoreQueryState>,
}

impl StoreEntry {
    pub(crate) fn new(store: StoreRecord) -> Self {
        let readable = Mutex::new(store.readable());
        Self { store: Mutex::new(store), readable }
    }

    /// Calls `f` with exclusive access to the store. Blocks while another thread changes it.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut StoreRecord) -> R) -> R {
        let mut store = lock(&self.store);
        let result = f(&mut store);
        *lock(&self.readable) = store.readable();
        result
    }

    /// Calls `f` with the store for reading. Blocks while another thread changes it.
    pub(crate) fn read<R>(&self, f: impl FnOnce(&StoreRecord) -> R) -> R {
        f(&lock(&self.store))
    }

    /// Returns the state for status queries. Does not wait for workers or for changes of the store.
    pub(crate) fn query_state(&self) -> StoreQueryState {
        lock(&self.readable).clone()
    }
}
