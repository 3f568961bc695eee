//! Budget of a store that several workers use, in memory that these workers share.
//!
//! - A worker passes its report to the budget and fetches its grants (an *exchange*) while it holds
//!   the budget's lock. No function under the lock accesses memory of guests, descriptors or files,
//!   so a worker that these block does not hold it.
//! - A worker does not wait for the lock. If another worker holds it, the exchange is repeated in
//!   the next round, and the worker does not sleep before that. From the [`YIELD_AFTER`]th failed
//!   attempt on, the worker yields its CPU after each: the holder of the lock is then probably not
//!   running. Commands of the control plane, and a worker that leaves the store, do wait for the
//!   lock.
//! - No worker is required for the grants of others. The worker with the last exchange wakes up at
//!   the time of the next grant. If it is blocked, another worker with queued requests takes its
//!   place 10 ms later, or the next worker that reports: a worker with requests reports at least
//!   every 100 ms.
//! - Grants to a worker remain in the shared memory until the worker fetches them. The requests of
//!   a worker without an exchange for [`ABSENT_AFTER`](crate::ABSENT_AFTER) do not occupy the
//!   device depth.

pub(crate) mod changes;
mod pending_report;
pub(crate) mod state;
pub(crate) mod sync;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use suimon_ports::Waker;
use suimon_quantity::{Time, WorkerId};
use suimon_recording::Recorded;
use suimon_storage_qos::{Borrower, ConfigStep, DiskQosStatus, DiskSlot, StoreBudget, StoreEvent};

use crate::shared_budget::pending_report::PendingReport;
use crate::shared_budget::state::{BudgetState, MemberFlags, SamplingState};
use crate::shared_budget::sync::{Flag, Lock, Primitives, StdPrimitives};

type State<P> = BudgetState<<P as Primitives>::Flag>;
/// Number of consecutive failed attempts to lock a budget after which a worker yields its CPU. The
/// lock is held for microseconds, as long as a few rounds last.
const YIELD_AFTER: u32 = 8;

/// Time after which another worker with queued requests takes over from the worker that should have
/// distributed the next grant.
const TAKEN_OVER_AFTER: Duration = Duration::from_millis(10);

/// Number of disks whose state is read while the lock of a budget is held once.
const FLOWS_PER_LOCK: usize = 32;

type Locked<P> = Arc<<P as Primitives>::Lock<State<P>>>;

/// Budget of a store that several workers use. Clones are handles of the same budget.
#[derive(Clone)]
pub struct SharedBudget(Locked<StdPrimitives>);

impl SharedBudget {
    pub(crate) fn new(
        now: Time,
        budget: Recorded<StoreBudget>,
        observation: SamplingState,
    ) -> Self {
        Self(Arc::new(Lock::new(State::<StdPrimitives>::new(now, budget, observation))))
    }

    /// Applies changes of the store before the next grant. Returns false if the budget has ended,
    /// because one worker became the only user of the store. Each worker with the store must follow
    /// the change
    /// ([`StorageEngine::handle_budget_change`](crate::StorageEngine::handle_budget_change)).
    #[must_use]
    pub fn apply(&self, changes: &[ConfigStep]) -> bool {
        let mut to_wake = Vec::new();
        let is_applied = self.0.with(|state| state.add_changes(changes, &mut to_wake));
        to_wake.into_iter().for_each(|waker| waker.wake());
        is_applied
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Calls `f` with the budget under its lock. Returns `None` if the budget has ended.
    pub(crate) fn with_budget<R>(&self, f: impl FnOnce(&Recorded<StoreBudget>) -> R) -> Option<R> {
        self.0.with(|state| state.budget().map(f))
    }

    /// Returns the state of the disks in these slots as of `now`, or of the last exchange if that
    /// is later; `None` if the budget has ended. For threads of the control plane: the lock is
    /// released in between, so that workers can use the budget.
    pub fn flows(&self, now: Time, slots: &[DiskSlot]) -> Option<Vec<DiskQosStatus>> {
        read_flows::<StdPrimitives>(&self.0, now, slots, StdPrimitives::pause)
    }

    /// Returns the same as [`SharedBudget::flows`], for a worker: without pauses between the locks.
    pub(crate) fn flows_for_worker(
        &self,
        now: Time,
        slots: &[DiskSlot],
    ) -> Option<Vec<DiskQosStatus>> {
        read_flows::<StdPrimitives>(&self.0, now, slots, || {})
    }

    pub(crate) fn flush_recording(&self) {
        self.0.with(BudgetState::flush_recording);
    }

    #[cfg(test)]
    pub(crate) fn unfetched_grants(&self, worker: WorkerId) -> u32 {
        self.0.with(|state| state.unfetched_grants(worker))
    }

    /// Adds a worker to the users of the budget. Grants are reported by `waker`.
    pub(crate) fn join(
        &self,
        worker: WorkerId,
        waker: Option<Arc<dyn Waker>>,
    ) -> BudgetMembership<StdPrimitives> {
        BudgetMembership::join(&self.0, worker, waker)
    }
}

/// Reads the state of disks. The lock is held for [`FLOWS_PER_LOCK`] disks at a time; `pause` is
/// called in between.
pub(crate) fn read_flows<P: Primitives>(
    state: &Locked<P>,
    now: Time,
    slots: &[DiskSlot],
    mut pause: impl FnMut(),
) -> Option<Vec<DiskQosStatus>> {
    let mut flows = Vec::with_capacity(slots.len());
    for (block, slots) in slots.chunks(FLOWS_PER_LOCK).enumerate() {
        if block > 0 {
            pause();
        }
        if !state.with(|state| state.add_flows(now, slots, &mut flows)) {
            return None;
        }
    }
    Some(flows)
}

/// Ends the membership without a report of the borrower, for a client that is dropped before
/// [`BudgetMembership::end`] or [`BudgetMembership::try_leave`].
impl<P: Primitives> Drop for BudgetMembership<P> {
    fn drop(&mut self) {
        self.end_with(None);
    }
}

impl fmt::Debug for SharedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBudget").finish_non_exhaustive()
    }
}

/// Membership of one worker in a budget.
pub(crate) struct BudgetMembership<P: Primitives> {
    state: Locked<P>,
    flags: Arc<MemberFlags<P::Flag>>,
    me: WorkerId,
    pending: PendingReport,
    /// Number of consecutive failed attempts to lock the budget.
    misses: u32,
    /// True if the membership has ended.
    has_left: bool,
}

impl<P: Primitives> BudgetMembership<P> {
    pub(crate) fn join(state: &Locked<P>, worker: WorkerId, waker: Option<Arc<dyn Waker>>) -> Self {
        let mut pending = PendingReport::default();
        let flags = state.with(|state| state.join(worker, waker, &mut pending.to_wake));
        let state = Arc::clone(state);
        let mut client = Self { state, flags, me: worker, pending, misses: 0, has_left: false };
        client.wake_others();
        client
    }

    /// Passes the borrower's report to the budget and fetches the worker's grants, if there is
    /// anything to exchange and no other worker holds the lock. Returns events of the store's
    /// scheduler.
    #[inline]
    pub(crate) fn exchange(&mut self, now: Time, borrower: &mut Borrower) -> Vec<StoreEvent> {
        self.pending.collect(now, borrower);
        if !self.needs_exchange() && now < self.pending.next_budget_deadline {
            return Vec::new();
        }
        let (worker, pending) = (self.me, &mut self.pending);
        let events = self.state.try_with(|state| state.exchange(now, worker, borrower, pending));
        self.wake_others();
        match events {
            Some(events) => {
                self.misses = 0;
                events
            }
            None => {
                self.handle_miss();
                Vec::new()
            }
        }
    }

    /// Ends the membership, even with outstanding grants, after a last report of the borrower.
    pub(crate) fn end(&mut self, borrower: &mut Borrower) {
        self.end_with(Some(borrower));
    }

    fn end_with(&mut self, borrower: Option<&mut Borrower>) {
        if self.has_left {
            return;
        }
        let (worker, flags, pending) = (self.me, &self.flags, &mut self.pending);
        self.state.with(|state| state.end(worker, flags, borrower, pending));
        self.has_left = true;
        self.wake_others();
    }

    /// Counts a failed attempt to lock the budget, and yields the CPU after several.
    #[cold]
    fn handle_miss(&mut self) {
        self.misses = self.misses.saturating_add(1);
        if self.misses >= YIELD_AFTER {
            P::yield_now();
        }
    }

    /// Returns true if the worker has a report to pass or grants to fetch, and must do so before it
    /// sleeps.
    pub(crate) fn needs_exchange(&self) -> bool {
        !self.pending.report.is_empty() || self.flags.has_updates.get()
    }

    /// Returns the time of the next exchange that is due without a report of this worker; `None` if
    /// there is none. `has_queued`: the worker has queued requests, so that it takes over from a
    /// worker that does not use the budget at the time of the next grant.
    pub(crate) fn next_deadline(&self, has_queued: bool) -> Option<Time> {
        if self.needs_exchange() {
            return Some(Time::ZERO);
        }
        let due = Some(self.pending.next_budget_deadline).filter(|due| *due != Time::NEVER)?;
        if self.flags.is_deadline_keeper.get() {
            return Some(due);
        }
        has_queued.then(|| due + TAKEN_OVER_AFTER)
    }

    /// Takes the budget, with the state of its observation, if this worker is its only user and the
    /// borrower has returned all grants; otherwise returns `None`. `in_flight`: dispatched requests
    /// of the worker that have not completed.
    pub(crate) fn take_budget_if_settled(
        &mut self,
        borrower: &Borrower,
        in_flight: u32,
    ) -> Option<(Box<Recorded<StoreBudget>>, SamplingState)> {
        if self.needs_exchange() {
            return None;
        }
        self.state
            .try_with(|state| state.take_budget_if_settled(self.me, borrower, in_flight))
            .flatten()
    }

    /// Ends the membership if the worker has no grants to fetch. Returns true if it has ended.
    /// Blocks until the lock is free: no other event would repeat the call.
    pub(crate) fn try_leave(&mut self) -> bool {
        let (worker, to_wake) = (self.me, &mut self.pending.to_wake);
        self.has_left = self.state.with(|state| state.try_leave(worker, to_wake));
        self.wake_others();
        self.has_left
    }

    fn wake_others(&mut self) {
        self.pending.to_wake.drain(..).for_each(|waker| waker.wake());
    }
}

#[cfg(test)]
#[path = "interleaving_tests.rs"]
mod tests;
