//! Stores in the control plane: limits of their disks, and the workers that use them.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use suimon_quantity::{StoreId, TimedRateLimit, WorkerId};
use suimon_storage_engine::SharedBudget;
use suimon_storage_qos::{
    AdmissionError, Capacity, ConfigStep, DiskSlot, MeasuredLatency, MinimumsCheck, PolicyId,
    PolicyShare, Proposal, StoreSpec,
};

use crate::command::Command;
use crate::command::channel::WorkerChannel;
use crate::plane::error::PlaneError;
use crate::plane::store_record::{StoreEntry, StoreRecord};
use crate::plane::views::VIEW_WAIT_MAX;
use crate::plane::{StoragePlane, lock};

impl StoragePlane {
    /// Adds a store without disks. If the store exists and has no disks in service, its
    /// specification is replaced.
    ///
    /// # Errors
    /// The store has disks in service.
    pub fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError> {
        let before = self.store(store);
        let is_changed = match &before {
            Some(entry) => entry.with(|plane_store| {
                if !plane_store.disks_per_worker.is_empty() {
                    return Err(PlaneError::AlreadyInService);
                }
                plane_store.spec.clone_from(&spec);
                Ok(!plane_store.is_removed)
            })?,
            None => false,
        };
        if is_changed {
            return Ok(());
        }
        let mut stores = lock(&self.0.stores);
        // Another thread may have added the store meanwhile.
        let is_before = |entry: &Arc<StoreEntry>| {
            before.as_ref().is_some_and(|previous| Arc::ptr_eq(previous, entry))
        };
        if stores.get(&store).is_none_or(is_before) {
            stores.insert(store, Arc::new(StoreEntry::new(StoreRecord::new(spec))));
        }
        Ok(())
    }

    /// Removes a store.
    ///
    /// # Errors
    /// The store has disks in service.
    pub fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        let Some(removed) = self.store(store) else { return Ok(()) };
        removed.with(|plane_store| {
            if !plane_store.disks_per_worker.is_empty() {
                return Err(PlaneError::AlreadyInService);
            }
            plane_store.is_removed = true;
            Ok(())
        })?;
        let mut stores = lock(&self.0.stores);
        if stores.get(&store).is_some_and(|entry| Arc::ptr_eq(entry, &removed)) {
            stores.remove(&store);
        }
        Ok(())
    }

    fn store(&self, store: StoreId) -> Option<Arc<StoreEntry>> {
        lock(&self.0.stores).get(&store).map(Arc::clone)
    }

    /// Sets the capacity of a store, which bounds the sum of minimums. No-op if the store does not
    /// exist.
    pub fn set_capacity(&self, store: StoreId, capability: Capacity) {
        let Some(entry) = self.store(store) else { return };
        entry.with(|plane_store| {
            let change = plane_store.limits.set_capacity(capability);
            self.send_to_all(store, plane_store, &[change]);
        });
    }

    /// Sets the latency of a store's device from a measurement; `None` if it was not measured.
    /// No-op if the store does not exist.
    pub fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>) {
        let Some(entry) = self.store(store) else { return };
        entry.with(|plane_store| {
            plane_store.latency = latency;
            self.send_to_all(store, plane_store, &[ConfigStep::SetMeasuredLatency(latency)]);
        });
    }

    /// Sets the maximum rate of all disks of a store together, in normalised operations per second
    /// by the workers' clock; `None` removes it. The maximum also applies to disks that are added
    /// later. It is in effect when this function returns, unless the only worker that uses the
    /// store does not respond within [`VIEW_WAIT_MAX`]: that worker then applies it at the
    /// beginning of its next round, before it dispatches further requests.
    pub fn set_cap(&self, store: StoreId, cap: Option<TimedRateLimit>) {
        let Some(entry) = self.store(store) else { return };
        let workers = entry.with(|plane_store| {
            if plane_store.cap == cap {
                return Vec::new();
            }
            plane_store.cap = cap;
            self.send_maximum(store, plane_store, ConfigStep::SetCap(cap))
        });
        self.wait_for(&workers);
    }

    /// Sets this node's share of a policy that spans nodes. `None`: the policy's limits apply to
    /// this node alone. The share also applies to disks that are assigned to the policy later. It
    /// is in effect when this function returns, with the exception stated for
    /// [`StoragePlane::set_cap`].
    pub fn set_policy_share(&self, store: StoreId, policy: PolicyId, part: Option<PolicyShare>) {
        let Some(entry) = self.store(store) else { return };
        let workers = entry.with(|plane_store| {
            let before = match part {
                Some(part) => plane_store.policy_shares.insert(policy, part),
                None => plane_store.policy_shares.remove(&policy),
            };
            if before == part {
                return Vec::new();
            }
            self.send_maximum(store, plane_store, ConfigStep::SetPolicyShare(policy, part))
        });
        self.wait_for(&workers);
    }

    /// Blocks dispatch of all requests of a policy's disks until the policy's share is
    /// [set](StoragePlane::set_policy_share). No effect if it is set already.
    pub fn block_policy(&self, store: StoreId, policy: PolicyId) {
        let has_policy =
            |plane_store: &StoreRecord| plane_store.policy_shares.contains_key(&policy);
        let is_known = self.store(store).is_none_or(|entry| entry.read(has_policy));
        if !is_known {
            let nothing = PolicyShare { min_iops: 0, max: Some(TimedRateLimit::default()) };
            self.set_policy_share(store, policy, Some(nothing));
        }
    }

    /// Changes limits of a store's disks. Either all changes are applied or none. Workers that
    /// respond apply them at once. `force` permits a sum of minimums above the permitted share of
    /// the capacity.
    ///
    /// # Errors
    /// The reason why a change is invalid, or that the sum of minimums is too high. Nothing was
    /// changed.
    pub fn apply_proposals(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError> {
        let Some(entry) = self.store(store) else { return Ok(()) };
        entry.with(|plane_store| {
            let changes = plane_store.limits.apply(proposals, force)?;
            self.send_to_all(store, plane_store, &changes);
            Ok(())
        })
    }

    /// Returns the sum of a store's minimums and its capacity; `None` if the store does not exist.
    #[must_use]
    pub fn admitted_minimums(&self, store: StoreId) -> Option<MinimumsCheck> {
        self.store(store).map(|entry| entry.read(|plane_store| plane_store.limits.minimums_check()))
    }

    /// Returns a disk's slot in its store; `None` without limits there.
    #[must_use]
    pub fn disk_slot(&self, store: StoreId, disk: suimon_quantity::DiskId) -> Option<DiskSlot> {
        self.store(store)?.read(|plane_store| plane_store.limits.slot(disk))
    }

    /// Sends changes to all workers of a store. If they share a budget, the changes are applied to
    /// it directly, and the commands only inform the workers.
    fn send_to_all(&self, store: StoreId, plane_store: &StoreRecord, changes: &[ConfigStep]) {
        let is_in_budget = plane_store.shared.as_ref().is_some_and(|budget| budget.apply(changes));
        // A worker that is leaving the store withdraws the requests of a disk that is removed.
        let is_removal = |change: &ConfigStep| matches!(change, ConfigStep::RemoveDisk(_));
        let leaving = plane_store.leaving_workers.iter().filter(|_| changes.iter().any(is_removal));
        let workers = plane_store.disks_per_worker.keys().chain(leaving);
        for worker_channel in workers.filter_map(|worker| self.worker_channel(*worker)) {
            let changes = changes.to_vec();
            worker_channel.send(Command::ApplyChanges {
                store,
                changes,
                is_applied_to_budget: is_in_budget,
            });
        }
    }

    /// Applies a changed maximum of a store or of a policy. Returns the workers that will apply it
    /// in their next round; none if it is in effect. Maximums that a blocked worker has not applied
    /// are replaced, so that they do not accumulate.
    fn send_maximum(
        &self,
        store: StoreId,
        plane_store: &mut StoreRecord,
        change: ConfigStep,
    ) -> Vec<Arc<WorkerChannel>> {
        if plane_store.shared.as_ref().is_some_and(|budget| budget.apply(&[change])) {
            return Vec::new();
        }
        let mut workers = Vec::new();
        for worker in plane_store.disks_per_worker.keys() {
            let Some(worker_channel) = self.worker_channel(*worker) else { continue };
            let pending = plane_store.pending_maximums.entry(*worker).or_default();
            if pending.add(change) {
                worker_channel.send(Command::ApplyMaximums(store, Arc::clone(pending)));
            }
            workers.push(worker_channel);
        }
        workers
    }

    /// Registers a further disk of a store on a worker, and sends the store to the worker with its
    /// first disk. If another worker uses the store alone, waits for that worker to share it, for
    /// up to [`SHARE_WAIT_MAX`](crate::command::wait_limits::SHARE_WAIT_MAX). Does not wait for
    /// `worker`.
    ///
    /// # Errors
    /// The store or the worker does not exist, or the only worker with disks of the store does not
    /// respond.
    pub(crate) fn register_store_disk(
        &self,
        store: StoreId,
        worker: WorkerId,
    ) -> Result<(), PlaneError> {
        let entry = self.store(store).ok_or(PlaneError::NoSuchStore)?;
        entry.with(|plane_store| self.join_store((store, plane_store), worker))
    }

    fn join_store(
        &self,
        (store, plane_store): (StoreId, &mut StoreRecord),
        worker: WorkerId,
    ) -> Result<(), PlaneError> {
        if plane_store.is_removed {
            return Err(PlaneError::NoSuchStore);
        }
        if let Some(disks) = plane_store.disks_per_worker.get_mut(&worker) {
            *disks += 1;
            return Ok(());
        }
        let worker_channel = self.worker_channel(worker).ok_or(PlaneError::NoWorker)?;
        let users: Vec<WorkerId> = plane_store.disks_per_worker.keys().copied().collect();
        if let [only] = users[..] {
            // The scheduler is shared before another worker uses it. A worker that has ended
            // dispatches no requests.
            match self.share(store, only) {
                Ok(shared) => plane_store.shared = Some(shared),
                Err(PlaneError::NoWorker) => {
                    plane_store.shared = None;
                    plane_store.disks_per_worker.remove(&only);
                    plane_store.pending_maximums.remove(&only);
                }
                Err(error) => return Err(error),
            }
        }
        plane_store.leaving_workers.remove(&worker);
        // Maximums of the worker's earlier use of the store are not valid any more; the command
        // contains the current ones.
        plane_store.pending_maximums.remove(&worker);
        let (spec, shared, mut changes) = (
            plane_store.spec.clone(),
            plane_store.shared.clone(),
            plane_store.limits.config_steps(),
        );
        changes.push(ConfigStep::SetCap(plane_store.cap));
        changes.push(ConfigStep::SetMeasuredLatency(plane_store.latency));
        changes.extend(
            plane_store
                .policy_shares
                .iter()
                .map(|(policy, part)| ConfigStep::SetPolicyShare(*policy, Some(*part))),
        );
        worker_channel.send(Command::AddStore { store, spec, shared, changes });
        plane_store.disks_per_worker.insert(worker, 1);
        Ok(())
    }

    /// Registers that a worker has one disk of a store less, and removes the store from a worker
    /// without disks. Does not wait for workers.
    pub(crate) fn unregister_store_disk(&self, store: StoreId, worker: WorkerId) {
        if let Some(entry) = self.store(store) {
            entry.with(|plane_store| self.leave_store((store, plane_store), worker));
        }
    }

    fn leave_store(&self, (store, plane_store): (StoreId, &mut StoreRecord), worker: WorkerId) {
        let Some(disks) = plane_store.disks_per_worker.get_mut(&worker) else { return };
        *disks -= 1;
        if *disks > 0 {
            return;
        }
        plane_store.disks_per_worker.remove(&worker);
        plane_store.pending_maximums.remove(&worker);
        plane_store.leaving_workers.insert(worker);
        if let Some(worker_channel) = self.worker_channel(worker) {
            worker_channel.send(Command::RemoveStore(store));
        }
        let mut remaining_users = plane_store.disks_per_worker.keys();
        match (remaining_users.next(), remaining_users.next()) {
            (None, _) => plane_store.shared = None,
            (Some(alone), None) => {
                if let Some(worker_channel) = self.worker_channel(*alone) {
                    worker_channel.send(Command::EndSharing(store));
                }
            }
            _ => {}
        }
    }

    /// Requests the budget of a store from the only worker that uses it, for further workers. Does
    /// not wait for a worker that has not replied to an earlier command, so that waits for one
    /// worker do not add up over its stores.
    fn share(&self, store: StoreId, worker: WorkerId) -> Result<SharedBudget, PlaneError> {
        let worker_channel = self.worker_channel(worker).ok_or(PlaneError::NoWorker)?;
        if worker_channel.has_overdue_reply() {
            return Err(PlaneError::WorkerBlocked(worker));
        }
        let (reply, answer) = channel();
        worker_channel.send(Command::Share(store, reply));
        let (sent_at, mut probe) = (Instant::now(), None);
        let received = self.0.wait_limits.receive_with_delay_hook(
            &answer,
            self.0.wait_limits.share_wait_max,
            || probe = Some(self.begin_responsiveness_check()),
        );
        match received {
            Ok(shared) => Ok(shared),
            Err(RecvTimeoutError::Disconnected) => Err(PlaneError::NoWorker),
            Err(RecvTimeoutError::Timeout) => {
                // When the worker proceeds, it remains the only user of the store.
                worker_channel.send(Command::EndSharing(store));
                let mut view = lock(&worker_channel.last_state);
                view.outstanding_share = Some(answer);
                view.record_overdue(sent_at);
                drop(view);
                // Later waits for other workers that are blocked, too, are not added to this one.
                if let Some(probe) = probe {
                    probe.end(None);
                }
                Err(PlaneError::WorkerBlocked(worker))
            }
        }
    }

    /// Blocks until these workers have applied earlier commands, for up to [`VIEW_WAIT_MAX`] in
    /// total. Does not wait for a worker that has not replied to an earlier command of this kind or
    /// status query.
    fn wait_for(&self, workers: &[Arc<WorkerChannel>]) {
        let sent_at = Instant::now();
        let deadline = sent_at + VIEW_WAIT_MAX;
        let replies = workers.iter().map(|worker| worker.begin_sync()).collect::<Vec<_>>();
        let mut probe = None;
        for (worker, reply) in workers.iter().zip(replies) {
            let Some(reply) = reply else { continue };
            let remaining = deadline.saturating_duration_since(Instant::now());
            let received = self.0.wait_limits.receive_with_delay_hook(&reply, remaining, || {
                probe.get_or_insert_with(|| self.begin_responsiveness_check());
            });
            // The worker drops the sender, which disconnects the channel. A worker that has ended
            // dispatches no requests.
            if received == Err(RecvTimeoutError::Timeout) {
                worker.note_unanswered_sync(reply, sent_at);
            }
        }
        if let Some(probe) = probe {
            probe.end(None);
        }
    }
}
