//! Stores in the control plane: their limits, and the workers that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use suimon_quantity::{StoreId, TimedRateLimit, WorkerId};
use suimon_storage_qos::{
    AdmissionError, AdmittedMinimums, Capacity, Change, DiskSlot, MeasuredLatency, PolicyId,
    PolicyShare, Proposal, Store, StoreSpec,
};

use crate::command::Command;
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::plane_store::PlaneStore;
use crate::shared_budget::SharedBudget;

impl StoragePlane {
    /// Adds a store without disks. If the store exists and has no disks in service, its
    /// specification is replaced.
    ///
    /// # Errors
    /// The store has disks in service.
    pub fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        if let Some(of) = stores.get_mut(&store) {
            if !of.disks.is_empty() {
                return Err(PlaneError::InService);
            }
            of.spec = spec;
            return Ok(());
        }
        let limits = Store::new(Capacity::Unknown);
        let (parts, disks) = (BTreeMap::new(), BTreeMap::new());
        let leaving = BTreeSet::new();
        let (cap, latency, shared) = (None, None, None);
        let of = PlaneStore { spec, limits, cap, latency, parts, shared, disks, leaving };
        stores.insert(store, of);
        Ok(())
    }

    /// Removes a store.
    ///
    /// # Errors
    /// The store has disks in service.
    pub fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        if stores.get(&store).is_some_and(|of| !of.disks.is_empty()) {
            return Err(PlaneError::InService);
        }
        stores.remove(&store);
        Ok(())
    }

    /// Sets the capacity of a store.
    pub fn set_capacity(&self, store: StoreId, capability: Capacity) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let change = of.limits.set_capacity(capability);
        self.send_to_all(store, of, &[change]);
    }

    /// Sets the latency of a store's device from a measurement; `None` if it was not measured.
    pub fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        of.latency = latency;
        self.send_to_all(store, of, &[Change::Latency(latency)]);
    }

    /// Sets the maximum rate of all disks of a store together, in normalised operations per second
    /// by the workers' clock; `None` removes it. The maximum also applies to disks that are added
    /// later. It is in effect when this function returns.
    pub fn set_cap(&self, store: StoreId, cap: Option<TimedRateLimit>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store).filter(|of| of.cap != cap) else { return };
        of.cap = cap;
        if !self.send_to_all(store, of, &[Change::Cap(cap)]) {
            self.wait_for(stores, store);
        }
    }

    /// Sets this node's part of a policy that spans nodes. `None`: the policy's limits apply to
    /// this node alone. The part also applies to disks that are assigned to the policy later. It is
    /// in effect when this function returns.
    pub fn set_policy_share(&self, store: StoreId, policy: PolicyId, part: Option<PolicyShare>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let before = match part {
            Some(part) => of.parts.insert(policy, part),
            None => of.parts.remove(&policy),
        };
        if before != part && !self.send_to_all(store, of, &[Change::Part(policy, part)]) {
            self.wait_for(stores, store);
        }
    }

    /// Blocks dispatch of all requests of a policy's disks until the policy's part is
    /// [set](StoragePlane::set_part). No effect if it is set already.
    pub fn hold_policy(&self, store: StoreId, policy: PolicyId) {
        let of_it = |of: &PlaneStore| of.parts.contains_key(&policy);
        let is_known = lock(&self.0.stores).get(&store).is_none_or(of_it);
        if !is_known {
            let nothing = PolicyShare { min_iops: 0, max: Some(TimedRateLimit::default()) };
            self.set_policy_share(store, policy, Some(nothing));
        }
    }

    /// Blocks until all workers with disks of the store have applied earlier commands.
    fn wait_for(&self, stores: MutexGuard<'_, BTreeMap<StoreId, PlaneStore>>, store: StoreId) {
        let workers = stores.get(&store).into_iter().flat_map(|of| of.disks.keys());
        let worker_channels: Vec<_> = workers.filter_map(|worker| self.channel(*worker)).collect();
        drop(stores);
        for worker_channel in worker_channels {
            // A worker that has ended dispatches no requests.
            let _ = worker_channel.call(Command::Sync);
        }
    }

    /// Changes limits of a store's disks. Either all changes are applied or none. They take effect
    /// at once. `force` permits a sum of minimums above the permitted share of the capacity.
    ///
    /// # Errors
    /// The reason why a change is invalid, or that the sum of minimums is too high. Nothing was
    /// changed.
    pub fn propose(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError> {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return Ok(()) };
        let changes = of.limits.propose(proposals, force)?;
        self.send_to_all(store, of, &changes);
        Ok(())
    }

    /// Returns the sum of a store's minimums and its capacity.
    #[must_use]
    pub fn admitted(&self, store: StoreId) -> Option<AdmittedMinimums> {
        lock(&self.0.stores).get(&store).map(|of| of.limits.admitted())
    }

    /// Returns a disk's slot in its store; `None` without limits there.
    #[must_use]
    pub fn slot(&self, store: StoreId, disk: suimon_quantity::DiskId) -> Option<DiskSlot> {
        lock(&self.0.stores).get(&store)?.limits.slot(disk)
    }

    /// Applies changes to a store. Returns true if they are in effect for the workers when this
    /// function returns. The budget that several workers share needs none of them for that.
    fn send_to_all(&self, store: StoreId, of: &PlaneStore, changes: &[Change]) -> bool {
        let is_in_budget = of.shared.as_ref().is_some_and(|budget| budget.apply(changes));
        // A worker that leaves withdraws the requests of a disk that is removed.
        let is_removal = |change: &Change| matches!(change, Change::RemoveDisk(_));
        let leaving = of.leaving.iter().filter(|_| changes.iter().any(is_removal));
        let workers = of.disks.keys().chain(leaving);
        for worker_channel in workers.filter_map(|worker| self.channel(*worker)) {
            let changes = changes.to_vec();
            worker_channel.send(Command::Change { store, changes, is_in_budget });
        }
        is_in_budget
    }

    /// Prepares a worker for its first or a further disk of a store.
    pub(crate) fn join(&self, store: StoreId, to: WorkerId) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        let of = stores.get_mut(&store).ok_or(PlaneError::NoSuchStore)?;
        if let Some(disks) = of.disks.get_mut(&to) {
            *disks += 1;
            return Ok(());
        }
        let worker_channel = self.channel(to).ok_or(PlaneError::NoWorker)?;
        of.leaving.remove(&to);
        let users: Vec<WorkerId> = of.disks.keys().copied().collect();
        if let [only] = users[..] {
            // The scheduler is shared before another worker borrows from it. A worker that has ended
            // dispatches no requests.
            of.shared = self.share(store, only).ok();
            if of.shared.is_none() {
                of.disks.remove(&only);
            }
        }
        let (spec, shared, mut changes) = (of.spec.clone(), of.shared.clone(), of.limits.changes());
        changes.push(Change::Cap(of.cap));
        changes.push(Change::Latency(of.latency));
        changes.extend(of.parts.iter().map(|(policy, part)| Change::Part(*policy, Some(*part))));
        let _ = worker_channel.call(|reply| Command::Join { store, spec, shared, changes, reply });
        of.disks.insert(to, 1);
        Ok(())
    }

    /// Records that a worker has one disk of a store less. Does not wait for workers.
    pub(crate) fn leave(&self, store: StoreId, from: WorkerId) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let Some(disks) = of.disks.get_mut(&from) else { return };
        *disks -= 1;
        if *disks > 0 {
            return;
        }
        of.disks.remove(&from);
        of.leaving.insert(from);
        if let Some(worker_channel) = self.channel(from) {
            worker_channel.send(Command::Leave(store));
        }
        let mut others = of.disks.keys();
        match (others.next(), others.next()) {
            (None, _) => of.shared = None,
            (Some(alone), None) => {
                if let Some(worker_channel) = self.channel(*alone) {
                    worker_channel.send(Command::EndSharing(store));
                }
            }
            _ => {}
        }
    }

    /// Returns the budget of a store that one worker uses, for further workers.
    fn share(&self, store: StoreId, with: WorkerId) -> Result<SharedBudget, PlaneError> {
        let worker_channel = self.channel(with).ok_or(PlaneError::NoWorker)?;
        worker_channel.call(|reply| Command::Share(store, reply))
    }
}
