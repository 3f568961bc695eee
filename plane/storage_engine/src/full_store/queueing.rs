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

use crate::disk::ServiceState;
use crate::engine::StorageEngine;
use crate::engine::notices::{SpaceChange, StorageNotice};
use crate::full_store::{FULL_STATE_TIMEOUT, FullStorePolicy, FullStoreView};
use crate::request::{EngineRequest, RequestFullState};
use crate::scheduling::dispatch::report_to_store;

/// Maximum number of queued requests of one disk that are repeated at a time.
const REPEATED_MAX: usize = 256;

/// Interval at which a disk on a full store repeats one of its queued requests.
pub const FULL_STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of further attempts to repeat a request while the store's scheduler has no room for it.
const ROOM_RETRY_EVERY: Duration = Duration::from_millis(10);

fn expiry(first: Time, wait: Option<Duration>) -> Option<Time> {
    wait.map(|wait| first + wait)
}

impl StorageEngine {
    /// Sets the waiting times of a disk's requests while its store is full.
    pub fn set_full_store_policy(&mut self, disk: usize, policy: FullStorePolicy) {
        let Some(disk_state) = self.disks.get_mut(disk) else { return };
        disk_state.full_state.policy = policy;
        if !disk_state.full_state.queued.is_empty() {
            disk_state.full_state.expires = Some(self.now);
            self.expire_full(disk);
        }
        self.schedule_full_check();
    }

    /// Returns the state of a disk on a full store; `None` if its store is not known to be full.
    pub fn full_store_view(&self, disk: usize) -> Option<FullStoreView> {
        let full = &self.disks.get(disk)?.full_state;
        let duration = self.now.since(full.since?);
        Some(FullStoreView { queued: full.queued.len() + full.repeating, full_for: duration })
    }

    /// Records that a commit or a request of a disk found no space.
    pub(crate) fn record_no_space(&mut self, disk_number: usize) {
        let now = self.now;
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.full_state.record_no_space(now);
        disk.full_state.commit_not_before = now + FULL_STORE_RETRY_INTERVAL;
        if disk.full_state.since.is_none() {
            disk.full_state.since = Some(now);
            self.full_disks.push(disk_number);
            let duration = Duration::ZERO;
            let change = SpaceChange::Full;
            self.notices.push(StorageNotice::DiskSpaceChange {
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
    pub(crate) fn queue_if_no_space(&mut self, number: usize, outcome: DiskOutcome) -> bool {
        let first = self.end_repetition(number, outcome == DiskOutcome::Done);
        let Some(&EngineRequest { disk: disk_number, queue, op, range, tag, .. }) =
            self.requests.get(number)
        else {
            return false;
        };
        if outcome != DiskOutcome::NoSpace {
            return false;
        }
        self.record_no_space(disk_number);
        let Some(kind) = self.queues.get(queue).map(|queue_kind| queue_kind.kind) else {
            return false;
        };
        let Some(disk) = self.disks.get(disk_number) else { return false };
        let first_found = first.unwrap_or(self.now);
        let expires = expiry(first_found, disk.full_state.policy.wait_time(kind));
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
            request.full_state = RequestFullState::Queued(first_found);
            request.outcome = DiskOutcome::Done;
            request.remaining_parts = 0;
        }
        self.queued_for_space += 1;
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.queued_for_space += 1;
        }
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let full = &mut disk.full_state;
        if full.queued.is_empty() || first.is_some() {
            (full.window, full.repeat_at) = (1, self.now + FULL_STORE_RETRY_INTERVAL);
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
        let RequestFullState::Repeating(first) = core::mem::take(&mut request.full_state) else {
            return None;
        };
        let disk_number = request.disk;
        let full = &mut self.disks.get_mut(disk_number)?.full_state;
        full.repeating = full.repeating.saturating_sub(1);
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
        let Some(index) = request.charged_slot.take() else { return };
        if let Some(worker_store) = self.stores.get_mut(index.store_number) {
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
            && queue.queue.requeue(request);
        if !is_taken_back {
            return false;
        }
        if queue.is_moving {
            queue.no_space_requests.push((request.tag, first_found));
            disk.full_state.is_moving = true;
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
    pub(crate) fn release_no_space_requests(&mut self, queue: usize) {
        let now = self.now;
        let Some(disk_number) = self.queues.get(queue).map(|request_queue| request_queue.disk)
        else {
            return;
        };
        let is_of_queue = |number: &usize| {
            self.requests.get(*number).is_some_and(|request| request.queue == queue)
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full_state.queued.is_empty() {
            return;
        }
        let (of_queue, others) = core::mem::take(&mut disk.full_state.queued)
            .into_iter()
            .partition::<VecDeque<_>, _>(is_of_queue);
        disk.full_state.queued = others;
        self.queued_for_space -= of_queue.len();
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.queued_for_space = 0;
        }
        for number in of_queue {
            let Some(request) = self.requests.get_mut(number) else { continue };
            let full = core::mem::take(&mut request.full_state);
            let EngineRequest { tag, op, range, .. } = *request;
            if !self.leave(
                number,
                DiskRequest { tag, op, range },
                full.first_no_space_at().unwrap_or(now),
            ) {
                self.complete_without_space_check(number, DiskOutcome::NoSpace);
            }
        }
        self.schedule_full_check();
    }

    /// Fails the queued requests of a disk whose waiting time has passed.
    fn expire_full(&mut self, disk_number: usize) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        if disk.full_state.expires.is_none_or(|expires| self.now < expires) {
            return;
        }
        let policy = disk.full_state.policy;
        let queued = core::mem::take(&mut disk.full_state.queued);
        let before = queued.len();
        let (mut kept, mut expired, mut next) = (VecDeque::new(), Vec::new(), None);
        for number in queued {
            let Some(request) = self.requests.get(number) else { continue };
            let kind = self.queues.get(request.queue).map(|queue| queue.kind);
            let first = request.full_state.first_no_space_at().unwrap_or(self.now);
            let expires =
                expiry(first, kind.map_or(Some(Duration::ZERO), |kind| policy.wait_time(kind)));
            if expires.is_some_and(|expires| expires <= self.now) {
                expired.push(number);
            } else {
                next = next.into_iter().chain(expires).min();
                kept.push_back(number);
            }
        }
        self.queued_for_space -= before - kept.len();
        disk.full_state.queued = kept;
        disk.full_state.expires = next;
        for number in expired {
            if let Some(request) = self.requests.get_mut(number) {
                request.full_state = RequestFullState::NotFull;
                let queue = request.queue;
                self.leave_full(queue);
            }
            self.complete_without_space_check(number, DiskOutcome::NoSpace);
        }
    }

    /// Repeats queued requests of disks on stores that may have space again, and fails requests
    /// whose waiting time has passed. Costs one comparison while no action is due.
    pub(crate) fn repeat_no_space_requests(&mut self) {
        if self.full_check_due.is_none_or(|due| self.now < due) {
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
        self.full_check_due = self.next_full_due();
        self.continue_parked();
    }

    /// Makes a check of all full disks due in this or the next iteration, because the state of one
    /// has changed.
    pub(crate) fn schedule_full_check(&mut self) {
        if !self.full_disks.is_empty() {
            self.full_check_due = Some(Time::ZERO);
        }
    }

    /// Subtracts one from the number of a queue's requests that are queued because the store is
    /// full.
    fn leave_full(&mut self, queue: usize) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.queued_for_space = queue_state.queued_for_space.saturating_sub(1);
        }
    }

    fn repeat_full_of(&mut self, disk_number: usize) {
        loop {
            let Some(disk) = self.disks.get_mut(disk_number) else { return };
            let is_served = disk.service == ServiceState::InService && !disk.is_closing;
            let full = &mut disk.full_state;
            if !is_served || full.repeating >= full.window.max(1) || self.now < full.repeat_at {
                return;
            }
            let store = disk.client_slot.and_then(|index| self.stores.get(index.store_number));
            if store.is_some_and(|worker_store| worker_store.remaining_queue_room() == 0) {
                // Without room in the scheduler, the request would start regardless of the limits.
                full.repeat_at = self.now + ROOM_RETRY_EVERY;
                return;
            }
            let Some(number) = full.queued.pop_front() else { return };
            full.repeating += 1;
            self.queued_for_space -= 1;
            if let Some(request) = self.requests.get_mut(number) {
                if let RequestFullState::Queued(first) = request.full_state {
                    request.full_state = RequestFullState::Repeating(first);
                }
                let queue = request.queue;
                self.leave_full(queue);
            }
            self.submit_to_scheduler(number);
        }
    }

    /// Ends the full state of a disk if a request has found space, or none has found the store full
    /// for [`FULL_STATE_TIMEOUT`]. Returns true if it has ended.
    fn end_full(&mut self, disk_number: usize) -> bool {
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let full = &mut disk.full_state;
        let Some(since) = full.since else { return true };
        let is_quiet = full.queued.is_empty() && full.repeating == 0;
        if !is_quiet || !(full.has_space || self.now >= full.last_no_space_at + FULL_STATE_TIMEOUT)
        {
            return false;
        }
        (full.since, full.expires) = (None, None);
        let change =
            if full.has_space { SpaceChange::HasSpace } else { SpaceChange::NoLongerObserved };
        let duration = self.now.since(since);
        self.notices.push(StorageNotice::DiskSpaceChange {
            disk: disk_number,
            change,
            full_for: duration,
        });
        true
    }

    /// Returns the time of the next action for disks on full stores.
    pub(crate) fn full_check_deadline(&self) -> Option<Time> {
        self.full_check_due
    }

    fn next_full_due(&self) -> Option<Time> {
        let disks = self.full_disks.iter().filter_map(|disk| self.disks.get(*disk));
        disks
            .filter_map(|disk_state| {
                disk_state.full_state.deadline(
                    disk_state.service == ServiceState::InService && !disk_state.is_closing,
                )
            })
            .min()
    }
}
