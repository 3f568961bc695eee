//! A worker's part of the scheduling of a store that several workers use: it dispatches requests
//! that the store's budget grants.

mod late_grant;
mod sharing;

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::queued_requests::{Fifo, QueuedRequests, RequestCharge};
use crate::worker_time::{ALL_DISKS_INTERVAL_MIN, LocalRequests, REPORT_INTERVAL_MAX};
use crate::{
    Completion, DISKS_MAX, DiskSlot, DiskUnscheduledTime, GrantKind, NextAction, Normalization,
    RequestPhase, RequestedGrant, ReturnedGrant, SubmitError, SubmitOutcome, WorkerGrant,
    WorkerReport,
};

/// Time after which the worker returns an unused loan to the budget.
pub const LOAN_IDLE_MAX: Duration = Duration::from_millis(1);
/// Time for which a grant is valid after the budget has decided it. A worker that was blocked for
/// longer declines it, see [`Borrower::handle_late_grant`]: the requests would otherwise be
/// dispatched together with those that the maximums permit at that time.
pub const GRANT_AGE_MAX: Duration = crate::CATCH_UP_WINDOW;
/// Maximum number of loans (requests granted in advance) of one disk.
const AHEAD_MAX: u32 = 16;

/// Queued requests of one disk at this worker, and the grants for them.
#[derive(Clone, Debug, Default)]
struct Queue {
    fifo: Fifo,
    waiting: u32,
    /// Number of queued requests that may be dispatched.
    granted: u32,
    /// Number of loans: future requests that the budget has already charged, each for up to
    /// `ahead_bytes` bytes.
    loans: u32,
    ahead_bytes: u32,
    /// Number of requested loans that the budget has neither granted nor refused yet.
    loans_requested: u32,
    ahead_since: Time,
    /// Target number of loans. Each request without an available loan raises the target. Loans
    /// returned unused lower it.
    loan_target: u32,
    /// True if a request arrived since the last request for loans.
    is_used: bool,
    last_bytes: u32,
    is_listed: bool,
    local: LocalRequests,
}

impl Queue {
    /// Accounts for request time up to `now`. Appends `disk` to `changed`, the disks that changed
    /// since the previous report, if it is not in it.
    #[inline]
    fn account(&mut self, now: Time, disk: DiskSlot, changed: &mut Vec<u32>) {
        if self.local.account(now, self.waiting) {
            changed.push(disk.0);
        }
    }
}

/// Requests of one worker for a store, and the grants of the store's budget for them.
///
/// The worker dispatches only requests that the budget has granted. A loan is a grant for a future
/// request; the worker uses it for a request or returns it after at most [`LOAN_IDLE_MAX`]. Over
/// any time window, the requests that all workers dispatch for a disk therefore exceed those of a
/// single scheduler by no more than its maximum permits in that time plus the latency of a message.
///
/// If workers are blocked meanwhile, the excess is larger by no more than what the maximum permits
/// in [`GRANT_AGE_MAX`], for grants that are fetched late; one request of each disk of the flow;
/// and what the maximum permits in its catch-up time, for each worker that returns: refunds of
/// grants that it declines may concern a time that has passed.
#[derive(Clone, Debug)]
pub struct Borrower {
    normalization: Normalization,
    queues: Vec<Queue>,
    records: QueuedRequests,
    /// Disks with granted requests that were not dispatched yet.
    ready: VecDeque<u32>,
    /// Disks that have or need loans, which must be checked at the next deadline.
    watched: Vec<u32>,
    /// Disks with requests that changed since the previous report. Each report contains the times
    /// of these disks.
    changed: Vec<u32>,
    /// Disks that had requests at the last report about them. Reports at intervals of at least
    /// [`ALL_DISKS_INTERVAL_MIN`] contain the times of these disks, so that the cost of other
    /// reports does not depend on the number of disks.
    busy: Vec<u32>,
    /// Time of the last report that contained the times of all disks.
    times_reported: Time,
    report: WorkerReport,
    /// True if the worker returns its loans and requests no further ones.
    is_settling: bool,
}

impl Borrower {
    /// Creates a borrower without disks, with memory for `waiting_max` queued requests of this
    /// worker.
    pub fn new(normalization: Normalization, waiting_max: u32) -> Self {
        Self {
            normalization,
            queues: Vec::new(),
            records: QueuedRequests::new(waiting_max),
            ready: VecDeque::new(),
            watched: Vec::new(),
            changed: Vec::new(),
            busy: Vec::new(),
            times_reported: Time::ZERO,
            report: WorkerReport::default(),
            is_settling: false,
        }
    }

    /// Enables or disables settling. A settling worker returns its loans and requests no further
    /// ones. Must be enabled before the worker becomes the only user of the store, or leaves the
    /// store.
    pub const fn set_draining(&mut self, is_settling: bool) {
        self.is_settling = is_settling;
    }

    /// Returns true if the worker has reported everything and has no grants other than those of
    /// requests in the device.
    pub fn is_drained(&self) -> bool {
        let is_free =
            |queue: &Queue| queue.granted == 0 && queue.loans == 0 && queue.loans_requested == 0;
        self.report.is_empty() && self.queues.iter().all(is_free)
    }

    /// Returns the number of queued requests of a disk on this worker.
    pub fn queued_count(&self, disk: DiskSlot) -> u32 {
        self.queues.get(disk.0 as usize).map_or(0, |queue| queue.waiting)
    }

    /// Adds a disk to this worker. Allocates memory.
    pub fn add(&mut self, disk: DiskSlot) {
        let index = disk.0 as usize;
        if index < DISKS_MAX && self.queues.len() <= index {
            self.queues.resize_with(index + 1, Queue::default);
            self.ready.reserve(index + 1);
            self.watched.reserve(index + 1);
            self.changed.reserve(index + 1);
            self.busy.reserve(index + 1);
        }
    }

    /// Queues a request of `bytes` bytes. If a loan covers it, the caller must dispatch it at once
    /// instead ([`SubmitOutcome::Dispatch`]).
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the disk is not known or the queue is full.
    pub fn submit(
        &mut self,
        now: Time,
        disk: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<SubmitOutcome, SubmitError> {
        let queue = self.queues.get_mut(disk.0 as usize).ok_or(SubmitError::NoDisk(disk))?;
        let units = RequestCharge { cost: self.normalization.cost(bytes), bytes };
        queue.account(now, disk, &mut self.changed);
        queue.last_bytes = bytes;
        if queue.waiting == 0 && queue.loans > 0 && bytes <= queue.ahead_bytes {
            queue.loans -= 1;
            queue.ahead_since = now;
            let cost = self.normalization.cost(queue.ahead_bytes) - units.cost;
            let bytes = queue.ahead_bytes - bytes;
            if bytes > 0 {
                self.report.returned_grants.push(ReturnedGrant { disk, requests: 0, cost, bytes });
            }
            queue.is_used = true;
            queue.local.in_flight += 1;
            return Ok(SubmitOutcome::Dispatch);
        }
        if !self.records.has_room() {
            return Err(SubmitError::Full);
        }
        self.records.push(&mut queue.fifo, tag, units);
        queue.waiting += 1;
        queue.is_used = true;
        queue.loan_target = (queue.loan_target + 1).min(AHEAD_MAX);
        if !queue.is_listed {
            queue.is_listed = true;
            self.watched.push(disk.0);
        }
        self.report.queued_requests.push(RequestedGrant { disk, bytes });
        Ok(SubmitOutcome::Queued)
    }

    /// Returns the next action: dispatch a request or idle. It never returns
    /// [`NextAction::WaitUntil`]; see [`Borrower::next_deadline`].
    pub fn poll(&mut self, now: Time) -> NextAction {
        while let Some(slot) = self.ready.front().copied() {
            let queue = self.queues.get_mut(slot as usize).filter(|queue| queue.granted > 0);
            let next = queue.and_then(|queue| {
                let record = self.records.pop(&mut queue.fifo)?;
                queue.account(now, DiskSlot(slot), &mut self.changed);
                queue.granted -= 1;
                queue.waiting -= 1;
                queue.local.in_flight += 1;
                Some(record)
            });
            match next {
                Some(record) => {
                    return NextAction::Dispatch { disk: DiskSlot(slot), tag: record.tag };
                }
                None => self.ready.pop_front(),
            };
        }
        NextAction::Idle
    }

    /// Accounts for the completion of a dispatched request.
    pub fn handle_completion(&mut self, now: Time, completion: Completion) {
        if let Some(queue) = self.queues.get_mut(completion.disk.0 as usize) {
            queue.account(now, completion.disk, &mut self.changed);
            queue.local.complete();
        }
        self.report.completions.push(completion);
    }

    /// Accounts for a dispatched request that ended without being executed. See
    /// [`crate::StoreScheduler::handle_not_executed`].
    pub fn handle_not_executed(&mut self, now: Time, disk: DiskSlot, bytes: u32) {
        if let Some(queue) = self.queues.get_mut(disk.0 as usize) {
            queue.account(now, disk, &mut self.changed);
            queue.local.complete();
        }
        let cost = self.normalization.cost(bytes);
        self.report.returned_grants.push(ReturnedGrant { disk, requests: 1, cost, bytes });
    }

    /// Moves one request in flight from phase `from` to phase `to`. See
    /// [`crate::StoreScheduler::handle_phase_change`].
    pub fn handle_phase_change(
        &mut self,
        now: Time,
        disk: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        queue.account(now, disk, &mut self.changed);
        queue.local.change_phase(from, to);
    }

    /// Adds time in which the disk's worker was runnable but the kernel did not run it.
    pub fn handle_unscheduled_time(&mut self, now: Time, unscheduled: DiskUnscheduledTime) {
        let Some(queue) = self.queues.get_mut(unscheduled.disk.0 as usize) else { return };
        queue.account(now, unscheduled.disk, &mut self.changed);
        queue.local.add_unscheduled_time(unscheduled);
    }

    /// Applies a grant or refusal of the budget.
    pub fn handle_grant(&mut self, now: Time, grant: WorkerGrant) {
        let Some(queue) = self.queues.get_mut(grant.disk.0 as usize) else { return };
        match grant.kind {
            GrantKind::QueuedRequests(requests) => {
                // Surplus grants were intended for requests that have been withdrawn meanwhile.
                let used = requests.min(queue.waiting.saturating_sub(queue.granted));
                let requests = requests.saturating_sub(used);
                if requests > 0 {
                    let returned = ReturnedGrant { disk: grant.disk, requests, cost: 0, bytes: 0 };
                    self.report.returned_grants.push(returned);
                }
                if queue.granted == 0 && used > 0 {
                    self.ready.push_back(grant.disk.0);
                }
                queue.granted += used;
            }
            GrantKind::Loan(bytes) => {
                queue.loans_requested = queue.loans_requested.saturating_sub(1);
                if queue.loans > 0 && queue.ahead_bytes != bytes {
                    return_loan(&mut self.report, self.normalization, grant.disk, queue);
                }
                queue.loans += 1;
                queue.ahead_bytes = bytes;
                queue.ahead_since = now;
            }
            GrantKind::LoanRefused => {
                queue.loans_requested = queue.loans_requested.saturating_sub(1);
            }
            GrantKind::QueuedRequestRefused(bytes) if queue.waiting > queue.granted => {
                self.report.queued_requests.push(RequestedGrant { disk: grant.disk, bytes });
            }
            GrantKind::QueuedRequestRefused(_) => {}
        }
    }

    /// Removes a disk's oldest queued request, because the disk is being removed, and returns its
    /// tag. The caller repeats the call until it returns `None`.
    pub fn withdraw_request(&mut self, disk: DiskSlot) -> Option<u32> {
        let queue = self.queues.get_mut(disk.0 as usize)?;
        self.report.queued_requests.retain(|request| request.disk != disk);
        let record = self.records.pop(&mut queue.fifo)?;
        queue.waiting -= 1;
        if queue.granted > 0 {
            queue.granted -= 1;
            let RequestCharge { cost, bytes } = record.units;
            self.report.returned_grants.push(ReturnedGrant { disk, requests: 1, cost, bytes });
        }
        Some(record.tag)
    }

    /// Returns when [`Borrower::poll_report`] must be called next even if nothing happens before;
    /// `None` if no report will be due by time alone.
    pub fn next_deadline(&self) -> Option<Time> {
        let has_times = !self.changed.is_empty() || !self.busy.is_empty();
        let times = has_times.then(|| self.times_reported + REPORT_INTERVAL_MAX);
        let queues = self.watched.iter().filter_map(|slot| self.queues.get(*slot as usize));
        let lending = queues.filter(|queue| queue.loans > 0);
        lending.map(|queue| queue.ahead_since + LOAN_IDLE_MAX).chain(times).min()
    }

    /// Returns the report that is due. `spent` is an empty report whose memory is reused.
    ///
    /// # Errors
    ///
    /// `spent`, if there is nothing to report.
    pub fn poll_report(
        &mut self,
        now: Time,
        mut spent: WorkerReport,
    ) -> Result<WorkerReport, WorkerReport> {
        let (queues, report, normalization) =
            (&mut self.queues, &mut self.report, self.normalization);
        let is_settling = self.is_settling;
        self.watched.retain(|slot| {
            let Some(queue) = queues.get_mut(*slot as usize) else { return false };
            let disk = DiskSlot(*slot);
            if queue.loans > 0 && (is_settling || now >= queue.ahead_since + LOAN_IDLE_MAX) {
                queue.loan_target = queue.loan_target.saturating_sub(queue.loans);
                return_loan(report, normalization, disk, queue);
            }
            // While requests are queued, a loan must not let a new request pass them.
            if queue.waiting == 0 && queue.is_used && !is_settling {
                let bytes = if queue.loans > 0 { queue.ahead_bytes } else { queue.last_bytes };
                let additional =
                    queue.loan_target.saturating_sub(queue.loans + queue.loans_requested);
                report
                    .loan_requests
                    .extend((0..additional).map(|_| RequestedGrant { disk, bytes }));
                queue.loans_requested += additional;
                queue.is_used = false;
            }
            queue.is_listed = queue.waiting > 0 || queue.loans > 0 || queue.loans_requested > 0;
            queue.is_listed
        });
        let is_due = now >= self.times_reported + REPORT_INTERVAL_MAX;
        if is_due || !self.report.is_empty() {
            self.report_times(now, now >= self.times_reported + ALL_DISKS_INTERVAL_MIN);
        }
        if self.report.is_empty() {
            return Err(spent);
        }
        spent.clear();
        Ok(core::mem::replace(&mut self.report, spent))
    }

    /// Adds request times to the report: those of the disks that changed or, if `is_of_all`, of all
    /// disks with requests.
    fn report_times(&mut self, now: Time, is_of_all: bool) {
        let (queues, times) = (&mut self.queues, &mut self.report.times);
        for slot in self.changed.drain(..) {
            let Some(queue) = queues.get_mut(slot as usize) else { continue };
            times.extend(queue.local.take_report(now, DiskSlot(slot), queue.waiting));
            if queue.local.mark_busy(queue.waiting) {
                self.busy.push(slot);
            }
        }
        if !is_of_all {
            return;
        }
        self.times_reported = now;
        self.busy.retain(|slot| {
            let Some(queue) = queues.get_mut(*slot as usize) else { return false };
            // The disks above have no unreported time left.
            times.extend(queue.local.take_report(now, DiskSlot(*slot), queue.waiting));
            queue.local.update_busy(queue.waiting)
        });
    }
}

/// Adds the return of all loans of a disk to the report.
fn return_loan(
    report: &mut WorkerReport,
    normalization: Normalization,
    disk: DiskSlot,
    queue: &mut Queue,
) {
    let requests = core::mem::take(&mut queue.loans);
    let cost = normalization.cost(queue.ahead_bytes).saturating_mul(requests);
    let bytes = queue.ahead_bytes.saturating_mul(requests);
    report.returned_grants.push(ReturnedGrant { disk, requests, cost, bytes });
}
