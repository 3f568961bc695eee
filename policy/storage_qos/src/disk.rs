//! A disk's requests that wait, and what became of those that did.

use suimon_quantity::{DiskId, Time};

use crate::accounting::at_least_zero;
use crate::history::{Done, Totals};
use crate::phase::Phases;
use crate::records::Fifo;
use crate::{Phase, WaitCause};

/// In the order in which it lies in memory: what each request needs is in the first cache line, what
/// one that waited does in the second.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Disk {
    /// `None`: there is no disk in this slot.
    pub(crate) id: Option<DiskId>,
    pub(crate) flow: u32,
    pub(crate) waiting: u32,
    pub(crate) fifo: Fifo,
    pub(crate) in_flight: u32,
    /// The only one of its flow, which has it among its members also while none of its requests
    /// waits: they need no order.
    pub(crate) is_only: bool,
    /// True if workers that borrow from the store's budget account for its requests in flight:
    /// `in_flight` counts what is lent, too.
    pub(crate) is_lent: bool,
    /// True if a request is in a phase other than [`Phase::Data`].
    has_phases: bool,
    /// Up to where it is served among the disks of its policy, in operations.
    pub(crate) served: u64,
    /// Up to when the time of its requests is accounted for.
    pub(crate) accounted: Time,
    pub(crate) totals: Totals,
    phases: Phases,
    /// Requests in flight at workers that borrow, as far as they were reported.
    ///
    /// Signed: while the budget moves, a worker's later report may arrive before an earlier one, and the
    /// end of a request before its start.
    pub(crate) at_workers: i32,
}

impl Disk {
    /// Begins anew, for another disk. What is queued or in flight stays.
    pub(crate) fn begin(&mut self, now: Time) {
        *self = Self {
            fifo: self.fifo,
            waiting: self.waiting,
            in_flight: self.in_flight,
            is_lent: self.is_lent,
            has_phases: self.has_phases,
            phases: self.phases,
            at_workers: self.at_workers,
            accounted: now,
            ..Self::default()
        };
    }

    /// Accounts for the time of its requests up to now, before one of them changes its state.
    /// Requests that are queued were queued because of `cause`.
    #[inline]
    pub(crate) fn account(&mut self, now: Time, cause: WaitCause) {
        let ns = now.ns_since(self.accounted);
        if ns == 0 {
            return;
        }
        self.accounted = now;
        let in_flight = self.accounted_in_flight();
        self.totals.add_time(ns, (self.waiting, cause), in_flight);
        if self.has_phases {
            self.totals.time.add_phases(ns, &self.phases);
        }
    }

    /// Returns the number of requests in flight, as far as it is known: what is lent is not in flight.
    pub(crate) fn known_in_flight(&self) -> u32 {
        if self.is_lent { at_least_zero(self.at_workers) } else { self.in_flight }
    }

    /// Requests in flight whose time is accounted here.
    #[inline]
    const fn accounted_in_flight(&self) -> Option<u32> {
        if self.is_lent { None } else { Some(self.in_flight) }
    }

    /// Moves one request in flight from a phase to another.
    pub(crate) fn change_phase(&mut self, from: Phase, to: Phase) {
        self.phases.change(from, to);
        self.has_phases = !self.phases.is_empty();
    }

    /// Without requests in flight none is in a phase.
    #[inline]
    pub(crate) fn end_phases(&mut self) {
        if self.has_phases && self.in_flight == 0 {
            self.set_phases(Phases::default());
        }
    }

    /// Takes the phases of its requests in flight, whose time workers account for from now on.
    pub(crate) fn take_phases(&mut self) -> Phases {
        self.has_phases = false;
        core::mem::take(&mut self.phases)
    }

    /// Requests in flight are in these phases; none where workers account for them.
    pub(crate) fn set_phases(&mut self, phases: Phases) {
        self.phases = phases;
        self.has_phases = !phases.is_empty();
    }

    /// Returns its counts up to now; requests that are queued are because of `cause`.
    pub(crate) fn totals_at(&self, now: Time, cause: WaitCause) -> Totals {
        let mut totals = self.totals;
        let ns = now.ns_since(self.accounted);
        totals.add_time(ns, (self.waiting, cause), self.accounted_in_flight());
        if self.has_phases {
            totals.time.add_phases(ns, &self.phases);
        }
        totals
    }

    /// What it did up to now; what waits does so because of `cause`. `busy_ns`: how long its flow was
    /// busy.
    pub(crate) fn done(&self, now: Time, cause: WaitCause, busy_ns: u64) -> Done {
        let Totals { demanded, delivered, waits, .. } = self.totals_at(now, cause);
        Done { demanded, delivered, waits, busy_ns }
    }
}
