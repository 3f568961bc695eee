//! Requests that disks have completed, sampled from the counters of daemons.
//!
//! Checks of an upper bound on a rate must not fail because of load on the machine. A sample has
//! the time before the query of the daemon and the time after. A time window only contains samples
//! that are completely within it, so their difference was completed within the window, however late
//! the daemon or the sampling thread was scheduled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::daemon::{Daemon, get_at};

/// Pause between two samples of a daemon.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Completed reads and writes of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// Time before the query of the daemon.
    before: Instant,
    /// Time after the daemon responded.
    after: Instant,
    /// Requests since sampling began, including restarts of the daemon.
    requests: u64,
}

/// Samples of one disk, oldest first.
#[derive(Clone, Debug, Default)]
pub struct DiskCounts {
    samples: Vec<Sample>,
}

/// Thread that samples disks of one daemon until [`Sampling::end`].
#[derive(Debug)]
pub struct Sampling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<DiskCounts>>>,
}

impl Sampling {
    /// Begins to sample these disks of a daemon. The daemon may be killed and restarted meanwhile;
    /// requests completed between its last sample and its end are not counted.
    #[must_use]
    pub fn begin(daemon: &Daemon, disks: &[&str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (socket, is_stopped) = (daemon.socket().to_owned(), Arc::clone(&stop));
        let paths: Vec<_> = disks.iter().map(|disk| format!("/1.0/disks/{disk}")).collect();
        let thread = std::thread::spawn(move || {
            let mut counts_all = vec![DiskCounts::default(); paths.len()];
            let mut last = vec![0; paths.len()];
            while !is_stopped.load(Ordering::Relaxed) {
                for ((counts, last), path) in counts_all.iter_mut().zip(&mut last).zip(&paths) {
                    let before = Instant::now();
                    // A daemon that was killed does not respond.
                    let Ok(count) = get_at(&socket, path).and_then(|disk| requests(&disk)) else {
                        continue;
                    };
                    counts.push(before, Instant::now(), count, last);
                }
                std::thread::sleep(SAMPLE_EVERY);
            }
            counts_all
        });
        Self { stop, thread: Some(thread) }
    }

    /// Ends sampling and returns the counts of each disk.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn end(mut self) -> Result<Vec<DiskCounts>> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(counts)) => Ok(counts),
            _ => bail!("the sampling thread panicked"),
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn requests(disk: &Value) -> Result<u64> {
    let requests_of =
        |kind: &str| disk["counters"][kind]["requests"].as_u64().context("no counter");
    Ok(requests_of("reads")? + requests_of("writes")?)
}

impl DiskCounts {
    fn push(&mut self, before: Instant, after: Instant, count: u64, last: &mut u64) {
        // The counters of a new daemon begin at zero.
        let increase = if count < *last { count } else { count - *last };
        *last = count;
        let requests = self.samples.last().map_or(0, |sample| sample.requests + increase);
        self.samples.push(Sample { before, after, requests });
    }

    /// Returns a lower bound of the requests completed between two instants: those between the
    /// first and the last sample that are completely within the interval.
    #[must_use]
    pub fn between(&self, start: Instant, until: Instant) -> u64 {
        let first = self.samples.partition_point(|sample| sample.before < start);
        let end = self.samples.partition_point(|sample| sample.after <= until);
        let within = self.samples.get(first..end).unwrap_or_default();
        match (within.first(), within.last()) {
            (Some(first), Some(last)) => last.requests - first.requests,
            _ => 0,
        }
    }

    /// Returns the requests per second between two instants, for a report. Load on the machine
    /// falsifies it.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn rate(&self, start: Instant, until: Instant) -> f64 {
        self.between(start, until) as f64 / (until - start).as_secs_f64()
    }

    /// Returns the largest number of requests that the disks together completed in any window of
    /// this length between two instants. Load on the machine cannot increase it.
    #[must_use]
    pub fn most(counts: &[Self], window: Duration, start: Instant, until: Instant) -> u64 {
        let starts = counts.iter().flat_map(|counts| &counts.samples).map(|sample| sample.before);
        let inside = starts.filter(|begin| *begin >= start && *begin + window <= until);
        let sum = |begin| {
            counts.iter().map(|disk_counts| disk_counts.between(begin, begin + window)).sum()
        };
        inside.map(sum).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates samples that took 10 ms each, from the start of each in milliseconds and the
    /// daemon's counter.
    fn counts(started: Instant, totals: &[(u64, u64)]) -> DiskCounts {
        let (mut counts, mut last) = (DiskCounts::default(), 0);
        for (at_ms, count) in totals {
            let before = started + Duration::from_millis(*at_ms);
            counts.push(before, before + Duration::from_millis(10), *count, &mut last);
        }
        counts
    }

    #[test]
    fn a_window_counts_only_requests_completed_within_it() {
        let started = Instant::now();
        let time = |ms| started + Duration::from_millis(ms);
        let counts = counts(started, &[(0, 1000), (100, 1010), (200, 1030), (300, 1070)]);
        assert_eq!(counts.between(time(0), time(310)), 70);
        assert_eq!(counts.between(time(0), time(309)), 30, "the last sample ends after the window");
        assert_eq!(counts.between(time(1), time(310)), 60, "the first begins before it");
        assert_eq!(counts.between(time(120), time(180)), 0);
        let window = Duration::from_millis(110);
        let max_within = |start_ms, until| {
            DiskCounts::most(std::slice::from_ref(&counts), window, time(start_ms), time(until))
        };
        assert_eq!((max_within(0, 310), max_within(0, 309), max_within(0, 50)), (40, 20, 0));
    }

    #[test]
    fn counts_continue_over_a_restart_of_the_daemon() {
        let started = Instant::now();
        let counts = counts(started, &[(0, 500), (100, 600), (200, 5), (300, 25)]);
        assert_eq!(counts.between(started, started + Duration::from_secs(1)), 125);
    }
}
