//! Passing of disks to workers, and their removal from workers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use suimon_quantity::{DiskId, StoreId, WorkerId};

use crate::command::{Command, DetachedDisk};
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::plane_images::close_images;
use crate::worker_channel::WorkerChannel;

/// Error of passing a disk to a worker, with the disk if it can be returned.
pub(super) type NotPassed = (PlaneError, Option<Box<DetachedDisk>>);

impl StoragePlane {
    /// Moves a disk with all its queues to another worker. Clients see a pause.
    ///
    /// # Errors
    /// The disk or the worker does not exist, the disk is suspended, or its files cannot be used
    /// there. The disk then remains on its worker.
    pub fn move_disk(&self, disk: DiskId, to: WorkerId) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        let mut owner = lock(&record.owner);
        let from = owner.ok_or(PlaneError::NoSuchDisk)?;
        if from == to {
            return Ok(());
        }
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        self.channel(to).ok_or(PlaneError::NoWorker)?;
        let taken = self.withdraw(from, disk).inspect_err(|_| {
            *owner = None;
            lock(&self.0.disks).remove(&disk);
        })?;
        // The worker remains a user of the store until the disk is on the other one. The other one
        // can therefore join the store, or the disk be returned, while further users are blocked.
        let store = taken.index.map(|place| place.store);
        let Err((error, taken)) = self.send_disk(to, disk, taken) else {
            self.leave_if_any(store, from);
            *owner = Some(to);
            return Ok(());
        };
        let lost = match taken.map(|taken| self.pass_disk(from, disk, *taken)) {
            Some(Ok(())) => return Err(error),
            Some(Err((_, lost))) => lost,
            None => None,
        };
        self.leave_if_any(store, from);
        *owner = None;
        lock(&self.0.disks).remove(&disk);
        if let Some(lost) = lost {
            let DetachedDisk { spec, queues, .. } = *lost;
            drop(queues);
            close_images(disk, spec);
        }
        Err(PlaneError::Lost(io::Error::other(error.to_string())))
    }

    /// Passes a disk to a worker, which becomes a user of the disk's store. On failure, returns the
    /// disk with the error if possible.
    pub(super) fn send_disk(
        &self,
        to: WorkerId,
        disk: DiskId,
        taken: DetachedDisk,
    ) -> Result<(), NotPassed> {
        let back = |error: PlaneError, taken: DetachedDisk| (error, Some(Box::new(taken)));
        let Some(worker_channel) = self.channel(to) else {
            return Err(back(PlaneError::NoWorker, taken));
        };
        let store = taken.index.map(|place| place.store);
        let joined =
            self.equip(&worker_channel).and_then(|()| store.map_or(Ok(()), |of| self.join(of, to)));
        if let Err(error) = joined {
            return Err(back(error, taken));
        }
        let given = self.pass_disk(to, disk, taken);
        if given.is_err() {
            self.leave_if_any(store, to);
        }
        given
    }

    /// Passes a disk to a worker that is a user of the disk's store. On failure, returns the disk
    /// with the error if possible.
    fn pass_disk(&self, to: WorkerId, disk: DiskId, taken: DetachedDisk) -> Result<(), NotPassed> {
        let Some(worker_channel) = self.channel(to) else {
            return Err((PlaneError::NoWorker, Some(Box::new(taken))));
        };
        match worker_channel.call(|reply| Command::AddDisk { disk, taken, reply }) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_taken)) => Err((PlaneError::File(not_taken.error), not_taken.taken)),
            Err(error) => Err((error, None)),
        }
    }

    fn leave_if_any(&self, store: Option<StoreId>, from: WorkerId) {
        if let Some(store) = store {
            self.leave(store, from);
        }
    }

    /// Creates the I/O of a worker if it has none yet.
    fn equip(&self, way: &WorkerChannel) -> Result<(), PlaneError> {
        if way.has_io.load(Ordering::Relaxed) {
            return Ok(());
        }
        let io = self.0.io.open().map_err(PlaneError::Io)?;
        way.call(|reply| Command::SetIo(io, reply))?.map_err(PlaneError::Io)?;
        way.has_io.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Removes a disk with its queues from a worker and from the users of its store.
    pub(super) fn take(&self, from: WorkerId, disk: DiskId) -> Result<DetachedDisk, PlaneError> {
        let taken = self.withdraw(from, disk)?;
        self.leave_if_any(taken.index.map(|place| place.store), from);
        Ok(taken)
    }

    /// Removes a disk with its queues from a worker, which remains a user of the disk's store.
    fn withdraw(&self, from: WorkerId, disk: DiskId) -> Result<DetachedDisk, PlaneError> {
        let worker_channel = self.channel(from).ok_or(PlaneError::NoWorker)?;
        let (reply, answer) = channel();
        worker_channel.send(Command::DetachDisk(disk, reply));
        match self.wait_for_disk(disk, &answer) {
            Ok(taken) => taken,
            Err(error) => {
                self.close_later(disk, from, answer);
                Err(error)
            }
        }
    }
}
