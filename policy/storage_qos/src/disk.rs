//! A disk's requests that wait, and what became of those that did.

use suimon_quantity::{DiskId, Time};

use crate::WaitCause;
use crate::history::{Done, Totals};
use crate::records::Fifo;

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
    /// Up to where it is served among the disks of its policy, in operations.
    pub(crate) served: u64,
    /// Up to when the time of its requests is accounted for.
    pub(crate) accounted: Time,
    pub(crate) totals: Totals,
}

impl Disk {
    /// Accounts for the time of its requests up to now, before one of them changes its state.
    /// Requests that are queued were queued because of `cause`.
    #[inline]
    pub(crate) fn account(&mut self, now: Time, cause: WaitCause) {
        let ns = now.ns_since(self.accounted);
        if ns == 0 {
            return;
        }
        self.accounted = now;
        self.totals.add_time(ns, (self.waiting, cause), self.in_flight);
    }

    /// Returns its counts up to now; requests that are queued are because of `cause`.
    pub(crate) fn totals_at(&self, now: Time, cause: WaitCause) -> Totals {
        let mut totals = self.totals;
        totals.add_time(now.ns_since(self.accounted), (self.waiting, cause), self.in_flight);
        totals
    }

    /// What it did up to now; what waits does so because of `cause`. `busy_ns`: how long its flow was
    /// busy.
    pub(crate) fn done(&self, now: Time, cause: WaitCause, busy_ns: u64) -> Done {
        let Totals { demanded, delivered, waits, .. } = self.totals_at(now, cause);
        Done { demanded, delivered, waits, busy_ns }
    }
}
