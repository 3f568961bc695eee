//! Budget of a store that several workers use, in memory that these workers share.
//!
//! - A worker exchanges its report for grants while it holds the budget's lock. No function under
//!   the lock accesses memory of guests, descriptors or files, so a worker that these block does
//!   not hold it.
//! - A worker does not wait for the lock. If another worker holds it, the exchange is repeated in
//!   the next round, and the worker does not sleep before that. From the
//!   [`YIELD_AFTER`]th failed attempt on, the worker yields its CPU after each: the holder of the
//!   lock is then probably not running. Commands of the control plane, and a worker that leaves the
//!   store, do wait for the lock.
//! - No worker is required for the grants of others. The worker with the last exchange arms the
//!   time of the next grant. If it is blocked, the next report of any other worker takes its place:
//!   a worker with requests reports at least every 100 ms.
//! - Grants to a worker remain in the shared memory until the worker fetches them. The requests of
//!   a worker without an exchange for [`ABSENT_AFTER`](crate::ABSENT_AFTER) do not occupy the
//!   device depth.

use std::fmt;
use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::{Time, WorkerId};
use suimon_recording::Recorded;
use suimon_storage_qos::{Borrower, Change, StoreBudget, StoreEvent};

use crate::budget_state::{BudgetState, MemberFlags, Observation, Pending};
use crate::exclusion::{Flag, Lock, Primitives, StdPrimitives};

type State<P> = BudgetState<<P as Primitives>::Flag>;
/// Number of consecutive failed attempts to lock a budget after which a worker yields its CPU. The
/// lock is held for microseconds, as long as a few rounds last.
const YIELD_AFTER: u32 = 8;

type Locked<P> = Arc<<P as Primitives>::Lock<State<P>>>;

/// Budget of a store that several workers use. Clones are handles of the same budget.
#[derive(Clone)]
pub struct SharedBudget(Locked<StdPrimitives>);

impl SharedBudget {
    pub(crate) fn new(now: Time, budget: Recorded<StoreBudget>, observation: Observation) -> Self {
        Self(Arc::new(Lock::new(State::<StdPrimitives>::new(now, budget, observation))))
    }

    /// Applies steps of a change before the next grant. Returns false if the budget has ended,
    /// because one worker became the only user of the store. Each worker with the store must follow
    /// the change ([`StorageEngine::follow`](crate::StorageEngine::follow)).
    #[must_use]
    pub fn apply(&self, changes: &[Change]) -> bool {
        let mut to_wake = Vec::new();
        let is_applied = self.0.with(|state| state.apply(changes, &mut to_wake));
        to_wake.into_iter().for_each(|waker| waker.wake());
        is_applied
    }

    pub(crate) fn is(&self, of: &Self) -> bool {
        Arc::ptr_eq(&self.0, &of.0)
    }

    /// Calls `f` with the budget, and true for one of the members; `None` without a budget.
    pub(crate) fn with_budget<R>(
        &self,
        me: WorkerId,
        f: impl FnOnce(&Recorded<StoreBudget>, bool) -> R,
    ) -> Option<R> {
        self.0.with(|state| state.budget().map(|budget| f(budget, state.is_first(me))))
    }

    pub(crate) fn flush(&self) {
        self.0.with(BudgetState::flush);
    }

    #[cfg(test)]
    pub(crate) fn unfetched(&self, worker: WorkerId) -> u32 {
        self.0.with(|state| state.unfetched(worker))
    }

    /// Adds a worker to the users of the budget.
    pub(crate) fn join(
        &self,
        me: WorkerId,
        waker: Option<Arc<dyn Waker>>,
    ) -> BudgetClient<StdPrimitives> {
        BudgetClient::join(&self.0, me, waker)
    }
}

/// Ends the membership regardless of grants, for a worker that ends or uses another budget.
impl<P: Primitives> Drop for BudgetClient<P> {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let (me, flags, to_wake) = (self.me, &self.flags, &mut self.pending.to_wake);
        self.state.with(|state| state.abandon(me, flags, to_wake));
        self.wake_others();
    }
}

impl fmt::Debug for SharedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBudget").finish_non_exhaustive()
    }
}

/// Membership of one worker.
pub(crate) struct BudgetClient<P: Primitives> {
    state: Locked<P>,
    flags: Arc<MemberFlags<P::Flag>>,
    me: WorkerId,
    pending: Pending,
    /// Number of failed attempts to lock the budget since the last exchange.
    misses: u32,
    /// True if the membership has ended.
    has_left: bool,
}

impl<P: Primitives> BudgetClient<P> {
    pub(crate) fn join(state: &Locked<P>, me: WorkerId, waker: Option<Arc<dyn Waker>>) -> Self {
        let mut pending = Pending::default();
        let flags = state.with(|of| of.join(me, waker, &mut pending.to_wake));
        let state = Arc::clone(state);
        let mut client = Self { state, flags, me, pending, misses: 0, has_left: false };
        client.wake_others();
        client
    }

    /// Hands over the borrower's report and fetches its grants, if there is anything to exchange
    /// and no other worker uses the budget. Returns events of the scheduler.
    #[inline]
    pub(crate) fn exchange(&mut self, now: Time, own: &mut Borrower) -> Vec<StoreEvent> {
        self.pending.collect(now, own);
        if !self.is_pending() && now < self.pending.due {
            return Vec::new();
        }
        let (me, pending) = (self.me, &mut self.pending);
        let events = self.state.try_with(|state| state.exchange(now, me, own, pending));
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

    /// Yields the CPU after several failed attempts to lock the budget.
    #[cold]
    fn handle_miss(&mut self) {
        self.misses = self.misses.saturating_add(1);
        if self.misses >= YIELD_AFTER {
            P::yield_now();
        }
    }

    /// Returns true if the worker must exchange before it sleeps.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.report.is_empty() || self.flags.has_news.get()
    }

    /// Returns the time of the next exchange that is due without a report of this worker.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        if self.is_pending() {
            return Some(Time::ZERO);
        }
        let due = self.pending.due;
        (self.flags.is_keeper.get() && due != Time::NEVER).then_some(due)
    }

    /// Returns the budget and the state of its observation if this worker is its only user, and the
    /// borrower has returned all grants.
    pub(crate) fn take_settled(
        &mut self,
        own: &Borrower,
        in_flight: u32,
    ) -> Option<(Box<Recorded<StoreBudget>>, Observation)> {
        if self.is_pending() {
            return None;
        }
        self.state.try_with(|state| state.take_settled(self.me, own, in_flight)).flatten()
    }

    /// Sets whether the worker will leave the store.
    pub(crate) fn set_leaving(&self, is_leaving: bool) {
        self.state.with(|state| state.set_leaving(self.me, is_leaving));
    }

    /// Ends the membership if the worker has nothing to exchange. Returns true if it has ended.
    /// Blocks until the lock is free: no other event would repeat the call.
    pub(crate) fn leave(&mut self) -> bool {
        let (me, to_wake) = (self.me, &mut self.pending.to_wake);
        self.has_left = self.state.with(|state| state.leave(me, to_wake));
        self.wake_others();
        self.has_left
    }

    fn wake_others(&mut self) {
        self.pending.to_wake.drain(..).for_each(|waker| waker.wake());
    }
}

#[cfg(test)]
#[path = "shared_budget_tests.rs"]
mod tests;
