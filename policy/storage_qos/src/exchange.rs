//! Messages between the workers that use a store and the store's budget.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::WorkerId;

use crate::{DiskSlot, IoKind, WorkerTime};

/// Request for which a worker requests a grant: one that is queued, or a future one (loan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedGrant {
    /// Disk that the request belongs to.
    pub disk: DiskSlot,
    /// Size of the request in bytes; for a loan, the maximum size.
    pub bytes: u32,
}

/// Completed request of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Disk that the request belongs to.
    pub disk: DiskSlot,
    /// Operation that the request performed.
    pub operation: IoKind,
    /// Size of the request in bytes.
    pub bytes: u32,
    /// Time in the device; `None` if the time does not depend on the load of the device.
    pub latency: Option<Duration>,
}

/// Grant that a worker returns unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedGrant {
    /// Disk that the grant was made for.
    pub disk: DiskSlot,
    /// Number of requests that the budget may grant again.
    pub requests: u32,
    /// Number of operations that were charged and not performed.
    pub cost: u32,
    /// Number of bytes that were charged and not transferred.
    pub bytes: u32,
}

/// Report of a worker to the budget. Its memory is reused after it was processed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Requests queued since the previous report, in order.
    #[serde(rename = "wants")]
    pub queued_requests: Vec<RequestedGrant>,
    /// Future requests for which the worker requests loans.
    #[serde(rename = "ahead")]
    pub loan_requests: Vec<RequestedGrant>,
    /// Requests completed since the previous report.
    pub completions: Vec<Completion>,
    /// Grants that the worker returns unused.
    #[serde(rename = "returns")]
    pub returned_grants: Vec<ReturnedGrant>,
    /// Request time since the previous report, by disk.
    #[serde(default)]
    pub times: Vec<WorkerTime>,
}

impl WorkerReport {
    /// Returns true if all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.queued_requests.is_empty()
            && self.loan_requests.is_empty()
            && self.completions.is_empty()
            && self.returned_grants.is_empty()
            && self.times.is_empty()
    }

    /// Appends the lists of `other`, a later report of the same worker, and empties `other`.
    pub fn append(&mut self, other: &mut Self) {
        self.queued_requests.append(&mut other.queued_requests);
        self.loan_requests.append(&mut other.loan_requests);
        self.completions.append(&mut other.completions);
        self.returned_grants.append(&mut other.returned_grants);
        self.times.append(&mut other.times);
    }

    /// Empties the lists without freeing their memory.
    pub fn clear(&mut self) {
        self.queued_requests.clear();
        self.loan_requests.clear();
        self.completions.clear();
        self.returned_grants.clear();
        self.times.clear();
    }
}

/// Grant or refusal by the budget, for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerGrant {
    /// Worker that receives the grant.
    #[serde(rename = "processor")]
    pub worker: WorkerId,
    /// Disk that the grant is for.
    pub disk: DiskSlot,
    /// Kind and amount of the grant.
    #[serde(rename = "of")]
    pub kind: GrantKind,
}

/// Kind and amount of a grant or refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantKind {
    /// Number of queued requests that may be dispatched, oldest first.
    #[serde(rename = "waiting")]
    QueuedRequests(u32),
    /// Loan: one future request of up to this number of bytes may be dispatched.
    #[serde(rename = "ahead")]
    Loan(u32),
    /// Refusal of a requested loan: no capacity is available.
    #[serde(rename = "nothing")]
    LoanRefused,
    /// Refusal of a queued request of this number of bytes: the budget's queue is full or the disk
    /// is not known. The worker must report the request again.
    #[serde(rename = "refused")]
    QueuedRequestRefused(u32),
}
