//! Progress of a worker, by which other threads detect that it is stalled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use suimon_ports::ServedDeviceCell;
use suimon_quantity::Time;

/// Duration of a round after which a worker counts as stalled. Rounds take microseconds to
/// milliseconds; only a blocking system call, a page fault or a host that does not schedule the
/// thread makes a round this long.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// State of a worker's current round, published for the stall detector.
#[derive(Debug, Default)]
pub(crate) struct RoundProgress {
    /// Start of the round in ns; 0 while the worker sleeps or before its first round.
    started: AtomicU64,
    /// Device that the worker serves at this moment, for reports of a stall.
    pub served_device: Arc<ServedDeviceCell>,
    /// True if the worker was reported as stalled.
    pub is_stall_reported: AtomicBool,
}

impl RoundProgress {
    /// Publishes that a round begins.
    pub(crate) fn begin_round(&self, now: Time) {
        self.started.store(now.as_ns().max(1), Relaxed);
    }

    /// Ends the last round; the worker sleeps, or has stopped.
    pub(crate) fn end_round(&self) {
        self.started.store(0, Relaxed);
    }

    /// Returns how long the current round has taken; zero while the worker sleeps.
    pub(crate) fn round_duration(&self, now: Time) -> Duration {
        match self.started.load(Relaxed) {
            0 => Duration::ZERO,
            started_ns => now.since(Time::from_ns(started_ns)),
        }
    }
}
