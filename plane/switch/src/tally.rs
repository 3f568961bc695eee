//! Counters. Their owners add to them once per batch, everybody may read them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use suimon_forwarding::DropReason;
use suimon_quantity::Time;

use crate::stage_tally::StageTally;

/// A counter that only grows, and that anybody may add to.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Relaxed);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A counter that only grows, and that one thread at a time adds to: a queue's or a
/// processor's own. Who hands it over has written it before the other one reads it.
/// It needs no locked instruction, of which each costs as much as a frame's lookup.
#[derive(Debug, Default)]
pub(crate) struct OwnTally(AtomicU64);

impl OwnTally {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.value().wrapping_add(count), Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one queue carried since it was made.
#[derive(Debug, Default)]
pub(crate) struct QueueTally {
    pub frames: OwnTally,
    pub bytes: OwnTally,
    pub full: OwnTally,
    pub moves: OwnTally,
    /// See [`crate::ledger`].
    pub busy_ns: OwnTally,
}

/// What became of one port's frames since it was made, over all its queues, whoever
/// owned them and however often a VM came and went. What they carried the queues
/// count themselves.
#[derive(Debug)]
pub(crate) struct PortTally {
    pub flooded: Tally,
    pub software_segmented: Tally,
    pub software_checksummed: Tally,
    pub coalesced_segments: Tally,
    pub coalesced_units: Tally,
    rx_dropped: [Tally; DropReason::COUNT],
    tx_dropped: [Tally; DropReason::COUNT],
}

impl Default for PortTally {
    fn default() -> Self {
        Self {
            flooded: Tally::default(),
            software_segmented: Tally::default(),
            software_checksummed: Tally::default(),
            coalesced_segments: Tally::default(),
            coalesced_units: Tally::default(),
            rx_dropped: std::array::from_fn(|_| Tally::default()),
            tx_dropped: std::array::from_fn(|_| Tally::default()),
        }
    }
}

impl PortTally {
    /// A frame that came in here went nowhere.
    pub(crate) fn drop_rx(&self, reason: DropReason, frames: u64) {
        self.rx_dropped[reason.index()].add(frames);
    }

    /// A frame meant for this port did not go out.
    pub(crate) fn drop_tx(&self, reason: DropReason, frames: u64) {
        self.tx_dropped[reason.index()].add(frames);
    }

    /// The reasons that occurred, with their counts.
    pub(crate) fn dropped_rx(&self) -> Vec<(&'static str, u64)> {
        occurred(&self.rx_dropped)
    }

    /// The reasons that occurred, with their counts.
    pub(crate) fn dropped_tx(&self) -> Vec<(&'static str, u64)> {
        occurred(&self.tx_dropped)
    }
}

fn occurred(counters: &[Tally; DropReason::COUNT]) -> Vec<(&'static str, u64)> {
    DropReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), counters[reason.index()].value()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// What one processor did since it started.
#[derive(Debug, Default)]
pub(crate) struct ProcessorTally {
    pub batches: OwnTally,
    pub frames: OwnTally,
    pub sleeps: OwnTally,
    /// Times it began to rest from polling, because others want its CPU.
    pub rests: OwnTally,
    /// When the last rest ends, or has ended, on the processors' clock.
    rests_until_ns: AtomicU64,
    /// What rounds took that moved something.
    pub working_ns: OwnTally,
    /// CPU time of the thread in ns, as last written by the thread itself.
    pub cpu_time_ns: AtomicU64,
    pub queues: AtomicU64,
    pub stages: StageTally,
}

impl ProcessorTally {
    /// The processor rests from now until then.
    pub(crate) fn note_rest(&self, until: Time) {
        self.rests.add(1);
        self.rests_until_ns.store(until.as_ns(), Relaxed);
    }

    /// Whether the processor rests.
    pub(crate) fn is_resting(&self, now: Time) -> bool {
        now.as_ns() < self.rests_until_ns.load(Relaxed)
    }
}
