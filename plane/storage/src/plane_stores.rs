//! Stores in the control plane: their limits, and the workers that use them.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use suimon_quantity::{StoreId, TimedRateLimit, WorkerId};
use suimon_storage_qos::{
    AdmittedMinimums, Capacity, Change, DiskSlot, MeasuredLatency, PolicyId, PolicyPart, Proposal,
    Refusal, Store, StoreSpec,
};

use crate::command::Command;
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::plane_store::PlaneStore;
use crate::store_status::StoreRole;

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
        let of = PlaneStore { spec, limits, cap: None, latency: None, parts, home: None, disks };
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
        self.send_to_all(store, of, &[Change::Cap(cap)]);
        self.wait_for(stores, store);
    }

    /// Sets this node's part of a policy that spans nodes. `None`: the policy's limits apply to
    /// this node alone. The part also applies to disks that are assigned to the policy later. It is
    /// in effect when this function returns.
    pub fn set_part(&self, store: StoreId, policy: PolicyId, part: Option<PolicyPart>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let before = match part {
            Some(part) => of.parts.insert(policy, part),
            None => of.parts.remove(&policy),
        };
        if before != part {
            self.send_to_all(store, of, &[Change::Part(policy, part)]);
            self.wait_for(stores, store);
        }
    }

    /// Blocks dispatch of all requests of a policy's disks until the policy's part is
    /// [set](StoragePlane::set_part). No effect if it is set already.
    pub fn hold_policy(&self, store: StoreId, policy: PolicyId) {
        let of_it = |of: &PlaneStore| of.parts.contains_key(&policy);
        let is_known = lock(&self.0.stores).get(&store).is_none_or(of_it);
        if !is_known {
            let nothing = PolicyPart { min_iops: 0, max: Some(TimedRateLimit::default()) };
            self.set_part(store, policy, Some(nothing));
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
    ) -> Result<(), Refusal> {
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

    fn send_to_all(&self, store: StoreId, of: &PlaneStore, changes: &[Change]) {
        for worker_channel in of.disks.keys().filter_map(|worker| self.channel(*worker)) {
            worker_channel.send(Command::Change(store, changes.to_vec()));
        }
    }

    /// Prepares a worker for its first or a further disk of a store.
    pub(crate) fn join(&self, store: StoreId, to: WorkerId) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        let of = stores.get_mut(&store).ok_or(PlaneError::NoSuchStore)?;
        if let Some(disks) = of.disks.get_mut(&to) {
            *disks += 1;
            return Ok(());
        }
        let role = match of.home {
            None => StoreRole::Sole,
            Some(home) => {
                // The scheduler is shared before another worker borrows from it.
                self.set_role(store, home, StoreRole::Home);
                StoreRole::Away(home)
            }
        };
        let worker_channel = self.channel(to).ok_or(PlaneError::NoWorker)?;
        let (spec, mut changes) = (of.spec.clone(), of.limits.changes());
        changes.push(Change::Cap(of.cap));
        changes.push(Change::Latency(of.latency));
        changes.extend(of.parts.iter().map(|(policy, part)| Change::Part(*policy, Some(*part))));
        let _ = worker_channel.call(|reply| Command::Join { store, spec, role, changes, reply });
        of.home.get_or_insert(to);
        of.disks.insert(to, 1);
        Ok(())
    }

    /// Records that a worker has one disk of a store less.
    pub(crate) fn leave(&self, store: StoreId, from: WorkerId) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let Some(disks) = of.disks.get_mut(&from) else { return };
        *disks -= 1;
        if *disks > 0 {
            return;
        }
        of.disks.remove(&from);
        let others: Vec<WorkerId> = of.disks.keys().copied().collect();
        if of.home == Some(from) {
            of.home = others.first().copied();
            if let Some(home) = of.home {
                // The budget moves to that worker, and the other workers borrow from it there.
                self.set_role(store, from, StoreRole::Away(home));
                for other in others.iter().filter(|other| **other != home) {
                    self.set_role(store, *other, StoreRole::Away(home));
                }
            }
        }
        if let Some(worker_channel) = self.channel(from) {
            worker_channel.send(Command::Leave(store));
        }
        if let (Some(home), [alone]) = (of.home, &others[..]) {
            if home == *alone {
                self.set_role(store, home, StoreRole::Sole);
            }
        }
    }

    /// Sets a worker's role and blocks until the worker has applied it.
    fn set_role(&self, store: StoreId, processor: WorkerId, role: StoreRole) {
        if let Some(worker_channel) = self.channel(processor) {
            let _ = worker_channel.call(|reply| Command::Role(store, role, reply));
        }
    }
}
