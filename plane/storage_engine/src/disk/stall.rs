//! Detection of disks on stalled stores.
//!
//! An operation that the device has not completed cannot be cancelled: its buffers belong to the
//! device until then. A stalled disk therefore keeps its queues and files until the operation
//! completes.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::engine::StorageEngine;
use crate::engine::notices::StorageNotice;

/// Time without a completion of an operation in flight after which a disk counts as stalled.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Interval of the check for stalled disks while operations are in flight.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time to wait for operations in flight when the engine of a worker is dropped.
const DROP_WAIT_MAX: Duration = Duration::from_secs(1);

impl StorageEngine {
    /// Returns, by disk, the submission time of its oldest operation in flight.
    fn oldest(&self) -> BTreeMap<usize, Time> {
        let moving = self.requests.numbers().filter_map(|number| self.requests.get(number));
        let moving = moving.filter(|request| request.remaining_parts > 0);
        let moving = moving.map(|request| (request.disk, request.submitted_at));
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
            if stalls != disk_state.stalled_for.is_some() {
                let reported = disk_state.stalled_for.unwrap_or(waited);
                self.notices.push(StorageNotice::DiskStall {
                    disk,
                    is_beginning: stalls,
                    stalled_for: reported,
                });
            }
            disk_state.stalled_for = stalls.then_some(waited);
        }
    }

    /// Returns the time of the next check for stalled disks; `None` if no operation is in flight
    /// and no disk is stalled.
    pub(crate) fn stalls_deadline(&self) -> Option<Time> {
        let is_due = self.io.in_flight() > 0
            || self.disks.numbers().any(|number| {
                self.disks.get(number).is_some_and(|disk| disk.stalled_for.is_some())
            });
        is_due.then(|| self.stalls_checked_at + CHECK_INTERVAL)
    }

    /// Returns how long a disk has been stalled as of the last check; `None` if it is not stalled.
    pub fn stall_duration(&self, disk: usize) -> Option<Duration> {
        self.disks.get(disk)?.stalled_for
    }
}

impl Drop for StorageEngine {
    fn drop(&mut self) {
        if self.io.in_flight() > 0 && !self.io.drain(DROP_WAIT_MAX) {
            // The kernel may still access the buffers of these requests.
            std::mem::forget(std::mem::take(&mut self.queues));
        }
    }
}
