//! Stores that do not answer: told of after a while, and not waited for for ever.
//!
//! An operation that a device has not answered cannot be taken back: its memory is the
//! device's until then. So a disk that stalls keeps its queues and files for as long as it
//! takes; whoever wants them goes on without them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use suimon_quantity::{DiskId, ProcessorId, Time};

use crate::command::Taken;
use crate::images;
use crate::notices::StorageNotice;
use crate::plane::{PlaneError, StoragePlane};
use crate::work::StorageWork;

/// A disk stalls when its store has not answered an operation for so long.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// How often it is looked which disks stall, where anything is under way.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often whoever waits for a disk asks whether it stalls.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How long operations that are under way when a processor ends are waited for.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

impl StorageWork {
    /// Since when the oldest operation of each disk has been under way.
    fn oldest(&self) -> BTreeMap<usize, Time> {
        let moving = self.requests.numbers().filter_map(|number| self.requests.get(number));
        let moving = moving.filter(|request| request.parts > 0);
        let moving = moving.map(|request| (request.disk, request.sent));
        let disks = self.disks.numbers().filter_map(|at| Some((at, self.disks.get(at)?)));
        let own = disks.flat_map(|(at, disk)| {
            [disk.metadata_asked, disk.step_asked]
                .into_iter()
                .flatten()
                .map(move |since| (at, since))
        });
        let mut oldest = BTreeMap::new();
        for (disk, since) in moving.chain(own) {
            let of = oldest.entry(disk).or_insert(since);
            *of = since.min(*of);
        }
        oldest
    }

    /// Tells of disks that stall, and of those that do so no more.
    pub(crate) fn look_for_stalls(&mut self) {
        if self.now < self.stalls_looked + LOOK_EVERY {
            return;
        }
        self.stalls_looked = self.now;
        let oldest = self.oldest();
        for disk in self.disks.numbers() {
            let Some(of) = self.disks.get_mut(disk) else { continue };
            let waited = oldest.get(&disk).map_or(Duration::ZERO, |since| self.now.since(*since));
            let stalls = waited >= STALLED_AFTER;
            if stalls != of.stalled.is_some() {
                let told = of.stalled.unwrap_or(waited);
                self.notices.push(StorageNotice::DiskStall { disk, stalls, waited: told });
            }
            of.stalled = stalls.then_some(waited);
        }
    }

    /// When stalls are to be looked for although nothing comes and nothing ends.
    pub(crate) fn stalls_deadline(&self) -> Option<Time> {
        let is_due = self.io.under_way() > 0
            || self
                .disks
                .numbers()
                .any(|at| self.disks.get(at).is_some_and(|of| of.stalled.is_some()));
        is_due.then(|| self.stalls_looked + LOOK_EVERY)
    }

    /// For how long a disk has stalled, when that was looked at last.
    pub(crate) fn stalled(&self, disk: usize) -> Option<Duration> {
        self.disks.get(disk)?.stalled
    }
}

impl Drop for StorageWork {
    fn drop(&mut self) {
        if self.io.under_way() > 0 && !self.io.drain(LAST_PATIENCE) {
            // The system may still use the memory of their requests.
            std::mem::forget(std::mem::take(&mut self.queues));
        }
    }
}

impl StoragePlane {
    /// Waits for what a processor answers of a disk, unless the disk stalls.
    pub(crate) fn wait_for_disk<T>(
        &self,
        disk: DiskId,
        answer: &Receiver<T>,
    ) -> Result<T, PlaneError> {
        loop {
            match answer.recv_timeout(ASK_EVERY) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(PlaneError::NoProcessor),
                Err(RecvTimeoutError::Timeout) => {
                    if self.is_stalled(disk) {
                        return Err(PlaneError::Stalled);
                    }
                }
            }
        }
    }

    /// Returns true if the store of a disk does not answer.
    pub(crate) fn is_stalled(&self, disk: DiskId) -> bool {
        self.disks().iter().any(|view| view.disk == disk && view.stalled.is_some())
    }

    /// Nobody waits any more for a disk that was to be taken from a processor: it is closed
    /// when its store answers, and its file is free then.
    pub(crate) fn close_later(
        &self,
        disk: DiskId,
        from: ProcessorId,
        answer: Receiver<Result<Taken, PlaneError>>,
    ) {
        let plane = self.clone();
        let name = format!("late-disk-{}", disk.0);
        let waiting = std::thread::Builder::new().name(name).spawn(move || {
            let Ok(Ok(taken)) = answer.recv() else { return };
            if let Some(place) = taken.place {
                plane.leave(place.store, from);
            }
            drop(taken.queues);
            if let Err(error) = images::close(taken.spec, "its own image") {
                tracing::warn!(?disk, %error, "a disk was not closed; it is as after a crash");
            }
        });
        if let Err(error) = waiting {
            tracing::warn!(?disk, %error, "a disk that stalls is left as after a crash");
        }
    }
}
