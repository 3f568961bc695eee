//! A worker's time by stage, published for other threads.
//!
//! The worker's thread writes a consistent snapshot, and readers get one, so that the stages add
//! up. Writing takes no lock (sequence lock): readers repeat while the version is odd or has
//! changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use suimon_quantity::Time;

use crate::stage::{Stage, StageNanoseconds};
use crate::view::StageTimes;

/// Maximum number of read attempts. They only fail repeatedly if the worker was preempted between a
/// few stores.
const TRIES: u32 = 100;

/// Published snapshot of a worker's times by stage, behind a sequence lock.
#[derive(Debug, Default)]
pub(crate) struct PublishedStageTimes {
    version: AtomicU64,
    ns: [AtomicU64; Stage::COUNT],
    /// Time up to which `ns` is complete.
    complete_until_ns: AtomicU64,
    is_asleep: AtomicBool,
    /// Last snapshot that a reader has read consistently.
    last_read: Mutex<Snapshot>,
    /// Longest idle time that was returned to a reader.
    reported_idle_ns: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    version: u64,
    times: StageNanoseconds,
    is_asleep: bool,
}

impl PublishedStageTimes {
    /// Writes a snapshot. Must be called by the worker's thread only.
    pub(crate) fn publish(&self, totals: &StageNanoseconds, complete_until: Time, is_asleep: bool) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (ns, total) in self.ns.iter().zip(totals) {
            ns.store(*total, Ordering::Relaxed);
        }
        self.complete_until_ns.store(complete_until.as_ns(), Ordering::Relaxed);
        self.is_asleep.store(is_asleep, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the times, and true if the worker sleeps. In that case the times are complete up to
    /// `now`, which must be read from the workers' clock just before. While a worker is preempted
    /// during [`publish`](Self::publish), the last times that were read consistently are returned.
    pub(crate) fn read(&self, now: Time) -> (StageTimes, bool) {
        let mut read = self.try_read(now);
        for _ in 1..TRIES {
            if read.is_some() {
                break;
            }
            std::thread::yield_now();
            read = self.try_read(now);
        }
        let Snapshot { mut times, is_asleep, .. } = self.replace_if_newer(read);
        // A worker that wakes at this moment may publish slightly less idle time than was returned
        // before. The counter never decreases.
        let idle = &mut times[Stage::Idle.index()];
        *idle = (*idle).max(self.reported_idle_ns.fetch_max(*idle, Ordering::Relaxed));
        (StageTimes::new(times), is_asleep)
    }

    /// Stores a snapshot and returns it. If another reader has read a newer one, or `read` is
    /// `None`, returns the stored one.
    fn replace_if_newer(&self, read: Option<Snapshot>) -> Snapshot {
        let mut last = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.filter(|read| read.version >= last.version) {
            *last = read;
        }
        *last
    }

    fn try_read(&self, now: Time) -> Option<Snapshot> {
        let version = self.version.load(Ordering::Acquire);
        let mut times = self.load();
        let is_asleep = self.is_asleep.load(Ordering::Relaxed);
        if is_asleep {
            let since = self.complete_until_ns.load(Ordering::Relaxed);
            times[Stage::Idle.index()] += now.as_ns().saturating_sub(since);
        }
        fence(Ordering::Acquire);
        let is_whole = version % 2 == 0 && self.version.load(Ordering::Relaxed) == version;
        is_whole.then_some(Snapshot { version, times, is_asleep })
    }

    fn load(&self) -> StageNanoseconds {
        std::array::from_fn(|index| self.ns[index].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(times: &StageTimes) -> u64 {
        Stage::ALL.iter().map(|stage| times.ns(*stage)).sum()
    }

    #[test]
    fn a_sleeping_worker_is_idle_until_the_query() {
        let tally = PublishedStageTimes::default();
        let mut totals = StageNanoseconds::default();
        totals[Stage::Poll.index()] = 600;
        totals[Stage::Idle.index()] = 400;
        tally.publish(&totals, Time::from_ns(1000), true);
        let hour = 3_600_000_000_000;
        let (times, is_asleep) = tally.read(Time::from_ns(1000 + hour));
        assert!(is_asleep);
        assert_eq!(times.ns(Stage::Idle), 400 + hour);
        assert_eq!(sum(&times), 1000 + hour);
        tally.publish(&totals, Time::from_ns(1000), false);
        let (times, is_asleep) = tally.read(Time::ZERO);
        assert_eq!(
            (times.ns(Stage::Idle), is_asleep),
            (400 + hour, false),
            "idle time that was returned before does not decrease"
        );
    }

    #[test]
    fn a_worker_preempted_while_it_publishes_leaves_the_last_consistent_times() {
        let tally = PublishedStageTimes::default();
        tally.publish(&[7; Stage::COUNT], Time::from_ns(7), false);
        tally.read(Time::ZERO);
        // The first stores of `publish`.
        tally.version.fetch_add(1, Ordering::Relaxed);
        tally.ns[0].store(9, Ordering::Relaxed);
        let (times, _) = tally.read(Time::ZERO);
        assert!(Stage::ALL.iter().all(|stage| times.ns(*stage) == 7), "{times:?}");
    }

    #[test]
    fn snapshots_of_stage_times_are_consistent() {
        let tally = PublishedStageTimes::default();
        const ROUNDS: u64 = 200_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    tally.publish(&[round; Stage::COUNT], Time::from_ns(round), false);
                }
            });
            let mut last = 0;
            while last < ROUNDS {
                let (times, _) = tally.read(Time::ZERO);
                let first = times.ns(Stage::CopyIn);
                assert!(Stage::ALL.iter().all(|stage| times.ns(*stage) == first), "{times:?}");
                assert!(first >= last);
                last = first;
            }
        });
    }
}
