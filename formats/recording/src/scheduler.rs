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
    BatchSubmitted, Borrower, Change, Completed, DISKS_MAX, DiskSlot, LoanReport, Next,
    RequestPhase, StoreBudget, StoreEvent, StoreScheduler, StoreSpec, SubmitError, Submitted,
    Unscheduled, WorkerGrant,
};

use crate::policy::text;
use crate::scheduler_encoding as code;
use crate::{PolicyKind, RecordBuffer, Recorded, Sink};

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
    pub fn scheduler(
        sink: Option<&Arc<dyn Sink>>,
        (now, name): (Time, &str),
        spec: StoreSpec,
    ) -> Self {
        let birth =
            |sink| RecordBuffer::begin(sink, now, PolicyKind::StorageQos, name, &text(&spec));
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
    ) -> Result<Submitted, SubmitError> {
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
    ) -> Result<BatchSubmitted, SubmitError> {
        let result = self.policy.submit_batch(now, slot, sizes, tag);
        self.record_bytes(now, |input, decision| {
            code::put_together(input, slot, tag, sizes);
            code::put_together_done(decision, result);
        });
        result
    }

    /// As [`StoreScheduler::poll`]; records the call.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Next {
        let next = self.policy.poll(now);
        self.record_bytes(now, |input, decision| {
            input.push(code::POLL);
            code::put_next(decision, now, next);
        });
        next
    }

    /// As [`StoreScheduler::handle_completed`]; records the call.
    #[inline(always)]
    pub fn handle_completed(&mut self, now: Time, slot: DiskSlot, completed: Completed) {
        self.policy.handle_completed(now, slot, completed);
        self.record_bytes(now, |input, _| code::put_completed(input, slot, completed));
    }

    /// As [`StoreScheduler::handle_undone`]; records the call.
    pub fn handle_undone(&mut self, now: Time, slot: DiskSlot, bytes: u32) {
        self.policy.handle_undone(now, slot, bytes);
        self.record_bytes(now, |input, _| code::put_undone(input, slot, bytes));
    }

    /// As [`StoreScheduler::handle_phase`]. Not recorded, because it does not affect decisions.
    pub fn handle_phase(
        &mut self,
        now: Time,
        slot: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        self.policy.handle_phase(now, slot, from, to);
    }

    /// As [`StoreScheduler::handle_unscheduled`]. Not recorded, because it does not affect
    /// decisions.
    pub fn handle_unscheduled(&mut self, unscheduled: Unscheduled) {
        self.policy.handle_unscheduled(unscheduled);
    }

    /// As [`StoreScheduler::apply`]; records the call.
    pub fn apply(&mut self, now: Time, change: Change) -> Vec<u32> {
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

    /// As [`StoreBudget::share`]; records the call in the same stream.
    pub fn share(
        mut self,
        now: Time,
        worker: WorkerId,
        borrower: &mut Borrower,
    ) -> Recorded<StoreBudget> {
        self.record_bytes(now, |input, _| code::put_share(input, worker));
        self.map(|scheduler| StoreBudget::share(scheduler, now, worker, borrower))
    }
}

impl Recorded<StoreBudget> {
    /// As [`StoreBudget::apply`]; records the call.
    pub fn apply(&mut self, now: Time, change: Change) {
        self.policy.apply(now, change);
        self.record_bytes(now, |input, _| code::put_change(input, change));
    }

    /// As [`StoreBudget::handle_report`]; records the call.
    pub fn handle_report(&mut self, now: Time, from: WorkerId, report: &LoanReport) {
        self.policy.handle_report(now, from, report);
        self.record_bytes(now, |input, _| code::put_report(input, from, report));
    }

    /// As [`StoreBudget::handle_absent`]; records the call at `now`.
    pub fn handle_absent(&mut self, now: Time, worker: WorkerId) {
        self.policy.handle_absent(worker);
        self.record_bytes(now, |input, _| code::put_absent(input, worker));
    }

    /// As [`StoreBudget::handle_ended`]; records the call.
    pub fn handle_ended(&mut self, now: Time, worker: WorkerId) {
        self.policy.handle_ended(now, worker);
        self.record_bytes(now, |input, _| code::put_ended(input, worker));
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

    /// As [`StoreBudget::unshare`]; records the call in the same stream.
    pub fn unshare(mut self, now: Time, mut borrower: Borrower) -> Recorded<StoreScheduler> {
        let last = borrower.take_times(now);
        if !last.is_empty() {
            // The times of a worker do not depend on which worker it is.
            self.handle_report(now, WorkerId(0), &last);
        }
        self.record_bytes(now, |input, _| {
            let mut copy = borrower.clone();
            let slots = (0..).map(DiskSlot).take(DISKS_MAX);
            let waiting = slots.flat_map(|slot| {
                let tags: Vec<u32> = core::iter::from_fn(|| copy.withdraw(slot)).collect();
                tags.into_iter().map(move |tag| (slot, tag))
            });
            code::put_unshare(input, waiting);
        });
        self.map(|budget| budget.unshare(now, borrower))
    }
}
