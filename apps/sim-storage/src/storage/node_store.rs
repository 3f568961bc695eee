//! Node of a store: processing of requests like `plane/storage_engine`, in virtual time.
//!
//! The calls and their order are those of a store with one worker (`StoreRole::Sole` in
//! `plane/storage_engine/src/scheduling/store/status.rs`): each request is submitted; after each
//! event, requests are dispatched until none is eligible; the only deadline is that of the
//! scheduler while requests wait; completions are reported with their latency at the device; and
//! delivered rates are observed every [`SAMPLE_INTERVAL`] while the store is in use.

use std::time::Duration;

use suimon_quantity::Time;
use suimon_storage_qos::{
    ConfigStep, DiskQosStatus, DiskSlot, IoKind, NextAction, SAMPLE_INTERVAL, Store, StoreEvent,
    StoreScheduler, SubmitError, SubmitOutcome,
};

use crate::cluster::Clock;
use crate::storage::shared_store_state::SharedStoreState;

/// Scheduler of a store, as used by `plane/storage_engine`. Production uses [`StoreScheduler`];
/// tests also use incorrect ones that violate guarantees.
pub(crate) trait Scheduler {
    /// Returns the contained production scheduler.
    fn production(&self) -> &StoreScheduler;
    /// Returns the contained production scheduler for modification.
    fn production_mut(&mut self) -> &mut StoreScheduler;

    /// Equivalent of [`StoreScheduler::apply`].
    fn apply(&mut self, now: Time, change: ConfigStep) {
        self.production_mut().apply(now, change);
    }

    /// Equivalent of [`StoreScheduler::poll`].
    fn poll(&mut self, now: Time) -> NextAction {
        self.production_mut().poll(now)
    }
}

impl Scheduler for StoreScheduler {
    fn production(&self) -> &StoreScheduler {
        self
    }

    fn production_mut(&mut self) -> &mut StoreScheduler {
        self
    }
}

/// Scheduler of a store on one node, with the state of its requests. One for each pair of node and
/// store.
pub(crate) struct NodeStore {
    /// Disks, policies and reservations of the store.
    pub(crate) store: Store,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Number of requests queued in the scheduler.
    pub(crate) queued: u32,
    /// Number of requests in flight at the array.
    pub(crate) in_flight: u32,
    is_used: bool,
    clock: Clock,
    /// Deadline that is armed for the scheduler, and a number that distinguishes it from earlier
    /// ones.
    pub(crate) armed_deadline: Option<(Time, u64)>,
    pub(crate) last_wake_number: u64,
    /// State of a store that the node shares with others; `None` if it does not.
    pub(crate) shared: Option<SharedStoreState>,
    /// True if the last reported state is that requests wait for the node's limit.
    pub(crate) is_reported_waiting: bool,
    /// End of a pause of the node.
    pub(crate) paused_until: Time,
}

impl NodeStore {
    /// Returns a node with this clock.
    pub(crate) fn new(store: Store, scheduler: Box<dyn Scheduler>, clock: Clock) -> Self {
        Self {
            store,
            scheduler,
            queued: 0,
            in_flight: 0,
            is_used: false,
            clock,
            armed_deadline: None,
            last_wake_number: 0,
            shared: None,
            is_reported_waiting: false,
            paused_until: Time::ZERO,
        }
    }

    /// Returns the time that the node's clock shows.
    pub(crate) fn local_time(&self, now: Time) -> Time {
        self.clock.local_time(now)
    }

    /// Applies a change to the scheduler. On a shared store, minimums are limited to those that the
    /// reservation covers.
    pub(crate) fn apply(&mut self, now: Time, change: ConfigStep) {
        let clock = self.local_time(now);
        let changes = match &mut self.shared {
            Some(shared) => shared.limit_to_reservation(change),
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
    ) -> Result<SubmitOutcome, SubmitError> {
        self.is_used = true;
        let clock = self.local_time(now);
        let submitted = self.scheduler.production_mut().submit(clock, slot, bytes, tag)?;
        match submitted {
            SubmitOutcome::Dispatch => self.in_flight += 1,
            SubmitOutcome::Queued => self.queued += 1,
        }
        Ok(submitted)
    }

    /// Removes and returns the tag of the next request to dispatch; `None` if none is eligible.
    pub(crate) fn dispatch_next(&mut self, now: Time) -> Option<u32> {
        if self.queued == 0 {
            return None;
        }
        let clock = self.local_time(now);
        let NextAction::Dispatch { tag, .. } = self.scheduler.poll(clock) else { return None };
        self.queued -= 1;
        self.in_flight += 1;
        Some(tag)
    }

    /// Returns the counters and rates of a disk; `None` if no disk has this slot.
    pub(crate) fn disk_flow(&self, now: Time, slot: DiskSlot) -> Option<DiskQosStatus> {
        self.scheduler.production().view(self.local_time(now), slot)
    }

    /// Returns true if requests wait for the node's limit.
    pub(crate) fn is_waiting_for_node_limit(&self) -> bool {
        self.shared.is_some() && self.queued > 0 && self.scheduler.production().waits_for_cap()
    }

    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        slot: DiskSlot,
        request: (IoKind, u32),
        latency: Duration,
    ) {
        self.in_flight -= 1;
        let clock = self.local_time(now);
        self.scheduler.production_mut().handle_completion(clock, slot, request, latency);
    }

    /// Returns the next time of the run at which a request may become eligible without a submission
    /// or completion; `None` if no request is queued.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadline = self.scheduler.production().next_deadline().filter(|_| self.queued > 0);
        Some(self.clock.run_time(deadline?).max(self.paused_until))
    }

    /// Observes delivered rates. Must be called every [`SAMPLE_INTERVAL`].
    pub(crate) fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        if !self.is_used && self.in_flight == 0 && self.queued == 0 {
            return Vec::new();
        }
        self.is_used = false;
        let clock = self.local_time(now);
        self.scheduler.production_mut().observe(clock)
    }
}

/// Interval of calls of [`NodeStore::observe`] in ns.
pub(crate) const OBSERVE_INTERVAL_NS: u64 = SAMPLE_INTERVAL.as_nanos() as u64;
