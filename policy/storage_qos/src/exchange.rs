//! Messages between workers and a store's budget.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::WorkerId;

use crate::{DiskSlot, IoKind, WorkerTime};

/// Request that is queued on a worker, or a future request for which a worker requests a loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedGrant {
    /// Disk that the request belongs to.
    pub disk: DiskSlot,
    /// Size of the request in bytes.
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
    /// Time in the device; `None` if the time does not reflect the device's load.
    pub latency: Option<Duration>,
}

/// Grant that the worker returns unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// Disk that the grant was made for.
    pub disk: DiskSlot,
    /// Number of requests that the budget may grant again.
    pub requests: u32,
    /// Operations that were charged and not performed.
    pub cost: u32,
    /// Bytes that were charged and not transferred.
    pub bytes: u32,
}

/// Report of a worker to the budget. The memory of its lists is reused after its processing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoanReport {
    /// Requests queued since the previous report, in order.
    #[serde(rename = "wants")]
    pub loan_demand: Vec<RequestedGrant>,
    /// Loans that the worker requests for future requests.
    #[serde(rename = "ahead")]
    pub loan_requests: Vec<RequestedGrant>,
    /// Requests completed since the previous report.
    pub completions: Vec<Completion>,
    /// Grants that the worker returns unused.
    pub returns: Vec<Return>,
    /// Request time since the previous report.
    #[serde(default)]
    pub times: Vec<WorkerTime>,
}

impl LoanReport {
    /// Returns true if all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.loan_demand.is_empty()
            && self.loan_requests.is_empty()
            && self.completions.is_empty()
            && self.returns.is_empty()
            && self.times.is_empty()
    }

    /// Appends a later report of the same worker and empties that report.
    pub fn append(&mut self, other: &mut Self) {
        self.loan_demand.append(&mut other.loan_demand);
        self.loan_requests.append(&mut other.loan_requests);
        self.completions.append(&mut other.completions);
        self.returns.append(&mut other.returns);
        self.times.append(&mut other.times);
    }

    /// Empties the lists without freeing their memory.
    pub fn clear(&mut self) {
        self.loan_demand.clear();
        self.loan_requests.clear();
        self.completions.clear();
        self.returns.clear();
        self.times.clear();
    }
}

/// Grant of the budget to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerGrant {
    /// Worker that receives the grant.
    #[serde(rename = "processor")]
    pub worker: WorkerId,
    /// Disk of the granted requests.
    pub disk: DiskSlot,
    /// Kind and amount of the grant.
    pub of: GrantKind,
}

/// Kind and amount of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantKind {
    /// Number of queued requests that may be dispatched, oldest first.
    Waiting(u32),
    /// Loan for one future request of up to this number of bytes.
    Ahead(u32),
    /// Refusal of a loan: no capacity is available.
    Nothing,
    /// Refusal of a queued request of this number of bytes: the budget's queue is full or the disk
    /// is not known. The worker must report the request again.
    Refused(u32),
}
