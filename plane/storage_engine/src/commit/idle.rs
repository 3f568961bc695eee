//! Commits of idle disks. A client that never flushes does not request that metadata becomes
//! durable. Without these commits, a crash would lose its data, even data written minutes before.

use core::time::Duration;

use suimon_quantity::Time;

use crate::commit::idle_check::{IdleCheck, WriteIdlePeriod};
use crate::disk::DiskState;
use crate::engine::StorageEngine;

/// Time without writes after which a disk is idle.
pub const IDLE_AFTER: Duration = Duration::from_secs(2);

/// Time without writes after a failed commit until the next commit that no request waits for.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Interval of the check for idle disks while any disk has uncommitted metadata.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl DiskState {
    /// Returns true if the disk is idle, so that its metadata must be committed without a request.
    fn is_idle(&mut self, now: Time) -> bool {
        let changes = self.counters.change_requests();
        if changes != self.write_idle.changes_at_start {
            self.write_idle = WriteIdlePeriod { since: None, changes_at_start: changes };
        }
        let since = *self.write_idle.since.get_or_insert(now);
        let timeout = if self.has_failed_commit { AFTER_FAILURE } else { IDLE_AFTER };
        self.commit.is_none() && now.since(since) >= timeout
    }

    /// Returns the number of bytes of uncommitted metadata, which exist only in this process.
    pub(crate) fn uncommitted_bytes(&self) -> u64 {
        self.layers.first().map_or(0, |top_layer| top_layer.image.uncommitted_bytes())
    }
}

impl StorageEngine {
    /// Begins commits of idle disks with uncommitted metadata. No-op unless a check is due.
    pub(crate) fn commit_idle_disks(&mut self) {
        if !self.idle_check.is_pending || self.now < self.idle_check.checked_at + CHECK_INTERVAL {
            return;
        }
        self.idle_check = IdleCheck { is_pending: false, checked_at: self.now };
        for number in self.disks.numbers() {
            let Some(disk) = self.disks.get_mut(number) else { continue };
            if disk.uncommitted_bytes() == 0 || disk.has_failed_flush {
                continue;
            }
            self.idle_check.is_pending = true;
            if disk.is_idle(self.now) {
                disk.write_idle.since = None;
                self.begin_commit(number);
            }
        }
    }

    /// Returns the time of the next check for idle disks; `None` if no disk has uncommitted
    /// metadata.
    pub(crate) fn idle_deadline(&self) -> Option<Time> {
        self.idle_check.is_pending.then(|| self.idle_check.checked_at + CHECK_INTERVAL)
    }

    /// Returns the number of bytes of a disk's metadata that are not durable.
    pub fn uncommitted_bytes(&self, disk: usize) -> u64 {
        self.disks.get(disk).map_or(0, DiskState::uncommitted_bytes)
    }
}
