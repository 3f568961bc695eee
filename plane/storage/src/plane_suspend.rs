//! Suspension of disks while an operation uses their files.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use suimon_quantity::DiskId;

use crate::command::{Command, Suspension};
use crate::disk_spec::{DiskSpec, NotAdded};
use crate::plane::{StoragePlane, lock};
use crate::plane_error::PlaneError;
use crate::worker_channel::WorkerChannel;

/// Disk that could not be resumed and remains suspended.
pub struct NotResumed {
    /// Error that prevented the resumption.
    pub error: PlaneError,
    /// Images that the disk was to use, if they can be returned.
    pub spec: Option<DiskSpec>,
}

impl fmt::Debug for NotResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for NotResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StoragePlane {
    /// Suspends a disk: releases its images and files when the requests taken from its queues have
    /// completed and all changes are durable. Its queues remain, including new ones; clients see a
    /// pause. The caller must close its own image, the first one
    /// ([`Image::close`](suimon_image::Image::close)), before opening its file again.
    ///
    /// # Errors
    /// The disk is not in service, or is suspended already. Its changes could not be committed: it
    /// remains in service. Its store does not complete requests: it is resumed when the store does.
    pub fn suspend_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        self.suspend(disk, Suspension::Durable)
    }

    /// Suspends a disk like [`StoragePlane::suspend_disk`], in order to open its images again. If a
    /// flush of the disk has failed, its files are released without a commit;
    /// [`close`](crate::images::close) then writes nothing to them.
    ///
    /// # Errors
    /// As [`StoragePlane::suspend_disk`].
    pub fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        self.suspend(disk, Suspension::Reopening)
    }

    fn suspend(&self, disk: DiskId, suspension: Suspension) -> Result<DiskSpec, PlaneError> {
        let record = self.record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        if lock(&record.mirror).is_on() {
            return Err(PlaneError::Mirrored);
        }
        let (reply, answer) = channel();
        worker_channel.send(Command::Suspend(disk, suspension, reply));
        let spec = match self.wait_for_disk(disk, &answer) {
            Ok(spec) => spec?,
            Err(error) => {
                resume_later(disk, worker_channel, answer);
                return Err(error);
            }
        };
        record.is_suspended.store(true, Ordering::Relaxed);
        Ok(spec)
    }

    /// Resumes a suspended disk, which may have a larger size or other images. The front ends of
    /// its queues check requests against the new size, and report the size to their guests or
    /// clients afterwards.
    ///
    /// # Errors
    /// The disk is not suspended, or the files cannot be used. The disk then remains suspended; the
    /// caller may retry, or take it out of service.
    pub fn resume_disk(&self, disk: DiskId, spec: DiskSpec) -> Result<(), NotResumed> {
        let Ok(record) = self.record(disk) else {
            return Err(NotResumed { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        let owner = lock(&record.owner);
        let Some(worker_channel) = owner.and_then(|owner| self.channel(owner)) else {
            return Err(NotResumed { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        match worker_channel.call(|reply| Command::Resume(disk, spec, reply)) {
            Ok(Ok(())) => {
                record.is_suspended.store(false, Ordering::Relaxed);
                Ok(())
            }
            Ok(Err(NotAdded { error, spec })) => {
                Err(NotResumed { error: PlaneError::File(error), spec: Some(spec) })
            }
            Err(error) => Err(NotResumed { error, spec: None }),
        }
    }
}

/// Resumes a disk after its suspension has timed out, when its store completes requests again.
fn resume_later(
    disk: DiskId,
    channel: Arc<WorkerChannel>,
    answer: Receiver<Result<DiskSpec, PlaneError>>,
) {
    let name = format!("late-disk-{}", disk.0);
    let waiting = std::thread::Builder::new().name(name).spawn(move || {
        let Ok(Ok(spec)) = answer.recv() else { return };
        match channel.call(|reply| Command::Resume(disk, spec, reply)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(?disk, ?error, "a disk stays suspended"),
            Err(error) => tracing::error!(?disk, %error, "a disk stays suspended"),
        }
    });
    if let Err(error) = waiting {
        tracing::error!(?disk, %error, "a disk that stalls stays suspended");
    }
}
