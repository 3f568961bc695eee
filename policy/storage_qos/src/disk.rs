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
    pub(crate) waits_since: Time,
    pub(crate) totals: Totals,
}

impl Disk {
    /// Requests that waited until now did so because of `cause`.
    #[inline]
    pub(crate) fn account_wait(&mut self, now: Time, cause: WaitCause) {
        if self.waiting > 0 {
            let ns = now.as_ns().saturating_sub(self.waits_since.as_ns());
            self.totals.waits.add(cause, self.waiting, ns);
        }
        self.waits_since = now;
    }

    /// What it did up to now; what waits does so because of `cause`. `busy_ns`: how long its flow was
    /// busy.
    pub(crate) fn done(&self, now: Time, cause: WaitCause, busy_ns: u64) -> Done {
        let mut waits = self.totals.waits;
        let ns = now.as_ns().saturating_sub(self.waits_since.as_ns());
        waits.add(cause, self.waiting, ns);
        let (demanded, delivered) = (self.totals.demanded, self.totals.delivered);
        Done { demanded, delivered, waits, busy_ns }
    }
}
