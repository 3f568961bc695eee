//! A node's side of a store: what `plane/storage` does with requests, in virtual time.
//!
//! The calls and their order are those of a store with one processor there
//! (`plane/storage/src/store.rs`, `StoreRole::Sole`, and `gate.rs`): each request is
//! submitted; after whatever happened, requests are let go until there is none; the one
//! deadline is the scheduler's while requests wait; what is answered is told with its latency in
//! the device; and what was delivered is looked at every [`SAMPLE`] while the store is used.

use std::time::Duration;

use crate::cluster::Clock;
use crate::storage::shared::Shared;
use suimon_quantity::Time;
use suimon_storage_qos::{
    Change, DiskSlot, Event, Next, SAMPLE, Store, StoreScheduler, SubmitError, Submitted,
};

/// A scheduler of a store, as `plane/storage` uses it. [`StoreScheduler`] is the one of
/// production; tests have others, that break what they promise.
pub(crate) trait Scheduler {
    /// See [`StoreScheduler::apply`].
    fn apply(&mut self, now: Time, change: Change);
    /// See [`StoreScheduler::submit`].
    fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError>;
    /// See [`StoreScheduler::poll`].
    fn poll(&mut self, now: Time) -> Next;
    /// See [`StoreScheduler::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
    /// See [`StoreScheduler::handle_complete`].
    fn handle_complete(&mut self, now: Time, slot: DiskSlot, bytes: u32, latency: Duration);
    /// See [`StoreScheduler::observe`].
    fn observe(&mut self, now: Time) -> Vec<Event>;
}

impl Scheduler for StoreScheduler {
    fn apply(&mut self, now: Time, change: Change) {
        self.apply(now, change);
    }

    fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        self.submit(now, slot, bytes, tag)
    }

    fn poll(&mut self, now: Time) -> Next {
        self.poll(now)
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_deadline()
    }

    fn handle_complete(&mut self, now: Time, slot: DiskSlot, bytes: u32, latency: Duration) {
        self.handle_complete(now, slot, bytes, latency);
    }

    fn observe(&mut self, now: Time) -> Vec<Event> {
        self.observe(now)
    }
}

/// A store on a node.
pub(crate) struct Node {
    /// Disks, policies and what may be promised.
    pub(crate) store: Store,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Requests that wait.
    pub(crate) waiting: u32,
    /// Requests that were let go and not answered.
    pub(crate) under_way: u32,
    is_used: bool,
    clock_of: Clock,
    /// For when it is to be woken, and a number that tells this from former ones.
    pub(crate) armed: Option<(Time, u64)>,
    pub(crate) wakes: u64,
    /// Other nodes use the store, too.
    pub(crate) shared: Option<Shared>,
    /// Whether that it withholds something was told.
    pub(crate) withholds: bool,
    /// It stands still until then.
    pub(crate) still_until: Time,
}

impl Node {
    /// With that clock.
    pub(crate) fn new(store: Store, scheduler: Box<dyn Scheduler>, clock: Clock) -> Self {
        Self {
            store,
            scheduler,
            waiting: 0,
            under_way: 0,
            is_used: false,
            clock_of: clock,
            armed: None,
            wakes: 0,
            shared: None,
            withholds: false,
            still_until: Time::ZERO,
        }
    }

    /// What its clock says.
    fn clock(&self, now: Time) -> Time {
        self.clock_of.at(now)
    }

    /// Carries out a step of a change.
    pub(crate) fn apply(&mut self, now: Time, change: Change) {
        let clock = self.clock(now);
        self.scheduler.apply(clock, change);
    }

    /// A disk's request came. Whether it goes at once.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        self.is_used = true;
        let submitted = self.scheduler.submit(self.clock(now), slot, bytes, tag)?;
        match submitted {
            Submitted::Dispatch => self.under_way += 1,
            Submitted::Waits => self.waiting += 1,
        }
        Ok(submitted)
    }

    /// The next request that may go, by its tag.
    pub(crate) fn let_go(&mut self, now: Time) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let Next::Dispatch { tag, .. } = self.scheduler.poll(self.clock(now)) else { return None };
        self.waiting -= 1;
        self.under_way += 1;
        Some(tag)
    }

    /// The next request that what the node is held to lets go, by its disk and tag; it is to be
    /// submitted then.
    pub(crate) fn next_within_cap(&mut self, now: Time) -> Option<(u32, u32)> {
        self.shared.as_mut().and_then(|shared| shared.next(now))
    }

    pub(crate) fn handle_answered(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        latency: Duration,
    ) {
        self.under_way -= 1;
        let clock = self.clock(now);
        self.scheduler.handle_complete(clock, slot, bytes, latency);
    }

    /// When something may go although nothing comes and nothing is answered.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadline = self.scheduler.next_deadline().filter(|_| self.waiting > 0);
        let deadline = deadline.map(|at| self.clock_of.when(at));
        let opens = self.shared.as_ref().and_then(Shared::next_deadline);
        let next = deadline.into_iter().chain(opens).min()?;
        Some(next.max(self.still_until))
    }

    /// Looks at what was delivered; to be called every [`SAMPLE`].
    pub(crate) fn observe(&mut self, now: Time) -> Vec<Event> {
        if !self.is_used && self.under_way == 0 && self.waiting == 0 {
            return Vec::new();
        }
        self.is_used = false;
        let clock = self.clock(now);
        self.scheduler.observe(clock)
    }
}

/// How often [`Node::observe`] is called, in ns.
pub(crate) const OBSERVE_NS: u64 = SAMPLE.as_nanos() as u64;
