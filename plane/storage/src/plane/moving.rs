//! Passing of disks to workers, and their removal from workers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use suimon_quantity::{DiskId, StoreId, WorkerId};

use crate::command::{Command, DetachedDisk};
use crate::disk_record::Record;
use crate::late_disks::{LateDisk, close_in_thread};
use crate::offer::Offer;
use crate::passing::Passed;
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::worker_channel::WorkerChannel;

/// Reason why a worker has not confirmed a disk.
pub(crate) enum NotPassed {
    /// The worker does not have the disk. The disk is returned if possible.
    Refused(PlaneError, Option<Box<DetachedDisk>>),
    /// The worker has the disk, or will take it when it proceeds. It remains a user of the disk's
    /// store.
    Late(PlaneError, LateDisk),
}

/// Reason why a worker has not returned a disk.
pub(crate) enum NotReturned {
    /// The disk remains in service on its worker.
    Remains(PlaneError),
    /// The worker removes the disk later, or does not have it. It is closed then.
    Leaves(PlaneError),
}

impl From<NotReturned> for PlaneError {
    fn from(of: NotReturned) -> Self {
        match of {
            NotReturned::Remains(error) | NotReturned::Leaves(error) => error,
        }
    }
}

impl StoragePlane {
    /// Moves a disk with all its queues to another worker. Clients see a pause. Waits for a worker
    /// that does not respond for up to [`COMMAND_WAIT_MAX`](crate::waits::COMMAND_WAIT_MAX).
    ///
    /// # Errors
    /// The disk or the worker does not exist, the disk is suspended, its files cannot be used
    /// there, or one of the workers does not respond. The disk then remains on its worker. If a
    /// worker stops responding while it takes over the disk, the disk belongs to it nevertheless.
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
        // The disk does not pause if the other worker cannot serve it.
        self.equip(&self.channel(to).ok_or(PlaneError::NoWorker)?)?;
        let taken = match self.withdraw(from, disk, true) {
            Ok(taken) => taken,
            Err(NotReturned::Remains(error)) => return Err(error),
            Err(NotReturned::Leaves(error)) => {
                *owner = None;
                self.forget(disk, &record);
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
        let store = taken.index.map(|place| place.store);
        let (error, taken) = match self.send_disk(to, disk, Box::new(taken)) {
            Ok(()) => {
                self.leave_if_any(store, from);
                *owner = Some(to);
                return Ok(());
            }
            Err(NotPassed::Late(error, late)) => {
                self.leave_if_any(store, from);
                *owner = Some(to);
                self.follow_late(disk, (Arc::clone(&record), to), late);
                return Err(error);
            }
            Err(NotPassed::Refused(error, taken)) => (error, taken),
        };
        let lost = match taken.map(|taken| self.return_disk(from, disk, taken)) {
            Some(Ok(())) => return Err(error),
            Some(Err(NotPassed::Late(_, late))) => {
                self.follow_late(disk, (Arc::clone(&record), from), late);
                return Err(error);
            }
            Some(Err(NotPassed::Refused(_, lost))) => lost,
            None => None,
        };
        self.leave_if_any(store, from);
        *owner = None;
        self.forget(disk, &record);
        if let Some(lost) = lost {
            drop(close_in_thread(disk, *lost));
        }
        Err(PlaneError::Lost(io::Error::other(error.to_string())))
    }

    /// Passes a new disk to the worker with the fewest disks that responds. Returns the disk with the
    /// error if possible; otherwise it is closed when the worker replies.
    pub(super) fn place_disk(
        &self,
        disk: DiskId,
        mut taken: Box<DetachedDisk>,
    ) -> Result<WorkerId, (PlaneError, Option<Box<DetachedDisk>>)> {
        let (mut besides, mut first) = (Vec::new(), None);
        while let Some(to) = self.calmest(&besides) {
            let store = taken.index.map(|place| place.store);
            let equipped = self.channel(to).map_or(Err(PlaneError::NoWorker), |to| self.equip(&to));
            let sent = match equipped {
                Ok(()) => self.send_disk(to, disk, taken),
                Err(error) => Err(NotPassed::Refused(error, Some(taken))),
            };
            match sent {
                Ok(()) => return Ok(to),
                Err(NotPassed::Refused(error @ PlaneError::NoResponse(_), Some(back))) => {
                    (taken, first) = (back, first.or(Some(error)));
                    besides.push(to);
                }
                Err(NotPassed::Refused(error, back)) => return Err((error, back)),
                Err(NotPassed::Late(error, late)) => {
                    self.close_added(disk, (store, to), late);
                    return Err((error, None));
                }
            }
        }
        Err((first.unwrap_or(PlaneError::NoWorker), Some(taken)))
    }

    /// Passes a disk to a worker that has I/O. The worker becomes a user of the disk's store.
    fn send_disk(
        &self,
        to: WorkerId,
        disk: DiskId,
        taken: Box<DetachedDisk>,
    ) -> Result<(), NotPassed> {
        let Some(worker_channel) = self.channel(to) else {
            return Err(NotPassed::Refused(PlaneError::NoWorker, Some(taken)));
        };
        let store = taken.index.map(|place| place.store);
        if let Err(error) = store.map_or(Ok(()), |of| self.join(of, to)) {
            return Err(NotPassed::Refused(error, Some(taken)));
        }
        let passed = self.pass_disk(&worker_channel, disk, taken);
        if let Err(NotPassed::Refused(..)) = &passed {
            self.leave_if_any(store, to);
        }
        passed
    }

    /// Passes a disk to a worker that is a user of the disk's store. The disk is taken back if the
    /// worker does not respond.
    pub(crate) fn pass_disk(
        &self,
        to: &Arc<WorkerChannel>,
        disk: DiskId,
        taken: Box<DetachedDisk>,
    ) -> Result<(), NotPassed> {
        passed(self.pass(to, taken, |taken, reply| Command::AddDisk { disk, taken, reply }))
    }

    /// Returns a disk to the worker that has removed it. The disk remains there if the worker does
    /// not respond.
    fn return_disk(
        &self,
        to: WorkerId,
        disk: DiskId,
        taken: Box<DetachedDisk>,
    ) -> Result<(), NotPassed> {
        let Some(worker_channel) = self.channel(to) else {
            return Err(NotPassed::Refused(PlaneError::NoWorker, Some(taken)));
        };
        let command = |taken, reply| Command::AddDisk { disk, taken, reply };
        passed(self.leave_with(&worker_channel, taken, command))
    }

    /// Removes a disk from the disks in service, unless another one has its identifier now.
    pub(crate) fn forget(&self, disk: DiskId, record: &Arc<Record>) {
        let mut disks = lock(&self.0.disks);
        if disks.get(&disk).is_some_and(|of| Arc::ptr_eq(of, record)) {
            disks.remove(&disk);
        }
    }

    pub(crate) fn leave_if_any(&self, store: Option<StoreId>, from: WorkerId) {
        if let Some(store) = store {
            self.leave(store, from);
        }
    }

    /// Creates the I/O of a worker if it has none yet, and checks that the worker responds.
    fn equip(&self, worker: &Arc<WorkerChannel>) -> Result<(), PlaneError> {
        self.check_responding(worker)?;
        if worker.has_io.load(Ordering::Relaxed) {
            return Ok(());
        }
        let io = self.0.io.open().map_err(PlaneError::Io)?;
        match self.pass(worker, io, Command::SetIo) {
            Passed::Replied(result) => result.map_err(PlaneError::Io)?,
            // A worker that gets its I/O later drops that of a further attempt.
            Passed::Returned(error, _) | Passed::Late(error, _) => return Err(error),
        }
        worker.has_io.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Removes a disk with its queues from a worker and from the users of its store. If the worker
    /// does not respond, it removes the disk when it proceeds.
    pub(crate) fn take(&self, from: WorkerId, disk: DiskId) -> Result<DetachedDisk, PlaneError> {
        let taken = self.withdraw(from, disk, false)?;
        self.leave_if_any(taken.index.map(|place| place.store), from);
        Ok(taken)
    }

    /// Removes a disk with its queues from a worker, which remains a user of the disk's store.
    /// `may_remain`: the disk remains on a worker that does not respond.
    fn withdraw(
        &self,
        from: WorkerId,
        disk: DiskId,
        may_remain: bool,
    ) -> Result<DetachedDisk, NotReturned> {
        let worker = self.channel(from).ok_or(NotReturned::Leaves(PlaneError::NoWorker))?;
        if may_remain && worker.is_blocked(self.0.waits.command) {
            return Err(NotReturned::Remains(PlaneError::NoResponse(from)));
        }
        let (reply, answer) = channel();
        let offer = Offer::new(reply);
        worker.send(Command::DetachDisk(disk, offer.clone()));
        match self.wait_for_disk(disk, &worker, &answer) {
            Ok(taken) => taken.map_err(NotReturned::Leaves),
            Err(error) if may_remain && offer.take().is_some() => Err(NotReturned::Remains(error)),
            Err(error) => {
                self.close_later(disk, from, answer);
                Err(NotReturned::Leaves(error))
            }
        }
    }
}

fn passed(
    of: Passed<Box<DetachedDisk>, Result<(), crate::command::NotAttached>>,
) -> Result<(), NotPassed> {
    match of {
        Passed::Replied(Ok(())) => Ok(()),
        Passed::Replied(Err(of)) => Err(NotPassed::Refused(PlaneError::File(of.error), of.taken)),
        Passed::Returned(error, taken) => Err(NotPassed::Refused(error, Some(taken))),
        Passed::Late(error, late) => Err(NotPassed::Late(error, late)),
    }
}
