//! Time that a disk's requests spend in each state.
//!
//! Time is accounted for at changes of state, as the integral over time of the number of requests
//! in the state. By Little's law, the integral over a window divided by the window is the mean
//! number of requests in the state. Divided by the number of completed requests, the integral is
//! the mean time of a request in the state.

use serde::{Deserialize, Serialize};

use crate::phase::Phases;
use crate::{DiskUnscheduledTime, RequestPhase};

/// Request time since the disk was added, in nanoseconds, except queueing
/// ([`QueueTime`](crate::QueueTime)). Counters wrap; differences of two readings are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct RequestTime {
    /// Time in which at least one request was queued or in flight.
    pub busy_ns: u64,
    /// Time of requests from dispatch to completion, summed over requests.
    pub in_flight_ns: u64,
    /// Time of completed reads and writes from submission to the device to completion, summed over
    /// requests. Part of `in_flight_ns`.
    pub device_ns: u64,
    /// Part of `device_ns` up to the device's own latency at the depth at which each request
    /// completed.
    #[serde(rename = "own_ns")]
    pub own_latency_ns: u64,
    /// Part of `own_ns` up to the device's lowest own latency at any depth.
    #[serde(rename = "unloaded_ns")]
    pub unloaded_latency_ns: u64,
    /// Time of requests in flight, summed over requests, in which the worker was runnable but the
    /// kernel did not run it.
    pub unscheduled_ns: u64,
    /// Time without requests in flight in which the worker was runnable but the kernel did not run
    /// it. The client's request was in its queue during that time.
    #[serde(rename = "untaken_ns")]
    pub unserviced_ns: u64,
    /// Number of requests that completed.
    #[serde(rename = "requests")]
    pub completed_requests: u64,
    /// Number of completed requests without a device time: flushes, discards, writes of zeros.
    #[serde(rename = "unmeasured")]
    pub requests_without_device_time: u64,
    /// Part of `in_flight_ns` in [`RequestPhase::Metadata`].
    #[serde(default)]
    pub metadata_ns: u64,
    /// Part of `in_flight_ns` in [`RequestPhase::Flush`].
    #[serde(default)]
    pub flush_ns: u64,
    /// Part of `in_flight_ns` in [`RequestPhase::Discard`].
    #[serde(default)]
    pub discard_ns: u64,
    /// Part of `in_flight_ns` in [`RequestPhase::Unmeasured`].
    #[serde(default)]
    pub unmeasured_ns: u64,
}

impl RequestTime {
    /// Adds `ns` nanoseconds in which the disk had requests, of which `in_flight` were in flight.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64, in_flight: u32) {
        self.busy_ns = self.busy_ns.wrapping_add(ns);
        self.in_flight_ns = self.in_flight_ns.wrapping_add(ns.wrapping_mul(in_flight.into()));
    }

    /// Adds `ns` nanoseconds to the time of each phase other than [`RequestPhase::Data`], for each
    /// of its requests.
    #[cold]
    pub(crate) fn add_phases(&mut self, ns: u64, phases: &Phases) {
        for phase in RequestPhase::ALL {
            let sum = match phase {
                RequestPhase::Data => continue,
                RequestPhase::Metadata => &mut self.metadata_ns,
                RequestPhase::Flush => &mut self.flush_ns,
                RequestPhase::Discard => &mut self.discard_ns,
                RequestPhase::Unmeasured => &mut self.unmeasured_ns,
            };
            *sum = sum.wrapping_add(ns.wrapping_mul(phases.count(phase).into()));
        }
    }

    /// Adds time in which the worker was runnable but the kernel did not run it.
    pub(crate) fn add_unscheduled_time(&mut self, unscheduled: DiskUnscheduledTime) {
        self.unscheduled_ns = self.unscheduled_ns.wrapping_add(unscheduled.in_flight_ns);
        self.unserviced_ns = self.unserviced_ns.wrapping_add(unscheduled.unserviced_ns);
    }

    /// Returns the difference to an earlier reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, false)
    }

    /// Adds the time that a worker has accounted for.
    pub(crate) fn merge(&mut self, other: &Self) {
        *self = self.combine(other, true);
    }

    const fn combine(&self, other: &Self, adds: bool) -> Self {
        const fn each(a: u64, b: u64, adds: bool) -> u64 {
            if adds { a.wrapping_add(b) } else { a.wrapping_sub(b) }
        }
        Self {
            busy_ns: each(self.busy_ns, other.busy_ns, adds),
            in_flight_ns: each(self.in_flight_ns, other.in_flight_ns, adds),
            device_ns: each(self.device_ns, other.device_ns, adds),
            own_latency_ns: each(self.own_latency_ns, other.own_latency_ns, adds),
            unloaded_latency_ns: each(self.unloaded_latency_ns, other.unloaded_latency_ns, adds),
            unscheduled_ns: each(self.unscheduled_ns, other.unscheduled_ns, adds),
            unserviced_ns: each(self.unserviced_ns, other.unserviced_ns, adds),
            completed_requests: each(self.completed_requests, other.completed_requests, adds),
            requests_without_device_time: each(
                self.requests_without_device_time,
                other.requests_without_device_time,
                adds,
            ),
            metadata_ns: each(self.metadata_ns, other.metadata_ns, adds),
            flush_ns: each(self.flush_ns, other.flush_ns, adds),
            discard_ns: each(self.discard_ns, other.discard_ns, adds),
            unmeasured_ns: each(self.unmeasured_ns, other.unmeasured_ns, adds),
        }
    }
}
