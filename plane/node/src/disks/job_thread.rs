//! A job on a disk in its own thread: begun or gone on with, driven, and how far it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ConvertDiskRequest, DiskFormat, DiskKind, ErrorCode};
use suimon_storage::images::{DiskError, DiskPlan};
use suimon_storage::jobs::{
    CheckJob, CheckReport, Checkpoint, CopyJob, DiskJob, JobProgress, MergeJob,
};

use super::file_work::FileWork;
use super::left_locks::{LEFT_LOCKS_MAX, until_unlocked};
use super::wanted::{disk_format, disk_kind, file_name};
use super::work::DiskWork;
use crate::operations::OperationHandle;

const MIB: u64 = 1 << 20;

/// How much of its work a job loses at most if the daemon is killed.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// How often it is looked whether a store is there.
const STORE_EVERY: Duration = Duration::from_millis(200);

/// What a job and the control thread tell each other meanwhile.
#[derive(Default)]
pub(super) struct JobLine {
    /// The daemon ends.
    pub(super) stop: AtomicBool,
    /// How far the job is, until that is recorded.
    checkpoint: Mutex<Option<Checkpoint>>,
}

impl JobLine {
    pub(super) fn tell(&self, checkpoint: Option<Checkpoint>) {
        if checkpoint.is_some() {
            *self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner) = checkpoint;
        }
    }

    pub(super) fn take(&self) -> Option<Checkpoint> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Why a job is not done.
pub(super) enum NotDone {
    /// What it has begun was taken back.
    Failed(ApiError),
    /// The daemon ends, and the next one goes on.
    Left,
}

impl From<ApiError> for NotDone {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// What a job has done.
pub(super) enum Done {
    Checked(CheckReport),
    Copied,
    /// The disk goes on with this.
    Merged(DiskPlan),
}

enum Job {
    Check(Box<CheckJob>),
    Copy(Box<CopyJob>),
    Merge(Box<MergeJob>),
}

impl Job {
    fn begin(
        verb: &DiskWork,
        work: &FileWork,
        left: Option<&Checkpoint>,
    ) -> Result<Self, ApiError> {
        let (files, plan) = (work.files()?, work.wanted.plan());
        let begun = work.with_seeds(|seeds| match verb {
            DiskWork::Check => {
                CheckJob::begin(files.as_ref(), &plan, seeds).map(|job| Self::Check(Box::new(job)))
            }
            DiskWork::Convert(request) => {
                CopyJob::convert(&files, &plan, &converted(&plan, request), left, seeds)
                    .map(|job| Self::Copy(Box::new(job)))
            }
            DiskWork::Merge => {
                MergeJob::begin(&files, &plan, left, seeds).map(|job| Self::Merge(Box::new(job)))
            }
            // A snapshot is no job: it is taken at once.
            DiskWork::Compact | DiskWork::Snapshot(_) => {
                CopyJob::compact(&files, &plan, left, seeds).map(|job| Self::Copy(Box::new(job)))
            }
        });
        begun.map_err(|error| work.failed(&error))
    }

    /// The same after another process, which may have been killed a moment ago.
    fn go_on(verb: &DiskWork, work: &FileWork, left: &Checkpoint) -> Result<Self, ApiError> {
        let is_busy = |error: &ApiError| error.code == ErrorCode::DeviceBusy;
        let begin = || Self::begin(verb, work, Some(left));
        until_unlocked(Instant::now() + LEFT_LOCKS_MAX, is_busy, begin)
    }

    fn as_dyn(&mut self) -> &mut dyn DiskJob {
        match self {
            Self::Check(job) => job.as_mut(),
            Self::Copy(job) => job.as_mut(),
            Self::Merge(job) => job.as_mut(),
        }
    }

    fn done(self) -> Done {
        match self {
            Self::Check(job) => Done::Checked(job.into_report()),
            Self::Copy(_) => Done::Copied,
            Self::Merge(job) => Done::Merged(job.merged().clone()),
        }
    }
}

/// Drives a job until it is done, the daemon ends, or somebody wants it to stop; then what it
/// has begun and not done is taken back. `left` is what it goes on from; `tell` hears from
/// where it can go on, now and then.
pub(super) fn run(
    (verb, left): (&DiskWork, Option<&Checkpoint>),
    work: &FileWork,
    operation: &OperationHandle,
    stop: &AtomicBool,
    mut tell: impl FnMut(Option<Checkpoint>),
) -> Result<Done, NotDone> {
    let failed = |error: DiskError| work.failed(&error);
    let mut job = match left {
        Some(left) => {
            wait_for_store(work, operation, stop)?;
            Job::go_on(verb, work, left)?
        }
        None => Job::begin(verb, work, None)?,
    };
    let mut told = Instant::now();
    loop {
        operation.check_cancelled()?;
        let is_left = stop.load(Ordering::Acquire);
        if is_left || told.elapsed() >= CHECKPOINT_EVERY {
            tell(job.as_dyn().checkpoint(work.now_unix_s()).map_err(failed)?);
            told = Instant::now();
        }
        if is_left {
            job.as_dyn().leave();
            return Err(NotDone::Left);
        }
        let progress = job.as_dyn().step().map_err(failed)?;
        if progress.is_done {
            return Ok(job.done());
        }
        show(operation, verb.verb(), progress);
    }
}

/// After a start of the host a store may come later than the daemon; what goes on there waits for it.
fn wait_for_store(
    work: &FileWork,
    operation: &OperationHandle,
    stop: &AtomicBool,
) -> Result<(), NotDone> {
    while let Err(error) = work.files() {
        operation.check_cancelled()?;
        if stop.load(Ordering::Acquire) {
            return Err(NotDone::Left);
        }
        operation.step(0, &format!("waiting for the store: {error}"));
        std::thread::sleep(STORE_EVERY);
    }
    Ok(())
}

/// What a disk is to be converted into.
fn converted(plan: &DiskPlan, request: &ConvertDiskRequest) -> DiskPlan {
    let kind = request.kind.unwrap_or(match request.format {
        DiskFormat::Raw | DiskFormat::PassThrough => DiskKind::Fixed,
        DiskFormat::Vhd | DiskFormat::Vhdx => DiskKind::Dynamic,
    });
    DiskPlan {
        format: disk_format(request.format),
        kind: Some(disk_kind(kind)),
        file: file_name(&request.file),
        size: None,
        parent: None,
        is_read_only: false,
        block_bytes: None,
        ..plan.clone()
    }
}

fn show(operation: &OperationHandle, verb: &str, progress: JobProgress) {
    let of = |bytes: u64| usize::try_from(bytes / MIB).unwrap_or(usize::MAX);
    let (done, total) = (of(progress.done_bytes), of(progress.total_bytes.next_multiple_of(MIB)));
    let total = total.max(1);
    let text = format!("{verb}: {done} of {total} MiB");
    operation.progress(done.min(total), total, &text);
}
