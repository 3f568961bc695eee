//! Commits of a disk's image metadata, one at a time per disk.

pub(crate) mod idle;
pub(crate) mod idle_check;
#[cfg(test)]
mod idle_tests;
pub(crate) mod running;
#[cfg(test)]
mod tests;
mod zeroing;

use std::io;

use suimon_ports::DiskOutcome;

use crate::commit::running::{CommitAction, FailedStep, RunningCommit};
use crate::disk::BlockingOperation;
use crate::engine::StorageEngine;
use crate::engine::io_token::IoPurpose;
use crate::request::transfer::outcome_of;

/// Uncommitted metadata in bytes above which a commit begins without a flush. This bounds the
/// duration of a flush.
const UNCOMMITTED_BYTES_MAX: u64 = 1 << 20;

impl StorageEngine {
    /// Begins a commit of a disk for the requests that wait for one, unless a commit is in flight.
    pub(crate) fn begin_commit(&mut self, disk_number: usize) {
        self.begin_commit_for(disk_number, false);
    }

    fn begin_commit_for(&mut self, disk_number: usize, is_repeated: bool) {
        let Some(disk) = self.disks.get_mut(disk_number).filter(|disk| disk.commit.is_none())
        else {
            return;
        };
        if disk.has_failed_flush {
            return self.fail_commit(disk_number);
        }
        if disk.blocked_by == Some(BlockingOperation::Commit) {
            disk.blocked_by = Some(BlockingOperation::CommitInFlight);
        }
        let waiters = std::mem::take(&mut disk.commit_waiters);
        let steps = disk.own_layer().image.begin_commit().map(|commit| commit.steps);
        disk.commit = Some(RunningCommit::new(steps, waiters, is_repeated));
        disk.counters.commits += 1;
        self.run_commit(disk_number);
    }

    /// Begins a commit if more than [`UNCOMMITTED_BYTES_MAX`] bytes of metadata are uncommitted.
    /// Smaller changes are committed by the next flush, or when the disk is idle.
    pub(crate) fn commit_if_due(&mut self, disk_number: usize) {
        let bytes = self.uncommitted_bytes(disk_number);
        self.idle_check.is_pending |= bytes > 0;
        let now = self.now;
        let is_deferred = self.disks.get(disk_number).is_some_and(|disk_state| {
            disk_state.has_failed_flush || disk_state.full_state.defers_commit(now)
        });
        if bytes > UNCOMMITTED_BYTES_MAX && !is_deferred {
            self.begin_commit(disk_number);
        }
    }

    /// Submits the next steps of a commit, as many as may be in flight concurrently.
    fn run_commit(&mut self, disk_number: usize) {
        loop {
            let Some(disk) = self.disks.get_mut(disk_number) else { return };
            let Some(commit) = &mut disk.commit else { return };
            match commit.next_action() {
                CommitAction::Wait => return,
                CommitAction::End => return self.end_commit(disk_number),
                CommitAction::CompleteWaiters => {
                    for number in std::mem::take(&mut commit.waiters) {
                        self.complete_request(number, DiskOutcome::Done);
                    }
                    continue;
                }
                CommitAction::Begin => {}
            }
            // A submitted step cannot be returned, so the I/O must have a free submission-queue
            // entry.
            if self.io.in_flight() >= self.io.capacity() {
                if !std::mem::replace(&mut commit.is_queued, true) {
                    self.commits_to_run.push(disk_number);
                }
                return;
            }
            let Some((step, op)) = commit.begin_step() else { continue };
            let file = disk.layers[0].file;
            disk.step_submitted_at = disk.step_submitted_at.or(Some(self.now));
            if !self.io.submit(file, op, IoPurpose::Commit(disk_number, step).token()) {
                let full = "the submission queue has no free entry, although it reported one";
                commit.handle_step(step, Err(io::Error::other(full)));
            }
        }
    }

    /// Continues the commits that wait for a free submission-queue entry.
    pub(crate) fn run_waiting_commits(&mut self) {
        for disk_number in std::mem::take(&mut self.commits_to_run) {
            let disk = self.disks.get_mut(disk_number);
            if let Some(commit) = disk.and_then(|disk| disk.commit.as_mut()) {
                commit.is_queued = false;
            }
            self.run_commit(disk_number);
        }
    }

    /// Handles the completion of a commit's step.
    pub(crate) fn handle_commit_step_completed(
        &mut self,
        disk_number: usize,
        step: usize,
        outcome: io::Result<()>,
    ) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let Some(commit) = &mut disk.commit else { return };
        let are_others = commit.handle_step(step, outcome);
        disk.step_submitted_at = are_others.then_some(self.now);
        self.run_commit(disk_number);
    }

    fn end_commit(&mut self, disk_number: usize) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let Some(commit) = disk.commit.take() else { return };
        disk.step_submitted_at = None;
        let (is_of_image, is_repeated) = (commit.has_image_changes, commit.is_repetition);
        let (outcome, failed_step, waiters) = commit.end();
        if is_of_image {
            disk.own_layer().image.handle_commit(outcome);
        }
        let is_awaited = disk.blocked_by == Some(BlockingOperation::CommitInFlight);
        if is_awaited {
            disk.blocked_by = None;
            self.disks_to_continue.push(disk_number);
        }
        if let Some(FailedStep { error, offset, is_flush, .. }) = failed_step {
            let has_flush_failed = is_flush && self.handle_failed_flush(disk_number, &error);
            let failed = if has_flush_failed { DiskOutcome::Failed } else { outcome_of(&error) };
            if is_awaited {
                self.fail_first_parked(disk_number, failed);
            }
            let is_full = failed == DiskOutcome::NoSpace;
            // The commit may have been requested for a write that has failed now. The requests that
            // wait for the commit do not have to fail with that write.
            if is_full && !is_repeated && !waiters.is_empty() {
                self.record_no_space(disk_number);
                return self.repeat_commit(disk_number, waiters);
            }
            for number in waiters {
                self.complete_request(number, failed);
            }
            if is_full {
                self.record_no_space(disk_number);
            } else if !has_flush_failed {
                let detail = format!("the image's metadata cannot be made durable: {error}");
                self.emit_disk_fault(disk_number, offset, detail);
            }
            if let Some(disk) = self.disks.get_mut(disk_number) {
                disk.has_failed_commit = true;
            }
        } else {
            disk.has_failed_commit = false;
            self.begin_zeroing(disk_number);
        }
        let is_needed = self.disks.get(disk_number).is_some_and(|disk| {
            !disk.commit_waiters.is_empty() || disk.blocked_by == Some(BlockingOperation::Commit)
        });
        if is_needed {
            self.begin_commit(disk_number);
        } else {
            self.release_disk_if_done(disk_number);
        }
    }
}

impl StorageEngine {
    /// Repeats a commit for which the store had no space, so that `waiters`, the requests that wait
    /// for it, need not fail.
    fn repeat_commit(&mut self, disk_number: usize, waiters: Vec<usize>) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.has_failed_commit = true;
        disk.commit_waiters.splice(0..0, waiters);
        self.begin_commit_for(disk_number, true);
    }
}
