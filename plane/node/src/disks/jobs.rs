//! Work on disks that takes its time: a step of it whenever the control thread has handled
//! what was asked of it.

use std::sync::Arc;

use suimon_contract::{
    ApiError, ConvertDiskRequest, DiskFormat, DiskKind, ErrorCode, EventKind, Name,
};
use suimon_ports::StoreFiles;
use suimon_storage::images::{DiskError, DiskPlan};
use suimon_storage::jobs::{CheckJob, CheckReport, CopyJob, DiskJob, JobProgress, MergeJob};

use super::entry::{DiskEntry, WorkUnderWay};
use super::notices::disk_failed;
use super::opening::{disk_error, store_file_error};
use super::wanted::{WantedDisk, disk_format, disk_kind, file_name};
use super::work::DiskWork;
use crate::control::Controller;
use crate::events::Draft;
use crate::operations::OperationHandle;

const MIB: u64 = 1 << 20;

/// A job on a disk, which is out of service meanwhile.
pub(crate) struct DiskJobUnderWay {
    operation: OperationHandle,
    pub(super) entry: Arc<DiskEntry>,
    verb: &'static str,
    had_failed: bool,
    job: Job,
}

enum Job {
    Check(Box<CheckJob>),
    Copy(Box<CopyJob>),
    Merge(Box<MergeJob>),
}

impl Job {
    fn begin(
        work: &DiskWork,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
        controller: &Controller,
    ) -> Result<Self, DiskError> {
        let plan = wanted.plan();
        controller.with_seeds(|seeds| match work {
            DiskWork::Check => {
                CheckJob::begin(files.as_ref(), &plan, seeds).map(|job| Self::Check(Box::new(job)))
            }
            DiskWork::Convert(request) => {
                CopyJob::convert(files, &plan, &converted(&plan, request), seeds)
                    .map(|job| Self::Copy(Box::new(job)))
            }
            DiskWork::Merge => {
                MergeJob::begin(files, &plan, seeds).map(|job| Self::Merge(Box::new(job)))
            }
            // A snapshot is no job: it is taken at once.
            DiskWork::Compact | DiskWork::Snapshot(_) => {
                CopyJob::compact(files, &plan, seeds).map(|job| Self::Copy(Box::new(job)))
            }
        })
    }

    fn step(&mut self) -> Result<JobProgress, DiskError> {
        match self {
            Self::Check(job) => job.step(),
            Self::Copy(job) => job.step(),
            Self::Merge(job) => job.step(),
        }
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
        let begun = match work {
            DiskWork::Snapshot(request) => {
                let taken = self.take_snapshot(&operation, disk, request);
                self.write_drafts();
                return operation.end(&taken);
            }
            _ => self.begin_job(&operation, disk, work),
        };
        match begun {
            Ok((entry, had_failed, job)) => {
                operation.step_aside();
                let verb = work.verb();
                let job = DiskJobUnderWay { operation, entry, verb, had_failed, job };
                self.disk_jobs.push_back(job);
            }
            Err(error) => {
                self.write_drafts();
                operation.end(&Err(error));
            }
        }
    }

    fn begin_job(
        &mut self,
        operation: &OperationHandle,
        disk: &Name,
        work: &DiskWork,
    ) -> Result<(Arc<DiskEntry>, bool, Job), ApiError> {
        self.shared.check_disk_work(disk, work)?;
        let entry = self.shared.disks.find(disk);
        let entry =
            entry.ok_or_else(|| crate::edit::not_found(suimon_contract::Kind::Disk, disk))?;
        let wanted = entry.lock().wanted.clone();
        let files = self.shared.disks.store(&wanted.store.path);
        let files = files.map_err(|error| store_file_error(&entry, &error))?;
        let had_failed = entry.lock().open.is_none();
        self.close_disk(&entry);
        match Job::begin(work, &wanted, &files, self) {
            Ok(job) => {
                let under_way = WorkUnderWay { operation: operation.id(), verb: work.verb() };
                entry.lock().work = Some(under_way);
                Ok((entry, had_failed, job))
            }
            Err(error) => {
                self.put_back(&entry, had_failed);
                Err(disk_error(&entry, &error))
            }
        }
    }

    /// One step of the job whose turn it is.
    pub(crate) fn step_disk_jobs(&mut self) {
        let Some(mut under_way) = self.disk_jobs.pop_front() else { return };
        let result = under_way.operation.check_cancelled().and_then(|()| {
            under_way.job.step().map_err(|error| disk_error(&under_way.entry, &error))
        });
        match result {
            Ok(progress) if !progress.is_done => {
                show(&under_way, progress);
                self.disk_jobs.push_back(under_way);
            }
            Ok(_) => self.end_disk_job(under_way, Ok(())),
            Err(error) => self.end_disk_job(under_way, Err(error)),
        }
    }

    /// The job is over: what it has begun and not done is taken back, and the disk is in
    /// service again.
    fn end_disk_job(&mut self, under_way: DiskJobUnderWay, result: Result<(), ApiError>) {
        let DiskJobUnderWay { operation, entry, verb: _, had_failed, job } = under_way;
        if let (Job::Check(job), Ok(())) = (&job, &result) {
            let lines = report_lines(job.report());
            self.drafts.push(disk_checked(&entry, job.report()));
            operation.report(lines);
        }
        let merged = match (&job, &result) {
            (Job::Merge(job), Ok(())) => Some(job.merged().clone()),
            _ => None,
        };
        drop(job);
        entry.lock().work = None;
        let result = match merged {
            Some(merged) => self.go_on_with(&operation, &entry, &merged),
            None => result,
        };
        self.put_back(&entry, had_failed);
        self.write_drafts();
        operation.end(&result);
    }

    /// Puts a disk in service again that is not.
    pub(super) fn put_back(&mut self, entry: &DiskEntry, had_failed: bool) {
        if entry.lock().open.is_some() {
            return;
        }
        if let Err(error) = self.open_disk(entry) {
            let reason = error.to_string();
            if !had_failed {
                self.drafts.push(disk_failed(entry, &reason));
            }
            self.fail_disk(entry, reason);
        }
    }

    /// The daemon ends.
    pub(crate) fn give_up_disk_jobs(&mut self) {
        for DiskJobUnderWay { operation, job, .. } in self.disk_jobs.drain(..) {
            drop(job);
            let text = "the daemon stops before it was done; everything is as before";
            operation.end(&Err(ApiError::new(ErrorCode::Cancelled, text)));
        }
    }
}

fn show(under_way: &DiskJobUnderWay, progress: JobProgress) {
    let of = |bytes: u64| usize::try_from(bytes / MIB).unwrap_or(usize::MAX);
    let (done, total) = (of(progress.done_bytes), of(progress.total_bytes.next_multiple_of(MIB)));
    let total = total.max(1);
    let text = format!("{}: {done} of {total} MiB", under_way.verb);
    under_way.operation.progress(done.min(total), total, &text);
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
