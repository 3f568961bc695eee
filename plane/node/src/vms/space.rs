//! VMs whose disks are on full stores.
//!
//! QEMU pauses a VM when a write to an emulated disk finds no space (`werror=enospc`), and repeats
//! the write when the VM is resumed. The driver resumes the VM when a store has more space than
//! before, and periodically if there is any space, because the space that the write needs is
//! unknown. A VM that was paused on request, before or afterwards, stays paused.
//!
//! Writes to virtio disks are queued while the VM runs. They fail while a shutdown or the release
//! of the disk is requested from the guest, because the guest waits for their completion.

mod driving;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Minimum interval between attempts to resume a VM that waits for space. Also the run time after
/// which an attempt counts as successful. In units of the interval at which the free space is
/// queried.
const ATTEMPT_INTERVALS: u32 = 10;

/// VM that was paused because a write found no space.
#[derive(Clone, Debug)]
pub(super) struct SpaceWait {
    /// Time of the next query of its stores or, after an attempt, at which the attempt counts as
    /// successful.
    pub(super) next_poll_at: Instant,
    /// Interval at which the free space of the VM's stores is queried.
    every: Duration,
    since: Instant,
    /// Time of the last attempt to resume the VM; `None` before the first.
    tried_at: Option<Instant>,
    /// True after an attempt, until the VM is paused again or the attempt counts as successful.
    is_attempting: bool,
    /// Lowest number of free bytes per store since the VM was paused.
    least_free: BTreeMap<PathBuf, u64>,
}

impl SpaceWait {
    fn new(now: Instant, interval: Duration) -> Self {
        Self {
            next_poll_at: now,
            every: interval,
            since: now,
            tried_at: None,
            is_attempting: false,
            least_free: BTreeMap::new(),
        }
    }

    /// Returns true if the VM is to be resumed, given the free bytes of its stores.
    fn check(&mut self, now: Instant, free: &BTreeMap<PathBuf, u64>) -> bool {
        self.next_poll_at = now + self.every;
        let mut has_more = false;
        for (path, &bytes) in free {
            let lowest = self.least_free.entry(path.clone()).or_insert(bytes);
            has_more |= bytes > *lowest;
            *lowest = bytes.min(*lowest);
        }
        let has_any = free.values().any(|bytes| *bytes > 0);
        let is_due = now >= self.tried_at.unwrap_or(self.since) + self.every * ATTEMPT_INTERVALS;
        // The space that was free at the last attempt may have been insufficient.
        (has_more && self.tried_at.is_none()) || (has_any && is_due)
    }

    /// Records an attempt to resume the VM, and whether the command succeeded.
    fn record_attempt(&mut self, now: Instant, is_resumed: bool) {
        (self.tried_at, self.is_attempting) = (Some(now), is_resumed);
        if is_resumed {
            self.next_poll_at = now + self.every * ATTEMPT_INTERVALS;
        }
    }

    /// Ends an attempt: the VM is paused for space again.
    fn end_attempt(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_attempting) {
            self.next_poll_at = now + self.every;
        }
    }

    /// Returns the time from the pause to the last attempt.
    fn waited(&self) -> Duration {
        self.tried_at.unwrap_or(self.since).saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(bytes: u64) -> BTreeMap<PathBuf, u64> {
        BTreeMap::from([(PathBuf::from("/srv"), bytes)])
    }

    const EVERY: Duration = Duration::from_secs(1);

    #[test]
    fn a_vm_is_resumed_with_more_space_than_before_and_at_intervals_with_any() {
        let start = Instant::now();
        let time = |seconds| start + Duration::from_secs(seconds);
        let mut space = SpaceWait::new(start, EVERY);
        // No report yet, then no new space, no space at all, and more than the lowest value.
        assert!(!space.check(time(1), &BTreeMap::new()));
        assert!(!space.check(time(2), &free(4096)));
        assert!(!space.check(time(3), &free(0)));
        assert!(space.check(time(4), &free(1)));
        assert_eq!(space.next_poll_at, time(5));
        // No space is freed while the VM waits.
        let mut space = SpaceWait::new(time(5), EVERY);
        assert!(!space.check(time(6), &free(1)));
        assert!(!space.check(time(14), &free(1)));
        assert!(space.check(time(15), &free(1)));
        assert!(!space.check(time(60), &free(0)));
    }

    #[test]
    fn a_vm_that_is_paused_again_is_not_resumed_for_an_interval() {
        let start = Instant::now();
        let time = |seconds| start + Duration::from_secs(seconds);
        let mut space = SpaceWait::new(start, EVERY);
        assert!(!space.check(time(1), &free(0)));
        assert!(space.check(time(2), &free(1)));
        space.record_attempt(time(2), true);
        assert_eq!((space.next_poll_at, space.waited()), (time(12), Duration::from_secs(2)));
        space.end_attempt(time(3));
        assert_eq!(space.next_poll_at, time(4));
        // More space than before, but possibly still too little.
        for seconds in 4..12 {
            assert!(!space.check(time(seconds), &free(seconds << 20)));
        }
        assert!(space.check(time(12), &free(1)));
        space.record_attempt(time(12), true);
        space.end_attempt(time(30));
        assert!(space.check(time(30), &free(1)));
        assert_eq!(space.waited(), Duration::from_secs(12));
    }
}
