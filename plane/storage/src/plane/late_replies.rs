//! Handling of late replies to disks passed to workers, and closing of images. Each runs on a
//! thread of its own, which holds no lock while it waits: the worker or the store of the disk may
//! be blocked.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;

use suimon_quantity::{DiskId, StoreId, WorkerId};

use crate::command::reply::LateReply;
use crate::command::revocable_value::RevocableValue;
use crate::command::{Command, DetachedDisk, WorkerAddDiskError};
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::image_closing::close_images;
use crate::plane::notices::PlaneNotice;
use crate::plane::{StoragePlane, lock};

/// Late reply of a worker to a disk that was passed to it.
pub(crate) type LateDiskReply = LateReply<Box<DetachedDisk>, Result<(), WorkerAddDiskError>>;

/// Executes `run` on a new thread for a disk. Returns false, with `run` dropped, if no thread can
/// be created.
fn in_thread(disk: DiskId, run: impl FnOnce() + Send + 'static) -> bool {
    let started = Builder::new().name(format!("late-disk-{}", disk.0)).spawn(run);
    if let Err(error) = &started {
        tracing::warn!(?disk, %error, "the state of a disk is as after a crash");
    }
    started.is_ok()
}

/// Drops the queues of a disk that is out of service, and closes its images.
fn close(disk: DiskId, detached: DetachedDisk) {
    let DetachedDisk { spec, queues, .. } = detached;
    drop(queues);
    close_images(disk, spec);
}

/// Closes a disk that is out of service on a thread. The returned channel disconnects when the disk
/// is closed.
pub(crate) fn close_in_thread(disk: DiskId, detached: DetachedDisk) -> Receiver<()> {
    let (closing, closed) = channel::<()>();
    in_thread(disk, move || {
        close(disk, detached);
        drop(closing);
    });
    closed
}

/// Returns the error and the disk if a worker has not added a disk; `None` if it was added.
fn refused(reply: Result<Result<(), WorkerAddDiskError>, Option<Box<DetachedDisk>>>) -> Refusal {
    match reply {
        Ok(Ok(())) => None,
        Ok(Err(WorkerAddDiskError { error, detached })) => {
            Some((PlaneError::FileRefused(error), detached))
        }
        Err(detached) => Some((PlaneError::NoWorker, detached)),
    }
}

/// Reason why a worker has not added a disk, with the disk if it was returned; `None` if the disk
/// was added.
type Refusal = Option<(PlaneError, Option<Box<DetachedDisk>>)>;

impl StoragePlane {
    /// Waits on a thread for the reply of a worker that has taken a disk, or will take it. If the
    /// worker does not add the disk, the disk is taken out of service, closed and reported as lost.
    pub(crate) fn handle_late_reply(
        &self,
        disk: DiskId,
        (record, worker): (Arc<DiskRecord>, WorkerId),
        late_disk: LateDiskReply,
    ) {
        let plane = self.clone();
        in_thread(disk, move || {
            let Some((error, detached)) = refused(late_disk.wait()) else { return };
            let is_owner = {
                let mut owner = lock(&record.owner);
                // Another operation may have taken the disk out of service meanwhile.
                let is_owner = *owner == Some(worker);
                if is_owner {
                    *owner = None;
                    plane.remove_record(disk, &record);
                }
                is_owner
            };
            plane.leave_store_if_any(record.store, worker);
            if let Some(detached) = detached {
                close(disk, *detached);
            }
            if is_owner {
                plane.emit_lost(disk, &error);
            }
        });
    }

    /// Removes and closes a disk that was passed to a worker which has not replied yet, when the
    /// worker replies. Waits on a thread.
    pub(crate) fn close_after_late_reply(
        &self,
        disk: DiskId,
        (store, worker): (Option<StoreId>, WorkerId),
        late_disk: LateDiskReply,
    ) {
        let (reply, answer) = channel();
        if let Some(worker_channel) = self.worker_channel(worker) {
            // The worker executes this command after the one that adds the disk.
            worker_channel.send(Command::DetachDisk(disk, RevocableValue::new(reply)));
        }
        let plane = self.clone();
        in_thread(disk, move || {
            let detached = match refused(late_disk.wait()) {
                None => answer.recv().ok().and_then(Result::ok),
                Some((_, detached)) => detached.map(|detached| *detached),
            };
            plane.leave_store_if_any(store, worker);
            if let Some(detached) = detached {
                close(disk, detached);
            }
        });
    }

    /// Closes a disk when the worker that was requested to remove it has sent it. Waits on a
    /// thread.
    pub(crate) fn close_when_detached(
        &self,
        disk: DiskId,
        worker: WorkerId,
        answer: Receiver<Result<DetachedDisk, PlaneError>>,
    ) {
        let plane = self.clone();
        in_thread(disk, move || {
            let Ok(Ok(detached)) = answer.recv() else { return };
            plane.leave_store_if_any(detached.store_slot.map(|location| location.store), worker);
            close(disk, detached);
        });
    }

    pub(crate) fn emit_lost(&self, disk: DiskId, reason: &PlaneError) {
        self.0.notices.emit(PlaneNotice::DiskLost { disk, reason: reason.to_string() });
    }
}
