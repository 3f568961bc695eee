//! Device latency at each queue depth without other load (own latency).
//!
//! The own latency of an operation, size class and depth is the lowest mean over at least [`SPAN`]
//! and [`BATCH`] requests in the last one to two hours, so that a short burst or a cache hit has no
//! effect. The result of a measurement of the store is used as a further mean. A device is at least
//! as fast with fewer requests, and takes at most twice as long with twice as many requests. A
//! known depth therefore bounds the other depths.
//!
//! Reads and writes have separate latencies, because a write cache completes writes in a fraction
//! of the time of a read. Size classes are powers of two, so latencies within a class differ by a
//! factor of two at most. Flushes and discards have no own latency.

use core::time::Duration;

use suimon_quantity::Time;

use crate::{CompletedRequests, IoKind, MeasuredLatency, Normalization};

/// Minimum number of requests that one mean covers.
const BATCH: u32 = 16;
const SPAN: Duration = Duration::from_millis(500);
/// Number of depth classes: from 1, 2, 4, ... requests on; the last class has all larger depths.
const DEPTHS: usize = 10;
/// Minimum time for which a lowest mean is used. The maximum is twice as long.
const BASELINE_TTL: Duration = Duration::from_secs(3600);
/// Requests of up to this size are in the first size class; each further class has twice the size.
const FIRST_CLASS_BYTES: u32 = 4096;
/// Number of size classes; the last has all requests above 1 MiB.
const SIZE_CLASSES: usize = 10;
/// Value of a lowest mean that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Latencies of requests of one operation and size class at one depth class.
#[derive(Clone, Copy, Debug)]
struct Cell {
    sum_ns: u64,
    count: u32,
    since: Time,
    /// Lowest mean of the current hour in nanoseconds, or [`UNKNOWN`].
    present_ns: u64,
    /// Lowest mean of the previous hour in nanoseconds, or [`UNKNOWN`].
    previous_ns: u64,
}

const EMPTY: Cell =
    Cell { sum_ns: 0, count: 0, since: Time::ZERO, present_ns: UNKNOWN, previous_ns: UNKNOWN };

/// Portions of a total latency that are due to the device itself, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnLatencyPortions {
    /// Portion up to the own latency at the current depth.
    pub(crate) own_latency_ns: u64,
    /// Portion up to the own latency at the depth at which it is lowest.
    pub(crate) unloaded_latency_ns: u64,
}

/// Latencies of requests of one operation and size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Own latency by depth class in nanoseconds. Read for each completion.
    own_ns: [u64; DEPTHS],
    /// Own latency, in nanoseconds, at the depth at which it is lowest.
    unloaded_ns: u64,
    cells: [Cell; DEPTHS],
}

impl Default for Class {
    fn default() -> Self {
        Self { own_ns: [UNKNOWN; DEPTHS], unloaded_ns: UNKNOWN, cells: [EMPTY; DEPTHS] }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OwnLatency {
    /// Size classes of reads, followed by those of writes.
    classes: Vec<Class>,
    /// Result of a measurement of the store, and the size of its requests in bytes.
    measured: Option<(MeasuredLatency, u32)>,
    started: Time,
}

impl Default for OwnLatency {
    fn default() -> Self {
        let classes = vec![Class::default(); 2 * SIZE_CLASSES];
        Self { classes, measured: None, started: Time::ZERO }
    }
}

/// Returns the size class of a request of `bytes`.
#[inline]
fn size_class(bytes: u32) -> usize {
    let steps = bytes.div_ceil(FIRST_CLASS_BYTES).max(1).next_power_of_two();
    (steps.trailing_zeros() as usize).min(SIZE_CLASSES - 1)
}

/// Returns the index in [`OwnLatency::classes`] of the class of a request; `None` if its operation
/// has no own latency.
#[inline]
fn class_of(operation: IoKind, bytes: u32) -> Option<usize> {
    match operation {
        IoKind::Read => Some(size_class(bytes)),
        IoKind::Write => Some(SIZE_CLASSES + size_class(bytes)),
        IoKind::Flush | IoKind::Other => None,
    }
}

/// Returns the index of the depth class that contains `depth`.
#[inline]
fn index_of(depth: u32) -> usize {
    ((depth | 1).ilog2() as usize).min(DEPTHS - 1)
}

impl OwnLatency {
    /// Accounts for requests that completed at a queue depth of `depth` with a total latency of
    /// `latency_ns`. Returns the portions of that latency that are due to the device itself.
    #[inline]
    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        completed: CompletedRequests,
        depth: u32,
        latency_ns: u64,
    ) -> OwnLatencyPortions {
        let index = index_of(depth);
        let class = class_of(completed.operation, completed.bytes);
        let class = class.and_then(|class| Some((class, self.classes.get_mut(class)?)));
        let cell = class.and_then(|(number, class)| {
            let own_ns = class.own_ns.get(index).copied()?;
            Some((number, own_ns, class.unloaded_ns, class.cells.get_mut(index)?))
        });
        let Some((class, mut own_ns, mut unloaded_ns, cell)) = cell else {
            return OwnLatencyPortions {
                own_latency_ns: latency_ns,
                unloaded_latency_ns: latency_ns,
            };
        };
        if cell.count == 0 {
            cell.since = now;
        }
        cell.sum_ns = cell.sum_ns.saturating_add(latency_ns);
        cell.count += completed.requests;
        if cell.count >= BATCH && now.since(cell.since) >= SPAN {
            self.learn(now, class, index);
            let class = self.classes.get(class).copied().unwrap_or_default();
            own_ns = class.own_ns.get(index).copied().unwrap_or(UNKNOWN);
            unloaded_ns = class.unloaded_ns;
        }
        let total = |ns: u64| latency_ns.min(ns.saturating_mul(u64::from(completed.requests)));
        let own_ns = total(own_ns);
        OwnLatencyPortions {
            own_latency_ns: own_ns,
            unloaded_latency_ns: total(unloaded_ns).min(own_ns),
        }
    }

    /// Sets the latency that a measurement of the store found with requests that count as one
    /// operation; `None` removes the latency.
    pub(crate) fn set_measured(
        &mut self,
        measured: Option<MeasuredLatency>,
        normalization: Normalization,
    ) {
        self.measured = measured.map(|measurement| (measurement, normalization.bytes()));
        (0..self.classes.len()).for_each(|class| self.settle(class));
    }

    #[cold]
    fn learn(&mut self, now: Time, class: usize, index: usize) {
        let is_over = now.since(self.started) >= BASELINE_TTL;
        if is_over {
            self.started = now;
            for cell in self.classes.iter_mut().flat_map(|class| &mut class.cells) {
                (cell.previous_ns, cell.present_ns) = (cell.present_ns, UNKNOWN);
            }
        }
        let latency_class = self.classes.get_mut(class);
        let Some(cell) = latency_class.and_then(|latency_class| latency_class.cells.get_mut(index))
        else {
            return;
        };
        let mean_ns = (cell.sum_ns / u64::from(cell.count.max(1))).max(1);
        (cell.sum_ns, cell.count) = (0, 0);
        let before_ns = cell.present_ns.min(cell.previous_ns);
        cell.present_ns = cell.present_ns.min(mean_ns);
        if is_over {
            (0..self.classes.len()).for_each(|class| self.settle(class));
        } else if mean_ns < before_ns {
            self.settle(class);
        }
    }

    /// Recomputes the own latencies of a class from its means.
    fn settle(&mut self, class: usize) {
        // Requests smaller than those of the measurement take at most the same time.
        let is_measured = |bytes: u32| class % SIZE_CLASSES <= size_class(bytes);
        let measured = self.measured.filter(|(_, bytes)| is_measured(*bytes));
        let measured =
            measured.map(|(measurement, _)| (index_of(measurement.depth), measurement.latency_ns));
        let Some(Class { own_ns, unloaded_ns, cells }) = self.classes.get_mut(class) else {
            return;
        };
        let mut lowest_ns = UNKNOWN;
        for (index, (cell, entry)) in cells.iter().zip(own_ns.iter_mut()).enumerate().rev() {
            let of_measurement = measured
                .filter(|(measured_index, _)| *measured_index == index)
                .map_or(UNKNOWN, |measurement| measurement.1);
            lowest_ns = lowest_ns.min(cell.present_ns).min(cell.previous_ns).min(of_measurement);
            *entry = lowest_ns;
        }
        // With twice as many requests, each takes at most twice as long.
        let mut at_most_ns = UNKNOWN;
        for entry in own_ns {
            *entry = (*entry).min(at_most_ns);
            at_most_ns = entry.saturating_mul(2);
        }
        // `lowest_ns` is the minimum over all depths.
        *unloaded_ns = lowest_ns;
    }
}

#[cfg(test)]
#[path = "own_latency_tests.rs"]
mod tests;
