//! Work on disks that takes its time: each in a thread of its own, for stores must not wait for
//! the control thread, nor the control thread for stores.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};

use suimon_contract::{ApiError, ErrorCode, EventKind, Name};
use suimon_storage::jobs::CheckReport;

use super::entry::{DiskEntry, WorkUnderWay};
use super::job_thread::{Done, JobLine, NotDone, run};
use super::notices::disk_failed;
use super::opening::NotOpened;
use super::store_threads::{SILENT_AFTER, STORE_PATIENCE};
use super::unfinished::UnfinishedWork;
use super::work::DiskWork;
use crate::control::{Command, Controller};
use crate::events::Draft;
use crate::operations::OperationHandle;

/// A job on a disk, which is out of service meanwhile.
pub(crate) struct DiskJobUnderWay {
    pub(super) entry: Arc<DiskEntry>,
    had_failed: bool,
    /// As it is recorded.
    unfinished: UnfinishedWork,
    line: Arc<JobLine>,
    ended: Receiver<Ended>,
}

struct Ended {
    operation: OperationHandle,
    result: Result<Done, NotDone>,
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
        if *work == DiskWork::Reopen {
            let reopened = self.reopen_disk(disk);
            self.write_drafts();
            return operation.end(&reopened);
        }
        let entry = self.shared.check_disk_work(disk, work).and_then(|()| {
            let found = self.shared.disks.find(disk);
            found.ok_or_else(|| crate::edit::not_found(suimon_contract::Kind::Disk, disk))
        });
        match entry {
            Ok(entry) => {
                let unfinished = UnfinishedWork::new(work.clone(), &entry.lock().wanted);
                self.start_job(operation, entry, unfinished, false);
            }
            Err(error) => operation.end(&Err(error)),
        }
    }

    /// Begins a job in a thread of its own, or goes on with what another daemon has left.
    pub(super) fn start_job(
        &mut self,
        operation: OperationHandle,
        entry: Arc<DiskEntry>,
        unfinished: UnfinishedWork,
        goes_on: bool,
    ) {
        operation.step_aside();
        if let Err(error) = self.note_work(&entry.name, &unfinished) {
            operation.end(&Err(error));
            return self.put_back(&entry, false);
        }
        let had_failed = !goes_on && entry.lock().open.is_none();
        let open = self.end_service(&entry);
        let verb = unfinished.work().clone();
        let under_way = WorkUnderWay { operation: operation.id(), verb: verb.verb() };
        entry.lock().work = Some(under_way);
        let work = self.shared.file_work(&entry);
        let left = goes_on.then(|| unfinished.checkpoint());
        let line = Arc::new(JobLine::default());
        let (result, ended) = sync_channel(1);
        let (of_job, control) = (line.clone(), self.devices.notices.clone());
        let thread = std::thread::Builder::new().name("suimon-job".to_owned()).spawn(move || {
            // Before that nobody else can open them.
            if let Some(spec) = open {
                work.close_images(spec);
            }
            let done = run((&verb, left.as_ref()), &work, &operation, &of_job.stop, |checkpoint| {
                of_job.tell(checkpoint);
                let _ = control.try_send(Command::Look);
            });
            tell_end(&result, &control, Ended { operation, result: done });
        });
        match thread {
            Ok(_) => {
                let job = DiskJobUnderWay { entry, had_failed, unfinished, line, ended };
                self.disk_jobs.push(job);
            }
            // The operation was dropped with what the thread would have run, and has failed.
            Err(error) => {
                tracing::error!(%error, "no thread for work on a disk");
                self.forget_work(&entry.name, &unfinished);
                entry.lock().work = None;
                self.put_back(&entry, had_failed);
            }
        }
    }

    /// Goes on with disks whose jobs have ended.
    pub(crate) fn end_disk_jobs(&mut self) {
        for mut under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.ended.try_recv() {
                Ok(ended) => self.end_disk_job(&under_way, Some(ended)),
                Err(TryRecvError::Empty) => {
                    self.note_progress(&mut under_way);
                    self.disk_jobs.push(under_way);
                }
                // It has panicked and dropped its operation, which has failed then.
                Err(TryRecvError::Disconnected) => {
                    tracing::error!(disk = %under_way.entry.name, "a job has died of a defect");
                    self.end_disk_job(&under_way, None);
                }
            }
        }
    }

    fn note_progress(&self, under_way: &mut DiskJobUnderWay) {
        if let Some(checkpoint) = under_way.line.take() {
            let disk = &under_way.entry.name;
            self.note_checkpoint(disk, &mut under_way.unfinished, &checkpoint);
        }
    }

    /// The job is over, and the disk is in service again.
    fn end_disk_job(&mut self, under_way: &DiskJobUnderWay, ended: Option<Ended>) {
        let entry = &under_way.entry;
        entry.lock().work = None;
        let ended = ended.map(|Ended { operation, result }| {
            let result = match result {
                Ok(done) => self.take_in(entry, &operation, done),
                Err(NotDone::Failed(error)) => Err(error),
                Err(NotDone::Left) => Err(stopped()),
            };
            (operation, result)
        });
        self.forget_work(&entry.name, &under_way.unfinished);
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

    /// The daemon ends, and the next one goes on with its jobs. One whose store does not answer is
    /// left alone with it: the disk is as after a crash.
    pub(crate) fn leave_disk_jobs(&mut self) {
        for under_way in &self.disk_jobs {
            under_way.line.stop.store(true, Ordering::Release);
        }
        for mut under_way in std::mem::take(&mut self.disk_jobs) {
            match under_way.ended.recv_timeout(STORE_PATIENCE) {
                Ok(Ended { operation, result }) => {
                    let result = match result {
                        Ok(Done::Checked(_) | Done::Copied) => {
                            self.forget_work(&under_way.entry.name, &under_way.unfinished);
                            Ok(())
                        }
                        Err(NotDone::Failed(error)) => {
                            self.forget_work(&under_way.entry.name, &under_way.unfinished);
                            Err(error)
                        }
                        // A merge that is done, but for what the disk is now.
                        Ok(Done::Merged(_)) | Err(NotDone::Left) => {
                            self.note_progress(&mut under_way);
                            self.note_left(&under_way.entry.name, &mut under_way.unfinished);
                            Err(stopped())
                        }
                    };
                    operation.end(&result);
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
    let text = "the daemon ends before it was done; the next one goes on with it";
    ApiError::new(ErrorCode::Cancelled, text)
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
