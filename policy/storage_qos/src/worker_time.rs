//! Request time at a worker that borrows from a store's budget.
//!
//! The worker itself accounts for the time of its requests: it dispatches requests by loans before
//! they are reported to the budget, and the budget cannot distinguish unused loans from requests in
//! flight.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::phase::Phases;
use crate::{DiskSlot, DiskUnscheduledTime, RequestPhase, RequestTime};

/// Maximum interval between reports of request time while the worker has requests.
pub(crate) const REPORT_INTERVAL_MAX: Duration = Duration::from_millis(100);

/// Minimum interval between reports with the times of all disks: half of the busy time that the
/// budget carries over between the disks of a policy.
pub(crate) const ALL_DISKS_INTERVAL_MIN: Duration = Duration::from_millis(5);

/// Request time of one disk at a worker since the worker's previous report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTime {
    /// Disk that the time belongs to.
    pub disk: DiskSlot,
    /// Busy time, time in flight by phase, and time in which the kernel did not run the worker.
    pub time: RequestTime,
    /// Change of the number of requests in flight since the previous report.
    pub in_flight_change: i32,
}

/// Queued and in-flight requests of a disk at a worker, and their time that has not been reported
/// yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LocalRequests {
    pub(crate) in_flight: u32,
    phases: Phases,
    /// Time up to which request time is accounted for.
    accounted: Time,
    time: RequestTime,
    reported_in_flight: u32,
    /// True if the borrower's list of changed disks contains the disk.
    has_changed: bool,
    /// True if the borrower's list of busy disks contains the disk.
    is_busy: bool,
}

impl LocalRequests {
    /// Accounts for the time up to `now`. Must be called before a request changes its state.
    /// `waiting` is the number of queued requests. Returns true if the caller must add the disk to
    /// the list of disks that changed since the previous report.
    #[inline]
    pub(crate) fn account(&mut self, now: Time, waiting: u32) -> bool {
        self.add_time(now, waiting);
        !core::mem::replace(&mut self.has_changed, true)
    }

    #[inline]
    fn add_time(&mut self, now: Time, waiting: u32) {
        let ns = now.ns_since(core::mem::replace(&mut self.accounted, now));
        if self.in_flight | waiting > 0 {
            self.time.add(ns, self.in_flight);
            if !self.phases.is_empty() {
                self.time.add_phases(ns, &self.phases);
            }
        }
    }

    /// Subtracts a request that has completed from those in flight.
    pub(crate) fn complete(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            self.phases = Phases::default();
        }
    }

    /// Moves one request from phase `from` to phase `to`.
    pub(crate) fn change_phase(&mut self, from: RequestPhase, to: RequestPhase) {
        self.phases.change(from, to);
    }

    /// Adds time in which the worker was runnable but the kernel did not run it.
    pub(crate) fn add_unscheduled_time(&mut self, unscheduled: DiskUnscheduledTime) {
        self.time.add_unscheduled_time(unscheduled);
    }

    /// Takes over requests in flight for which the scheduler has accounted up to `now`.
    pub(crate) fn adopt_in_flight(&mut self, now: Time, in_flight: u32, phases: Phases) {
        (self.in_flight, self.reported_in_flight) = (in_flight, in_flight);
        (self.phases, self.accounted, self.time) = (phases, now, RequestTime::default());
    }

    /// Returns the phases of the requests in flight.
    pub(crate) const fn phases(&self) -> Phases {
        self.phases
    }

    /// Returns and resets the disk's unreported time up to `now`. `waiting` is the number of queued
    /// requests. Returns `None` if nothing changed since the previous report.
    pub(crate) fn take_report(
        &mut self,
        now: Time,
        disk: DiskSlot,
        waiting: u32,
    ) -> Option<WorkerTime> {
        self.add_time(now, waiting);
        self.has_changed = false;
        let time = core::mem::take(&mut self.time);
        let before = core::mem::replace(&mut self.reported_in_flight, self.in_flight);
        let change = i64::from(self.in_flight) - i64::from(before);
        if time == RequestTime::default() && change == 0 {
            return None;
        }
        let in_flight_change = i32::try_from(change).unwrap_or_default();
        Some(WorkerTime { disk, time, in_flight_change })
    }

    /// Returns true if the caller must add the disk to the list of disks with requests: the disk
    /// has requests and is not in the list yet. `waiting` is the number of queued requests.
    pub(crate) fn mark_busy(&mut self, waiting: u32) -> bool {
        let has_requests = self.in_flight | waiting > 0;
        has_requests && !core::mem::replace(&mut self.is_busy, true)
    }

    /// Returns true if the disk must remain in the list of disks with requests.
    pub(crate) fn update_busy(&mut self, waiting: u32) -> bool {
        self.is_busy = self.in_flight | waiting > 0;
        self.is_busy
    }
}
