//! Progress of a worker, by which other threads detect that it is stalled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use suimon_ports::{ServedDevice, Serving};
use suimon_quantity::Time;

use crate::link::Link;
use crate::notice::{Notices, PlaneNotice};

/// Duration of a round after which a worker counts as stalled. Rounds take microseconds to
/// milliseconds; only a blocking system call, a page fault or a host that does not schedule the
/// thread makes a round this long.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Progress of one worker.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Start of the round in ns; 0 while the worker sleeps or before its first round.
    began: AtomicU64,
    /// Device that the worker serves.
    pub serving: Arc<Serving>,
    /// True if the worker was reported as stalled.
    is_told: AtomicBool,
}

impl Pulse {
    /// Begins a round.
    pub(crate) fn begin(&self, now: Time) {
        self.began.store(now.as_ns().max(1), Relaxed);
    }

    /// Ends the last round; the worker sleeps, or has stopped.
    pub(crate) fn sleep(&self) {
        self.began.store(0, Relaxed);
    }

    /// Returns how long the current round has taken; zero while the worker sleeps.
    pub(crate) fn round(&self, now: Time) -> Duration {
        match self.began.load(Relaxed) {
            0 => Duration::ZERO,
            began => now.since(Time::from_ns(began)),
        }
    }
}

/// Workers to check. Its lock is held for the check only, unlike that of the registry, which is
/// held while a change waits for a worker.
#[derive(Default)]
pub(crate) struct Watched(Mutex<Vec<Weak<Link>>>);

impl Watched {
    /// Adds a worker that has started.
    pub(crate) fn add(&self, link: &Arc<Link>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    /// Reports workers that became stalled or proceed again. Returns the longest current round.
    pub(crate) fn check(&self, now: Time, notices: &Notices) -> (Duration, Option<ServedDevice>) {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut longest = (Duration::ZERO, None);
        for link in links.iter().filter_map(Weak::upgrade) {
            let (round, device) = (link.pulse.round(now), link.pulse.serving.get());
            let is_stalled = round >= STALLED_AFTER;
            if link.pulse.is_told.swap(is_stalled, Relaxed) != is_stalled {
                let processor = link.id;
                notices.tell(match is_stalled {
                    true => PlaneNotice::WorkerStalled { processor, device, round },
                    false => PlaneNotice::WorkerResumed { processor },
                });
            }
            if round > longest.0 {
                longest = (round, device);
            }
        }
        longest
    }
}
