//! Disks that pause while something is done to their files.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use suimon_quantity::DiskId;

use crate::disk::{DiskSpec, NotAdded};
use crate::plane::{PlaneError, StoragePlane, Way, lock};
use crate::resident::Command;

/// A disk does not go on; it stays suspended.
pub struct NotResumed {
    /// Why.
    pub error: PlaneError,
    /// What it was to go on with, as far as that can be given back.
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
    /// Takes a disk's images and files, when what was taken from its queues is answered and
    /// everything is durable. Its queues stay, also those that come meanwhile: clients find
    /// a pause. Its own image, the first, is to be closed
    /// ([`Image::close`](suimon_image::Image::close)) before its file is opened again.
    ///
    /// # Errors
    /// It is not in service, or is suspended already; or not all of it could be made
    /// durable, and it goes on; or its store does not answer, and it goes on when that does.
    pub fn suspend_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        let record = self.record(disk)?;
        let owner = lock(&record.owner);
        let way = owner.and_then(|owner| self.way(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        if lock(&record.mirror).is_on() {
            return Err(PlaneError::Mirrored);
        }
        let (reply, answer) = channel();
        way.tell(Command::Suspend(disk, reply));
        let spec = match self.wait_for_disk(disk, &answer) {
            Ok(spec) => spec?,
            Err(error) => {
                resume_later(disk, way, answer);
                return Err(error);
            }
        };
        record.is_suspended.store(true, Ordering::Relaxed);
        Ok(spec)
    }

    /// Goes on with a suspended disk, which may have become larger or have other images.
    /// Requests are held to its new size by whoever offers it, who is told afterwards.
    ///
    /// # Errors
    /// It is not suspended, or the files cannot be used. Then it stays suspended: it may be
    /// tried again, or the disk be taken out of service.
    pub fn resume_disk(&self, disk: DiskId, spec: DiskSpec) -> Result<(), NotResumed> {
        let Ok(record) = self.record(disk) else {
            return Err(NotResumed { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        let owner = lock(&record.owner);
        let Some(way) = owner.and_then(|owner| self.way(owner)) else {
            return Err(NotResumed { error: PlaneError::NoSuchDisk, spec: Some(spec) });
        };
        match way.ask(|reply| Command::Resume(disk, spec, reply)) {
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

/// Nobody waits any more for a disk that was to be suspended: it goes on when its store
/// answers.
fn resume_later(disk: DiskId, way: Arc<Way>, answer: Receiver<Result<DiskSpec, PlaneError>>) {
    let name = format!("late-disk-{}", disk.0);
    let waiting = std::thread::Builder::new().name(name).spawn(move || {
        let Ok(Ok(spec)) = answer.recv() else { return };
        match way.ask(|reply| Command::Resume(disk, spec, reply)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(?disk, ?error, "a disk stays suspended"),
            Err(error) => tracing::error!(?disk, %error, "a disk stays suspended"),
        }
    });
    if let Err(error) = waiting {
        tracing::error!(?disk, %error, "a disk that stalls stays suspended");
    }
}
