//! Runs: several requests of the same size that are charged together.

use crate::records::Units;

/// Several requests of the same size that are charged together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) requests: u32,
    /// Charge of each request: operations and bytes.
    pub(crate) each: Units,
    /// Charge of all requests of the run.
    pub(crate) all: Units,
}

impl Run {
    /// Creates a run of `requests` requests; `None` if the sums overflow.
    #[inline]
    pub(crate) fn new(each: Units, requests: u32) -> Option<Self> {
        let total = Units {
            cost: each.cost.checked_mul(requests)?,
            bytes: each.bytes.checked_mul(requests)?,
        };
        Some(Self { requests, each, all: total })
    }
}
