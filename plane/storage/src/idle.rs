//! Commits disks that nobody writes to any more: a client that never flushes has not asked
//! for its metadata to be durable, and would lose in a crash what it wrote minutes ago.

use core::time::Duration;

use suimon_quantity::Time;

use crate::disk::Disk;
use crate::work::StorageWork;

/// A disk is idle when nobody has written to it for so long.
pub const IDLE_AFTER: Duration = Duration::from_secs(2);

/// So long after a commit that failed the next one is tried for nobody.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// How often it is looked which disks are idle, where anything is uncommitted.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// When it is looked next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleLook {
    /// Whether a disk may have metadata that is not committed.
    pub(crate) is_wanted: bool,
    looked: Time,
}

/// Since when nobody has written to a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calm {
    since: Option<Time>,
    /// Changes that had been answered then.
    changes: u64,
}

impl Disk {
    /// Whether its metadata is to be committed although nobody asks.
    fn is_idle(&mut self, now: Time) -> bool {
        let changes = self.tally.changes();
        if changes != self.calm.changes {
            self.calm = Calm { since: None, changes };
        }
        let since = *self.calm.since.get_or_insert(now);
        let patience = if self.has_failed_commit { AFTER_FAILURE } else { IDLE_AFTER };
        self.commit.is_none() && now.since(since) >= patience
    }

    /// Bytes of metadata that only this process has.
    pub(crate) fn uncommitted_bytes(&self) -> u64 {
        self.layers.first().map_or(0, |own| own.image.uncommitted_bytes())
    }
}

impl StorageWork {
    /// Begins commits of disks that are idle.
    pub(crate) fn commit_idle(&mut self) {
        if !self.idle_look.is_wanted || self.now < self.idle_look.looked + LOOK_EVERY {
            return;
        }
        self.idle_look = IdleLook { is_wanted: false, looked: self.now };
        for number in self.disks.numbers() {
            let Some(disk) = self.disks.get_mut(number) else { continue };
            if disk.uncommitted_bytes() == 0 {
                continue;
            }
            self.idle_look.is_wanted = true;
            if disk.is_idle(self.now) {
                disk.calm.since = None;
                self.begin_commit(number);
            }
        }
    }

    /// When idle disks are to be looked for although nothing comes and nothing ends.
    pub(crate) fn idle_deadline(&self) -> Option<Time> {
        self.idle_look.is_wanted.then(|| self.idle_look.looked + LOOK_EVERY)
    }

    /// Bytes of a disk's metadata that are not durable.
    pub(crate) fn uncommitted_bytes(&self, disk: usize) -> u64 {
        self.disks.get(disk).map_or(0, Disk::uncommitted_bytes)
    }
}
