//! Detection of stalled stores, and bounds on the time that callers wait for them.
//!
//! An operation that the device has not completed cannot be cancelled: its buffers belong to the
//! device until then. A stalled disk therefore keeps its queues and files until the operation
//! completes. Callers do not wait for that.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use suimon_quantity::{DiskId, Time};

use crate::engine::StorageEngine;
use crate::notices::StorageNotice;
use crate::plane::StoragePlane;
use crate::plane_error::PlaneError;
use crate::worker_channel::WorkerChannel;

/// Time without a completion of an operation in flight after which a disk counts as stalled.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Interval of the check for stalled disks while operations are in flight.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which a caller that waits for a worker's reply checks whether the disk is stalled.
pub(crate) const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum time to wait for operations in flight when the engine of a worker is dropped.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

impl StorageEngine {
    /// Returns, by disk, the submission time of its oldest operation in flight.
    fn oldest(&self) -> BTreeMap<usize, Time> {
        let moving = self.requests.numbers().filter_map(|number| self.requests.get(number));
        let moving = moving.filter(|request| request.parts > 0);
        let moving = moving.map(|request| (request.disk, request.sent));
        let disks =
            self.disks.numbers().filter_map(|number| Some((number, self.disks.get(number)?)));
        let disk_operations = disks.flat_map(|(number, disk)| {
            [disk.metadata_submitted_at, disk.step_submitted_at, disk.zeroing_submitted_at]
                .into_iter()
                .flatten()
                .map(move |since| (number, since))
        });
        let mut oldest = BTreeMap::new();
        for (disk, since) in moving.chain(disk_operations) {
            let oldest_start = oldest.entry(disk).or_insert(since);
            *oldest_start = since.min(*oldest_start);
        }
        oldest
    }

    /// Checks all disks for stalls if a check is due, and emits notices about the beginning and end
    /// of stalls.
    pub(crate) fn check_for_stalls(&mut self) {
        if self.now < self.stalls_checked_at + CHECK_INTERVAL {
            return;
        }
        self.stalls_checked_at = self.now;
        let oldest = self.oldest();
        for disk in self.disks.numbers() {
            let Some(disk_state) = self.disks.get_mut(disk) else { continue };
            let waited = oldest.get(&disk).map_or(Duration::ZERO, |since| self.now.since(*since));
            let stalls = waited >= STALLED_AFTER;
            if stalls != disk_state.stalled.is_some() {
                let reported = disk_state.stalled.unwrap_or(waited);
                self.notices.push(StorageNotice::DiskStall { disk, stalls, waited: reported });
            }
            disk_state.stalled = stalls.then_some(waited);
        }
    }

    /// Returns the time of the next check for stalled disks; `None` if no operation is in flight
    /// and no disk is stalled.
    pub(crate) fn stalls_deadline(&self) -> Option<Time> {
        let is_due = self.io.in_flight() > 0
            || self
                .disks
                .numbers()
                .any(|number| self.disks.get(number).is_some_and(|disk| disk.stalled.is_some()));
        is_due.then(|| self.stalls_checked_at + CHECK_INTERVAL)
    }

    /// Returns how long a disk has been stalled as of the last check; `None` if it is not stalled.
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
    /// Blocks until a worker replies to a command for a disk. Fails if the disk is stalled, or if
    /// the worker does not respond in time or has ended.
    pub(crate) fn wait_for_disk<T>(
        &self,
        disk: DiskId,
        worker: &Arc<WorkerChannel>,
        answer: &Receiver<T>,
    ) -> Result<T, PlaneError> {
        let waits = &self.0.waits;
        let mut responded = Instant::now();
        loop {
            let late_for = |since: Instant| worker.late_for().max(since.elapsed());
            let limit = match worker.is_late() {
                true => waits.command.saturating_sub(late_for(responded)).min(STALL_CHECK_INTERVAL),
                false => STALL_CHECK_INTERVAL,
            };
            let mut probe = None;
            match waits.receive_or(answer, limit, || probe = Some(self.probe())) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(PlaneError::NoWorker),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(probe) = probe {
                probe.end(None);
            }
            if self.is_stalled(disk) {
                return Err(PlaneError::Stalled);
            }
            if !worker.is_late() {
                // The caller may hold the sender of `answer`, so that it is not disconnected.
                if worker.has_ended() {
                    return Err(PlaneError::NoWorker);
                }
                responded = Instant::now();
            } else if late_for(responded) >= waits.command {
                return Err(PlaneError::NoResponse(worker.id));
            }
        }
    }

    /// Returns true if the last known state of a disk is stalled.
    pub(crate) fn is_stalled(&self, disk: DiskId) -> bool {
        self.disks().iter().any(|view| view.disk == disk && view.stalled.is_some())
    }
}
