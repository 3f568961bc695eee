//! Requests in flight at workers that borrow from a store's budget.

/// Number of requests in flight at the workers that borrow, according to their reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerInFlight {
    /// Number of requests in flight. Signed: the sum of the changes that workers report.
    pub(crate) in_flight: i32,
    /// Queue depth at which the requests of the current report completed: requests in flight after
    /// the report, plus those that complete in it.
    pub(crate) depth: u32,
}

/// Converts a number of requests to an unsigned number; a negative number becomes 0.
pub(crate) fn at_least_zero(requests: i32) -> u32 {
    u32::try_from(requests).unwrap_or(0)
}
