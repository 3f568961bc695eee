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
    Change, DiskFlow, DiskSlot, Event, Next, Operation, SAMPLE, Store, StoreScheduler, SubmitError,
    Submitted,
};

/// A scheduler of a store, as `plane/storage` uses it. [`StoreScheduler`] is the one of
/// production; tests have others, that break what they promise.
pub(crate) trait Scheduler {
    /// The one of production, in it.
    fn own(&self) -> &StoreScheduler;
    /// The same.
    fn own_mut(&mut self) -> &mut StoreScheduler;

    /// See [`StoreScheduler::apply`].
    fn apply(&mut self, now: Time, change: Change) {
        self.own_mut().apply(now, change);
    }

    /// See [`StoreScheduler::poll`].
    fn poll(&mut self, now: Time) -> Next {
        self.own_mut().poll(now)
    }
}

impl Scheduler for StoreScheduler {
    fn own(&self) -> &StoreScheduler {
        self
    }

    fn own_mut(&mut self) -> &mut StoreScheduler {
        self
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
    /// Whether it was told that something waits because it is held to less.
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
    pub(crate) fn clock(&self, now: Time) -> Time {
        self.clock_of.at(now)
    }

    /// Carries out a step of a change.
    pub(crate) fn apply(&mut self, now: Time, change: Change) {
        let clock = self.clock(now);
        let changes = match &mut self.shared {
            Some(shared) => shared.covered(change),
            None => vec![change],
        };
        for change in changes {
            self.scheduler.apply(clock, change);
        }
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
        let clock = self.clock(now);
        let submitted = self.scheduler.own_mut().submit(clock, slot, bytes, tag)?;
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
        let clock = self.clock(now);
        let Next::Dispatch { tag, .. } = self.scheduler.poll(clock) else { return None };
        self.waiting -= 1;
        self.under_way += 1;
        Some(tag)
    }

    /// What a disk gets.
    pub(crate) fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskFlow> {
        self.scheduler.own().view(self.clock(now), slot)
    }

    /// Whether requests wait because the node is held to less.
    pub(crate) fn waits_for_cap(&self) -> bool {
        self.shared.is_some() && self.waiting > 0 && self.scheduler.own().waits_for_cap()
    }

    pub(crate) fn handle_answered(
        &mut self,
        now: Time,
        slot: DiskSlot,
        request: (Operation, u32),
        latency: Duration,
    ) {
        self.under_way -= 1;
        let clock = self.clock(now);
        self.scheduler.own_mut().handle_complete(clock, slot, request, latency);
    }

    /// When something may go although nothing comes and nothing is answered.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadline = self.scheduler.own().next_deadline().filter(|_| self.waiting > 0);
        Some(self.clock_of.when(deadline?).max(self.still_until))
    }

    /// Looks at what was delivered; to be called every [`SAMPLE`].
    pub(crate) fn observe(&mut self, now: Time) -> Vec<Event> {
        if !self.is_used && self.under_way == 0 && self.waiting == 0 {
            return Vec::new();
        }
        self.is_used = false;
        let clock = self.clock(now);
        self.scheduler.own_mut().observe(clock)
    }
}

/// How often [`Node::observe`] is called, in ns.
pub(crate) const OBSERVE_NS: u64 = SAMPLE.as_nanos() as u64;
