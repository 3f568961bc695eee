//! Passing of disks to workers, and removal of disks from workers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use suimon_quantity::{DiskId, StoreId, WorkerId};

use crate::command::channel::WorkerChannel;
use crate::command::reply::PassResult;
use crate::command::revocable_value::RevocableValue;
use crate::command::{Command, DetachedDisk};
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::late_replies::{LateDiskReply, close_in_thread};
use crate::plane::{StoragePlane, lock};

/// Reason why a worker has not confirmed a disk.
pub(crate) enum PassDiskError {
    /// The worker does not have the disk. The disk is returned if the worker has not lost it.
    Refused(PlaneError, Option<Box<DetachedDisk>>),
    /// The worker has the disk, or will take it when it proceeds. It remains a user of the disk's
    /// store.
    Late(PlaneError, LateDiskReply),
}

/// Reason why a worker has not returned a disk that was to be removed from it.
pub(crate) enum RemoveDiskError {
    /// The disk remains in service on its worker.
    Remains(PlaneError),
    /// The worker removes the disk later, or does not have it. A disk that is removed later is
    /// closed then.
    RemovedLaterOrMissing(PlaneError),
}

impl From<RemoveDiskError> for PlaneError {
    fn from(reason: RemoveDiskError) -> Self {
        match reason {
            RemoveDiskError::Remains(error) | RemoveDiskError::RemovedLaterOrMissing(error) => {
                error
            }
        }
    }
}

impl StoragePlane {
    /// Moves a disk with all its queues to another worker. Clients see a pause. Waits for a worker
    /// that does not respond for up to
    /// [`COMMAND_WAIT_MAX`](crate::command::wait_limits::COMMAND_WAIT_MAX).
    ///
    /// # Errors
    /// The disk or the worker does not exist, the disk is suspended, its files cannot be used
    /// there, or one of the workers does not respond. The disk then remains on its worker. If a
    /// worker stops responding while it takes over the disk, the disk belongs to it nevertheless.
    pub fn move_disk(&self, disk: DiskId, target: WorkerId) -> Result<(), PlaneError> {
        let record = self.disk_record(disk)?;
        let mut owner = lock(&record.owner);
        let source = owner.ok_or(PlaneError::NoSuchDisk)?;
        if source == target {
            return Ok(());
        }
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        // The disk does not pause if the other worker cannot serve it.
        self.ensure_io(&self.worker_channel(target).ok_or(PlaneError::NoWorker)?)?;
        let detached = match self.withdraw(source, disk, true) {
            Ok(detached) => detached,
            Err(RemoveDiskError::Remains(error)) => return Err(error),
            Err(RemoveDiskError::RemovedLaterOrMissing(error)) => {
                *owner = None;
                self.remove_record(disk, &record);
                return Err(match error {
                    PlaneError::NoResponse(_) => {
                        PlaneError::Lost(io::Error::other(error.to_string()))
                    }
                    error => error,
                });
            }
        };
        // The worker remains a user of the store until the disk is on the other one. The other one
        // can therefore join the store, or the disk be returned, while further users are blocked.
        let store = detached.store_slot.map(|location| location.store);
        let (error, detached) = match self.send_disk(target, disk, Box::new(detached)) {
            Ok(()) => {
                self.leave_store_if_any(store, source);
                *owner = Some(target);
                return Ok(());
            }
            Err(PassDiskError::Late(error, late_disk)) => {
                self.leave_store_if_any(store, source);
                *owner = Some(target);
                self.handle_late_reply(disk, (Arc::clone(&record), target), late_disk);
                return Err(error);
            }
            Err(PassDiskError::Refused(error, detached)) => (error, detached),
        };
        let lost_disk = match detached.map(|detached| self.return_disk(source, disk, detached)) {
            Some(Ok(())) => return Err(error),
            Some(Err(PassDiskError::Late(_, late_disk))) => {
                self.handle_late_reply(disk, (Arc::clone(&record), source), late_disk);
                return Err(error);
            }
            Some(Err(PassDiskError::Refused(_, lost_disk))) => lost_disk,
            None => None,
        };
        self.leave_store_if_any(store, source);
        *owner = None;
        self.remove_record(disk, &record);
        if let Some(lost_disk) = lost_disk {
            drop(close_in_thread(disk, *lost_disk));
        }
        Err(PlaneError::Lost(io::Error::other(error.to_string())))
    }

    /// Passes a new disk to the worker with the fewest disks that responds. Returns that worker. On
    /// error, returns the disk if possible; otherwise it is closed when the worker replies.
    pub(super) fn assign_disk(
        &self,
        disk: DiskId,
        mut detached: Box<DetachedDisk>,
    ) -> Result<WorkerId, (PlaneError, Option<Box<DetachedDisk>>)> {
        let (mut excluded, mut first) = (Vec::new(), None);
        while let Some(worker) = self.least_loaded_worker(&excluded) {
            let store = detached.store_slot.map(|location| location.store);
            let equipped =
                self.worker_channel(worker).map_or(Err(PlaneError::NoWorker), |worker_channel| {
                    self.ensure_io(&worker_channel)
                });
            let result = match equipped {
                Ok(()) => self.send_disk(worker, disk, detached),
                Err(error) => Err(PassDiskError::Refused(error, Some(detached))),
            };
            match result {
                Ok(()) => return Ok(worker),
                Err(PassDiskError::Refused(error @ PlaneError::NoResponse(_), Some(returned))) => {
                    (detached, first) = (returned, first.or(Some(error)));
                    excluded.push(worker);
                }
                Err(PassDiskError::Refused(error, returned)) => return Err((error, returned)),
                Err(PassDiskError::Late(error, late_disk)) => {
                    self.close_after_late_reply(disk, (store, worker), late_disk);
                    return Err((error, None));
                }
            }
        }
        Err((first.unwrap_or(PlaneError::NoWorker), Some(detached)))
    }

    /// Passes a disk to a worker with [`StoragePlane::pass_disk`], after registering the worker as
    /// a user of the disk's store. The worker must have I/O.
    fn send_disk(
        &self,
        worker: WorkerId,
        disk: DiskId,
        detached: Box<DetachedDisk>,
    ) -> Result<(), PassDiskError> {
        let Some(worker_channel) = self.worker_channel(worker) else {
            return Err(PassDiskError::Refused(PlaneError::NoWorker, Some(detached)));
        };
        let store = detached.store_slot.map(|location| location.store);
        if let Err(error) = store.map_or(Ok(()), |store| self.register_store_disk(store, worker)) {
            return Err(PassDiskError::Refused(error, Some(detached)));
        }
        let passed = self.pass_disk(&worker_channel, disk, detached);
        if let Err(PassDiskError::Refused(..)) = &passed {
            self.leave_store_if_any(store, worker);
        }
        passed
    }

    /// Passes a disk to a worker that is a user of the disk's store. The disk is taken back if the
    /// worker does not respond.
    pub(crate) fn pass_disk(
        &self,
        worker: &Arc<WorkerChannel>,
        disk: DiskId,
        detached: Box<DetachedDisk>,
    ) -> Result<(), PassDiskError> {
        passed(self.pass_value(worker, detached, |detached, reply| Command::AddDisk {
            disk,
            detached,
            reply,
        }))
    }

    /// Returns a disk to the worker that has removed it. If the worker does not respond, the disk
    /// remains in its mailbox.
    fn return_disk(
        &self,
        worker: WorkerId,
        disk: DiskId,
        detached: Box<DetachedDisk>,
    ) -> Result<(), PassDiskError> {
        let Some(worker_channel) = self.worker_channel(worker) else {
            return Err(PassDiskError::Refused(PlaneError::NoWorker, Some(detached)));
        };
        let command = |detached, reply| Command::AddDisk { disk, detached, reply };
        passed(self.pass_value_irrevocably(&worker_channel, detached, command))
    }

    /// Removes the record of a disk from the disks in service, unless a new disk has the same
    /// identifier now.
    pub(crate) fn remove_record(&self, disk: DiskId, record: &Arc<DiskRecord>) {
        let mut disks = lock(&self.0.disks);
        if disks.get(&disk).is_some_and(|current| Arc::ptr_eq(current, record)) {
            disks.remove(&disk);
        }
    }

    pub(crate) fn leave_store_if_any(&self, store: Option<StoreId>, worker: WorkerId) {
        if let Some(store) = store {
            self.unregister_store_disk(store, worker);
        }
    }

    /// Provides a worker with I/O if it has none yet, and checks that the worker responds.
    fn ensure_io(&self, worker: &Arc<WorkerChannel>) -> Result<(), PlaneError> {
        self.check_responding(worker)?;
        if worker.has_io.load(Ordering::Relaxed) {
            return Ok(());
        }
        let io = self.0.io.open().map_err(PlaneError::CreateIo)?;
        match self.pass_value(worker, io, Command::SetIo) {
            PassResult::Replied(result) => result.map_err(PlaneError::CreateIo)?,
            // A worker that receives its I/O late keeps it and drops that of a further attempt.
            PassResult::Returned(error, _) | PassResult::Late(error, _) => return Err(error),
        }
        worker.has_io.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Removes a disk with its queues from a worker and from the users of its store. If the worker
    /// does not respond, it removes the disk when it proceeds.
    pub(crate) fn remove_from_worker(
        &self,
        worker: WorkerId,
        disk: DiskId,
    ) -> Result<DetachedDisk, PlaneError> {
        let detached = self.withdraw(worker, disk, false)?;
        self.leave_store_if_any(detached.store_slot.map(|location| location.store), worker);
        Ok(detached)
    }

    /// Removes a disk with its queues from a worker, which remains a user of the disk's store.
    /// `may_remain`: the disk remains on a worker that does not respond.
    fn withdraw(
        &self,
        worker_id: WorkerId,
        disk: DiskId,
        may_remain: bool,
    ) -> Result<DetachedDisk, RemoveDiskError> {
        let worker = self
            .worker_channel(worker_id)
            .ok_or(RemoveDiskError::RemovedLaterOrMissing(PlaneError::NoWorker))?;
        if may_remain && worker.is_blocked(self.0.wait_limits.command_wait_max) {
            return Err(RemoveDiskError::Remains(PlaneError::NoResponse(worker_id)));
        }
        let (reply, answer) = channel();
        let offer = RevocableValue::new(reply);
        worker.send(Command::DetachDisk(disk, offer.clone()));
        match self.wait_for_disk_reply(disk, &worker, &answer) {
            Ok(result) => result.map_err(RemoveDiskError::RemovedLaterOrMissing),
            Err(error) if may_remain && offer.take().is_some() => {
                Err(RemoveDiskError::Remains(error))
            }
            Err(error) => {
                self.close_when_detached(disk, worker_id, answer);
                Err(RemoveDiskError::RemovedLaterOrMissing(error))
            }
        }
    }
}

fn passed(
    outcome: PassResult<Box<DetachedDisk>, Result<(), crate::command::WorkerAddDiskError>>,
) -> Result<(), PassDiskError> {
    match outcome {
        PassResult::Replied(Ok(())) => Ok(()),
        PassResult::Replied(Err(not_attached)) => Err(PassDiskError::Refused(
            PlaneError::FileRefused(not_attached.error),
            not_attached.detached,
        )),
        PassResult::Returned(error, detached) => Err(PassDiskError::Refused(error, Some(detached))),
        PassResult::Late(error, late_disk) => Err(PassDiskError::Late(error, late_disk)),
    }
}
