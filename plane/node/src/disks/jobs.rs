//! Jobs on disks: long operations on image files.
//!
//! Each job has a thread, because it blocks on the store and the control thread must not. The disk
//! is out of service during the job.

mod control;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::entry::DiskEntry;
use super::job_record::JobRecord;
use super::job_thread::{CompletedJob, JobFailure, JobState};
use crate::operations::OperationHandle;

/// Job on a disk in progress.
pub(crate) struct RunningJob {
    pub(super) entry: Arc<DiskEntry>,
    had_failed: bool,
    /// Persistent record of the job.
    unfinished: JobRecord,
    line: Arc<JobState>,
    end_receiver: Receiver<Ended>,
}

struct Ended {
    operation: OperationHandle,
    result: Result<CompletedJob, JobFailure>,
}
