//! Start and end of disk jobs by the control thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, sync_channel};

use suimon_contract::{ApiError, ErrorCode, EventKind, Name};
use suimon_image_files::jobs::CheckReport;

use super::{Ended, RunningJob};
use crate::command::Command;
use crate::control::Controller;
use crate::disks::entry::{CurrentJob, DiskEntry};
use crate::disks::image_task::ImageTask;
use crate::disks::job_record::JobRecord;
use crate::disks::job_thread::{CompletedJob, JobFailure, JobState, run};
use crate::disks::notices::disk_failed_event;
use crate::disks::opening::errors::OpenError;
use crate::disks::store_threads::{OPTIONAL_RESULT_TIMEOUT, STORE_TIMEOUT};
use crate::disks::work::DiskFileJob;
use crate::events::EventDraft;
use crate::operations::OperationHandle;

impl Controller {
    /// Executes an operation on a disk: takes a snapshot, or starts a job. `operation` reports the
    /// result.
    pub(crate) fn begin_disk_operation(
        &mut self,
        operation: OperationHandle,
        disk: &Name,
        work: &DiskFileJob,
    ) {
        if !operation.begin() {
            return;
        }
        if let DiskFileJob::Snapshot(request) = work {
            let result = self.take_snapshot(&operation, disk, request);
            self.write_drafts();
            return operation.end(&result);
        }
        if *work == DiskFileJob::Reopen {
            let reopened = self.reopen_disk(disk);
            self.write_drafts();
            return operation.end(&reopened);
        }
        let entry = self.shared.check_disk_job(disk, work).and_then(|()| {
            let entry = self.shared.disks.find(disk);
            entry.ok_or_else(|| crate::errors::not_found(suimon_contract::ResourceKind::Disk, disk))
        });
        match entry {
            Ok(entry) => {
                let unfinished = JobRecord::new(work.clone(), &entry.lock().required);
                self.start_job(operation, entry, unfinished, false);
            }
            Err(error) => operation.end(&Err(error)),
        }
    }

    /// Starts the thread of a job. `resumes`: the job of a former daemon is resumed from its
    /// checkpoint. If the job cannot be recorded or the thread cannot be created, the operation
    /// fails and the disk is put back into service.
    pub(in crate::disks) fn start_job(
        &mut self,
        operation: OperationHandle,
        entry: Arc<DiskEntry>,
        unfinished: JobRecord,
        resumes: bool,
    ) {
        operation.allow_concurrent_changes();
        if let Err(error) = self.save_job(&entry.name, &unfinished) {
            operation.end(&Err(error));
            return self.open_after_job(&entry, false);
        }
        let had_failed = !resumes && entry.lock().open.is_none();
        let open = self.begin_close(&entry);
        let verb = unfinished.job().clone();
        let under_way = CurrentJob { operation_id: operation.id(), verb: verb.verb() };
        entry.lock().job = Some(under_way);
        let siblings = match verb {
            DiskFileJob::Merge => self.shared.disks.closed_siblings(&entry),
            _ => Vec::new(),
        };
        let work = ImageTask { closed_disks: siblings, ..self.shared.image_task(&entry) };
        let checkpoint = resumes.then(|| unfinished.checkpoint());
        let line = Arc::new(JobState::default());
        let (result, end_receiver) = sync_channel(1);
        let (of_job, control) = (line.clone(), self.devices.commands.clone());
        let thread = std::thread::Builder::new().name("suimon-job".to_owned()).spawn(move || {
            // The images are locked until they are closed here.
            if let Some(spec) = open {
                work.close_images(spec);
            }
            let job_result = run(
                (&verb, checkpoint.as_ref()),
                &work,
                &operation,
                &of_job.is_stopping,
                |checkpoint| {
                    of_job.set_checkpoint(checkpoint);
                    let _ = control.try_send(Command::Wake);
                },
            );
            report_end(&result, &control, Ended { operation, result: job_result });
        });
        match thread {
            Ok(_) => {
                let job = RunningJob { entry, had_failed, unfinished, line, end_receiver };
                self.disk_jobs.push(job);
            }
            // The operation was dropped with the closure and has failed.
            Err(error) => {
                tracing::error!(%error, "cannot start a thread for a job on a disk");
                self.delete_job(&entry.name, &unfinished);
                entry.lock().job = None;
                self.open_after_job(&entry, had_failed);
            }
        }
    }

    /// Puts disks whose jobs have ended back into service, and records checkpoints of the others.
    /// Called by the control thread after every command and timeout.
    pub(crate) fn poll_disk_jobs(&mut self) {
        for mut under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.end_receiver.try_recv() {
                Ok(end) => self.end_disk_job(&under_way, Some(end)),
                Err(TryRecvError::Empty) => {
                    self.note_progress(&mut under_way);
                    self.disk_jobs.push(under_way);
                }
                // The thread has panicked; its operation was dropped and has failed.
                Err(TryRecvError::Disconnected) => {
                    tracing::error!(
                        disk = %under_way.entry.name,
                        "the job ended because of a defect in the daemon; see its log"
                    );
                    self.end_disk_job(&under_way, None);
                }
            }
        }
    }

    fn note_progress(&self, under_way: &mut RunningJob) {
        if let Some(checkpoint) = under_way.line.take_checkpoint() {
            let disk = &under_way.entry.name;
            self.record_checkpoint(disk, &mut under_way.unfinished, &checkpoint);
        }
    }

    /// Applies the result of a job, deletes its record, and puts the disk back into service.
    fn end_disk_job(&mut self, under_way: &RunningJob, end: Option<Ended>) {
        let entry = &under_way.entry;
        entry.lock().job = None;
        let end = end.map(|Ended { operation, result }| {
            let result = match result {
                Ok(job_output) => self.take_in(entry, &operation, job_output, under_way.had_failed),
                Err(JobFailure::Failed(error)) => Err(error),
                Err(JobFailure::Interrupted) => Err(stopped()),
            };
            (operation, result)
        });
        self.delete_job(&entry.name, &under_way.unfinished);
        self.open_after_job(entry, under_way.had_failed);
        self.write_drafts();
        if let Some((operation, result)) = end {
            operation.end(&result);
        }
    }

    fn take_in(
        &mut self,
        entry: &DiskEntry,
        operation: &OperationHandle,
        job_output: CompletedJob,
        had_failed: bool,
    ) -> Result<(), ApiError> {
        match job_output {
            CompletedJob::Checked(report) => {
                self.drafts.push(disk_checked(entry, &report));
                operation.set_report(report_lines(&report));
                Ok(())
            }
            CompletedJob::Copied => Ok(()),
            CompletedJob::Merged(merged) => {
                self.continue_with_merged(operation, entry, &merged, had_failed)
            }
        }
    }

    /// Opens a disk that is not open, and marks it as failed if that fails. `had_failed`: the
    /// failure was reported before.
    pub(in crate::disks) fn open_after_job(&mut self, entry: &DiskEntry, had_failed: bool) {
        if entry.lock().open.is_some() {
            return;
        }
        // Waits for the store, so that the disk is in service when its operation ends.
        let opened = self.open_disk_with_timeout(entry, STORE_TIMEOUT);
        if let Err(OpenError::Failed(error)) = opened {
            let reason = error.to_string();
            if !had_failed {
                self.drafts.push(disk_failed_event(entry, &reason));
            }
            self.fail_disk(entry, reason);
        }
    }

    /// Stops all jobs; the next daemon resumes them. A job whose store does not respond within
    /// [`OPTIONAL_RESULT_TIMEOUT`] is abandoned; its disk is then as after a crash.
    pub(crate) fn stop_disk_jobs(&mut self) {
        for under_way in &self.disk_jobs {
            under_way.line.is_stopping.store(true, Ordering::Release);
        }
        for mut under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.end_receiver.recv_timeout(OPTIONAL_RESULT_TIMEOUT) {
                Ok(Ended { operation, result }) => {
                    let result = match result {
                        Ok(CompletedJob::Checked(_) | CompletedJob::Copied) => {
                            self.delete_job(&under_way.entry.name, &under_way.unfinished);
                            Ok(())
                        }
                        Err(JobFailure::Failed(error)) => {
                            self.delete_job(&under_way.entry.name, &under_way.unfinished);
                            Err(error)
                        }
                        // A completed merge is still missing in the desired state; the next daemon
                        // completes it.
                        Ok(CompletedJob::Merged(_)) | Err(JobFailure::Interrupted) => {
                            self.note_progress(&mut under_way);
                            self.reset_attempts(&under_way.entry.name, &mut under_way.unfinished);
                            Err(stopped())
                        }
                    };
                    operation.end(&result);
                }
                Err(RecvTimeoutError::Timeout) => {
                    tracing::warn!(disk = %under_way.entry.name, "its store does not respond");
                }
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

/// Passes a result to the control thread and wakes it.
fn report_end(result: &SyncSender<Ended>, control: &SyncSender<Command>, end: Ended) {
    // Fails only if the control thread has ended, or has queued commands and polls soon anyway.
    let _ = result.send(end);
    let _ = control.try_send(Command::Wake);
}

fn stopped() -> ApiError {
    let text = "the daemon is stopping; the next one resumes the job";
    ApiError::new(ErrorCode::Cancelled, text)
}

fn report_lines(report: &CheckReport) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for finding in &report.findings {
        let severity =
            if finding.is_damage { "damage" } else { "will be repaired when the disk is opened" };
        lines.push(format!("{severity}: {}", finding.error));
    }
    if report.findings_omitted > 0 {
        lines.push(format!("{} more findings", report.findings_omitted));
    }
    if report.unused_bytes > 0 {
        let unused = report.unused_bytes;
        lines.push(format!(
            "{unused} bytes of the file are unused; `suimon disk compact` releases them"
        ));
    }
    let verdict = if report.is_damaged() {
        "the disk is damaged: copy the readable data, or restore a backup"
    } else {
        "no damage was found"
    };
    lines.push(format!("{} bytes were read; {verdict}", report.read_bytes));
    lines
}

fn disk_checked(entry: &DiskEntry, report: &CheckReport) -> EventDraft {
    let damages = report.findings.iter().filter(|finding| finding.is_damage).count();
    let text = match damages {
        0 => "The image was checked: no damage was found.".to_owned(),
        _ => format!(
            "The image was checked: it is damaged in {damages} places. Copy the readable data, or \
             restore a backup."
        ),
    };
    EventDraft::new(EventKind::DiskChecked, entry.label(), text)
        .with("damages", damages)
        .with("findings", report.findings.len())
        .with("unused_bytes", report.unused_bytes)
}
