//! Guaranteed, demanded and delivered operations over sliding windows.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Iops, Time};

use crate::{QueueCause, QueueTime, RequestTime};

const NS_PER_SECOND: u128 = 1_000_000_000;
/// Number of readings in a window: the window has ten intervals.
const READINGS: usize = 11;

/// Interval between readings while a store is in use.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between readings of the five-minute window.
const LONG_EVERY: Duration = Duration::from_secs(30);
/// Length of the short window.
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(300);

/// Counters of a disk since it was added: normalised operations, request time and queueing time.
/// Counters wrap.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct DiskTotals {
    pub(crate) demanded_operations: u64,
    pub(crate) delivered_operations: u64,
    pub(crate) time: RequestTime,
    pub(crate) queue_time: QueueTime,
    /// Operations guaranteed to the disk's flow, at the time of the reading.
    guaranteed: u64,
    /// Dispatch counters of the store and of the disk's flow at the time of the reading.
    rounds: DispatchCounters,
}

/// Counters of the dispatches of queued requests of a store, as they concern one flow. Counters
/// wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DispatchCounters {
    pub(crate) dispatches: u64,
    /// Dispatches for the minimums of other flows although another flow was first by weight.
    pub(crate) others_minimum_dispatches: u64,
}

impl DiskTotals {
    /// Adds `ns` nanoseconds in which `waiting` requests were queued because of `cause` (the pair),
    /// and `in_flight` requests were in flight. `in_flight` is `None` if workers account for those.
    #[inline]
    pub(crate) fn add_time(
        &mut self,
        ns: u64,
        (waiting, cause): (u32, QueueCause),
        in_flight: Option<u32>,
    ) {
        if waiting > 0 {
            self.queue_time.add(cause, waiting, ns);
        }
        if let Some(in_flight) = in_flight.filter(|in_flight| in_flight | waiting > 0) {
            self.time.add(ns, in_flight);
        }
    }
}

/// Counters of a flow, including the operations that its minimum guaranteed while it was busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTotals {
    pub(crate) guaranteed_operations: u64,
    pub(crate) demanded_operations: u64,
    pub(crate) delivered_operations: u64,
    pub(crate) busy_ns: u64,
    pub(crate) dispatch_counters: DispatchCounters,
}

/// Counter of the operations that a flow's minimum guarantees while the flow is busy. It is updated
/// when it is read and before the minimum changes, so that no request costs a division.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GuaranteedCounter {
    pub(crate) operations: u64,
    /// Fraction of an operation, in billionths, that is not in the counter yet.
    part: u64,
    /// Value of [`FlowTotals::busy_ns`] up to which the counter was updated.
    reckoned_ns: u64,
}

impl GuaranteedCounter {
    pub(crate) fn update(&mut self, min: Option<Iops>, busy_ns: u64) {
        let ns = busy_ns.wrapping_sub(core::mem::replace(&mut self.reckoned_ns, busy_ns));
        let Some(min) = min else { return };
        let due = u128::from(min.per_second()) * u128::from(ns) + u128::from(self.part);
        self.part = (due % NS_PER_SECOND) as u64;
        self.operations = self.operations.wrapping_add((due / NS_PER_SECOND) as u64);
    }
}

/// Counters of a disk since it was added to the store's scheduler: normalised operations and
/// queueing time. They begin again with a new scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskQosCounters {
    /// Normalised operations that the clients demanded.
    #[serde(rename = "demanded")]
    pub demanded_operations: u64,
    /// Normalised operations that were delivered.
    #[serde(rename = "delivered")]
    pub delivered_operations: u64,
    /// Queueing time of requests by cause.
    #[serde(rename = "waits")]
    pub queue_time: QueueTime,
    /// Time in nanoseconds in which the disk had requests. For a disk with a shared policy: in
    /// which any disk of the policy had requests.
    #[serde(default)]
    pub busy_ns: u64,
}

/// Queueing is reported only if the queueing time is at least one part in this number of the time
/// span: 1/20 of the time of one permanently queued request.
const WAITS_ONE_IN: u64 = 20;
/// A disk counts as busy if its idle time is less than one part in this number of the time span:
/// 1/20.
const IDLES_ONE_IN: u64 = 20;

/// Rates of a disk over a time span, as reported to other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRates {
    /// Demanded normalised operations per second.
    pub demanded_iops: u64,
    /// Delivered normalised operations per second.
    pub delivered_iops: u64,
    /// True if requests were queued because the node's share of the store was used up.
    pub waits_for_cap: bool,
    /// True if requests were queued for the device and not because of the node's share.
    pub waits_for_device: bool,
    /// True if the disk had requests nearly all the time. Its demand could then increase if more
    /// operations were delivered.
    #[serde(rename = "is_busy")]
    pub is_fully_utilised: bool,
}

impl DiskQosCounters {
    /// Returns the rates since the reading `before`, which was taken `span` earlier; `None` if the
    /// counters began again meanwhile.
    pub fn rates(&self, before: &Self, span: Duration) -> Option<DiskRates> {
        let delivered = self.delivered_operations.checked_sub(before.delivered_operations)?;
        let busy_ns = u128::from(self.busy_ns.checked_sub(before.busy_ns)?);
        // Requests that are not executed are subtracted.
        let demanded = self.demanded_operations.saturating_sub(before.demanded_operations);
        let ns = span.as_nanos().max(1);
        let rate = |operations: u64| {
            u64::try_from(u128::from(operations) * NS_PER_SECOND / ns).unwrap_or(u64::MAX)
        };
        let waits = |cause| {
            let waited = self.queue_time.ns(cause).checked_sub(before.queue_time.ns(cause))?;
            Some(u128::from(waited) * u128::from(WAITS_ONE_IN) > ns)
        };
        let waits_for_cap = waits(QueueCause::StoreCap)?;
        let waits_for_depth = waits(QueueCause::DeviceDepth)?;
        let idle_ns = ns.saturating_sub(busy_ns);
        Some(DiskRates {
            demanded_iops: rate(demanded),
            delivered_iops: rate(delivered),
            waits_for_cap,
            waits_for_device: waits_for_depth && !waits_for_cap,
            is_fully_utilised: idle_ns * u128::from(IDLES_ONE_IN) < ns,
        })
    }
}

/// Normalised operations and request time within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryStats {
    /// Length of the window in nanoseconds. Up to a tenth longer than the nominal length. Shorter
    /// if the disk was added less than one window ago.
    pub window_ns: u64,
    /// Operations that the minimum guarantees for the time in which the disk had requests. For a
    /// disk with a shared policy, the minimum is the policy's.
    #[serde(rename = "entitled")]
    pub guaranteed_operations: u64,
    /// Normalised operations that the clients demanded.
    #[serde(rename = "demanded")]
    pub demanded_operations: u64,
    /// Normalised operations that were delivered.
    #[serde(rename = "delivered")]
    pub delivered_operations: u64,
    /// Queueing time caused by QoS in nanoseconds, by cause, summed over requests.
    #[serde(rename = "waits")]
    pub queue_time: QueueTime,
    /// Request time outside of the QoS queue, by state.
    #[serde(default)]
    pub time: RequestTime,
    /// Number of queued requests of the store that were dispatched in the window.
    #[serde(default)]
    #[serde(rename = "turns")]
    pub store_dispatches: u64,
    /// Number of dispatches in the window for the minimums of other disks although another disk was
    /// first by weight.
    #[serde(default)]
    #[serde(rename = "turns_of_minimums")]
    pub others_minimum_dispatches: u64,
}

impl DeliveryStats {
    /// Converts a number of operations to a rate over the window.
    pub fn per_second(&self, operations: u64) -> u64 {
        let ns = u128::from(self.window_ns.max(1));
        u64::try_from(u128::from(operations) * NS_PER_SECOND / ns).unwrap_or(u64::MAX)
    }
}

impl Window {
    const fn length(self) -> Duration {
        match self {
            Self::Short => SHORT,
            Self::Long => LONG,
        }
    }
}

/// Time window over which delivered operations and request times are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Window of the last 5 s.
    Short,
    /// Window of the last 5 min.
    Long,
}

/// Readings of one window, in a ring buffer: the oldest reading is overwritten.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    readings: [(Time, DiskTotals); READINGS],
    taken: usize,
}

impl Ring {
    fn take(&mut self, now: Time, totals: DiskTotals) {
        if let Some(slot) = self.readings.get_mut(self.taken % READINGS) {
            *slot = (now, totals);
        }
        self.taken += 1;
    }

    /// Returns the readings, newest first.
    fn newest_first(&self) -> impl Iterator<Item = &(Time, DiskTotals)> {
        let numbers = (0..self.taken).rev().take(READINGS);
        numbers.filter_map(|number| self.readings.get(number % READINGS))
    }

    fn newest(&self) -> Option<&(Time, DiskTotals)> {
        self.newest_first().next()
    }

    /// Returns the newest reading that is at least as old as the window is long. If there is none,
    /// returns the oldest reading.
    fn since(&self, now: Time, window: Duration) -> Option<&(Time, DiskTotals)> {
        let old_enough = self.newest_first().find(|(time, _)| now.since(*time) >= window);
        old_enough.or_else(|| self.newest_first().last())
    }

    /// Repeats the last reading at the start of the window after an idle time longer than the
    /// window. The counters did not change meanwhile. Earlier readings are discarded.
    fn skip_pause(&mut self, now: Time, last: &(Time, DiskTotals), window: Duration) {
        if now.since(last.0) >= window {
            self.taken = 0;
            let begin = now.as_ns().saturating_sub(window.as_nanos() as u64);
            self.take(Time::from_ns(begin), last.1);
        }
    }
}

/// Readings of a disk for both windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    short: Ring,
    long: Ring,
}

impl History {
    pub(crate) fn sample(&mut self, now: Time, totals: &DiskTotals, flow: &FlowTotals) {
        let totals = DiskTotals {
            guaranteed: flow.guaranteed_operations,
            rounds: flow.dispatch_counters,
            ..*totals
        };
        if let Some(last) = self.short.newest().copied() {
            self.short.skip_pause(now, &last, SHORT);
            self.long.skip_pause(now, &last, LONG);
        }
        self.short.take(now, totals);
        if self.long.newest().is_none_or(|(time, _)| now.since(*time) >= LONG_EVERY) {
            self.long.take(now, totals);
        }
    }

    /// Converts the readings made in the disk's former flow, so that they are comparable with the
    /// counters of its new flow.
    pub(crate) fn change_flow(&mut self, from: &FlowTotals, to: &FlowTotals) {
        let rebase = |value: &mut u64, from: u64, to: u64| {
            *value = value.wrapping_add(to.wrapping_sub(from));
        };
        for (_, totals) in self.short.readings.iter_mut().chain(&mut self.long.readings) {
            rebase(&mut totals.guaranteed, from.guaranteed_operations, to.guaranteed_operations);
            let (before, after) = (from.dispatch_counters, to.dispatch_counters);
            rebase(&mut totals.rounds.dispatches, before.dispatches, after.dispatches);
            rebase(
                &mut totals.rounds.others_minimum_dispatches,
                before.others_minimum_dispatches,
                after.others_minimum_dispatches,
            );
        }
    }

    pub(crate) fn delivery(
        &self,
        window: Window,
        now: Time,
        totals: &DiskTotals,
        flow: &FlowTotals,
    ) -> DeliveryStats {
        let ring = match window {
            Window::Short => &self.short,
            Window::Long => &self.long,
        };
        let length = window.length();
        let Some((start, before)) = ring.since(now, length) else {
            return DeliveryStats::default();
        };
        // The store was idle between this old reading and the next one.
        let longest_ns = (length + length / 10).as_nanos() as u64;
        DeliveryStats {
            window_ns: now.as_ns().saturating_sub(start.as_ns()).min(longest_ns),
            guaranteed_operations: flow.guaranteed_operations.wrapping_sub(before.guaranteed),
            demanded_operations: totals
                .demanded_operations
                .wrapping_sub(before.demanded_operations),
            delivered_operations: totals
                .delivered_operations
                .wrapping_sub(before.delivered_operations),
            queue_time: totals.queue_time.since(&before.queue_time),
            time: totals.time.since(&before.time),
            store_dispatches: flow
                .dispatch_counters
                .dispatches
                .wrapping_sub(before.rounds.dispatches),
            others_minimum_dispatches: flow
                .dispatch_counters
                .others_minimum_dispatches
                .wrapping_sub(before.rounds.others_minimum_dispatches),
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
