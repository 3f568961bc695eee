//! Thread of a job on a disk: begins or resumes the job, executes its steps and reports progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ConvertDiskRequest, DiskFormat, DiskKind, DiskOnFull};
use suimon_image_files::jobs::{
    CheckJob, CheckReport, Checkpoint, CopyJob, DiskJob, JobProgress, MergeJob,
};
use suimon_image_files::{DiskError, DiskFault, DiskPlan};
use suimon_ports::{StoreFault, StoreFiles};
use suimon_storage_engine::FULL_STORE_RETRY_INTERVAL;

use super::image_task::ImageTask;
use super::lock_retry::{LOCK_RELEASE_TIMEOUT, retry_until_unlocked};
use super::required::{disk_format, disk_kind, file_name};
use super::work::DiskFileJob;
use crate::operations::OperationHandle;

const MIB: u64 = 1 << 20;

/// Interval between checkpoints: the work that a job loses at most if the daemon is killed.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// Interval between attempts to open a store that is not available yet.
const STORE_EVERY: Duration = Duration::from_millis(200);

/// Interval at which a job that is queued for space checks whether it is cancelled or stopped.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// State shared by a job's thread and the control thread.
#[derive(Default)]
pub(super) struct JobState {
    /// True if the daemon is stopping; the job then writes a checkpoint and ends.
    pub(super) is_stopping: AtomicBool,
    /// Last checkpoint that is not recorded yet.
    checkpoint: Mutex<Option<Checkpoint>>,
}

impl JobState {
    pub(super) fn set_checkpoint(&self, checkpoint: Option<Checkpoint>) {
        if checkpoint.is_some() {
            *self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner) = checkpoint;
        }
    }

    pub(super) fn take_checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reason why a job did not complete.
pub(super) enum JobFailure {
    /// The job failed or was cancelled, and its effects were undone.
    Failed(ApiError),
    /// The daemon is stopping; the next daemon resumes the job.
    Interrupted,
}

impl From<ApiError> for JobFailure {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// Result of a completed job.
pub(super) enum CompletedJob {
    Checked(CheckReport),
    Copied,
    /// The disk has this configuration from now on.
    Merged(DiskPlan),
}

enum Job {
    Check(Box<CheckJob>),
    Copy(Box<CopyJob>),
    Merge(Box<MergeJob>),
}

impl Job {
    fn begin(
        verb: &DiskFileJob,
        work: &ImageTask,
        files: &Arc<dyn StoreFiles>,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<Self, DiskError> {
        let plan = work.required.plan();
        work.with_host_inputs(|seeds| match verb {
            DiskFileJob::Check => {
                CheckJob::begin(files.as_ref(), &plan, seeds).map(|job| Self::Check(Box::new(job)))
            }
            DiskFileJob::Convert(request) => {
                CopyJob::convert(files, &plan, &converted(&plan, request), checkpoint, seeds)
                    .map(|job| Self::Copy(Box::new(job)))
            }
            DiskFileJob::Merge => MergeJob::begin(files, &plan, checkpoint, seeds)
                .map(|job| Self::Merge(Box::new(job))),
            // Snapshots and reopening are no jobs: the control thread carries them out.
            DiskFileJob::Compact | DiskFileJob::Snapshot(_) | DiskFileJob::Reopen => {
                CopyJob::compact(files, &plan, checkpoint, seeds)
                    .map(|job| Self::Copy(Box::new(job)))
            }
        })
    }

    /// Resumes a job from a checkpoint of a former daemon. Retries while the images are locked by
    /// that process, at most [`LOCK_RELEASE_TIMEOUT`].
    fn resume(
        verb: &DiskFileJob,
        work: &ImageTask,
        files: &Arc<dyn StoreFiles>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, DiskError> {
        let is_busy =
            |error: &DiskError| matches!(*error.fault, DiskFault::Store(StoreFault::InUse { .. }));
        let begin = || Self::begin(verb, work, files, Some(checkpoint));
        retry_until_unlocked(Instant::now() + LOCK_RELEASE_TIMEOUT, is_busy, begin)
    }

    fn as_dyn(&mut self) -> &mut dyn DiskJob {
        match self {
            Self::Check(job) => job.as_mut(),
            Self::Copy(job) => job.as_mut(),
            Self::Merge(job) => job.as_mut(),
        }
    }

    fn into_done(self) -> CompletedJob {
        match self {
            Self::Check(job) => CompletedJob::Checked(job.into_report()),
            Self::Copy(_) => CompletedJob::Copied,
            Self::Merge(job) => CompletedJob::Merged(job.merged_plan().clone()),
        }
    }
}

/// Executes a job until it completes, fails, is cancelled, or the daemon stops. `checkpoint`: the
/// checkpoint to resume from. Calls `save` with a checkpoint every [`CHECKPOINT_EVERY`] and when
/// the daemon stops. While the store is full, the job is suspended if the disk's `on_full` is
/// `wait`.
///
/// # Errors
/// [`JobFailure::Failed`] after the effects of the job were undone; [`JobFailure::Interrupted`] if
/// the daemon stops.
pub(super) fn run(
    (verb, checkpoint): (&DiskFileJob, Option<&Checkpoint>),
    work: &ImageTask,
    operation: &OperationHandle,
    stop: &AtomicBool,
    mut save: impl FnMut(Option<Checkpoint>),
) -> Result<CompletedJob, JobFailure> {
    let hold_up = RetryHold { verb, work, operation, stop };
    let mut job = begin(checkpoint, &hold_up)?;
    let (mut checkpoint_at, mut progress) = (Instant::now(), None);
    loop {
        operation.check_cancelled()?;
        let is_stopping = stop.load(Ordering::Acquire);
        if is_stopping || checkpoint_at.elapsed() >= CHECKPOINT_EVERY {
            match job.as_dyn().checkpoint(work.now_unix_s()) {
                Ok(checkpoint) => save(checkpoint),
                // The previous checkpoint remains valid.
                Err(error) if hold_up.is_for(&error) => {}
                Err(error) => return Err(work.to_api_error(&error).into()),
            }
            checkpoint_at = Instant::now();
        }
        if is_stopping {
            job.as_dyn().keep_for_resume();
            return Err(JobFailure::Interrupted);
        }
        match job.as_dyn().step() {
            Ok(JobProgress { is_done: true, .. }) => return Ok(job.into_done()),
            Ok(now) => {
                show(operation, verb.verb(), now);
                progress = Some(now);
            }
            Err(error) if hold_up.is_for(&error) => hold_up.wait(progress),
            Err(error) => return Err(work.to_api_error(&error).into()),
        }
    }
}

fn begin(checkpoint: Option<&Checkpoint>, hold_up: &RetryHold<'_>) -> Result<Job, JobFailure> {
    let RetryHold { verb, work, operation, stop } = *hold_up;
    let files = match checkpoint {
        Some(_) => wait_for_store(work, operation, stop)?,
        None => work.files()?,
    };
    if *verb == DiskFileJob::Merge {
        work.check_merge_target(&files)?;
    }
    loop {
        let started = match checkpoint {
            Some(checkpoint) => Job::resume(verb, work, &files, checkpoint),
            None => Job::begin(verb, work, &files, None),
        };
        match started {
            Ok(job) => return Ok(job),
            Err(error) if hold_up.is_for(&error) => hold_up.wait(None),
            Err(error) => return Err(work.to_api_error(&error).into()),
        }
        operation.check_cancelled()?;
        if stop.load(Ordering::Acquire) {
            return Err(JobFailure::Interrupted);
        }
    }
}

/// Suspends a job while its store is full.
struct RetryHold<'a> {
    verb: &'a DiskFileJob,
    work: &'a ImageTask,
    operation: &'a OperationHandle,
    stop: &'a AtomicBool,
}

impl RetryHold<'_> {
    /// Returns true if the job is suspended after this error, until there is space.
    fn is_for(&self, error: &DiskError) -> bool {
        error.is_full() && self.work.required.config.on_full == DiskOnFull::Wait
    }

    /// Blocks until the next attempt is due, or the job is cancelled or stopped.
    fn wait(&self, progress: Option<JobProgress>) {
        let (done_mib, total) = progress.map_or((0, 1), in_mib);
        let (verb, store) = (self.verb.verb(), &self.work.required.config.store);
        let text = format!(
            "{verb}: store {store} is full; free space on it, then the operation continues \
             ({done_mib} of {total} MiB)"
        );
        self.operation.report_progress(done_mib, total, &text);
        let until = Instant::now() + FULL_STORE_RETRY_INTERVAL;
        while Instant::now() < until
            && !self.operation.is_cancelled()
            && !self.stop.load(Ordering::Acquire)
        {
            std::thread::sleep(STOP_EVERY);
        }
    }
}

/// Blocks until a store can be opened. After a host start, a store may become available later than
/// the daemon.
fn wait_for_store(
    work: &ImageTask,
    operation: &OperationHandle,
    stop: &AtomicBool,
) -> Result<Arc<dyn StoreFiles>, JobFailure> {
    loop {
        let error = match work.files() {
            Ok(files) => return Ok(files),
            Err(error) => error,
        };
        operation.check_cancelled()?;
        if stop.load(Ordering::Acquire) {
            return Err(JobFailure::Interrupted);
        }
        operation.report_step(0, &format!("waiting for the store, which failed: {error}"));
        std::thread::sleep(STORE_EVERY);
    }
}

/// Returns the plan of the image that a conversion creates.
fn converted(plan: &DiskPlan, request: &ConvertDiskRequest) -> DiskPlan {
    let kind = request.kind.unwrap_or(match request.format {
        DiskFormat::Raw | DiskFormat::PassThrough => DiskKind::Fixed,
        DiskFormat::Vhd | DiskFormat::Vhdx => DiskKind::Dynamic,
    });
    DiskPlan {
        format: disk_format(request.format),
        kind: Some(disk_kind(kind)),
        file: file_name(&request.file),
        size_bytes: None,
        parent: None,
        is_read_only: false,
        block_bytes: None,
        ..plan.clone()
    }
}

fn show(operation: &OperationHandle, verb: &str, progress: JobProgress) {
    let (done_mib, total) = in_mib(progress);
    let text = format!("{verb}: {done_mib} of {total} MiB");
    operation.report_progress(done_mib.min(total), total, &text);
}

fn in_mib(progress: JobProgress) -> (usize, usize) {
    let mib = |bytes: u64| usize::try_from(bytes / MIB).unwrap_or(usize::MAX);
    (mib(progress.done_bytes), mib(progress.total_bytes.next_multiple_of(MIB)).max(1))
}
