//! Reservation of minimums with the leader of a shared store before a change is made.
//!
//! A change that raises minimums is made after the leader has reserved their sum for this host. The
//! driver reports the new sum as if disks had it; the leader's grant has the result. Without a
//! response in time the change is made nevertheless, but the minimums are pending: disks keep the
//! minimums in effect until the sum is reserved ([`minimums`](super::minimums)).

mod requests;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use suimon_cluster_qos::{AdmissionCheck, LoadReport, NodeGrant, ReportId};
use suimon_contract::Name;
use suimon_quantity::Time;

/// Time for which a reservation is kept until the change is made.
const RESERVATION_KEPT: Duration = Duration::from_secs(30);

/// Response of a store's leader to a request to reserve minimums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationResponse {
    /// The requested sum of minimums is reserved.
    Reserved,
    /// The requested sum exceeds the reservable capacity of the store.
    Refused(AdmissionCheck),
}

/// Slot for the leader's response. The thread that requests the change blocks on it.
#[derive(Default)]
pub(super) struct ResponseSlot {
    verdict: Mutex<Option<ReservationResponse>>,
    received: Condvar,
}

impl ResponseSlot {
    fn report(&self, verdict: ReservationResponse) {
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
        self.received.notify_all();
    }

    fn wait(&self, timeout: Duration) -> Option<ReservationResponse> {
        let verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        let wait_result =
            self.received.wait_timeout_while(verdict, timeout, |verdict| verdict.is_none());
        *wait_result.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Request to reserve the sum of a store's minimums after a change.
#[derive(Clone)]
pub(super) struct ReservationRequest {
    /// Sum of the minimums in IOPS.
    pub(super) iops: u64,
    /// Time until which the reservation is kept if the change is not made.
    until: Time,
    slot: Arc<ResponseSlot>,
    /// First report that contains the sum.
    requested_at: Option<ReportId>,
    is_answered: bool,
}

impl ReservationRequest {
    fn new(now: Time, iops: u64) -> Self {
        let until = now + RESERVATION_KEPT;
        Self { iops, until, slot: Arc::default(), requested_at: None, is_answered: false }
    }

    /// Returns true while the node must include the sum in its reports: it exceeds `minimums_iops`,
    /// the sum of the minimums that disks have, and the change may still be made.
    pub(super) fn is_open(&self, now: Time, minimums_iops: u64) -> bool {
        self.iops > minimums_iops && now < self.until
    }

    pub(super) fn handle_report(&mut self, report: &LoadReport) {
        if self.requested_at.is_none() && report.load.minimums_iops >= self.iops {
            self.requested_at = Some(report.id);
        }
    }

    /// Processes a grant in effect, which may contain the leader's response. Returns true if the
    /// request has ended.
    pub(super) fn handle_grant(&mut self, grant: &NodeGrant) -> bool {
        if self.is_answered
            || self.requested_at.is_none_or(|requested_at| grant.answered_report < requested_at)
        {
            return false;
        }
        if let Some(promises) = grant.refusal {
            self.slot.report(ReservationResponse::Refused(promises));
            return true;
        }
        if grant.store.reserved_iops >= self.iops {
            // The request stays in the reports, so that the reservation is kept until disks have
            // the minimums.
            self.is_answered = true;
            self.slot.report(ReservationResponse::Reserved);
        }
        false
    }
}

/// Requests by store; `None` withdraws the request.
pub(super) type ReservationRequests = BTreeMap<Name, Option<ReservationRequest>>;
