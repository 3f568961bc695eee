//! State of a disk in the scheduler: its queue, requests in flight and counters.

use suimon_quantity::{DiskId, Time};

use crate::history::{DiskQosCounters, DiskTotals};
use crate::phase::Phases;
use crate::queued_requests::Fifo;
use crate::worker_in_flight::at_least_zero;
use crate::{QueueCause, RequestPhase};

/// Disk in the scheduler. The field order is the memory layout: the first cache line contains the
/// fields that each request needs, the second one those of queued requests.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Disk {
    /// Disk in this slot; `None` for a free slot.
    pub(crate) id: Option<DiskId>,
    pub(crate) flow_index: u32,
    pub(crate) waiting: u32,
    pub(crate) fifo: Fifo,
    pub(crate) in_flight: u32,
    /// True if the disk is the only one of its flow. It then remains a member of the flow without a
    /// queued request, because no order has to be maintained.
    pub(crate) is_only_in_flow: bool,
    /// True if workers that borrow from the store's budget account for the disk's requests in
    /// flight. `in_flight` then includes loans (grants for future requests).
    pub(crate) is_accounted_by_workers: bool,
    /// True if a request in flight is in a phase other than [`RequestPhase::Data`].
    has_phases: bool,
    /// Virtual time of the policy up to which the disk was served, in operations.
    pub(crate) served_virtual_time: u64,
    /// Time up to which request time is accounted for.
    pub(crate) accounted_until: Time,
    pub(crate) totals: DiskTotals,
    phases: Phases,
    /// Number of requests in flight at workers that borrow, as reported by them. Signed: the sum of
    /// the changes that workers report.
    pub(crate) in_flight_at_workers: i32,
}

impl Disk {
    /// Resets the counters of the slot for another disk. Queued and in-flight requests are
    /// preserved.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        *self = Self {
            fifo: self.fifo,
            waiting: self.waiting,
            in_flight: self.in_flight,
            is_accounted_by_workers: self.is_accounted_by_workers,
            has_phases: self.has_phases,
            phases: self.phases,
            in_flight_at_workers: self.in_flight_at_workers,
            accounted_until: now,
            ..Self::default()
        };
    }

    /// Accounts for request time up to `now`. Must be called before a request changes its state.
    /// `cause` is the cause for which the disk's requests are queued.
    #[inline]
    pub(crate) fn account(&mut self, now: Time, cause: QueueCause) {
        let ns = now.ns_since(self.accounted_until);
        if ns == 0 {
            return;
        }
        self.accounted_until = now;
        let in_flight = self.accounted_in_flight();
        self.totals.add_time(ns, (self.waiting, cause), in_flight);
        if self.has_phases {
            self.totals.time.add_phases(ns, &self.phases);
        }
    }

    /// Returns the number of requests in flight; workers that borrow have reported it. Loans
    /// (grants for future requests) are not counted.
    pub(crate) fn in_flight_for_report(&self) -> u32 {
        if self.is_accounted_by_workers {
            at_least_zero(self.in_flight_at_workers)
        } else {
            self.in_flight
        }
    }

    /// Returns the number of requests in flight; `None` if workers account for their time.
    #[inline]
    const fn accounted_in_flight(&self) -> Option<u32> {
        if self.is_accounted_by_workers { None } else { Some(self.in_flight) }
    }

    /// Moves one request in flight from phase `from` to phase `to`.
    pub(crate) fn change_phase(&mut self, from: RequestPhase, to: RequestPhase) {
        self.phases.change(from, to);
        self.has_phases = !self.phases.is_empty();
    }

    /// Clears the phases if no request is in flight.
    #[inline]
    pub(crate) fn clear_phases_if_idle(&mut self) {
        if self.has_phases && self.in_flight == 0 {
            self.set_phases(Phases::default());
        }
    }

    /// Removes and returns the phases of the requests in flight. From now on, workers account for
    /// their time.
    pub(crate) fn take_phases(&mut self) -> Phases {
        self.has_phases = false;
        core::mem::take(&mut self.phases)
    }

    /// Sets the phases of the requests in flight. Not called with phases while workers account for
    /// the requests.
    pub(crate) fn set_phases(&mut self, phases: Phases) {
        self.phases = phases;
        self.has_phases = !phases.is_empty();
    }

    /// Returns the counters up to `now`; `cause` is the cause for which the disk's requests are
    /// queued.
    pub(crate) fn totals_at(&self, now: Time, cause: QueueCause) -> DiskTotals {
        let mut totals = self.totals;
        let ns = now.ns_since(self.accounted_until);
        totals.add_time(ns, (self.waiting, cause), self.accounted_in_flight());
        if self.has_phases {
            totals.time.add_phases(ns, &self.phases);
        }
        totals
    }

    /// Returns the counters of operations and queueing up to `now`. `cause` is the cause for which
    /// the disk's requests are queued, `busy_ns` the busy time of the disk's flow.
    pub(crate) fn qos_counters(
        &self,
        now: Time,
        cause: QueueCause,
        busy_ns: u64,
    ) -> DiskQosCounters {
        let DiskTotals {
            demanded_operations: demanded,
            delivered_operations: delivered,
            queue_time: waits,
            ..
        } = self.totals_at(now, cause);
        DiskQosCounters {
            demanded_operations: demanded,
            delivered_operations: delivered,
            queue_time: waits,
            busy_ns,
        }
    }
}
