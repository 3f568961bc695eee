//! Recording of store schedulers, alone ([`StoreScheduler`]) and with a budget shared by several
//! workers ([`StoreBudget`]).
//!
//! Schedulers are called for each request, so their bodies have a compact binary encoding. An input
//! starts with its type byte. Numbers are varints; *time* is relative to the record's time, zigzag.
//!
//! | type | input | fields | decision |
//! |---|---|---|---|
//! | 0 | submit a request | slot, bytes, tag | 0 dispatch, 1 queued, 2 no disk, 3 full |
//! | 1 | submit several | slot, tag, runs of (bytes, count) | 0, dispatched, queued; or 2, 3 |
//! | 2 | poll | | 0 idle; 1 wait until *time*; 2 dispatch: slot, tag |
//! | 3 | requests completed | slot, operation, bytes, count, latency in ns plus 1 (0: not measured) | |
//! | 4 | change | JSON | tags of removed requests |
//! | 5 | sample delivered operations | | JSON, or empty |
//! | 6 | share with other workers | worker | |
//! | 7 | report | worker; five lists, each after its length | |
//! | 8 | poll the next grant | | 0 none; or worker plus 1, slot, 0 to 3, number |
//! | 9 | end of sharing | pairs (slot, tag) of requests queued at the remaining worker | |
//! | 10 | request ended without execution | slot, bytes | |
//! | 11 | a worker has stopped reporting | worker | |
//! | 12 | a worker has stopped using the store | worker | |
//!
//! An operation is 0 for a read, 1 for a write, 2 for a flush and 3 for others. The lists of a
//! report contain queued requests, requested loans (both: slot, bytes), completions, returned
//! grants (slot, requests, cost, bytes) and times. A completion consists of a slot, an operation,
//! bytes and a latency as in 3. A time consists of a slot, the nanoseconds in which the disk had
//! requests, and the change of the number of requests in flight, zigzag encoded. Phases and other
//! times of requests do not affect decisions and are not recorded.

use std::sync::Arc;

use suimon_quantity::{Time, WorkerId};
use suimon_storage_qos::{
    BatchSubmitOutcome, Borrower, CompletedRequests, ConfigStep, DISKS_MAX, DiskSlot,
    DiskUnscheduledTime, NextAction, RequestPhase, StoreBudget, StoreEvent, StoreScheduler,
    StoreSpec, SubmitError, SubmitOutcome, WorkerGrant, WorkerReport,
};

use crate::policy::encode_json;
use crate::scheduler_encoding as code;
use crate::{PolicyKind, RecordBuffer, RecordSink, Recorded};

impl<P> Recorded<P> {
    #[inline]
    fn record_bytes(&mut self, now: Time, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        if let Some(buffer) = &mut self.buffer {
            buffer.step(now, write);
            buffer.flush_if_long();
        }
    }

    fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Recorded<Q> {
        Recorded { policy: change(self.policy), buffer: self.buffer }
    }
}

impl Recorded<StoreScheduler> {
    /// Creates a scheduler as [`StoreScheduler::new`] does, and starts recording at `now` if there
    /// is a `sink`; `name` is that of the stream.
    pub fn record_scheduler(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        spec: StoreSpec,
    ) -> Self {
        let birth = |sink| {
            RecordBuffer::begin(sink, now, PolicyKind::StorageQos, name, &encode_json(&spec))
        };
        let buffer = sink.map(|sink| Box::new(birth(sink)));
        Self { policy: StoreScheduler::new(spec), buffer }
    }

    /// As [`StoreScheduler::submit`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`StoreScheduler::submit`].
    #[inline]
    pub fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<SubmitOutcome, SubmitError> {
        let result = self.policy.submit(now, slot, bytes, tag);
        self.record_bytes(now, |input, decision| {
            code::put_submit(input, slot, bytes, tag);
            code::put_submitted(decision, result);
        });
        result
    }

    /// As [`StoreScheduler::submit_batch`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`StoreScheduler::submit_batch`].
    #[inline]
    pub fn submit_batch(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Result<BatchSubmitOutcome, SubmitError> {
        let result = self.policy.submit_batch(now, slot, sizes, tag);
        self.record_bytes(now, |input, decision| {
            code::put_submit_batch(input, slot, tag, sizes);
            code::put_batch_submitted(decision, result);
        });
        result
    }

    /// As [`StoreScheduler::poll`]; records the call.
    #[inline]
    pub fn poll(&mut self, now: Time) -> NextAction {
        let next = self.policy.poll(now);
        self.record_bytes(now, |input, decision| {
            input.push(code::POLL);
            code::put_next(decision, now, next);
        });
        next
    }

    /// As [`StoreScheduler::handle_completed_requests`]; records the call.
    #[inline(always)]
    pub fn handle_completed_requests(
        &mut self,
        now: Time,
        slot: DiskSlot,
        completed: CompletedRequests,
    ) {
        self.policy.handle_completed_requests(now, slot, completed);
        self.record_bytes(now, |input, _| code::put_completed(input, slot, completed));
    }

    /// As [`StoreScheduler::handle_not_executed`]; records the call.
    pub fn handle_not_executed(&mut self, now: Time, slot: DiskSlot, bytes: u32) {
        self.policy.handle_not_executed(now, slot, bytes);
        self.record_bytes(now, |input, _| code::put_not_executed(input, slot, bytes));
    }

    /// As [`StoreScheduler::handle_phase_change`]. Not recorded, because it does not affect
    /// decisions.
    pub fn handle_phase_change(
        &mut self,
        now: Time,
        slot: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        self.policy.handle_phase_change(now, slot, from, to);
    }

    /// As [`StoreScheduler::handle_unscheduled_time`]. Not recorded, because it does not affect
    /// decisions.
    pub fn handle_unscheduled_time(&mut self, unscheduled: DiskUnscheduledTime) {
        self.policy.handle_unscheduled_time(unscheduled);
    }

    /// As [`StoreScheduler::apply`]; records the call.
    pub fn apply(&mut self, now: Time, change: ConfigStep) -> Vec<u32> {
        let tags = self.policy.apply(now, change);
        self.record_bytes(now, |input, decision| {
            code::put_change(input, change);
            code::put_tags(decision, &tags);
        });
        tags
    }

    /// As [`StoreScheduler::observe`]; records the call.
    pub fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        let events = self.policy.observe(now);
        self.record_bytes(now, |input, decision| {
            input.push(code::OBSERVE);
            code::put_events(decision, &events);
        });
        self.flush();
        events
    }

    /// As [`StoreBudget::into_shared_budget`]; records the call in the same stream.
    pub fn into_shared_budget(
        mut self,
        now: Time,
        worker: WorkerId,
        borrower: &mut Borrower,
    ) -> Recorded<StoreBudget> {
        self.record_bytes(now, |input, _| code::put_share(input, worker));
        self.map(|scheduler| StoreBudget::from_scheduler(scheduler, now, worker, borrower))
    }
}

impl Recorded<StoreBudget> {
    /// As [`StoreBudget::apply`]; records the call.
    pub fn apply(&mut self, now: Time, change: ConfigStep) {
        self.policy.apply(now, change);
        self.record_bytes(now, |input, _| code::put_change(input, change));
    }

    /// As [`StoreBudget::handle_report`]; records the call.
    pub fn handle_report(&mut self, now: Time, from: WorkerId, report: &WorkerReport) {
        self.policy.handle_report(now, from, report);
        self.record_bytes(now, |input, _| code::put_report(input, from, report));
    }

    /// As [`StoreBudget::handle_worker_absent`]; records the call at `now`.
    pub fn handle_worker_absent(&mut self, now: Time, worker: WorkerId) {
        self.policy.handle_worker_absent(worker);
        self.record_bytes(now, |input, _| code::put_worker_absent(input, worker));
    }

    /// As [`StoreBudget::handle_worker_ended`]; records the call.
    pub fn handle_worker_ended(&mut self, now: Time, worker: WorkerId) {
        self.policy.handle_worker_ended(now, worker);
        self.record_bytes(now, |input, _| code::put_worker_ended(input, worker));
    }

    /// As [`StoreBudget::poll_grant`]; records the call.
    pub fn poll_grant(&mut self, now: Time) -> Option<WorkerGrant> {
        let grant = self.policy.poll_grant(now);
        self.record_bytes(now, |input, decision| {
            input.push(code::POLL_GRANT);
            code::put_grant(decision, grant);
        });
        grant
    }

    /// As [`StoreBudget::observe`]; records the call.
    pub fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        let events = self.policy.observe(now);
        self.record_bytes(now, |input, decision| {
            input.push(code::OBSERVE);
            code::put_events(decision, &events);
        });
        self.flush();
        events
    }

    /// As [`StoreBudget::into_scheduler`]; records the call in the same stream.
    pub fn into_scheduler(mut self, now: Time, mut borrower: Borrower) -> Recorded<StoreScheduler> {
        let last = borrower.take_time_report(now);
        if !last.is_empty() {
            // The times of a worker do not depend on which worker it is.
            self.handle_report(now, WorkerId(0), &last);
        }
        self.record_bytes(now, |input, _| {
            let mut copy = borrower.clone();
            let slots = (0..).map(DiskSlot).take(DISKS_MAX);
            let waiting = slots.flat_map(|slot| {
                let tags: Vec<u32> = core::iter::from_fn(|| copy.withdraw_request(slot)).collect();
                tags.into_iter().map(move |tag| (slot, tag))
            });
            code::put_unshare(input, waiting);
        });
        self.map(|budget| budget.into_scheduler(now, borrower))
    }
}
