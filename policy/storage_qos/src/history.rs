//! What was entitled, demanded and delivered, over sliding windows.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Iops, Time};

use crate::{RequestTime, WaitCause, Waits};

const NS_PER_SECOND: u128 = 1_000_000_000;
/// Readings of a window: one more than the parts into which they divide it.
const READINGS: usize = 11;

/// How often readings are taken while a store is used.
pub const SAMPLE: Duration = Duration::from_millis(500);
/// Time between readings of the long window.
const LONG_EVERY: Duration = Duration::from_secs(30);
/// Lengths of the windows.
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(300);

/// Normalised operations since a disk is there, and its waits. They wrap.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Totals {
    pub(crate) demanded: u64,
    pub(crate) delivered: u64,
    pub(crate) time: RequestTime,
    pub(crate) waits: Waits,
    /// Of its flow, when the reading was taken.
    entitled: u64,
    /// Of its flow and store, when the reading was taken.
    turns: Turns,
}

/// Requests that had been queued and were dispatched, of a store. They wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) all: u64,
    /// Those of other flows that were dispatched for their minimum before a flow whose turn by weight
    /// it was.
    pub(crate) others_minimums: u64,
}

impl Totals {
    /// Adds `ns` in which so many requests were queued because of a cause, and so many in flight;
    /// `None`: workers account for those in flight.
    #[inline]
    pub(crate) fn add_time(
        &mut self,
        ns: u64,
        (waiting, cause): (u32, WaitCause),
        in_flight: Option<u32>,
    ) {
        if waiting > 0 {
            self.waits.add(cause, waiting, ns);
        }
        if let Some(in_flight) = in_flight.filter(|in_flight| in_flight | waiting > 0) {
            self.time.add(ns, in_flight);
        }
    }
}

/// The same of a flow, with what it was entitled to while it was busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTotals {
    pub(crate) entitled: u64,
    pub(crate) demanded: u64,
    pub(crate) delivered: u64,
    pub(crate) busy_ns: u64,
    pub(crate) turns: Turns,
}

/// What a flow's minimum came to while it was busy. It is reckoned when somebody looks, and before the
/// flow has another minimum: a request need not divide for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entitled {
    pub(crate) operations: u64,
    /// Of an operation, in billionths.
    part: u64,
    /// Up to which count of [`FlowTotals::busy_ns`].
    reckoned_ns: u64,
}

impl Entitled {
    pub(crate) fn reckon(&mut self, min: Option<Iops>, busy_ns: u64) {
        let ns = busy_ns.wrapping_sub(core::mem::replace(&mut self.reckoned_ns, busy_ns));
        let Some(min) = min else { return };
        let due = u128::from(min.per_second()) * u128::from(ns) + u128::from(self.part);
        self.part = (due % NS_PER_SECOND) as u64;
        self.operations = self.operations.wrapping_add((due / NS_PER_SECOND) as u64);
    }
}

/// What a disk did since it is there, in normalised operations. All wrap; differences of two
/// readings are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// What was asked for.
    pub demanded: u64,
    /// What was completed.
    pub delivered: u64,
    /// Why requests waited.
    pub waits: Waits,
    /// Nanoseconds in which it had something to do; of disks with a shared policy, in which one of
    /// them had.
    #[serde(default)]
    pub busy_ns: u64,
}

/// Of the time in which a request waited at each moment, so much is not told: one in so many.
const WAITS_ONE_IN: u64 = 20;
/// A disk that has nothing to do for less than one in so many is busy.
const IDLES_ONE_IN: u64 = 20;

/// What a disk did in a while, as other nodes are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Normalised operations per second that were asked for.
    pub demanded_iops: u64,
    /// Normalised operations per second that were completed.
    pub delivered_iops: u64,
    /// Requests waited because all disks here together may do no more.
    pub waits_for_cap: bool,
    /// Requests waited for the device, and not for that.
    pub waits_for_device: bool,
    /// It had something to do nearly all the time: what was asked for is what it got, and it may be
    /// that it would ask for more if it got more.
    pub is_busy: bool,
}

impl Done {
    /// What was done since `before`, in so long.
    pub fn rates(&self, before: &Self, span: Duration) -> Rates {
        let ns = span.as_nanos().max(1);
        let rate = |from: u64, to: u64| {
            let operations = u128::from(to.wrapping_sub(from));
            u64::try_from(operations * NS_PER_SECOND / ns).unwrap_or(u64::MAX)
        };
        let waited = |cause| self.waits.ns(cause).wrapping_sub(before.waits.ns(cause));
        let waits = |cause| u128::from(waited(cause)) * u128::from(WAITS_ONE_IN) > ns;
        let waits_for_cap = waits(WaitCause::StoreCap);
        let busy_ns = u128::from(self.busy_ns.wrapping_sub(before.busy_ns));
        let idle_ns = ns.saturating_sub(busy_ns);
        Rates {
            demanded_iops: rate(before.demanded, self.demanded),
            delivered_iops: rate(before.delivered, self.delivered),
            waits_for_cap,
            waits_for_device: waits(WaitCause::DeviceDepth) && !waits_for_cap,
            is_busy: idle_ns * u128::from(IDLES_ONE_IN) < ns,
        }
    }
}

/// Normalised operations in a window, and why requests waited in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// How long the window really was, in nanoseconds: up to a tenth longer than asked for,
    /// and shorter if the disk is not there for as long.
    pub window_ns: u64,
    /// What the minimum comes to over the time in which the disk had something to do. Of a
    /// disk with a shared policy: what the policy's minimum comes to.
    pub entitled: u64,
    /// What was asked for.
    pub demanded: u64,
    /// What was completed.
    pub delivered: u64,
    /// Nanoseconds of waiting that QoS caused, by cause, summed over requests.
    pub waits: Waits,
    /// Where requests spent their time otherwise.
    #[serde(default)]
    pub time: RequestTime,
    /// Queued requests of the store that were dispatched.
    #[serde(default)]
    pub turns: u64,
    /// Those of other disks that were dispatched for their minimum, before a disk whose turn it was.
    #[serde(default)]
    pub turns_of_minimums: u64,
}

impl Delivery {
    /// Operations as a rate over the window.
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

/// The two windows that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Five seconds.
    Short,
    /// Five minutes.
    Long,
}

/// Readings of one window, the oldest overwritten.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    readings: [(Time, Totals); READINGS],
    taken: usize,
}

impl Ring {
    fn take(&mut self, now: Time, totals: Totals) {
        if let Some(slot) = self.readings.get_mut(self.taken % READINGS) {
            *slot = (now, totals);
        }
        self.taken += 1;
    }

    /// Returns the readings, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = &(Time, Totals)> {
        let taken = (0..self.taken).rev().take(READINGS);
        taken.filter_map(|at| self.readings.get(at % READINGS))
    }

    fn newest(&self) -> Option<&(Time, Totals)> {
        self.newest_first().next()
    }

    /// Returns the newest reading that is as old as the window is long, or else the oldest one.
    fn since(&self, now: Time, window: Duration) -> Option<&(Time, Totals)> {
        let old_enough = self.newest_first().find(|(at, _)| now.since(*at) >= window);
        old_enough.or_else(|| self.newest_first().last())
    }

    /// Takes a reading again at the begin of the window, if a disk did nothing for longer than the
    /// window is: then it says the same, and earlier readings count no more.
    fn skip_pause(&mut self, now: Time, last: &(Time, Totals), window: Duration) {
        if now.since(last.0) >= window {
            self.taken = 0;
            let begin = now.as_ns().saturating_sub(window.as_nanos() as u64);
            self.take(Time::from_ns(begin), last.1);
        }
    }
}

/// A disk's readings.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    short: Ring,
    long: Ring,
}

impl History {
    pub(crate) fn sample(&mut self, now: Time, totals: &Totals, flow: &FlowTotals) {
        let totals = Totals { entitled: flow.entitled, turns: flow.turns, ..*totals };
        if let Some(last) = self.short.newest().copied() {
            self.short.skip_pause(now, &last, SHORT);
            self.long.skip_pause(now, &last, LONG);
        }
        self.short.take(now, totals);
        if self.long.newest().is_none_or(|(at, _)| now.since(*at) >= LONG_EVERY) {
            self.long.take(now, totals);
        }
    }

    /// The disk has another flow from now on. Readings of the former one are made comparable.
    pub(crate) fn change_flow(&mut self, from: &FlowTotals, to: &FlowTotals) {
        let rebase = |value: &mut u64, from: u64, to: u64| {
            *value = value.wrapping_add(to.wrapping_sub(from));
        };
        for (_, totals) in self.short.readings.iter_mut().chain(&mut self.long.readings) {
            rebase(&mut totals.entitled, from.entitled, to.entitled);
            let (before, after) = (from.turns, to.turns);
            rebase(&mut totals.turns.all, before.all, after.all);
            rebase(
                &mut totals.turns.others_minimums,
                before.others_minimums,
                after.others_minimums,
            );
        }
    }

    pub(crate) fn delivery(
        &self,
        window: Window,
        now: Time,
        totals: &Totals,
        flow: &FlowTotals,
    ) -> Delivery {
        let ring = match window {
            Window::Short => &self.short,
            Window::Long => &self.long,
        };
        let length = window.length();
        let Some((since, before)) = ring.since(now, length) else { return Delivery::default() };
        // The store was idle between a reading that is much older and the next one.
        let longest_ns = (length + length / 10).as_nanos() as u64;
        Delivery {
            window_ns: now.as_ns().saturating_sub(since.as_ns()).min(longest_ns),
            entitled: flow.entitled.wrapping_sub(before.entitled),
            demanded: totals.demanded.wrapping_sub(before.demanded),
            delivered: totals.delivered.wrapping_sub(before.delivered),
            waits: totals.waits.since(&before.waits),
            time: totals.time.since(&before.time),
            turns: flow.turns.all.wrapping_sub(before.turns.all),
            turns_of_minimums: flow
                .turns
                .others_minimums
                .wrapping_sub(before.turns.others_minimums),
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
