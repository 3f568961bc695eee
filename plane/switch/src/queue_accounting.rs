//! Accounting of worker time per queue.
//!
//! The duration of each round is known ([`StageClock`](crate::stage_clock::StageClock)). The time
//! of a round that moved frames is attributed to the queues that took part in it. An ingress queue
//! is charged from the receipt of a batch to its decision, and for sending frames to other workers.
//! An egress queue is charged for writing frames and making them visible, whichever worker decided
//! them. Polls without result are charged to no queue.
//!
//! This needs no additional clock reads. A queue is debited with a weight for what it moved: its
//! frames and bytes, multiplied by the duration of such a unit that rounds timed for the stages
//! have shown for this queue. The duration of rounds is divided in proportion to the weights, once
//! per millisecond and before each sleep. The shares are estimates; their sum is exact.
//!
//! - Batches are timed individually. Egress queues of a round are timed together, and their
//!   estimates are corrected by the same factor. Rounds in which not all of them took part separate
//!   them.
//! - One timed round that took long for another reason has little influence.

use std::sync::Arc;

use crate::counters::QueueCounters;

/// Cost of a frame in units of one copied byte.
const FRAME_UNITS: u64 = 1024;

/// Fixed cost of taking part in a round in units of one copied byte.
const ROUND_UNITS: u64 = 4096;

/// Initial duration of a unit in ns; only proportions matter.
const NS_PER_UNIT: f64 = 0.1;

/// Smallest estimate of a unit's duration in ns, for durations below the clock's resolution.
const NS_PER_UNIT_MIN: f64 = NS_PER_UNIT / 1000.0;

/// Weight of a new observation in the moving average of a unit's duration.
const MEMORY: f64 = 1.0 / 16.0;

/// Limit on an observation: it counts as at most this multiple of the estimate, and at least its
/// inverse.
const SURPRISE_MAX: f64 = 4.0;

/// Cost estimate of a queue, which moves with the queue from one worker's accounting to the next.
#[derive(Debug, Default)]
pub(crate) struct QueueCost {
    /// Index of the queue's entry in [`QueueAccounting`]; `None` while no worker owns the queue.
    slot: Option<usize>,
    rate: Rate,
}

/// Estimated duration in ns of a unit (one copied byte) of a queue; `None` if none was observed.
#[derive(Clone, Copy, Debug, Default)]
struct Rate(Option<f64>);

impl Rate {
    fn ns_per_unit(self) -> f64 {
        self.0.unwrap_or(NS_PER_UNIT)
    }

    fn learn(&mut self, measured: f64) {
        self.0 = Some(match self.0 {
            None => measured,
            Some(estimate) => {
                let measured = measured.clamp(estimate / SURPRISE_MAX, estimate * SURPRISE_MAX);
                estimate + (measured - estimate) * MEMORY
            }
        })
        .map(|rate| rate.max(NS_PER_UNIT_MIN));
    }
}

struct Entry {
    counters: Arc<QueueCounters>,
    rate: Rate,
    /// Weight of the frames moved since worker time was last divided, in estimated ns.
    uncharged: f64,
}

/// Accounting of worker time for the queues of one worker; used by the worker's thread only.
#[derive(Default)]
pub(crate) struct QueueAccounting {
    entries: Vec<Option<Entry>>,
    /// Indices of entries with `uncharged` above 0.
    unsettled: Vec<usize>,
    /// Egress queues of this round: index of the entry, and weight in the round.
    egress: Vec<(usize, f64)>,
    /// Time in ns that was measured as egress in this round but belongs to ingress queues.
    posted_ns: u64,
    has_unsettled_round: bool,
    /// Duration in ns of rounds that is not yet divided among the queues.
    unsplit_ns: u64,
}

impl QueueAccounting {
    /// Adds an entry for a queue attached to this worker. The attributed time is added to `tally`.
    pub(crate) fn add_queue(&mut self, cost: &mut QueueCost, tally: &Arc<QueueCounters>) {
        let slot = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if slot == self.entries.len() {
            self.entries.push(None);
            // Reserved here, so that nothing is allocated while frames are moved.
            self.unsettled.reserve(self.entries.len());
            self.egress.reserve(self.entries.len());
        }
        let entry = Entry { counters: Arc::clone(tally), rate: cost.rate, uncharged: 0.0 };
        self.entries[slot] = Some(entry);
        cost.slot = Some(slot);
    }

    /// Divides the pending time, and removes the entry of a queue. Its estimate remains in `cost`.
    pub(crate) fn remove_queue(&mut self, cost: &mut QueueCost) {
        self.divide_pending_time();
        let Some(slot) = cost.slot.take() else { return };
        if let Some(entry) = self.entries.get_mut(slot).and_then(Option::take) {
            cost.rate = entry.rate;
        }
        self.egress.retain(|(index, _)| *index != slot);
    }

    /// Charges an ingress queue for a batch that was processed.
    pub(crate) fn charge_ingress(&mut self, cost: &QueueCost, frames: u64, bytes: u64) {
        self.charge(cost, units(frames, bytes));
    }

    /// Charges an egress queue that is about to be flushed, once per round.
    pub(crate) fn charge_egress(&mut self, cost: &QueueCost, frames: u64, bytes: u64) {
        if let Some(uncharged) = self.charge(cost, units(frames, bytes)) {
            self.egress.push(uncharged);
        }
    }

    fn charge(&mut self, cost: &QueueCost, units: f64) -> Option<(usize, f64)> {
        let slot = cost.slot?;
        let entry = self.entries.get_mut(slot)?.as_mut()?;
        let weight = units * entry.rate.ns_per_unit();
        if entry.uncharged == 0.0 {
            self.unsettled.push(slot);
        }
        entry.uncharged += weight;
        self.has_unsettled_round = true;
        Some((slot, weight))
    }

    /// Updates the estimate of an ingress queue from a timed batch: `ns` from receipt to decision,
    /// and `posted_ns` for its delivery if all of it went to other workers, otherwise 0.
    pub(crate) fn update_ingress_estimate(
        &mut self,
        cost: &QueueCost,
        (frames, bytes): (u64, u64),
        ns: u64,
        posted_ns: u64,
    ) {
        self.posted_ns += posted_ns;
        let entry = cost.slot.and_then(|slot| self.entries.get_mut(slot)?.as_mut());
        if let Some(entry) = entry {
            entry.rate.learn((ns + posted_ns) as f64 / units(frames, bytes));
        }
    }

    /// Updates the estimates of this round's egress queues. `ns`: measured duration of all egress
    /// work of the round.
    pub(crate) fn update_egress_estimates(&mut self, ns: u64) {
        let expected: f64 = self.egress.iter().map(|(_, weight)| weight).sum();
        if expected <= 0.0 {
            return;
        }
        let factor = ns.saturating_sub(self.posted_ns) as f64 / expected;
        for (slot, _) in &self.egress {
            if let Some(Some(entry)) = self.entries.get_mut(*slot) {
                let measured = entry.rate.ns_per_unit() * factor;
                entry.rate.learn(measured);
            }
        }
    }

    /// Ends a round that moved frames and took `ns`, which [`QueueAccounting::divide_pending_time`]
    /// divides later.
    pub(crate) fn end_round(&mut self, ns: u64) {
        if std::mem::take(&mut self.has_unsettled_round) {
            self.unsplit_ns += ns;
        }
        self.egress.clear();
        self.posted_ns = 0;
    }

    /// Divides the duration of rounds in proportion to the queues' weights, and adds it to their
    /// counters.
    pub(crate) fn divide_pending_time(&mut self) {
        if self.unsplit_ns == 0 || self.unsettled.is_empty() {
            return;
        }
        let mut remaining = std::mem::take(&mut self.unsplit_ns);
        let entries = &mut self.entries;
        let uncharged = |slot: &usize| entries.get(*slot)?.as_ref().map(|entry| entry.uncharged);
        let total: f64 = self.unsettled.iter().filter_map(uncharged).sum();
        let factor = if total > 0.0 { remaining as f64 / total } else { 0.0 };
        for slot in self.unsettled.drain(..) {
            let Some(Some(entry)) = entries.get_mut(slot) else { continue };
            let part = ((std::mem::take(&mut entry.uncharged) * factor) as u64).min(remaining);
            remaining -= part;
            entry.counters.busy_ns.add(part);
        }
    }
}

fn units(frames: u64, bytes: u64) -> f64 {
    (ROUND_UNITS + frames * FRAME_UNITS + bytes) as f64
}

#[cfg(test)]
#[path = "queue_accounting_tests.rs"]
mod tests;
