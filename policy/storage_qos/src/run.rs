//! Runs of requests of one size.

use crate::records::Units;

/// Requests of one size that are charged together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) requests: u32,
    /// Units of each request.
    pub(crate) each: Units,
    /// Sum of the units.
    pub(crate) all: Units,
}

impl Run {
    /// Creates a run; `None` if the sums overflow.
    #[inline]
    pub(crate) fn new(each: Units, requests: u32) -> Option<Self> {
        let all = Units {
            cost: each.cost.checked_mul(requests)?,
            bytes: each.bytes.checked_mul(requests)?,
        };
        Some(Self { requests, each, all })
    }
}
