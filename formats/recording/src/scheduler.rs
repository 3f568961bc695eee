//! Schedulers of stores, by themselves and in the budget that several processors have.
//!
//! They are told of each request, so their bodies are short. Inputs begin with a byte; numbers are
//! varints, and *time* is by how much later than the record, zigzag.
//!
//! | byte | told | then | decided |
//! |---|---|---|---|
//! | 0 | a request came | slot, bytes, tag | 0 goes, 1 waits, 2 no disk, 3 full |
//! | 1 | several came | slot, tag, and pairs of bytes and how many in a row | 0, how many go, how many wait; or 2, 3 |
//! | 2 | what is next | | 0 nothing; 1 not before *time*; 2 slot, tag |
//! | 3 | requests completed | slot, operation, bytes, how many, latency in ns and 1 (0: not measured) | |
//! | 4 | a change | JSON | tags of requests that do not go |
//! | 5 | look at what was delivered | | JSON, or nothing |
//! | 6 | other processors have it, too | processor | |
//! | 7 | a processor reports | processor; wants, ahead, completions, returns, times, each with its number before | |
//! | 8 | what is lent next | | 0 nothing; processor and 1, slot, 0 to 3, number |
//! | 9 | one processor has it again | pairs of slot and tag that wait there | |
//!
//! An operation is 0 for a read, 1 for a write, 2 for a flush and 3 for others. A completion of a report
//! is a slot, an operation, bytes and a latency as in 3; a time is a slot, the nanoseconds in which the
//! disk had requests, and the change of their number in flight, zigzag. Other times of requests decide
//! nothing and are not recorded, nor are their phases.

use std::sync::Arc;

use suimon_quantity::{ProcessorId, Time};
use suimon_storage_qos::{
    Borrower, Change, Completed, DISKS_MAX, DiskSlot, Event, Grant, Next, Phase, Report,
    StoreBudget, StoreScheduler, StoreSpec, SubmitError, Submitted, Together, Unscheduled,
};

use crate::policy::text;
use crate::scheduler_code as code;
use crate::{Kind, Recorded, Sink, Tape};

impl<P> Recorded<P> {
    #[inline]
    fn note_bytes(&mut self, at: Time, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        if let Some(tape) = &mut self.tape {
            tape.step(at, write);
            tape.flush_if_long();
        }
    }

    fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Recorded<Q> {
        Recorded { policy: change(self.policy), tape: self.tape }
    }
}

impl Recorded<StoreScheduler> {
    /// See [`StoreScheduler::new`]; it begins at `at`.
    pub fn scheduler(
        sink: Option<&Arc<dyn Sink>>,
        (at, name): (Time, &str),
        spec: StoreSpec,
    ) -> Self {
        let birth = |sink| Tape::begin(sink, at, Kind::StorageQos, name, &text(&spec));
        let tape = sink.map(|sink| Box::new(birth(sink)));
        Self { policy: StoreScheduler::new(spec), tape }
    }

    /// See [`StoreScheduler::submit`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        let result = self.policy.submit(now, slot, bytes, tag);
        self.note_bytes(now, |input, decision| {
            code::put_submit(input, slot, bytes, tag);
            code::put_submitted(decision, result);
        });
        result
    }

    /// See [`StoreScheduler::submit_together`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn submit_together(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Result<Together, SubmitError> {
        let result = self.policy.submit_together(now, slot, sizes, tag);
        self.note_bytes(now, |input, decision| {
            code::put_together(input, slot, tag, sizes);
            code::put_together_done(decision, result);
        });
        result
    }

    /// See [`StoreScheduler::poll`].
    #[inline]
    pub fn poll(&mut self, now: Time) -> Next {
        let next = self.policy.poll(now);
        self.note_bytes(now, |input, decision| {
            input.push(code::POLL);
            code::put_next(decision, now, next);
        });
        next
    }

    /// See [`StoreScheduler::handle_completed`].
    #[inline(always)]
    pub fn handle_completed(&mut self, now: Time, slot: DiskSlot, of: Completed) {
        self.policy.handle_completed(now, slot, of);
        self.note_bytes(now, |input, _| code::put_completed(input, slot, of));
    }

    /// See [`StoreScheduler::handle_phase`]. It is not recorded, because it decides nothing.
    pub fn handle_phase(&mut self, now: Time, slot: DiskSlot, from: Phase, to: Phase) {
        self.policy.handle_phase(now, slot, from, to);
    }

    /// See [`StoreScheduler::handle_unscheduled`]. It is not recorded, because it decides nothing.
    pub fn handle_unscheduled(&mut self, of: Unscheduled) {
        self.policy.handle_unscheduled(of);
    }

    /// See [`StoreScheduler::apply`].
    pub fn apply(&mut self, now: Time, change: Change) -> Vec<u32> {
        let tags = self.policy.apply(now, change);
        self.note_bytes(now, |input, decision| {
            code::put_change(input, change);
            code::put_tags(decision, &tags);
        });
        tags
    }

    /// See [`StoreScheduler::observe`].
    pub fn observe(&mut self, now: Time) -> Vec<Event> {
        let events = self.policy.observe(now);
        self.note_bytes(now, |input, decision| {
            input.push(code::OBSERVE);
            code::put_events(decision, &events);
        });
        self.flush();
        events
    }

    /// See [`StoreBudget::share`].
    pub fn share(
        mut self,
        now: Time,
        with: ProcessorId,
        borrower: &mut Borrower,
    ) -> Recorded<StoreBudget> {
        self.note_bytes(now, |input, _| code::put_share(input, with));
        self.map(|scheduler| StoreBudget::share(scheduler, now, with, borrower))
    }
}

impl Recorded<StoreBudget> {
    /// See [`StoreBudget::apply`].
    pub fn apply(&mut self, now: Time, change: Change) {
        self.policy.apply(now, change);
        self.note_bytes(now, |input, _| code::put_change(input, change));
    }

    /// See [`StoreBudget::handle_report`].
    pub fn handle_report(&mut self, now: Time, from: ProcessorId, report: &Report) {
        self.policy.handle_report(now, from, report);
        self.note_bytes(now, |input, _| code::put_report(input, from, report));
    }

    /// See [`StoreBudget::poll_grant`].
    pub fn poll_grant(&mut self, now: Time) -> Option<Grant> {
        let grant = self.policy.poll_grant(now);
        self.note_bytes(now, |input, decision| {
            input.push(code::POLL_GRANT);
            code::put_grant(decision, grant);
        });
        grant
    }

    /// See [`StoreBudget::observe`].
    pub fn observe(&mut self, now: Time) -> Vec<Event> {
        let events = self.policy.observe(now);
        self.note_bytes(now, |input, decision| {
            input.push(code::OBSERVE);
            code::put_events(decision, &events);
        });
        self.flush();
        events
    }

    /// See [`StoreBudget::unshare`].
    pub fn unshare(mut self, now: Time, borrower: Borrower) -> Recorded<StoreScheduler> {
        self.note_bytes(now, |input, _| {
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
