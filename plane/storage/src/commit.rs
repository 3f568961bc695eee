//! Commits of a disk, one at a time.

use std::io;

use suimon_image::{CommitOutcome, Step};
use suimon_ports::{DiskOutcome, FileOp};

use crate::disk::{Obstacle, RunningCommit};
use crate::token::Purpose;
use crate::transfer::outcome_of;
use crate::work::StorageWork;

/// Uncommitted metadata in bytes above which a commit begins without a flush. This bounds the
/// duration of a flush.
const UNCOMMITTED_BYTES_MAX: u64 = 1 << 20;

impl StorageWork {
    /// Begins a commit for the requests that wait for one, unless one is in flight.
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
        if disk.obstacle == Some(Obstacle::Commit) {
            disk.obstacle = Some(Obstacle::CommitUnderWay);
        }
        let waiters = std::mem::take(&mut disk.waiters);
        let steps = disk.own().image.begin_commit();
        disk.commit = Some(RunningCommit {
            is_of_image: steps.is_some(),
            steps: steps
                .map_or_else(|| [Step::Flush, Step::Durable].into(), |commit| commit.steps.into()),
            completed: 0,
            waiters,
            is_repeated,
            offset: None,
            is_flushing: false,
        });
        disk.tally.commits += 1;
        self.run_commit(disk_number);
    }

    /// Begins a commit if more than [`UNCOMMITTED_BYTES_MAX`] has changed since the last one.
    /// Smaller changes are committed by the next flush, or when the disk is idle.
    pub(crate) fn commit_if_due(&mut self, disk_number: usize) {
        let bytes = self.uncommitted_bytes(disk_number);
        self.idle_look.is_wanted |= bytes > 0;
        let now = self.now;
        let is_deferred = self
            .disks
            .get(disk_number)
            .is_some_and(|of| of.has_failed_flush || of.full.defers_commit(now));
        if bytes > UNCOMMITTED_BYTES_MAX && !is_deferred {
            self.begin_commit(disk_number);
        }
    }

    /// Runs steps of a commit until one is in flight.
    fn run_commit(&mut self, disk_number: usize) {
        loop {
            let Some(disk) = self.disks.get_mut(disk_number) else { return };
            let file = disk.layers[0].file;
            let Some(commit) = &mut disk.commit else { return };
            if commit.steps.front() == Some(&Step::Durable) {
                commit.steps.pop_front();
                commit.completed += 1;
                let waiters = std::mem::take(&mut commit.waiters);
                for number in waiters {
                    self.answer(number, DiskOutcome::Done);
                }
                continue;
            }
            // A submitted step cannot be returned, so the I/O must have room for it.
            if !commit.steps.is_empty() && self.io.under_way() >= self.io.capacity() {
                return self.commits_to_run.push(disk_number);
            }
            commit.offset = commit.steps.front().and_then(offset_of);
            commit.is_flushing = commit.steps.front() == Some(&Step::Flush);
            let op = match commit.steps.pop_front() {
                None => return self.end_commit(disk_number, Ok(())),
                Some(Step::Durable) => continue,
                Some(Step::Write { offset, bytes }) => FileOp::WriteBytes { offset, bytes },
                Some(Step::Extend { len, needed }) => FileOp::Extend { len, needed },
                Some(Step::Zero(range)) => {
                    FileOp::Zero { range, may_unmap: true, only_if_fast: false }
                }
                Some(Step::Flush) => FileOp::Flush,
            };
            disk.step_asked = Some(self.now);
            if !self.io.submit(file, op, Purpose::Commit(disk_number).token()) {
                commit.is_flushing = false;
                let full = io::Error::other(
                    "the submission queue has no free entry, although it reported one",
                );
                return self.end_commit(disk_number, Err(full));
            }
            return;
        }
    }

    /// Continues commits whose next step the I/O had no room for.
    pub(crate) fn run_waiting_commits(&mut self) {
        for disk_number in std::mem::take(&mut self.commits_to_run) {
            self.run_commit(disk_number);
        }
    }

    /// Handles the completion of a step.
    pub(crate) fn handle_step(&mut self, disk_number: usize, outcome: io::Result<()>) {
        if let Some(disk) = self.disks.get_mut(disk_number) {
            disk.step_asked = None;
            if let Some(commit) = disk.commit.as_mut().filter(|_| outcome.is_ok()) {
                commit.completed += 1;
            }
        }
        match outcome {
            Ok(()) => self.run_commit(disk_number),
            Err(error) => self.end_commit(disk_number, Err(error)),
        }
    }

    fn end_commit(&mut self, disk_number: usize, outcome: io::Result<()>) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let Some(commit) = disk.commit.take() else { return };
        if commit.is_of_image {
            let ended = match outcome {
                Ok(()) => CommitOutcome::Done,
                Err(_) => CommitOutcome::Failed { completed: commit.completed },
            };
            disk.own().image.handle_commit(ended);
        }
        let is_awaited = disk.obstacle == Some(Obstacle::CommitUnderWay);
        if is_awaited {
            disk.obstacle = None;
            self.restless.push(disk_number);
        }
        if let Err(error) = outcome {
            let is_lost = commit.is_flushing && self.handle_failed_flush(disk_number, &error);
            let failed = if is_lost { DiskOutcome::Failed } else { outcome_of(&error) };
            if is_awaited {
                self.give_up_first(disk_number, failed);
            }
            let is_full = failed == DiskOutcome::NoSpace;
            // The commit may have been for a write that has failed now. Requests that wait for the
            // commit need not fail with it.
            if is_full && !commit.is_repeated && !commit.waiters.is_empty() {
                self.note_full(disk_number);
                return self.repeat_commit(disk_number, commit.waiters);
            }
            for number in commit.waiters {
                self.answer(number, failed);
            }
            if is_full {
                self.note_full(disk_number);
            } else if !is_lost {
                let at = commit.offset;
                self.tell(
                    disk_number,
                    at,
                    format!("the image's metadata cannot be made durable: {error}"),
                );
            }
            if let Some(disk) = self.disks.get_mut(disk_number) {
                disk.has_failed_commit = true;
            }
        } else {
            disk.has_failed_commit = false;
        }
        let is_wanted = self.disks.get(disk_number).is_some_and(|disk| {
            !disk.waiters.is_empty() || disk.obstacle == Some(Obstacle::Commit)
        });
        if is_wanted {
            self.begin_commit(disk_number);
        } else {
            self.end_disk(disk_number);
        }
    }
}

impl StorageWork {
    /// Repeats a commit that found no space, for the requests that wait for it.
    fn repeat_commit(&mut self, disk_number: usize, waiters: Vec<usize>) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.has_failed_commit = true;
        disk.waiters.splice(0..0, waiters);
        self.begin_commit_for(disk_number, true);
    }
}

/// Returns the file offset of a step.
fn offset_of(step: &Step) -> Option<u64> {
    match step {
        Step::Write { offset, .. } => Some(*offset),
        Step::Zero(range) => Some(range.offset()),
        Step::Extend { len, .. } => Some(*len),
        Step::Flush | Step::Durable => None,
    }
}
