//! Suspension of disks while an operation uses their files.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use suimon_image_files::LayerStack;
use suimon_quantity::{DiskId, WorkerId};
use suimon_storage_engine::RejectedDisk;

use crate::command::channel::WorkerChannel;
use crate::command::reply::{LateReply, PassResult};
use crate::command::revocable_value::RevocableValue;
use crate::command::{Command, SuspendCondition};
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::image_closing::close_images;
use crate::plane::{StoragePlane, lock};

/// Disk that could not be resumed and remains suspended.
pub struct ResumeDiskError {
    /// Error that prevented the resumption.
    pub error: PlaneError,
    /// Images that the disk was to use; `None` if its worker has them.
    pub spec: Option<LayerStack>,
}

impl fmt::Debug for ResumeDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for ResumeDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StoragePlane {
    /// Suspends a disk: releases its images and files when the requests taken from its queues have
    /// completed and all changes are durable. Its queues remain, and new ones can be added; clients
    /// see a pause. The caller must close the disk's own image, the first one
    /// ([`Image::close`](suimon_image::Image::close)), before opening its file again.
    ///
    /// # Errors
    /// The disk is not in service, suspended already, or being copied. Its changes could not be
    /// committed: it remains in service. Its store does not complete requests: it is resumed when
    /// the store does. Its worker does not respond: it remains in service, or is resumed when the
    /// worker proceeds.
    pub fn suspend_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        self.suspend(disk, SuspendCondition::OnlyIfDurable)
    }

    /// Suspends a disk like [`StoragePlane::suspend_disk`], in order to open its images again. If a
    /// flush of the disk has failed, its files are released without a commit;
    /// [`close`](suimon_image_files::close) then writes nothing to them.
    ///
    /// # Errors
    /// As [`StoragePlane::suspend_disk`].
    pub fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        self.suspend(disk, SuspendCondition::EvenIfFlushFailed)
    }

    fn suspend(
        &self,
        disk: DiskId,
        suspension: SuspendCondition,
    ) -> Result<LayerStack, PlaneError> {
        let record = self.disk_record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.worker_channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        if lock(&record.mirror).is_active() {
            return Err(PlaneError::MirrorInProgress);
        }
        if worker_channel.is_blocked(self.0.wait_limits.command_wait_max) {
            return Err(PlaneError::NoResponse(worker_channel.id));
        }
        let (reply, answer) = channel();
        let offer = RevocableValue::new(reply);
        worker_channel.send(Command::Suspend(disk, suspension, offer.clone()));
        let spec = match self.wait_for_disk_reply(disk, &worker_channel, &answer) {
            Ok(spec) => spec?,
            Err(error) => {
                // If the worker has not begun to suspend the disk, it will not do so later.
                if offer.take().is_none() {
                    resume_later(disk, worker_channel, answer);
                }
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
    /// The disk is not suspended, the files cannot be used, or the worker does not respond. The
    /// disk then remains suspended; the caller may retry, or take it out of service. If the worker
    /// has received the images, it resumes the disk when it proceeds.
    pub fn resume_disk(&self, disk: DiskId, spec: LayerStack) -> Result<(), ResumeDiskError> {
        let Ok(record) = self.disk_record(disk) else {
            return Err(ResumeDiskError { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        let owner = lock(&record.owner);
        let Some(worker_channel) = owner.and_then(|owner| self.worker_channel(owner)) else {
            return Err(ResumeDiskError { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        match self
            .pass_value(&worker_channel, spec, |spec, reply| Command::Resume(disk, spec, reply))
        {
            PassResult::Replied(Ok(())) => {
                record.is_suspended.store(false, Ordering::Relaxed);
                Ok(())
            }
            PassResult::Replied(Err(RejectedDisk { error, spec })) => {
                Err(ResumeDiskError { error: PlaneError::FileRefused(error), spec: Some(spec) })
            }
            PassResult::Returned(error, spec) => Err(ResumeDiskError { error, spec: Some(spec) }),
            PassResult::Late(error, late_reply) => {
                follow_resumption(disk, (Arc::clone(&record), worker_channel.id), late_reply);
                Err(ResumeDiskError { error, spec: None })
            }
        }
    }
}

/// Waits on a thread until a worker has suspended a disk after the caller's time limit, and then
/// resumes the disk.
fn resume_later(
    disk: DiskId,
    worker_channel: Arc<WorkerChannel>,
    answer: Receiver<Result<LayerStack, PlaneError>>,
) {
    let name = format!("late-disk-{}", disk.0);
    let waiting = std::thread::Builder::new().name(name).spawn(move || {
        let Ok(Ok(spec)) = answer.recv() else { return };
        let (reply, resumed) = channel();
        worker_channel.send(Command::Resume(disk, RevocableValue::new(spec), reply));
        match resumed.recv() {
            Ok(Ok(())) => {}
            Ok(Err(RejectedDisk { error, spec })) => {
                tracing::error!(?disk, %error, "a disk stays suspended");
                close_images(disk, spec);
            }
            Err(_) => tracing::error!(?disk, "a disk stays suspended; its worker has ended"),
        }
    });
    if let Err(error) = waiting {
        tracing::error!(?disk, %error, "a disk that stalls stays suspended");
    }
}

/// Waits on a thread for the reply of a worker that has received a disk's images and has not
/// replied in time. Images that the worker does not use are closed.
fn follow_resumption(
    disk: DiskId,
    (record, worker): (Arc<DiskRecord>, WorkerId),
    late_reply: LateReply<LayerStack, Result<(), RejectedDisk>>,
) {
    let name = format!("late-disk-{}", disk.0);
    let waiting = std::thread::Builder::new().name(name).spawn(move || match late_reply.wait() {
        Ok(Ok(())) => {
            let owner = lock(&record.owner);
            if *owner == Some(worker) {
                record.is_suspended.store(false, Ordering::Relaxed);
            }
        }
        Ok(Err(RejectedDisk { spec, .. })) | Err(Some(spec)) => close_images(disk, spec),
        Err(None) => {}
    });
    if let Err(error) = waiting {
        tracing::error!(?disk, %error, "a disk that is resumed late counts as suspended");
    }
}
