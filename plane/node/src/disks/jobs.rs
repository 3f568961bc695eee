//! Work on disks that takes its time: each in a thread of its own, for stores must not wait for
//! the control thread, nor the control thread for stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};

use suimon_contract::{
    ApiError, ConvertDiskRequest, DiskFormat, DiskKind, ErrorCode, EventKind, Name,
};
use suimon_storage::images::{DiskError, DiskPlan};
use suimon_storage::jobs::{CheckJob, CheckReport, CopyJob, DiskJob, JobProgress, MergeJob};

use super::entry::{DiskEntry, WorkUnderWay};
use super::file_work::FileWork;
use super::notices::disk_failed;
use super::opening::{NotOpened, disk_error};
use super::store_threads::{SILENT_AFTER, STORE_PATIENCE};
use super::wanted::{disk_format, disk_kind, file_name};
use super::work::DiskWork;
use crate::control::{Command, Controller};
use crate::events::Draft;
use crate::operations::OperationHandle;

const MIB: u64 = 1 << 20;

/// A job on a disk, which is out of service meanwhile.
pub(crate) struct DiskJobUnderWay {
    pub(super) entry: Arc<DiskEntry>,
    had_failed: bool,
    stop: Arc<AtomicBool>,
    ended: Receiver<Ended>,
}

struct Ended {
    operation: OperationHandle,
    result: Result<Done, ApiError>,
}

/// What a job has done.
enum Done {
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
    fn begin(verb: &DiskWork, work: &FileWork) -> Result<Self, ApiError> {
        let (files, plan) = (work.files()?, work.wanted.plan());
        let begun = work.with_seeds(|seeds| match verb {
            DiskWork::Check => {
                CheckJob::begin(files.as_ref(), &plan, seeds).map(|job| Self::Check(Box::new(job)))
            }
            DiskWork::Convert(request) => {
                CopyJob::convert(&files, &plan, &converted(&plan, request), seeds)
                    .map(|job| Self::Copy(Box::new(job)))
            }
            DiskWork::Merge => {
                MergeJob::begin(&files, &plan, seeds).map(|job| Self::Merge(Box::new(job)))
            }
            // A snapshot is no job: it is taken at once.
            DiskWork::Compact | DiskWork::Snapshot(_) => {
                CopyJob::compact(&files, &plan, seeds).map(|job| Self::Copy(Box::new(job)))
            }
        });
        begun.map_err(|error| disk_error(&work.label, &error))
    }

    fn step(&mut self) -> Result<JobProgress, DiskError> {
        match self {
            Self::Check(job) => job.step(),
            Self::Copy(job) => job.step(),
            Self::Merge(job) => job.step(),
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

/// Drives a job until it is done, or somebody wants it to stop; then what it has begun and not
/// done is taken back.
fn run(
    verb: &DiskWork,
    work: &FileWork,
    operation: &OperationHandle,
    stop: &AtomicBool,
) -> Result<Done, ApiError> {
    let mut job = Job::begin(verb, work)?;
    loop {
        operation.check_cancelled()?;
        if stop.load(Ordering::Acquire) {
            return Err(stopped());
        }
        let progress = job.step().map_err(|error| disk_error(&work.label, &error))?;
        if progress.is_done {
            return Ok(job.done());
        }
        show(operation, verb.verb(), progress);
    }
}

/// What a disk is to be converted into.
fn converted(plan: &DiskPlan, request: &ConvertDiskRequest) -> DiskPlan {
    let kind = request.kind.unwrap_or(match request.format {
        DiskFormat::Raw | DiskFormat::PassThrough => DiskKind::Fixed,
        DiskFormat::Vhd | DiskFormat::Vhdx => DiskKind::Dynamic,
    });
    DiskPlan {
        format: disk_format(request.format),
        kind: disk_kind(kind),
        file: file_name(&request.file),
        size: None,
        parent: None,
        is_read_only: false,
        block_bytes: None,
        ..plan.clone()
    }
}

impl Controller {
    /// Begins work on a disk, of which `operation` tells.
    pub(crate) fn begin_disk_work(
        &mut self,
        operation: OperationHandle,
        disk: &Name,
        work: &DiskWork,
    ) {
        if !operation.begin() {
            return;
        }
        if let DiskWork::Snapshot(request) = work {
            let taken = self.take_snapshot(&operation, disk, request);
            self.write_drafts();
            return operation.end(&taken);
        }
        let entry = self.shared.check_disk_work(disk, work).and_then(|()| {
            let found = self.shared.disks.find(disk);
            found.ok_or_else(|| crate::edit::not_found(suimon_contract::Kind::Disk, disk))
        });
        match entry {
            Ok(entry) => self.start_job(operation, entry, work.clone()),
            Err(error) => operation.end(&Err(error)),
        }
    }

    fn start_job(&mut self, operation: OperationHandle, entry: Arc<DiskEntry>, verb: DiskWork) {
        operation.step_aside();
        let had_failed = entry.lock().open.is_none();
        let open = self.end_service(&entry);
        let under_way = WorkUnderWay { operation: operation.id(), verb: verb.verb() };
        entry.lock().work = Some(under_way);
        let work = self.shared.file_work(&entry);
        let stop = Arc::new(AtomicBool::new(false));
        let (result, ended) = sync_channel(1);
        let (stopped, control) = (stop.clone(), self.devices.notices.clone());
        let thread = std::thread::Builder::new().name("suimon-job".to_owned()).spawn(move || {
            // Before that nobody else can open them.
            if let Some(spec) = open {
                work.close_images(spec);
            }
            let done = run(&verb, &work, &operation, &stopped);
            tell_end(&result, &control, Ended { operation, result: done });
        });
        match thread {
            Ok(_) => {
                let job = DiskJobUnderWay { entry, had_failed, stop, ended };
                self.disk_jobs.push(job);
            }
            // The operation was dropped with what the thread would have run, and has failed.
            Err(error) => {
                tracing::error!(%error, "no thread for work on a disk");
                entry.lock().work = None;
                self.put_back(&entry, had_failed);
            }
        }
    }

    /// Goes on with disks whose jobs have ended.
    pub(crate) fn end_disk_jobs(&mut self) {
        for under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.ended.try_recv() {
                Ok(ended) => self.end_disk_job(&under_way, Some(ended)),
                Err(TryRecvError::Empty) => self.disk_jobs.push(under_way),
                // It has panicked and dropped its operation, which has failed then.
                Err(TryRecvError::Disconnected) => {
                    tracing::error!(disk = %under_way.entry.name, "a job has died of a defect");
                    self.end_disk_job(&under_way, None);
                }
            }
        }
    }

    /// The job is over, and the disk is in service again.
    fn end_disk_job(&mut self, under_way: &DiskJobUnderWay, ended: Option<Ended>) {
        let entry = &under_way.entry;
        entry.lock().work = None;
        let ended = ended.map(|Ended { operation, result }| {
            let result = result.and_then(|done| self.take_in(entry, &operation, done));
            (operation, result)
        });
        self.put_back(entry, under_way.had_failed);
        self.write_drafts();
        if let Some((operation, result)) = ended {
            operation.end(&result);
        }
    }

    fn take_in(
        &mut self,
        entry: &DiskEntry,
        operation: &OperationHandle,
        done: Done,
    ) -> Result<(), ApiError> {
        match done {
            Done::Checked(report) => {
                self.drafts.push(disk_checked(entry, &report));
                operation.report(report_lines(&report));
                Ok(())
            }
            Done::Copied => Ok(()),
            Done::Merged(merged) => self.go_on_with(operation, entry, &merged),
        }
    }

    /// Puts a disk in service again that is not.
    pub(super) fn put_back(&mut self, entry: &DiskEntry, had_failed: bool) {
        if entry.lock().open.is_some() {
            return;
        }
        // Whoever waits for the operation finds the disk in service.
        let opened = self.open_disk_in_the_end(entry, SILENT_AFTER);
        if let Err(NotOpened::Failed(error)) = opened {
            let reason = error.to_string();
            if !had_failed {
                self.drafts.push(disk_failed(entry, &reason));
            }
            self.fail_disk(entry, reason);
        }
    }

    /// The daemon ends. A job whose store does not answer is left alone with it: the disk is
    /// as after a crash.
    pub(crate) fn give_up_disk_jobs(&mut self) {
        for under_way in &self.disk_jobs {
            under_way.stop.store(true, Ordering::Release);
        }
        for under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.ended.recv_timeout(STORE_PATIENCE) {
                Ok(Ended { operation, result }) => {
                    operation.end(&result.and_then(|_| Err(stopped())));
                }
                Err(RecvTimeoutError::Timeout) => {
                    tracing::warn!(disk = %under_way.entry.name, "its store does not answer");
                }
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

/// Leaves a result for the control thread, and wakes it.
fn tell_end(result: &SyncSender<Ended>, control: &SyncSender<Command>, ended: Ended) {
    // Whoever is gone wants nothing; who does not hear it looks before long.
    let _ = result.send(ended);
    let _ = control.try_send(Command::Look);
}

fn stopped() -> ApiError {
    let text = "the daemon stops before it was done; everything is as before";
    ApiError::new(ErrorCode::Cancelled, text)
}

fn show(operation: &OperationHandle, verb: &str, progress: JobProgress) {
    let of = |bytes: u64| usize::try_from(bytes / MIB).unwrap_or(usize::MAX);
    let (done, total) = (of(progress.done_bytes), of(progress.total_bytes.next_multiple_of(MIB)));
    let total = total.max(1);
    let text = format!("{verb}: {done} of {total} MiB");
    operation.progress(done.min(total), total, &text);
}

fn report_lines(report: &CheckReport) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for finding in &report.findings {
        let what = if finding.is_damage { "damage" } else { "repaired when it is opened" };
        lines.push(format!("{what}: {}", finding.error));
    }
    if report.findings_left_off > 0 {
        lines.push(format!("{} findings more", report.findings_left_off));
    }
    if report.unused_bytes > 0 {
        let unused = report.unused_bytes;
        lines.push(format!("{unused} bytes of the file are not used: compacting gives them back"));
    }
    let verdict = if report.is_damaged() {
        "the disk is damaged: copy what can be read, or restore it"
    } else {
        "no damage was found"
    };
    lines.push(format!("{} bytes were read, {verdict}", report.read_bytes));
    lines
}

fn disk_checked(entry: &DiskEntry, report: &CheckReport) -> Draft {
    let damages = report.findings.iter().filter(|finding| finding.is_damage).count();
    let text = match damages {
        0 => "The disk was checked, and no damage was found.".to_owned(),
        _ => format!("The disk was checked, and is damaged in {damages} places."),
    };
    Draft::new(EventKind::DiskChecked, entry.label(), text)
        .with("damages", damages)
        .with("findings", report.findings.len())
        .with("unused_bytes", report.unused_bytes)
}
