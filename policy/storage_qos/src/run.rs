//! Runs: several requests of the same size that are charged together.

use crate::queued_requests::RequestCharge;

/// Several requests of the same size that are charged together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRun {
    pub(crate) requests: u32,
    /// Charge of each request: operations and bytes.
    pub(crate) charge_per_request: RequestCharge,
    /// Charge of all requests of the run.
    pub(crate) total_charge: RequestCharge,
}

impl RequestRun {
    /// Creates a run of `requests` requests; `None` if the sums overflow.
    #[inline]
    pub(crate) fn new(each: RequestCharge, requests: u32) -> Option<Self> {
        let total = RequestCharge {
            cost: each.cost.checked_mul(requests)?,
            bytes: each.bytes.checked_mul(requests)?,
        };
        Some(Self { requests, charge_per_request: each, total_charge: total })
    }
}
