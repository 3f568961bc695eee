//! Addition and removal of workers.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::{Waker, WorkerTask, WorkerTasks};
use suimon_quantity::{DiskId, WorkerId};

use crate::command::Command;
use crate::disk_record::Record;
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::plane_images::close_images;
use crate::plane_notices::PlaneNotice;
use crate::resident::StorageWorker;
use crate::worker_channel::WorkerChannel;

/// Longest time for which a retiring worker may return the grants of its stores, and the interval
/// of the checks.
const SETTLE_MAX: Duration = Duration::from_secs(1);
const SETTLES_EVERY: Duration = Duration::from_millis(10);

impl WorkerTasks for StoragePlane {
    fn create(&self, processor: WorkerId, waker: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        let (commands, receiver): (_, Receiver<Command>) = channel();
        let told = Arc::clone(&self.0.notices);
        let recording = self.0.recording.clone();
        let resident = StorageWorker::new(processor, receiver, told, Arc::clone(&waker), recording);
        let (has_io, view) = (AtomicBool::new(false), Mutex::default());
        let worker_channel = WorkerChannel { commands, waker, has_io, view };
        lock(&self.0.channels).insert(processor, Arc::new(worker_channel));
        Box::new(resident)
    }

    fn retire(&self, processors: &[WorkerId]) {
        for worker in processors {
            for disk in self.disks_of(*worker) {
                let moved = self
                    .calmest(processors)
                    .ok_or(PlaneError::NoWorker)
                    .and_then(|to| self.move_disk(disk, to));
                if let Err(error) = moved {
                    self.abandon_disk(disk, &error);
                }
            }
        }
        for worker in processors {
            self.wait_for_settled(*worker);
            lock(&self.0.channels).remove(worker);
        }
    }

    fn handle_workers_ended(&self) {
        lock(&self.0.channels).clear();
    }
}

impl StoragePlane {
    /// Blocks until a worker has returned the grants of all stores. The time is bounded.
    fn wait_for_settled(&self, processor: WorkerId) {
        let until = Instant::now() + SETTLE_MAX;
        while Instant::now() < until {
            if self.has_no_stores(processor) {
                return;
            }
            std::thread::sleep(SETTLES_EVERY);
        }
        tracing::warn!(%processor, "a worker ended before it returned a lent reservation");
    }

    /// Takes a disk out of service that could not be moved off a retiring worker, and emits a
    /// notice. The disk can be opened again afterwards.
    fn abandon_disk(&self, disk: DiskId, reason: &PlaneError) {
        match self.take_disk(disk) {
            Ok(spec) => close_images(disk, spec),
            // The disk was lost during the move.
            Err(PlaneError::NoSuchDisk) => {}
            Err(error) => tracing::warn!(?disk, %error, "the state of a disk is as after a crash"),
        }
        self.0.notices.emit(PlaneNotice::DiskLost { disk, reason: reason.to_string() });
    }

    fn disks_of(&self, processor: WorkerId) -> Vec<DiskId> {
        let records: Vec<(DiskId, Arc<Record>)> =
            lock(&self.0.disks).iter().map(|(id, of)| (*id, Arc::clone(of))).collect();
        let of_it = |(_, record): &(DiskId, Arc<Record>)| *lock(&record.owner) == Some(processor);
        records.into_iter().filter(of_it).map(|(id, _)| id).collect()
    }
}
