//! Detection of stalled stores, and bounds on the time that callers wait for them.
//!
//! An operation that the device has not completed cannot be cancelled: its buffers belong to the
//! device until then. A stalled disk therefore keeps its queues and files until the operation
//! completes. Callers do not wait for that.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use suimon_quantity::{DiskId, Time, WorkerId};

use crate::command::DetachedDisk;
use crate::engine::StorageEngine;
use crate::notices::StorageNotice;
use crate::plane::StoragePlane;
use crate::plane_error::PlaneError;
use crate::plane_images::close_images;

/// Time without a completion of an operation in flight after which a disk counts as stalled.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Interval of the check for stalled disks while operations are in flight.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which a caller that waits for a disk checks whether the disk is stalled.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Longest time to wait for operations in flight when a worker ends.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

impl StorageEngine {
    /// Returns the start of the oldest operation in flight of each disk.
    fn oldest(&self) -> BTreeMap<usize, Time> {
        let active_requests =
            self.requests.numbers().filter_map(|number| self.requests.get(number));
        let active_requests = active_requests.filter(|request| request.parts > 0);
        let active_requests = active_requests.map(|request| (request.disk, request.sent));
        let disks = self
            .disks
            .numbers()
            .filter_map(|disk_number| Some((disk_number, self.disks.get(disk_number)?)));
        let internal = disks.flat_map(|(disk_number, disk)| {
            [disk.metadata_submitted_at, disk.step_submitted_at, disk.zeroing_submitted_at]
                .into_iter()
                .flatten()
                .map(move |since| (disk_number, since))
        });
        let mut oldest = BTreeMap::new();
        for (disk, since) in active_requests.chain(internal) {
            let oldest_time = oldest.entry(disk).or_insert(since);
            *oldest_time = since.min(*oldest_time);
        }
        oldest
    }

    /// Emits notices about the begin and end of stalls.
    pub(crate) fn look_for_stalls(&mut self) {
        if self.now < self.stalls_looked + CHECK_INTERVAL {
            return;
        }
        self.stalls_looked = self.now;
        let oldest = self.oldest();
        for disk in self.disks.numbers() {
            let Some(disk_state) = self.disks.get_mut(disk) else { continue };
            let stalled_for =
                oldest.get(&disk).map_or(Duration::ZERO, |since| self.now.since(*since));
            let stalls = stalled_for >= STALLED_AFTER;
            if stalls != disk_state.stalled.is_some() {
                let stalled_for = disk_state.stalled.unwrap_or(stalled_for);
                self.notices.push(StorageNotice::DiskStall { disk, stalls, waited: stalled_for });
            }
            disk_state.stalled = stalls.then_some(stalled_for);
        }
    }

    /// Returns the time of the next check for stalled disks.
    pub(crate) fn stalls_deadline(&self) -> Option<Time> {
        let is_due = self.io.in_flight() > 0
            || self.disks.numbers().any(|disk_number| {
                self.disks.get(disk_number).is_some_and(|disk_state| disk_state.stalled.is_some())
            });
        is_due.then(|| self.stalls_looked + CHECK_INTERVAL)
    }

    /// Returns how long a disk has stalled according to the last check.
    pub(crate) fn stalled(&self, disk: usize) -> Option<Duration> {
        self.disks.get(disk)?.stalled
    }
}

impl Drop for StorageEngine {
    fn drop(&mut self) {
        if self.io.in_flight() > 0 && !self.io.drain(LAST_PATIENCE) {
            // The kernel may still access the buffers of these requests.
            std::mem::forget(std::mem::take(&mut self.queues));
        }
    }
}

impl StoragePlane {
    /// Blocks until a worker replies to a command for a disk, unless the disk stalls.
    pub(crate) fn wait_for_disk<T>(
        &self,
        disk: DiskId,
        answer: &Receiver<T>,
    ) -> Result<T, PlaneError> {
        loop {
            match answer.recv_timeout(ASK_EVERY) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(PlaneError::NoWorker),
                Err(RecvTimeoutError::Timeout) => {
                    if self.is_stalled(disk) {
                        return Err(PlaneError::Stalled);
                    }
                }
            }
        }
    }

    /// Returns true if a disk is stalled.
    pub(crate) fn is_stalled(&self, disk: DiskId) -> bool {
        self.disks().iter().any(|view| view.disk == disk && view.stalled.is_some())
    }

    /// Closes a disk after its removal from a worker has timed out, when its store completes
    /// requests. Its file is released then.
    pub(crate) fn close_later(
        &self,
        disk: DiskId,
        worker: WorkerId,
        answer: Receiver<Result<DetachedDisk, PlaneError>>,
    ) {
        let plane = self.clone();
        let name = format!("late-disk-{}", disk.0);
        let waiting = std::thread::Builder::new().name(name).spawn(move || {
            let Ok(Ok(detached)) = answer.recv() else { return };
            if let Some(location) = detached.index {
                plane.leave(location.store, worker);
            }
            drop(detached.queues);
            close_images(disk, detached.spec);
        });
        if let Err(error) = waiting {
            tracing::warn!(?disk, %error, "the state of a stalled disk is as after a crash");
        }
    }
}
