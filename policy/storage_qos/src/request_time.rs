//! Where the requests of a disk spend their time.
//!
//! Time is accounted at changes of state, as a sum over time of the number of requests in the state.
//! By Little's law a state's sum over a window, divided by the window, is the mean number of requests
//! in it, and divided by the requests that completed, the mean time of a request in it.

use serde::{Deserialize, Serialize};

/// Nanoseconds since the disk was added, besides those that requests were queued
/// ([`Waits`](crate::Waits)). All wrap; differences of two readings are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct RequestTime {
    /// Time in which at least one request was queued or in flight.
    pub busy_ns: u64,
    /// Time of requests from dispatch to completion, summed over requests.
    pub in_flight_ns: u64,
    /// Part of `in_flight_ns` from submission to the device to its completion, of reads and writes,
    /// summed over requests that completed.
    pub device_ns: u64,
    /// Part of `device_ns` up to the device's own latency at the depth at which each request
    /// completed.
    pub own_ns: u64,
    /// Part of `own_ns` up to the device's lowest latency at any depth.
    pub unloaded_ns: u64,
    /// Time of requests in flight, summed over requests, in which the worker was runnable and not
    /// running.
    pub unscheduled_ns: u64,
    /// Time without requests that ended in a turn before which the worker was runnable and not
    /// running: the client's request was in its queue meanwhile.
    pub untaken_ns: u64,
    /// Requests that completed.
    pub requests: u64,
    /// Requests that completed without a device time: flushes, discards, writes of zeros.
    pub unmeasured: u64,
}

impl RequestTime {
    /// Returns what was added since an earlier reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            busy_ns: self.busy_ns.wrapping_sub(earlier.busy_ns),
            in_flight_ns: self.in_flight_ns.wrapping_sub(earlier.in_flight_ns),
            device_ns: self.device_ns.wrapping_sub(earlier.device_ns),
            own_ns: self.own_ns.wrapping_sub(earlier.own_ns),
            unloaded_ns: self.unloaded_ns.wrapping_sub(earlier.unloaded_ns),
            unscheduled_ns: self.unscheduled_ns.wrapping_sub(earlier.unscheduled_ns),
            untaken_ns: self.untaken_ns.wrapping_sub(earlier.untaken_ns),
            requests: self.requests.wrapping_sub(earlier.requests),
            unmeasured: self.unmeasured.wrapping_sub(earlier.unmeasured),
        }
    }
}
