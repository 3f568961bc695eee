//! Node of a store: processing of requests like `plane/storage_engine`, in virtual time.
//!
//! The calls and their order are those of a store with one worker (`StoreRole::Sole` in
//! `plane/storage_engine/src/scheduling/store/status.rs`): each request is submitted; after each
//! event, requests are dispatched until none is eligible; the only deadline is that of the
//! scheduler while requests wait; completions are reported with their latency at the device; and
//! delivered rates are observed every [`SAMPLE`] while the store is in use.

use std::time::Duration;

use suimon_quantity::Time;
use suimon_storage_qos::{
    Change, DiskFlow, DiskSlot, IoKind, Next, SAMPLE, Store, StoreEvent, StoreScheduler,
    SubmitError, Submitted,
};

use crate::cluster::Clock;
use crate::storage::shared::Shared;

/// Scheduler of a store, as used by `plane/storage_engine`. Production uses [`StoreScheduler`];
/// tests also use incorrect ones that violate guarantees.
pub(crate) trait Scheduler {
    /// Returns the contained production scheduler.
    fn own(&self) -> &StoreScheduler;
    /// Returns the contained production scheduler for modification.
    fn own_mut(&mut self) -> &mut StoreScheduler;

    /// Equivalent of [`StoreScheduler::apply`].
    fn apply(&mut self, now: Time, change: Change) {
        self.own_mut().apply(now, change);
    }

    /// Equivalent of [`StoreScheduler::poll`].
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

/// Scheduler of a store on one node, with the state of its requests. One for each pair of node and
/// store.
pub(crate) struct Node {
    /// Disks, policies and reservations of the store.
    pub(crate) store: Store,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Number of requests queued in the scheduler.
    pub(crate) waiting: u32,
    /// Number of requests in flight at the array.
    pub(crate) in_flight: u32,
    is_used: bool,
    clock: Clock,
    /// Deadline that is armed for the scheduler, and a number that distinguishes it from earlier
    /// ones.
    pub(crate) armed: Option<(Time, u64)>,
    pub(crate) wakes: u64,
    /// State of a store that the node shares with others; `None` if it does not.
    pub(crate) shared: Option<Shared>,
    /// True if the last reported state is that requests wait for the node's limit.
    pub(crate) is_reported_waiting: bool,
    /// End of a pause of the node.
    pub(crate) still_until: Time,
}

impl Node {
    /// Returns a node with this clock.
    pub(crate) fn new(store: Store, scheduler: Box<dyn Scheduler>, clock: Clock) -> Self {
        Self {
            store,
            scheduler,
            waiting: 0,
            in_flight: 0,
            is_used: false,
            clock,
            armed: None,
            wakes: 0,
            shared: None,
            is_reported_waiting: false,
            still_until: Time::ZERO,
        }
    }

    /// Returns the time that the node's clock shows.
    pub(crate) fn clock(&self, now: Time) -> Time {
        self.clock.local_time(now)
    }

    /// Applies a change to the scheduler. On a shared store, minimums are limited to those that the
    /// reservation covers.
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

    /// Submits a disk's request. Returns true if it may be dispatched immediately.
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
            Submitted::Dispatch => self.in_flight += 1,
            Submitted::Queued => self.waiting += 1,
        }
        Ok(submitted)
    }

    /// Removes and returns the tag of the next request to dispatch; `None` if none is eligible.
    pub(crate) fn dispatch_next(&mut self, now: Time) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let clock = self.clock(now);
        let Next::Dispatch { tag, .. } = self.scheduler.poll(clock) else { return None };
        self.waiting -= 1;
        self.in_flight += 1;
        Some(tag)
    }

    /// Returns the counters and rates of a disk; `None` if no disk has this slot.
    pub(crate) fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskFlow> {
        self.scheduler.own().view(self.clock(now), slot)
    }

    /// Returns true if requests wait for the node's limit.
    pub(crate) fn waits_for_cap(&self) -> bool {
        self.shared.is_some() && self.waiting > 0 && self.scheduler.own().waits_for_cap()
    }

    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        slot: DiskSlot,
        request: (IoKind, u32),
        latency: Duration,
    ) {
        self.in_flight -= 1;
        let clock = self.clock(now);
        self.scheduler.own_mut().handle_complete(clock, slot, request, latency);
    }

    /// Returns the next time of the run at which a request may become eligible without a submission
    /// or completion; `None` if no request is queued.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadline = self.scheduler.own().next_deadline().filter(|_| self.waiting > 0);
        Some(self.clock.run_time(deadline?).max(self.still_until))
    }

    /// Observes delivered rates. Must be called every [`SAMPLE`].
    pub(crate) fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        if !self.is_used && self.in_flight == 0 && self.waiting == 0 {
            return Vec::new();
        }
        self.is_used = false;
        let clock = self.clock(now);
        self.scheduler.own_mut().observe(clock)
    }
}

/// Interval of calls of [`Node::observe`] in ns.
pub(crate) const OBSERVE_NS: u64 = SAMPLE.as_nanos() as u64;
