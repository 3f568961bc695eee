//! Counters, updated once per batch by their owners and readable by all threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use suimon_forwarding::DropReason;
use suimon_quantity::Time;

use crate::published_stage_times::PublishedStageTimes;

/// Monotonic counter that any thread may increment at any time.
#[derive(Debug, Default)]
pub(crate) struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Relaxed);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Monotonic counter that one thread at a time increments: the owner of a queue, or a worker. The
/// message that moves a queue synchronises its old and new owner. No locked instruction is needed,
/// each of which costs as much as a frame's lookup.
#[derive(Debug, Default)]
pub(crate) struct SingleWriterCounter(AtomicU64);

impl SingleWriterCounter {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.value().wrapping_add(count), Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counters of one queue since it was attached.
#[derive(Debug, Default)]
pub(crate) struct QueueCounters {
    pub frames: SingleWriterCounter,
    pub bytes: SingleWriterCounter,
    pub dropped_full: SingleWriterCounter,
    pub moves: SingleWriterCounter,
    /// Worker time attributed to the queue in ns; see [`crate::queue_accounting`].
    pub busy_ns: SingleWriterCounter,
}

/// Counters of one port since it was created, over all its queues and their owners and all restarts
/// of its VM. Frames and bytes are counted by the queues.
#[derive(Debug)]
pub(crate) struct PortCounters {
    pub flooded: SharedCounter,
    pub software_segmented: SharedCounter,
    pub software_checksummed: SharedCounter,
    pub coalesced_segments: SharedCounter,
    pub coalesced_frames: SharedCounter,
    rx_dropped: [SharedCounter; DropReason::COUNT],
    tx_dropped: [SharedCounter; DropReason::COUNT],
}

impl Default for PortCounters {
    fn default() -> Self {
        Self {
            flooded: SharedCounter::default(),
            software_segmented: SharedCounter::default(),
            software_checksummed: SharedCounter::default(),
            coalesced_segments: SharedCounter::default(),
            coalesced_frames: SharedCounter::default(),
            rx_dropped: std::array::from_fn(|_| SharedCounter::default()),
            tx_dropped: std::array::from_fn(|_| SharedCounter::default()),
        }
    }
}

impl PortCounters {
    /// Counts `frames` frames received from the port as dropped.
    pub(crate) fn count_rx_drop(&self, reason: DropReason, frames: u64) {
        self.rx_dropped[reason.index()].add(frames);
    }

    /// Counts `frames` frames for transmission to the port as dropped.
    pub(crate) fn count_tx_drop(&self, reason: DropReason, frames: u64) {
        self.tx_dropped[reason.index()].add(frames);
    }

    /// Returns the drop reasons that occurred for received frames, with the number of frames.
    pub(crate) fn rx_dropped(&self) -> Vec<(&'static str, u64)> {
        occurred(&self.rx_dropped)
    }

    /// Returns the drop reasons that occurred for frames to transmit, with the number of frames.
    pub(crate) fn tx_dropped(&self) -> Vec<(&'static str, u64)> {
        occurred(&self.tx_dropped)
    }
}

fn occurred(counters: &[SharedCounter; DropReason::COUNT]) -> Vec<(&'static str, u64)> {
    DropReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), counters[reason.index()].value()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Counters of one worker since it started.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    pub batches: SingleWriterCounter,
    pub frames: SingleWriterCounter,
    pub sleeps: SingleWriterCounter,
    /// Number of pauses in polling because other threads compete for the CPU.
    pub polling_pauses: SingleWriterCounter,
    /// End of the last pause in polling by the workers' clock, in ns.
    backoff_until_ns: AtomicU64,
    /// Duration in ns of rounds that moved frames or requests.
    pub working_ns: SingleWriterCounter,
    /// CPU time of the thread in ns, as last published by the thread itself.
    pub cpu_time_ns: AtomicU64,
    pub queues: AtomicU64,
    pub stages: PublishedStageTimes,
}

impl WorkerCounters {
    /// Records a pause in polling that ends at `deadline`.
    pub(crate) fn set_polling_pause_end(&self, deadline: Time) {
        self.polling_pauses.add(1);
        self.backoff_until_ns.store(deadline.as_ns(), Relaxed);
    }

    /// Returns true while polling is paused.
    pub(crate) fn is_polling_paused(&self, now: Time) -> bool {
        now.as_ns() < self.backoff_until_ns.load(Relaxed)
    }
}
