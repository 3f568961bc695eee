//! Failed flushes: writes and flushes of the disk fail until its image is opened again ([decision
//! 76](../../../../docs/decisions/0076-failed-flushes.md)). Reads continue.
//!
//! The state belongs to the open file ([`FlushFailure`](suimon_ports::FlushFailure)), so that it
//! moves with the disk to another worker, and ends when the file is closed.

use std::io;

use suimon_ports::{DiskOp, DiskOutcome, is_transient};

use crate::disk::{BlockingOperation, DiskState};
use crate::engine::StorageEngine;
use crate::engine::notices::StorageNotice;
use crate::request::EngineRequest;

impl DiskState {
    /// Returns true if the operation must fail because a flush of the disk has failed.
    #[inline]
    pub(crate) fn refuses(&self, op: DiskOp) -> bool {
        self.has_failed_flush && !matches!(op, DiskOp::Read | DiskOp::AllocationStatus { .. })
    }
}

impl StorageEngine {
    /// Handles a failed flush of a disk's own file. Returns true if the disk's writes fail from now
    /// on, and false if the error is transient, so that the system has not executed the flush.
    pub(crate) fn handle_failed_flush(&mut self, number: usize, error: &io::Error) -> bool {
        let now = self.now;
        let Some(disk) = self.disks.get_mut(number) else { return false };
        if disk.has_failed_flush {
            return true;
        }
        if is_transient(error) {
            return false;
        }
        let top_layer = disk.own_layer();
        top_layer.disk_file.flush_failure().inspect(|failure| failure.record(error));
        top_layer.image.handle_flush_failure();
        disk.has_failed_flush = true;
        // Queued requests fail now instead of after their waiting time.
        disk.full_state.repeat_at_once(now);
        let detail = error.to_string();
        self.notices.push(StorageNotice::FlushFailed { disk: number, detail });
        self.schedule_full_check();
        true
    }

    /// Handles an error of a request's part. If the part had to be durable by itself, its flush may
    /// have failed: the system does not distinguish that from a failed write. A full store is not a
    /// failed flush: such parts bypass the page cache, and space is allocated before the write.
    pub(crate) fn handle_failed_durable_part(&mut self, number: usize, error: &io::Error) {
        let Some(&EngineRequest { disk, op, outcome, .. }) = self.requests.get(number) else {
            return;
        };
        let is_durable = op == DiskOp::Write { is_durable: true };
        let writes_durably = self.disks.get(disk).is_some_and(DiskState::writes_durably);
        if is_durable && writes_durably && outcome != DiskOutcome::NoSpace {
            self.handle_failed_flush(disk, error);
        }
    }

    /// Fails the requests that wait for a commit, after a flush of the disk has failed.
    pub(crate) fn fail_commit(&mut self, number: usize) {
        let Some(disk) = self.disks.get_mut(number) else { return };
        for waiter in std::mem::take(&mut disk.commit_waiters) {
            self.complete_request(waiter, DiskOutcome::Failed);
        }
        let Some(disk) = self.disks.get_mut(number) else { return };
        if matches!(
            disk.blocked_by,
            Some(BlockingOperation::Commit | BlockingOperation::CommitInFlight)
        ) {
            disk.blocked_by = None;
            self.disks_to_continue.push(number);
            self.fail_first_parked(number, DiskOutcome::Failed);
        }
        self.release_disk_if_done(number);
    }

    /// Returns the error of the failed flush because of which the disk's writes fail; `None` if no
    /// flush has failed.
    pub fn flush_error(&self, number: usize) -> Option<String> {
        let top_layer = self.disks.get(number)?.layers.first()?;
        top_layer.disk_file.first_flush_error().map(str::to_owned)
    }
}
