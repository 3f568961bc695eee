//! State of the disks and stores of all workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_storage_qos::DiskSlot;

use crate::command::Command;
use crate::command::channel::WorkerChannel;
use crate::command::last_state::LastState;
use crate::plane::store_record::StoreQueryState;
use crate::plane::{StoragePlane, lock};
use crate::worker::snapshot::{DiskView, StoreView, WorkerSnapshot};

/// Maximum time for which a status query waits for the workers. A worker that is not blocked
/// replies within a round. Until a blocked worker replies, further queries do not wait for it.
pub const VIEW_WAIT_MAX: Duration = Duration::from_millis(500);

/// Slots of the disks whose state is requested, by store.
type Slots = Arc<BTreeMap<StoreId, Arc<Vec<DiskSlot>>>>;

/// Number of attempts to read the state of a store's disks, which fail if its users change
/// meanwhile.
const VIEW_ATTEMPTS: usize = 3;

impl StoragePlane {
    /// Returns true if a disk is in service. Does not wait for workers.
    #[must_use]
    pub fn has_disk(&self, disk: DiskId) -> bool {
        self.disk_record(disk).is_ok()
    }

    /// Returns the state of all disks, in ascending order of their identifiers. Blocks for up to
    /// [`VIEW_WAIT_MAX`] if a worker does not respond. The state of its disks is then the last
    /// known one.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskView> {
        let snapshots = self.query(Instant::now() + VIEW_WAIT_MAX).into_iter();
        let mut views: Vec<DiskView> = snapshots.flat_map(|snapshot| snapshot.disks).collect();
        views.retain(|view| view.is_current || self.disk_record(view.disk).is_ok());
        // A disk that was moved meanwhile may be reported by two workers.
        views.sort_by_key(|view| (view.disk, !view.is_current));
        views.dedup_by_key(|view| view.disk);
        views
    }

    /// Returns the state of stores on all workers, in ascending order of store and worker. Blocks
    /// for up to [`VIEW_WAIT_MAX`] if a worker does not respond. The state of its stores is then
    /// the last known one. The state of the disks of a store is part of one of the store's views.
    /// It is current if any worker with the store responds.
    #[must_use]
    pub fn stores(&self) -> Vec<StoreView> {
        let deadline = Instant::now() + VIEW_WAIT_MAX;
        for _ in 1..VIEW_ATTEMPTS {
            if let (views, true) = self.try_stores(deadline) {
                return views;
            }
        }
        self.try_stores(deadline).0
    }

    /// Returns the state of stores, and true if it is complete. False: the budget of a store has
    /// ended since a worker's reply, and the worker would report the store's disks now.
    fn try_stores(&self, deadline: Instant) -> (Vec<StoreView>, bool) {
        let snapshots = self.query(deadline).into_iter();
        let mut views: Vec<StoreView> = snapshots.flat_map(|snapshot| snapshot.stores).collect();
        let stores = self.readable();
        views.retain(|view| {
            let store = stores.get(&view.store);
            view.is_current || store.is_some_and(|store| store.users.contains(&view.worker))
        });
        views.sort_by_key(|view| (view.store, view.worker));
        let mut is_complete = true;
        for views in views.chunk_by_mut(|a, b| a.store == b.store) {
            let store = views.first().and_then(|view| stores.get(&view.store));
            is_complete &= store.is_none_or(|store| move_flows(store, views));
        }
        (views, is_complete)
    }

    fn readable(&self) -> BTreeMap<StoreId, StoreQueryState> {
        lock(&self.0.stores).iter().map(|(id, entry)| (*id, entry.query_state())).collect()
    }

    /// Requests the state of all workers, and waits for it until `deadline`. Returns the last known
    /// state of workers that do not reply.
    fn query(&self, deadline: Instant) -> Vec<WorkerSnapshot> {
        let slots = self.readable().into_iter().map(|(id, store)| (id, store.slots)).collect();
        let slots: Slots = Arc::new(slots);
        let channels: Vec<Arc<WorkerChannel>> =
            lock(&self.0.channels).values().map(Arc::clone).collect();
        let replies: Vec<_> = channels.iter().map(|channel| begin(channel, &slots)).collect();
        let both = channels.iter().zip(replies);
        both.map(|(channel, reply)| self.end(&channel.last_state, reply, deadline)).collect()
    }

    /// Returns those of these workers that have replied that they have no stores, or have ended.
    /// Waits for all of them together, for up to [`VIEW_WAIT_MAX`].
    pub(crate) fn workers_without_stores(
        &self,
        workers: &BTreeSet<WorkerId>,
    ) -> BTreeSet<WorkerId> {
        let sent_at = Instant::now();
        let begin = |worker: &WorkerId| {
            let channel = self.worker_channel(*worker);
            let reply = channel.as_ref().and_then(|channel| begin(channel, &Slots::default()));
            (*worker, channel, reply)
        };
        let requests: Vec<_> = workers.iter().map(begin).collect();
        let mut without_stores = BTreeSet::new();
        for (worker, channel, reply) in requests {
            let has_none = match (channel, reply) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(channel), Some(reply)) => {
                    let remaining = VIEW_WAIT_MAX.saturating_sub(sent_at.elapsed());
                    match self.0.wait_limits.receive(&reply, remaining) {
                        Ok(snapshot) => snapshot.stores.is_empty(),
                        Err(RecvTimeoutError::Disconnected) => true,
                        Err(RecvTimeoutError::Timeout) => {
                            let mut view = lock(&channel.last_state);
                            view.outstanding_query = Some(reply);
                            view.record_overdue(sent_at);
                            false
                        }
                    }
                }
            };
            if has_none {
                without_stores.insert(worker);
            }
        }
        without_stores
    }

    /// Waits for the state of a worker until `deadline`, unless `reply` is `None`. Returns the last
    /// known state if the worker does not reply in time.
    fn end(
        &self,
        view: &Mutex<LastState>,
        reply: Option<Receiver<WorkerSnapshot>>,
        deadline: Instant,
    ) -> WorkerSnapshot {
        let Some(reply) = reply else { return lock(view).last_known_snapshot() };
        let remaining = deadline.saturating_duration_since(Instant::now());
        let received = self.0.wait_limits.receive(&reply, remaining);
        let mut view = lock(view);
        match received {
            Ok(snapshot) => {
                view.snapshot = snapshot.clone();
                snapshot
            }
            Err(RecvTimeoutError::Timeout) => {
                view.outstanding_query = Some(reply);
                view.record_overdue(deadline.checked_sub(VIEW_WAIT_MAX).unwrap_or(deadline));
                view.last_known_snapshot()
            }
            // The worker has ended.
            Err(RecvTimeoutError::Disconnected) => WorkerSnapshot::default(),
        }
    }
}

/// Moves the state of a store's disks to one of the store's views: as read from the budget that the
/// workers share, or as reported by the only user. Returns false if neither is current although a
/// worker has replied.
fn move_flows(store: &StoreQueryState, views: &mut [StoreView]) -> bool {
    let age = |view: &StoreView| (view.is_current, view.read_at);
    let Some((is_any_current, observed_at)) = views.iter().map(age).max() else { return true };
    let read = store.shared.as_ref().and_then(|budget| budget.flows(observed_at, &store.slots));
    let is_read = read.is_some();
    let reporters = views.iter_mut().filter(|view| !view.flows.is_empty());
    let reporter = reporters.max_by_key(|view| age(view));
    let is_reported = reporter.as_ref().is_some_and(|view| view.is_current);
    let reported = reporter.map(|view| (view.worker, core::mem::take(&mut view.flows)));
    views.iter_mut().for_each(|view| view.flows.clear());
    let (target_view, flows) = match (read, reported) {
        (Some(flows), _) => (views.iter_mut().max_by_key(|view| age(view)), flows),
        (None, Some((worker, flows))) => {
            (views.iter_mut().find(|view| view.worker == worker), flows)
        }
        (None, None) => (None, Vec::new()),
    };
    if let Some(view) = target_view {
        view.flows = flows;
    }
    is_read || is_reported || !is_any_current || store.slots.is_empty()
}

/// Requests the state of a worker; `None` if the worker has not replied to an earlier request.
fn begin(worker_channel: &WorkerChannel, slots: &Slots) -> Option<Receiver<WorkerSnapshot>> {
    if worker_channel.has_overdue_reply() {
        return None;
    }
    let (reply, answer) = channel();
    worker_channel.send(Command::QueryState(Arc::clone(slots), reply));
    Some(answer)
}
