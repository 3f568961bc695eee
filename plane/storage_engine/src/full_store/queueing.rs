//! Requests for which their store has no space: they are queued, repeated when there may be space,
//! and failed after their waiting time.
//!
//! A queued request does not affect others: neither its store's scheduler nor the worker's bound of
//! requests counts it. It is repeated from the start. The request was not completed, so its client
//! cannot rely on an order between it and later requests. A flush does not wait for it.
//!
//! The number of queued requests is bounded by the tags of the queues that brought them. Queued
//! requests of one client do not block other clients of the disk.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_ports::{DiskOutcome, DiskRequest};
use suimon_quantity::Time;

use crate::disk::Service;
use crate::engine::StorageEngine;
use crate::engine::notices::{FullChange, StorageNotice};
use crate::full_store::{FULL_FOR, FullPolicy, FullView};
use crate::request::{EngineRequest, Full};
use crate::scheduling::dispatch::report_to_store;

/// Maximum number of queued requests of one disk that are repeated at a time.
const REPEATED_MAX: usize = 256;

/// Interval at which a disk on a full store repeats one of its queued requests.
pub const FULL_RETRY_EVERY: Duration = Duration::from_secs(1);

/// Interval of further attempts to repeat a request while the store's scheduler has no room for it.
const ROOM_RETRY_EVERY: Duration = Duration::from_millis(10);

fn expiry(first: Time, wait: Option<Duration>) -> Option<Time> {
    wait.map(|wait| first + wait)
}

impl StorageEngine {
    /// Sets the waiting times of a disk's requests while its store is full.
    pub fn set_full_policy(&mut self, disk: usize, policy: FullPolicy) {
        let Some(disk_state) = self.disks.get_mut(disk) else { return };
        disk_state.full.policy = policy;
        if !disk_state.full.queued.is_empty() {
            disk_state.full.expires = Some(self.now);
            self.expire_full(disk);
        }
        self.schedule_full_check();
    }

    /// Returns the state of a disk on a full store; `None` if its store is not known to be full.
    pub fn full(&self, disk: usize) -> Option<FullView> {
        let full = &self.disks.get(disk)?.full;
        let duration = self.now.since(full.since?);
        Some(FullView { queued: full.queued.len() + full.repeated, duration })
    }

    /// Records that a commit or a request of a disk found no space.
    pub(crate) fn note_full(&mut self, disk_number: usize) {
        let now = self.now;
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.full.note_found(now);
        disk.full.commit_at = now + FULL_RETRY_EVERY;
        if disk.full.since.is_none() {
            disk.full.since = Some(now);
            self.full_disks.push(disk_number);
            let duration = Duration::ZERO;
            let change = FullChange::Full;
            self.notices.push(StorageNotice::DiskFull {
                disk: disk_number,
                change,
                full_for: duration,
            });
        }
        self.schedule_full_check();
    }

    /// Handles the end of a request with `outcome`. If it found no space, the request is queued to
    /// be repeated if the policy permits. Returns true if the request was queued, or left to its
    /// client's next queue, so that the caller must not complete it.
    #[cold]
    pub(crate) fn handle_space(&mut self, number: usize, outcome: DiskOutcome) -> bool {
        let first = self.end_repetition(number, outcome == DiskOutcome::Done);
        let Some(&EngineRequest { disk: disk_number, queue, op, range, tag, .. }) =
            self.requests.get(number)
        else {
            return false;
        };
        if outcome != DiskOutcome::NoSpace {
            return false;
        }
        self.note_full(disk_number);
        let Some(kind) = self.queues.get(queue).map(|queue_kind| queue_kind.kind) else {
            return false;
        };
        let Some(disk) = self.disks.get(disk_number) else { return false };
        let first_found = first.unwrap_or(self.now);
        let expires = expiry(first_found, disk.full.policy.wait(kind));
        if expires.is_some_and(|expires| expires <= self.now) {
            return false;
        }
        let is_closing = self.queues.get(queue).is_none_or(|queue_state| queue_state.is_closing);
        if is_closing {
            let is_to_leave = self.leave(number, DiskRequest { tag, op, range }, first_found);
            if is_to_leave {
                // The queue must be checked for its end after its last request, even if that
                // request was not completed.
                self.mark_completions_to_publish(queue);
            }
            return is_to_leave;
        }
        self.discharge(number);
        if let Some(request) = self.requests.get_mut(number) {
            request.full = Full::Queued(first_found);
            request.outcome = DiskOutcome::Done;
            request.parts = 0;
        }
        self.full_queued += 1;
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.full_queued += 1;
        }
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let full = &mut disk.full;
        if full.queued.is_empty() || first.is_some() {
            (full.window, full.repeat_at) = (1, self.now + FULL_RETRY_EVERY);
        }
        full.queued.push_back(number);
        full.expires = full.expires.into_iter().chain(expires).min();
        self.schedule_full_check();
        true
    }

    /// Ends the repetition of a request that is being repeated. Returns the time at which the
    /// request first found no space; `None` if it is not being repeated.
    pub(crate) fn end_repetition(&mut self, number: usize, is_completed: bool) -> Option<Time> {
        let request = self.requests.get_mut(number)?;
        let Full::Repeated(first) = core::mem::take(&mut request.full) else { return None };
        let disk_number = request.disk;
        let full = &mut self.disks.get_mut(disk_number)?.full;
        full.repeated = full.repeated.saturating_sub(1);
        if is_completed {
            full.has_space = true;
            full.window = full.window.saturating_mul(2).clamp(1, REPEATED_MAX);
            full.repeat_at = self.now;
        }
        self.schedule_full_check();
        Some(first)
    }

    /// Removes a request from the accounting of its store's scheduler, as one that was not
    /// executed.
    fn discharge(&mut self, number: usize) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let Some(index) = request.charged.take() else { return };
        if let Some(worker_store) = self.stores.get_mut(index.store) {
            report_to_store(worker_store, self.now, index, request, (DiskOutcome::NoSpace, false));
        }
    }

    /// Lets a closing queue take back a request, for the queue's next worker or the client's next
    /// queue. Returns false if the queue does not support that and the request must be completed.
    fn leave(&mut self, number: usize, request: DiskRequest, first_found: Time) -> bool {
        let Some(&EngineRequest { disk: disk_number, queue: queue_number, .. }) =
            self.requests.get(number)
        else {
            return false;
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return false };
        let Some(queue) = self.queues.get_mut(queue_number) else { return false };
        let is_taken_back = (queue.is_moving || queue.queue.redelivers_after_drop())
            && queue.queue.reclaim(request);
        if !is_taken_back {
            return false;
        }
        if queue.is_moving {
            queue.found_full.push((request.tag, first_found));
            disk.full.is_moving = true;
        }
        queue.in_flight -= 1;
        // Parts of the request may have been written.
        if let Some(dirty) = &disk.mirror.dirty {
            dirty.mark(request.range);
        }
        self.discharge(number);
        self.requests.free(number);
        true
    }

    /// Ends the queued requests of a closing queue: they are taken back by the queue, or fail.
    pub(crate) fn release_full(&mut self, queue: usize) {
        let now = self.now;
        let Some(disk_number) = self.queues.get(queue).map(|request_queue| request_queue.disk)
        else {
            return;
        };
        let is_of_queue = |number: &usize| {
            self.requests.get(*number).is_some_and(|request| request.queue == queue)
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full.queued.is_empty() {
            return;
        }
        let (of_queue, others) = core::mem::take(&mut disk.full.queued)
            .into_iter()
            .partition::<VecDeque<_>, _>(is_of_queue);
        disk.full.queued = others;
        self.full_queued -= of_queue.len();
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.full_queued = 0;
        }
        for number in of_queue {
            let Some(request) = self.requests.get_mut(number) else { continue };
            let full = core::mem::take(&mut request.full);
            let EngineRequest { tag, op, range, .. } = *request;
            if !self.leave(number, DiskRequest { tag, op, range }, full.first().unwrap_or(now)) {
                self.complete_now(number, DiskOutcome::NoSpace);
            }
        }
        self.schedule_full_check();
    }

    /// Fails the queued requests of a disk whose waiting time has passed.
    fn expire_full(&mut self, disk_number: usize) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full.expires.is_none_or(|expires| self.now < expires) {
            return;
        }
        let policy = disk.full.policy;
        let queued = core::mem::take(&mut disk.full.queued);
        let before = queued.len();
        let (mut kept, mut expired, mut next) = (VecDeque::new(), Vec::new(), None);
        for number in queued {
            let Some(request) = self.requests.get(number) else { continue };
            let kind = self.queues.get(request.queue).map(|queue| queue.kind);
            let first = request.full.first().unwrap_or(self.now);
            let expires =
                expiry(first, kind.map_or(Some(Duration::ZERO), |kind| policy.wait(kind)));
            if expires.is_some_and(|expires| expires <= self.now) {
                expired.push(number);
            } else {
                next = next.into_iter().chain(expires).min();
                kept.push_back(number);
            }
        }
        self.full_queued -= before - kept.len();
        disk.full.queued = kept;
        disk.full.expires = next;
        for number in expired {
            if let Some(request) = self.requests.get_mut(number) {
                request.full = Full::No;
                let queue = request.queue;
                self.leave_full(queue);
            }
            self.complete_now(number, DiskOutcome::NoSpace);
        }
    }

    /// Repeats queued requests of disks on stores that may have space again, and fails requests
    /// whose waiting time has passed. Costs one comparison while no action is due.
    pub(crate) fn repeat_full(&mut self) {
        if self.full_due.is_none_or(|due| self.now < due) {
            return;
        }
        let mut disks = core::mem::take(&mut self.full_disks);
        for &disk in &disks {
            self.expire_full(disk);
            self.repeat_full_of(disk);
        }
        disks.retain(|disk| !self.end_full(*disk));
        // Disks that became full meanwhile are in the list already.
        disks.append(&mut self.full_disks);
        self.full_disks = disks;
        self.full_due = self.next_full_due();
        self.continue_parked();
    }

    /// Makes a check of all full disks due in this or the next iteration, because the state of one
    /// has changed.
    pub(crate) fn schedule_full_check(&mut self) {
        if !self.full_disks.is_empty() {
            self.full_due = Some(Time::ZERO);
        }
    }

    /// Subtracts one from the number of a queue's requests that are queued because the store is
    /// full.
    fn leave_full(&mut self, queue: usize) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.full_queued = queue_state.full_queued.saturating_sub(1);
        }
    }

    fn repeat_full_of(&mut self, disk_number: usize) {
        loop {
            let Some(disk) = self.disks.get_mut(disk_number) else { return };
            let is_served = disk.service == Service::On && !disk.is_closing;
            let full = &mut disk.full;
            if !is_served || full.repeated >= full.window.max(1) || self.now < full.repeat_at {
                return;
            }
            let store = disk.index.and_then(|index| self.stores.get(index.store));
            if store.is_some_and(|worker_store| worker_store.remaining() == 0) {
                // Without room in the scheduler, the request would start regardless of the limits.
                full.repeat_at = self.now + ROOM_RETRY_EVERY;
                return;
            }
            let Some(number) = full.queued.pop_front() else { return };
            full.repeated += 1;
            self.full_queued -= 1;
            if let Some(request) = self.requests.get_mut(number) {
                if let Full::Queued(first) = request.full {
                    request.full = Full::Repeated(first);
                }
                let queue = request.queue;
                self.leave_full(queue);
            }
            self.submit(number);
        }
    }

    /// Ends the full state of a disk if a request has found space, or none has found the store full
    /// for [`FULL_FOR`]. Returns true if it has ended.
    fn end_full(&mut self, disk_number: usize) -> bool {
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let full = &mut disk.full;
        let Some(since) = full.since else { return true };
        let is_quiet = full.queued.is_empty() && full.repeated == 0;
        if !is_quiet || !(full.has_space || self.now >= full.found_at + FULL_FOR) {
            return false;
        }
        (full.since, full.expires) = (None, None);
        let change = if full.has_space { FullChange::HasSpace } else { FullChange::NotNeeded };
        let duration = self.now.since(since);
        self.notices.push(StorageNotice::DiskFull {
            disk: disk_number,
            change,
            full_for: duration,
        });
        true
    }

    /// Returns the time of the next action for disks on full stores.
    pub(crate) fn full_deadline(&self) -> Option<Time> {
        self.full_due
    }

    fn next_full_due(&self) -> Option<Time> {
        let disks = self.full_disks.iter().filter_map(|disk| self.disks.get(*disk));
        disks
            .filter_map(|disk_state| {
                disk_state
                    .full
                    .deadline(disk_state.service == Service::On && !disk_state.is_closing)
            })
            .min()
    }
}
