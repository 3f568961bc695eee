//! State of the disks and stores of all workers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_quantity::{StoreId, WorkerId};
use suimon_storage_qos::DiskSlot;

use crate::command::Command;
use crate::last_view::LastView;
use crate::plane::{StoragePlane, lock};
use crate::worker_channel::WorkerChannel;
use crate::worker_view::{DiskView, StoreView, WorkerSnapshot};

/// Longest time for which a status query waits for the workers. A worker that is not blocked
/// replies within a round. Until a blocked worker replies, further queries do not wait for it.
pub const VIEW_WAIT_MAX: Duration = Duration::from_millis(500);

/// Slots of disks by store whose state is requested.
type Slots = Arc<BTreeMap<StoreId, Vec<DiskSlot>>>;

impl StoragePlane {
    /// Returns the state of all disks, in ascending order. Blocks for up to [`VIEW_WAIT_MAX`] if a
    /// worker does not respond. The state of its disks is then the last known one.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskView> {
        let mut views: Vec<DiskView> = self.query().into_iter().flat_map(|of| of.disks).collect();
        views.retain(|view| view.is_current || self.record(view.disk).is_ok());
        // A disk may be on another worker meanwhile.
        views.sort_by_key(|view| (view.disk, !view.is_current));
        views.dedup_by_key(|view| view.disk);
        views
    }

    /// Returns the state of stores on all workers, in ascending order of store and worker. Blocks
    /// for up to [`VIEW_WAIT_MAX`] if a worker does not respond. The state of its stores is then
    /// the last known one.
    #[must_use]
    pub fn stores(&self) -> Vec<StoreView> {
        let mut views: Vec<StoreView> = self.query().into_iter().flat_map(|of| of.stores).collect();
        views.sort_by_key(|view| (view.store, view.worker));
        views
    }

    fn query(&self) -> Vec<WorkerSnapshot> {
        let slots = lock(&self.0.stores).iter().map(|(id, of)| (*id, of.slots())).collect();
        let slots: Slots = Arc::new(slots);
        let channels: Vec<Arc<WorkerChannel>> =
            lock(&self.0.channels).values().map(Arc::clone).collect();
        let until = Instant::now() + VIEW_WAIT_MAX;
        let replies: Vec<_> = channels.iter().map(|channel| begin(channel, &slots)).collect();
        let both = channels.iter().zip(replies);
        both.map(|(channel, reply)| end(&channel.view, reply, until)).collect()
    }

    /// Returns true if a worker has replied that it has no stores, or has ended.
    pub(crate) fn has_no_stores(&self, worker: WorkerId) -> bool {
        let Some(channel) = self.channel(worker) else { return true };
        let Some(reply) = begin(&channel, &Slots::default()) else { return false };
        match reply.recv_timeout(VIEW_WAIT_MAX) {
            Ok(looked) => looked.stores.is_empty(),
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        }
    }
}

/// Requests the state of a worker; `None` if the worker has not replied to an earlier request.
fn begin(worker_channel: &WorkerChannel, slots: &Slots) -> Option<Receiver<WorkerSnapshot>> {
    if lock(&worker_channel.view).is_late() {
        return None;
    }
    let (reply, answer) = channel();
    worker_channel.send(Command::View(Arc::clone(slots), reply));
    Some(answer)
}

/// Waits for the state of a worker. Returns the last known state if it does not reply in time.
fn end(
    view: &Mutex<LastView>,
    reply: Option<Receiver<WorkerSnapshot>>,
    until: Instant,
) -> WorkerSnapshot {
    let Some(reply) = reply else { return lock(view).known() };
    let received = reply.recv_timeout(until.saturating_duration_since(Instant::now()));
    let mut view = lock(view);
    match received {
        Ok(looked) => {
            view.known = looked.clone();
            looked
        }
        Err(RecvTimeoutError::Timeout) => {
            view.outstanding = Some(reply);
            view.known()
        }
        // The worker has ended.
        Err(RecvTimeoutError::Disconnected) => WorkerSnapshot::default(),
    }
}
