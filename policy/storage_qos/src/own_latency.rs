//! Latency that a device shows at each depth when nothing else uses it.
//!
//! For each size class and depth it is the lowest mean of [`SPAN`] and [`BATCH`] requests or more in
//! the last one to two hours, so that neither a cache nor a burst makes it for a moment. What a
//! measurement of the store found counts, too. A device is at least as fast with fewer requests, and
//! takes at most twice as long with twice as many: what is known of one depth
//! bounds the others.

use core::time::Duration;

use suimon_quantity::Time;

use crate::MeasuredLatency;
use crate::cost::SIZE_CLASSES;

/// Requests and time whose mean is one sample, at least.
const BATCH: u32 = 16;
const SPAN: Duration = Duration::from_millis(500);
/// Depths from 1, 2, 4, ... on; the last has all that are larger.
const DEPTHS: usize = 10;
/// Lowest means are kept for this long, and at most twice as long.
const KEPT: Duration = Duration::from_secs(3600);
/// Lowest mean that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Requests of one size class at one depth.
#[derive(Clone, Copy, Debug)]
struct Cell {
    sum_ns: u64,
    count: u32,
    since: Time,
    /// Lowest means of the present and of the previous hour.
    present_ns: u64,
    previous_ns: u64,
}

const EMPTY: Cell =
    Cell { sum_ns: 0, count: 0, since: Time::ZERO, present_ns: UNKNOWN, previous_ns: UNKNOWN };

/// Part of a latency that is the device's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// At the present depth.
    pub(crate) own_ns: u64,
    /// At the depth at which it is lowest.
    pub(crate) unloaded_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct OwnLatency {
    /// Latency by size class and depth, as it is looked up for each completion.
    own_ns: [[u64; DEPTHS]; SIZE_CLASSES],
    unloaded_ns: [u64; SIZE_CLASSES],
    cells: [[Cell; DEPTHS]; SIZE_CLASSES],
    /// Of requests of the first size class.
    measured: Option<MeasuredLatency>,
    began: Time,
}

impl Default for OwnLatency {
    fn default() -> Self {
        Self {
            own_ns: [[UNKNOWN; DEPTHS]; SIZE_CLASSES],
            unloaded_ns: [UNKNOWN; SIZE_CLASSES],
            cells: [[EMPTY; DEPTHS]; SIZE_CLASSES],
            measured: None,
            began: Time::ZERO,
        }
    }
}

/// Returns the index of a depth.
#[inline]
fn index_of(depth: u32) -> usize {
    ((depth | 1).ilog2() as usize).min(DEPTHS - 1)
}

impl OwnLatency {
    /// Accounts for requests of a size class that completed while the device had `depth` requests.
    /// `latency_ns` is their sum; returns the parts of it that are the device's own.
    #[inline]
    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        class: usize,
        depth: u32,
        requests: u32,
        latency_ns: u64,
    ) -> Own {
        let index = index_of(depth);
        let Some(cell) = self.cells.get_mut(class).and_then(|of| of.get_mut(index)) else {
            return Own { own_ns: latency_ns, unloaded_ns: latency_ns };
        };
        if cell.count == 0 {
            cell.since = now;
        }
        cell.sum_ns = cell.sum_ns.saturating_add(latency_ns);
        cell.count += requests;
        if cell.count >= BATCH && now.since(cell.since) >= SPAN {
            self.learn(now, class, index);
        }
        let own_ns = self.own_ns.get(class).and_then(|of| of.get(index));
        let own_ns = own_ns.copied().unwrap_or(UNKNOWN);
        let unloaded_ns = self.unloaded_ns.get(class).copied().unwrap_or(UNKNOWN);
        let all = |ns: u64| latency_ns.min(ns.saturating_mul(u64::from(requests)));
        let own_ns = all(own_ns);
        Own { own_ns, unloaded_ns: all(unloaded_ns).min(own_ns) }
    }

    /// Sets what a measurement of the store found; `None` without one.
    pub(crate) fn set_measured(&mut self, measured: Option<MeasuredLatency>) {
        self.measured = measured;
        self.settle(0);
    }

    #[cold]
    fn learn(&mut self, now: Time, class: usize, index: usize) {
        let is_over = now.since(self.began) >= KEPT;
        if is_over {
            self.began = now;
            for cell in self.cells.iter_mut().flatten() {
                (cell.previous_ns, cell.present_ns) = (cell.present_ns, UNKNOWN);
            }
        }
        let Some(cell) = self.cells.get_mut(class).and_then(|of| of.get_mut(index)) else { return };
        let mean_ns = (cell.sum_ns / u64::from(cell.count.max(1))).max(1);
        (cell.sum_ns, cell.count) = (0, 0);
        let before_ns = cell.present_ns.min(cell.previous_ns);
        cell.present_ns = cell.present_ns.min(mean_ns);
        if is_over {
            (0..SIZE_CLASSES).for_each(|class| self.settle(class));
        } else if mean_ns < before_ns {
            self.settle(class);
        }
    }

    /// Computes anew what is looked up for a size class.
    fn settle(&mut self, class: usize) {
        let measured = self.measured.filter(|_| class == 0);
        let measured = measured.map(|of| (index_of(of.depth), of.latency_ns));
        let (Some(cells), Some(own)) = (self.cells.get(class), self.own_ns.get_mut(class)) else {
            return;
        };
        let mut lowest_ns = UNKNOWN;
        for (index, (cell, own)) in cells.iter().zip(own.iter_mut()).enumerate().rev() {
            let of_measurement = measured.filter(|(at, _)| *at == index).map_or(UNKNOWN, |of| of.1);
            lowest_ns = lowest_ns.min(cell.present_ns).min(cell.previous_ns).min(of_measurement);
            *own = lowest_ns;
        }
        // With twice as many requests each takes at most twice as long.
        let mut at_most_ns = UNKNOWN;
        for own in own {
            *own = (*own).min(at_most_ns);
            at_most_ns = own.saturating_mul(2);
        }
        // The depth of 1 has the lowest of all.
        if let Some(unloaded_ns) = self.unloaded_ns.get_mut(class) {
            *unloaded_ns = lowest_ns;
        }
    }
}

#[cfg(test)]
#[path = "own_latency_tests.rs"]
mod tests;
