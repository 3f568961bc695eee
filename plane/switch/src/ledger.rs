//! What each queue costs its processor.
//!
//! How long every round took is known ([`StageClock`](crate::stages::StageClock)); a round
//! that moved frames is the work of the queues that had a part in it. An ingress queue has
//! its part in all that is done with a batch from taking it to deciding, and to handing it
//! to other processors; an egress queue in what it takes to write frames there and make
//! them visible, whoever decided them. A poll that brings nothing is nobody's.
//!
//! Nobody looks at the clock for that. A queue owes a weight for what it moved: its frames
//! and bytes, times what such a unit of this queue was seen to take in rounds that are
//! timed for the stages anyway. The time that rounds took is split by what is owed, once in
//! a millisecond and before each sleep: the parts are estimated, their sum is exact.
//!
//! - Batches are timed one by one. Egress queues of a round are timed together, and what
//!   each is thought to take is corrected by the same factor; they are told apart by rounds
//!   in which not all had a part.
//! - One timed round that took long for another reason changes little.

use std::sync::Arc;

use crate::tally::QueueTally;

/// A frame takes about as long as so many bytes to copy.
const FRAME_UNITS: u64 = 1024;

/// To have a part in a round at all, as much as so many bytes to copy.
const ROUND_UNITS: u64 = 4096;

/// What a unit takes in ns until something was seen; only proportions count.
const NS_PER_UNIT: f64 = 0.1;

/// Whatever takes less than can be measured takes this.
const NS_PER_UNIT_MIN: f64 = NS_PER_UNIT / 1000.0;

/// Each thing seen displaces such a part of what is known.
const MEMORY: f64 = 1.0 / 16.0;

/// What is seen counts as no more than so many times what is known, and no less than that
/// part of it.
const SURPRISE_MAX: f64 = 4.0;

/// What goes with a queue from ledger to ledger.
#[derive(Debug, Default)]
pub(crate) struct QueueCost {
    /// Its entry, if it is in a ledger.
    place: Option<usize>,
    rate: Rate,
}

/// What a unit of a queue takes in ns, if that was ever seen.
#[derive(Clone, Copy, Debug, Default)]
struct Rate(Option<f64>);

impl Rate {
    fn ns_per_unit(self) -> f64 {
        self.0.unwrap_or(NS_PER_UNIT)
    }

    fn learn(&mut self, seen: f64) {
        self.0 = Some(match self.0 {
            None => seen,
            Some(known) => {
                let seen = seen.clamp(known / SURPRISE_MAX, known * SURPRISE_MAX);
                known + (seen - known) * MEMORY
            }
        })
        .map(|rate| rate.max(NS_PER_UNIT_MIN));
    }
}

struct Entry {
    tally: Arc<QueueTally>,
    rate: Rate,
    /// For what it moved since time was split.
    owed: f64,
}

/// The queues of one processor, as its own thread keeps them.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: Vec<Option<Entry>>,
    /// Places of entries that owe something.
    owing: Vec<usize>,
    /// Egress queues of this round, and what they owe for it.
    egress: Vec<(usize, f64)>,
    /// Of what was timed as egress in this round, what was an ingress queue's.
    posted_ns: u64,
    is_round_owed: bool,
    /// What rounds took that is not split yet.
    unsplit_ns: u64,
}

impl Ledger {
    /// A queue comes.
    pub(crate) fn open(&mut self, cost: &mut QueueCost, tally: &Arc<QueueTally>) {
        let place = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if place == self.entries.len() {
            self.entries.push(None);
            // There is room for all, so that none is made while frames are moved.
            self.owing.reserve(self.entries.len());
            self.egress.reserve(self.entries.len());
        }
        let entry = Entry { tally: Arc::clone(tally), rate: cost.rate, owed: 0.0 };
        self.entries[place] = Some(entry);
        cost.place = Some(place);
    }

    /// A queue goes, with what is known of it; what it owes is settled.
    pub(crate) fn close(&mut self, cost: &mut QueueCost) {
        self.settle();
        let Some(place) = cost.place.take() else { return };
        if let Some(entry) = self.entries.get_mut(place).and_then(Option::take) {
            cost.rate = entry.rate;
        }
        self.egress.retain(|(at, _)| *at != place);
    }

    /// A batch came from an ingress queue and was carried out.
    pub(crate) fn charge_ingress(&mut self, cost: &QueueCost, frames: u64, bytes: u64) {
        self.charge(cost, units(frames, bytes));
    }

    /// An egress queue is about to be flushed, for the only time in this round.
    pub(crate) fn charge_egress(&mut self, cost: &QueueCost, frames: u64, bytes: u64) {
        if let Some(owed) = self.charge(cost, units(frames, bytes)) {
            self.egress.push(owed);
        }
    }

    fn charge(&mut self, cost: &QueueCost, units: f64) -> Option<(usize, f64)> {
        let place = cost.place?;
        let entry = self.entries.get_mut(place)?.as_mut()?;
        let weight = units * entry.rate.ns_per_unit();
        if entry.owed == 0.0 {
            self.owing.push(place);
        }
        entry.owed += weight;
        self.is_round_owed = true;
        Some((place, weight))
    }

    /// A batch was timed: `ns` until it was decided, and `posted_ns` for handing it over if
    /// all of it went to other processors.
    pub(crate) fn learn_ingress(
        &mut self,
        cost: &QueueCost,
        (frames, bytes): (u64, u64),
        ns: u64,
        posted_ns: u64,
    ) {
        self.posted_ns += posted_ns;
        let entry = cost.place.and_then(|place| self.entries.get_mut(place)?.as_mut());
        if let Some(entry) = entry {
            entry.rate.learn((ns + posted_ns) as f64 / units(frames, bytes));
        }
    }

    /// All that was done for egress in this round was timed.
    pub(crate) fn learn_egress(&mut self, ns: u64) {
        let expected: f64 = self.egress.iter().map(|(_, weight)| weight).sum();
        if expected <= 0.0 {
            return;
        }
        let factor = ns.saturating_sub(self.posted_ns) as f64 / expected;
        for (place, _) in &self.egress {
            if let Some(Some(entry)) = self.entries.get_mut(*place) {
                let seen = entry.rate.ns_per_unit() * factor;
                entry.rate.learn(seen);
            }
        }
    }

    /// A round that moved something took so long.
    pub(crate) fn end_round(&mut self, ns: u64) {
        if std::mem::take(&mut self.is_round_owed) {
            self.unsplit_ns += ns;
        }
        self.egress.clear();
        self.posted_ns = 0;
    }

    /// Splits what rounds took by what is owed.
    pub(crate) fn settle(&mut self) {
        if self.unsplit_ns == 0 || self.owing.is_empty() {
            return;
        }
        let mut left = std::mem::take(&mut self.unsplit_ns);
        let entries = &mut self.entries;
        let owed = |place: &usize| entries.get(*place)?.as_ref().map(|entry| entry.owed);
        let whole: f64 = self.owing.iter().filter_map(owed).sum();
        let factor = if whole > 0.0 { left as f64 / whole } else { 0.0 };
        for place in self.owing.drain(..) {
            let Some(Some(entry)) = entries.get_mut(place) else { continue };
            let part = ((std::mem::take(&mut entry.owed) * factor) as u64).min(left);
            left -= part;
            entry.tally.busy_ns.add(part);
        }
    }
}

fn units(frames: u64, bytes: u64) -> f64 {
    (ROUND_UNITS + frames * FRAME_UNITS + bytes) as f64
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
