//! Dispatch of requests by the schedulers of their stores.
//!
//! Cost of a request
//! - A read or write costs its bytes.
//! - A write of zeros costs as many bytes, because the device may have to write them, unless the
//!   space may be deallocated and the file can have holes.
//! - A flush, a discard, and a write of zeros that becomes a hole cost one operation: they transfer
//!   no payload, but each has a cost on the device, and their number must be limited.
//!
//! Requests of a queue that closes start at once, regardless of the disk's maximum. *Placeholders*
//! for them remain in the scheduler's queue, which charges them later. Until the placeholders have
//! been charged, no further requests are taken from the disk's queues. A disk thereby exceeds its
//! maximum by at most the bound of queued requests, however often its queues are added and closed.
//! The total over time is unchanged.

use suimon_ports::{DiskOp, DiskOutcome};
use suimon_quantity::Time;
use suimon_storage_qos::{BatchSubmitOutcome, CompletedRequests, NextAction, SubmitOutcome};

use crate::disk::DiskState;
use crate::disk::qos_slot::EngineDiskSlot;
use crate::engine::{REQUESTS_MAX, StorageEngine};
use crate::request::EngineRequest;
use crate::scheduling::store::WorkerStore;

/// Bit in the scheduler's tag of a request that marks requests of a disk copy.
const MIRROR_TAG: u32 = 1 << 31;

/// Returns the tag of a request in its store's scheduler: the number of its disk, and
/// [`MIRROR_TAG`] for a request of a disk copy.
#[inline]
fn tag_of(disk: usize, is_mirror: bool) -> u32 {
    let number = u32::try_from(disk).unwrap_or(u32::MAX) & !MIRROR_TAG;
    if is_mirror { number | MIRROR_TAG } else { number }
}

impl StorageEngine {
    /// Submits the requests received from one queue in this iteration to the scheduler of their
    /// store. Each starts or is queued.
    #[inline]
    pub(crate) fn submit_received_requests(&mut self) {
        if self.requests_to_submit.is_empty() {
            return;
        }
        let mut numbers = core::mem::take(&mut self.requests_to_submit);
        match self.admit_together(&numbers) {
            Some(batch) => {
                let dispatched = numbers.iter().take(batch.dispatched);
                // There is room in the scheduler for all of them: a queue is read only as far as
                // its store has room.
                let others = numbers.iter().skip(batch.dispatched + batch.queued_count);
                dispatched.chain(others).for_each(|&number| self.begin_request(number));
            }
            None => numbers.iter().for_each(|&number| self.submit_to_scheduler(number)),
        }
        numbers.clear();
        self.requests_to_submit = numbers;
    }

    /// Submits all requests to the scheduler in one call. Returns the numbers of dispatched and
    /// queued ones, or `None`, with nothing submitted, if each must be submitted separately.
    fn admit_together(&mut self, numbers: &[usize]) -> Option<BatchSubmitOutcome> {
        let first = self.requests.get(*numbers.first()?)?;
        let (disk_number, queue, is_mirror) = (first.disk, first.queue, first.is_mirror);
        let disk = self.disks.get_mut(disk_number)?;
        let EngineDiskSlot { store_number: store, slot } = disk.qos_slot(is_mirror)?;
        let worker_store = self.stores.get_mut(store)?;
        self.request_sizes_bytes.clear();
        for &number in numbers {
            let request = self.requests.get_mut(number)?;
            request.charged_bytes = counted_bytes(disk, request);
            // Most requests are not queued, and a second lookup would cost more (decision 30).
            request.charged_slot = Some(EngineDiskSlot { store_number: store, slot });
            self.request_sizes_bytes.push(request.charged_bytes);
        }
        let tag = tag_of(disk_number, is_mirror);
        let batch = worker_store.submit_batch(self.now, slot, &self.request_sizes_bytes, tag);
        let dispatched = batch.map_or(0, |batch| batch.dispatched);
        for &number in numbers.iter().skip(dispatched) {
            if let Some(request) = self.requests.get_mut(number) {
                request.charged_slot = None;
            }
        }
        let batch = batch?;
        for &number in numbers.iter().skip(batch.dispatched).take(batch.queued_count) {
            disk.queued_list(is_mirror).push(&mut self.requests, number);
        }
        self.queued += batch.queued_count;
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.queued += u32::try_from(batch.queued_count).unwrap_or(u32::MAX);
        }
        Some(batch)
    }

    /// Submits a request to its store's scheduler. The request starts or is queued.
    #[inline]
    pub(crate) fn submit_to_scheduler(&mut self, number: usize) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let disk_number = request.disk;
        let Some(disk) = self.disks.get_mut(disk_number) else { return self.begin_request(number) };
        let is_mirror = request.is_mirror;
        let index = disk.qos_slot(is_mirror);
        let Some(EngineDiskSlot { store_number: store, slot }) = index else {
            return self.begin_request(number);
        };
        let Some(worker_store) = self.stores.get_mut(store) else {
            return self.begin_request(number);
        };
        let bytes = counted_bytes(disk, request);
        request.charged_bytes = bytes;
        match worker_store.submit(self.now, slot, bytes, tag_of(disk_number, is_mirror)) {
            Ok(SubmitOutcome::Dispatch) => request.charged_slot = index,
            Ok(SubmitOutcome::Queued) => {
                if let Some(queue_state) = self.queues.get_mut(request.queue) {
                    queue_state.queued += 1;
                }
                self.queued += 1;
                return disk.queued_list(is_mirror).push(&mut self.requests, number);
            }
            // The disk was removed from its store, so the store does not limit it. The scheduler's
            // queue is not full: a disk queue is read only as far as there is room.
            Err(_) => {}
        }
        self.begin_request(number);
    }

    /// Starts the requests that the schedulers dispatch now. Returns true if there were any.
    pub(crate) fn dispatch_ready(&mut self) -> bool {
        let mut has_dispatched = false;
        for store in self.stores.numbers() {
            has_dispatched |= self.dispatch_request(store);
        }
        has_dispatched
    }

    /// Exchanges reports and grants with the budget of a store that other workers use, too.
    /// `store`: number of the store on this worker.
    fn exchange(&mut self, store: usize) {
        let Some(worker_store) = self.stores.get_mut(store) else { return };
        let (id, events) = (worker_store.id, worker_store.exchange_with_budget(self.now));
        if !events.is_empty() {
            self.push_store_events(id, events);
        }
    }

    fn dispatch_request(&mut self, store: usize) -> bool {
        let (now, mut has_dispatched) = (self.now, false);
        self.exchange(store);
        while self.started_requests() < REQUESTS_MAX {
            let Some(worker_store) = self.stores.get_mut(store) else { break };
            // Completions are passed even without queued requests. Otherwise the next requests
            // would be queued because the scheduler has not received these completions.
            worker_store.report_completions(now);
            if worker_store.waiting == 0 {
                break;
            }
            let NextAction::Dispatch { disk: slot, tag } = worker_store.poll(now) else { break };
            has_dispatched = true;
            if !worker_store.handle_dispatched(now, slot) {
                self.begin_first(tag);
            } else if !worker_store.has_uncharged(slot) {
                self.resume_queues_of_slot(EngineDiskSlot { store_number: store, slot });
            }
        }
        let Some(worker_store) = self.stores.get_mut(store) else { return has_dispatched };
        let available = worker_store.spec.waiting_max.saturating_sub(worker_store.waiting) as usize;
        let starved: Vec<usize> = worker_store
            .paused_for_room
            .drain(..available.min(worker_store.paused_for_room.len()))
            .collect();
        if has_dispatched {
            self.exchange(store);
        }
        starved.into_iter().for_each(|queue| self.resume_queue(queue));
        has_dispatched
    }

    /// Starts the first queued request of the disk, or disk copy, that a scheduler's tag
    /// identifies.
    fn begin_first(&mut self, tag: u32) {
        let (disk, is_mirror) = ((tag & !MIRROR_TAG) as usize, tag & MIRROR_TAG != 0);
        let Some(disk) = self.disks.get_mut(disk) else { return };
        let index = disk.qos_slot(is_mirror);
        let Some(number) = disk.queued_list(is_mirror).pop(&self.requests) else { return };
        self.queued -= 1;
        let Some(request) = self.requests.get_mut(number) else { return };
        request.charged_slot = index;
        let queue = request.queue;
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.queued -= 1;
        }
        self.resume_queue(queue);
        self.begin_request(number);
    }

    /// Starts the queued requests of a disk, those of its clients or of a copy, regardless of the
    /// store's limits. With `is_owed`, placeholders remain in the scheduler's queue until they are
    /// charged.
    pub(crate) fn bypass_scheduler(&mut self, disk_number: usize, is_mirror: bool, is_owed: bool) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let mut queued = core::mem::take(disk.queued_list(is_mirror));
        let bypassing: Vec<usize> = core::iter::from_fn(|| queued.pop(&self.requests)).collect();
        if bypassing.is_empty() {
            return;
        }
        self.queued -= bypassing.len();
        if let Some(EngineDiskSlot { store_number: store, slot }) = disk.qos_slot(is_mirror) {
            if let Some(worker_store) = self.stores.get_mut(store) {
                if is_owed {
                    self.has_room = false;
                    let bytes = |number: &usize| {
                        self.requests.get(*number).map(|request| request.charged_bytes)
                    };
                    worker_store
                        .uncharged_bytes
                        .entry(slot)
                        .or_default()
                        .extend(bypassing.iter().filter_map(bytes));
                } else {
                    let count = u32::try_from(bypassing.len()).unwrap_or(u32::MAX);
                    worker_store.waiting = worker_store.waiting.saturating_sub(count);
                }
            }
        }
        for number in bypassing {
            let queue = self.requests.get(number).map(|request| request.queue);
            if let Some(queue_state) = queue.and_then(|queue| self.queues.get_mut(queue)) {
                queue_state.queued -= 1;
            }
            self.begin_request(number);
        }
    }

    /// Returns the number of requests that were taken from queues and are neither queued in a
    /// scheduler nor queued because their store is full.
    pub(crate) fn started_requests(&self) -> usize {
        self.requests.len() - self.queued - self.queued_for_space
    }

    /// Returns true if this number of requests can be taken from queues without checking each
    /// queue's limit.
    pub(crate) fn has_room(&self, requests: usize) -> bool {
        let mut stores = self.stores.numbers().filter_map(|store| self.stores.get(store));
        self.started_requests() + requests <= REQUESTS_MAX
            && stores.all(|worker_store| worker_store.has_room(requests))
    }

    /// Returns the number of requests that may be taken from a queue now. Called for each queue in
    /// each iteration. It therefore accesses no disk, and no store if [there is
    /// room](Self::has_room) for the requests of all queues.
    #[inline]
    pub(crate) fn receivable_requests(&self, number: usize) -> usize {
        let Some(queue) = self.queues.get(number).filter(|queue_state| !queue_state.is_stopped)
        else {
            return 0;
        };
        if self.has_room {
            return queue.queued_max.saturating_sub(queue.queued) as usize;
        }
        let available = REQUESTS_MAX - self.started_requests().min(REQUESTS_MAX);
        let Some(EngineDiskSlot { store_number: store, slot }) = queue.qos_slot else {
            return available;
        };
        match self.stores.get(store) {
            Some(worker_store) if worker_store.has_uncharged(slot) => 0,
            Some(worker_store) => available
                .min(worker_store.remaining_queue_room())
                .min(queue.queued_max.saturating_sub(queue.queued) as usize),
            None => available,
        }
    }

    /// Pauses a queue: it is neither read nor watched until its requests can be accepted.
    pub(crate) fn pause_queue(&mut self, number: usize) {
        if self.started_requests() >= REQUESTS_MAX {
            return;
        }
        let Some(queue) = self.queues.get_mut(number) else { return };
        queue.is_paused = true;
        let store = queue.qos_slot.and_then(|index| self.stores.get_mut(index.store_number));
        if let Some(worker_store) = store.filter(|worker_store| {
            queue.queued == 0 && worker_store.waiting >= worker_store.spec.waiting_max
        }) {
            worker_store.paused_for_room.push_back(number);
        }
    }

    /// Resumes a paused queue: it is read again.
    pub(crate) fn resume_queue(&mut self, number: usize) {
        let Some(queue_state) =
            self.queues.get_mut(number).filter(|queue_state| queue_state.is_paused)
        else {
            return;
        };
        queue_state.is_paused = false;
        queue_state.empty_polls = 0;
        if core::mem::take(&mut queue_state.is_unwatched) {
            self.queues_to_watch.push(number);
        }
        self.polled_queues.add(number);
    }

    /// Resumes the paused queues of a disk.
    pub(crate) fn resume_queues(&mut self, disk: usize) {
        for number in self.queues.numbers() {
            if self.queues.get(number).is_some_and(|queue_state| queue_state.disk == disk) {
                self.resume_queue(number);
            }
        }
    }

    /// Resumes the paused queues whose requests use this slot of a store.
    pub(crate) fn resume_queues_of_slot(&mut self, index: EngineDiskSlot) {
        for number in self.queues.numbers() {
            if self
                .queues
                .get(number)
                .is_some_and(|queue_state| queue_state.qos_slot == Some(index))
            {
                self.resume_queue(number);
            }
        }
    }

    /// Adds `count` to a store's number of queues, which determines the limit of queued requests
    /// per queue.
    pub(crate) fn adjust_store_queue_count(&mut self, store: usize, count: i32) {
        let Some(worker_store) = self.stores.get_mut(store) else { return };
        let before = worker_store.queued_per_queue_max;
        worker_store.adjust_queue_count(count);
        let (per_queue, has_changed) =
            (worker_store.queued_per_queue_max, worker_store.queued_per_queue_max != before);
        for number in self.queues.numbers().filter(|_| has_changed) {
            let queue = self.queues.get_mut(number);
            if let Some(queue) = queue.filter(|queue_state| {
                queue_state.qos_slot.is_some_and(|queue_state| queue_state.store_number == store)
            }) {
                queue.queued_max = per_queue;
            }
        }
    }

    /// Returns the time of the next action that is due without another event.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let stores = self.stores.numbers().filter_map(|number| self.stores.get(number));
        let deadlines = self.stalls_deadline().into_iter().chain(self.idle_deadline());
        let deadlines =
            deadlines.chain(self.poll_pauses_deadline()).chain(self.full_check_deadline());
        let deadlines = deadlines.chain(self.buffer_reclaim_deadline());
        stores.filter_map(|deadline_store| deadline_store.next_deadline()).chain(deadlines).min()
    }

    /// Passes the completions of this iteration that were collected to the schedulers. For a store
    /// with queued requests, the next iteration passes them and dispatches requests at once.
    pub(crate) fn report_completions(&mut self) {
        for number in self.stores.numbers() {
            if let Some(worker_store) =
                self.stores.get_mut(number).filter(|worker_store| worker_store.waiting == 0)
            {
                worker_store.report_completions(self.now);
            }
        }
    }

    /// Samples the delivered operations of all stores whose sample is due.
    pub(crate) fn sample_stores(&mut self) {
        for number in self.stores.numbers() {
            let Some(worker_store) = self.stores.get_mut(number) else { continue };
            let (id, events) = (worker_store.id, worker_store.sample_if_due(self.now));
            self.push_store_events(id, events);
        }
    }
}

/// Reports the end of a dispatched request to its store. `is_alone`: see
/// [`WorkerStore::handle_request_completed`]. A request for which there was no space is reported as
/// not executed.
#[inline]
pub(crate) fn report_to_store(
    worker_store: &mut WorkerStore,
    now: Time,
    index: EngineDiskSlot,
    request: &EngineRequest,
    (outcome, is_alone): (DiskOutcome, bool),
) {
    if outcome == DiskOutcome::NoSpace {
        return worker_store.handle_not_executed(now, index.slot, request.charged_bytes);
    }
    let latency_ns = request.transferred_at.ns_since(request.submitted_at);
    let latency_ns = Some(latency_ns).filter(|ns| *ns > 0);
    let (operation, bytes) = (request.io_kind(), request.charged_bytes);
    let completed = CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: latency_ns };
    worker_store.handle_request_completed(now, index.slot, completed, is_alone);
}

/// Returns the number of bytes that a request is charged for; 0 if it is charged as one operation.
#[inline]
fn counted_bytes(disk: &DiskState, request: &EngineRequest) -> u32 {
    let counts = match request.op {
        DiskOp::Read | DiskOp::Write { .. } => true,
        DiskOp::WriteZeroes { may_unmap: true, .. } => {
            !disk.layers.first().is_some_and(|top_layer| top_layer.can_punch)
        }
        DiskOp::WriteZeroes { .. } => true,
        DiskOp::Flush | DiskOp::Discard | DiskOp::AllocationStatus { .. } => false,
    };
    if counts { u32::try_from(request.range.len()).unwrap_or(u32::MAX) } else { 0 }
}
