//! Completed requests, as reported to the scheduler.

use crate::IoKind;

/// Requests of one disk with the same operation and size that completed at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequests {
    /// Operation that the requests performed.
    pub operation: IoKind,
    /// Size of each request in bytes.
    pub bytes: u32,
    /// Number of requests that completed together.
    pub requests: u32,
    /// Sum of the times in the device in nanoseconds; `None` if the times do not depend on the load
    /// of the device.
    pub latency_sum_ns: Option<u64>,
}
