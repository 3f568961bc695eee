//! Addition and removal of workers.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::{Waker, WorkerTask, WorkerTaskFactory};
use suimon_quantity::{DiskId, WorkerId};

use crate::command::Command;
use crate::command::channel::WorkerChannel;
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::late_replies::close_in_thread;
use crate::plane::{StoragePlane, lock};
use crate::worker::StorageWorker;

/// Maximum time for which the plane waits until retiring workers have returned the grants of their
/// stores, and the interval of the checks.
const SETTLE_MAX: Duration = Duration::from_secs(1);
const SETTLES_EVERY: Duration = Duration::from_millis(10);

/// Maximum time for which the plane waits until the images of disks that cannot be moved off
/// retiring workers are closed.
const CLOSE_MAX: Duration = Duration::from_secs(1);

impl WorkerTaskFactory for StoragePlane {
    fn create(&self, processor: WorkerId, waker: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        let (commands, receiver): (_, Receiver<Command>) = channel();
        let notices = Arc::clone(&self.0.notices);
        let recording = self.0.recording.clone();
        let storage_worker =
            StorageWorker::new(processor, receiver, notices, Arc::clone(&waker), recording);
        let (has_io, view) = (AtomicBool::new(false), Mutex::default());
        let id = processor;
        let worker_channel = WorkerChannel { id, commands, waker, has_io, last_state: view };
        self.remove_former_worker(processor);
        lock(&self.0.channels).insert(processor, Arc::new(worker_channel));
        Box::new(storage_worker)
    }

    fn retire_workers(&self, processors: &[WorkerId]) -> Vec<WorkerId> {
        let mut closing = Vec::new();
        for worker in processors {
            for disk in self.disks_of(*worker) {
                match self.move_off(disk, processors) {
                    Ok(()) => {}
                    Err(error) if is_blocked(&error) => {
                        tracing::warn!(?disk, %error, "a disk remains on a worker that is to end");
                    }
                    Err(error) => closing.push((disk, self.abandon_disk(disk), error)),
                }
            }
        }
        let deadline = Instant::now() + CLOSE_MAX;
        for (disk, closed, error) in closing {
            if let Some(closed) = closed {
                // The disk can be opened again at once if its store responds.
                let _ = closed.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            }
            self.emit_lost(disk, &error);
        }
        let has_disks = |worker: &WorkerId| !self.disks_of(*worker).is_empty();
        let (mut remaining, empty): (BTreeSet<_>, BTreeSet<_>) =
            processors.iter().copied().partition(has_disks);
        remaining.extend(self.settle(empty));
        remaining.into_iter().collect()
    }

    fn handle_workers_ended(&self) {
        lock(&self.0.channels).clear();
    }
}

impl StoragePlane {
    /// Moves a disk to a worker that is not in `retiring`. Workers that refuse the disk or do not
    /// respond are skipped.
    ///
    /// # Errors
    /// No worker takes the disk, or its own worker does not respond; the disk remains there. Of
    /// several errors, one that a repetition may not have ([`is_blocked`]) is returned.
    fn move_off(&self, disk: DiskId, retiring: &[WorkerId]) -> Result<(), PlaneError> {
        let mut excluded = retiring.to_vec();
        let mut first = None;
        while let Some(target) = self.least_loaded_worker(&excluded) {
            let error = match self.move_disk(disk, target) {
                Ok(()) => return Ok(()),
                Err(error @ (PlaneError::CreateIo(_) | PlaneError::FileRefused(_))) => error,
                Err(error) if is_blocked(&error) => error,
                Err(error) => return Err(error),
            };
            if first.as_ref().is_none_or(|first| !is_blocked(first)) {
                first = Some(error);
            }
            excluded.push(target);
        }
        Err(first.unwrap_or(PlaneError::NoWorker))
    }

    /// Removes a worker that has ended from the users of all stores. It is still registered there
    /// if it ended with a disk of a stalled store. A new worker with its number has no state of
    /// these stores.
    fn remove_former_worker(&self, worker: WorkerId) {
        let stores: Vec<_> = lock(&self.0.stores).values().map(Arc::clone).collect();
        for store in stores {
            store.with(|store| {
                store.disks_per_worker.remove(&worker);
                store.pending_maximums.remove(&worker);
                store.leaving_workers.remove(&worker);
            });
        }
    }

    /// Blocks until these workers, which have no disks, have returned the grants of all stores, for
    /// up to [`SETTLE_MAX`], and removes their channels. Returns the workers that do not respond.
    fn settle(&self, mut workers: BTreeSet<WorkerId>) -> BTreeSet<WorkerId> {
        let deadline = Instant::now() + SETTLE_MAX;
        loop {
            for settled in self.workers_without_stores(&workers) {
                workers.remove(&settled);
                lock(&self.0.channels).remove(&settled);
            }
            if workers.is_empty() || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(SETTLES_EVERY);
        }
        workers.retain(|worker| {
            let is_late =
                self.worker_channel(*worker).is_some_and(|channel| channel.has_overdue_reply());
            if !is_late {
                tracing::warn!(%worker, "a worker ended before it returned a lent reservation");
                lock(&self.0.channels).remove(worker);
            }
            is_late
        });
        workers
    }

    /// Takes a disk out of service that could not be moved off a retiring worker. The returned
    /// channel disconnects when the disk is closed and can be opened again. Returns `None` if the
    /// disk was taken out of service before, or is closed later.
    fn abandon_disk(&self, disk: DiskId) -> Option<Receiver<()>> {
        let record = self.disk_record(disk).ok()?;
        let mut owner = lock(&record.owner);
        let worker = owner.take()?;
        self.remove_record(disk, &record);
        match self.remove_from_worker(worker, disk) {
            Ok(detached) => Some(close_in_thread(disk, detached)),
            Err(error) => {
                tracing::warn!(?disk, %error, "a disk is closed later");
                None
            }
        }
    }

    fn disks_of(&self, processor: WorkerId) -> Vec<DiskId> {
        let records: Vec<(DiskId, Arc<DiskRecord>)> =
            lock(&self.0.disks).iter().map(|(id, record)| (*id, Arc::clone(record))).collect();
        let is_served =
            |(_, record): &(DiskId, Arc<DiskRecord>)| *lock(&record.owner) == Some(processor);
        records.into_iter().filter(is_served).map(|(id, _)| id).collect()
    }
}

/// Returns true if the error means that a worker does not respond.
const fn is_blocked(error: &PlaneError) -> bool {
    matches!(error, PlaneError::NoResponse(_) | PlaneError::WorkerBlocked(_))
}
