//! Resumption of unfinished jobs by the control thread.

use std::sync::Arc;

use suimon_contract::{ApiError, EventKind, Name};
use suimon_image_files::jobs::Checkpoint;
use suimon_ports::StateStoreError;

use super::{JobRecord, load_unfinished};
use crate::control::Controller;
use crate::disks::entry::DiskEntry;
use crate::disks::notices::disk_failed_event;
use crate::disks::opening::errors::OpenError;
use crate::disks::records::DISK_JOBS_TABLE;
use crate::disks::store_threads::OPTIONAL_RESULT_TIMEOUT;
use crate::disks::work::DiskFileJob;
use crate::errors::store_error;
use crate::events::EventDraft;
use crate::state::{StoreChange, encode};

/// Number of consecutive daemon exits without progress after which a job is abandoned: the job may
/// be their cause.
const EXITS_WITHOUT_PROGRESS_MAX: u32 = 3;

fn save(disk: &Name, work: &JobRecord) -> Result<StoreChange, StateStoreError> {
    Ok((DISK_JOBS_TABLE, disk.to_string(), Some(encode(DISK_JOBS_TABLE, work)?)))
}

impl Controller {
    /// Stores the record of a job.
    pub(in crate::disks) fn save_job(&self, disk: &Name, work: &JobRecord) -> Result<(), ApiError> {
        let noted = save(disk, work).and_then(|change| self.store.commit(&[change]));
        noted.map_err(|error| store_error(&error).with_resource(format!("disk/{disk}")))
    }

    /// Records a checkpoint of a running job. A failure is logged; the job continues.
    pub(in crate::disks) fn record_checkpoint(
        &self,
        disk: &Name,
        work: &mut JobRecord,
        checkpoint: &Checkpoint,
    ) {
        work.go_to(checkpoint);
        if let Err(error) = self.save_job(disk, work) {
            tracing::warn!(%disk, %error, "cannot record the progress of a job on a disk");
        }
    }

    /// Resets the number of attempts when the daemon stops regularly: the job, for example one
    /// queued for space, does not cause the stop.
    pub(in crate::disks) fn reset_attempts(&self, disk: &Name, work: &mut JobRecord) {
        if work.attempts == 0 {
            return;
        }
        work.attempts = 0;
        if let Err(error) = self.save_job(disk, work) {
            tracing::warn!(%disk, %error, "cannot record the result of a job on a disk");
        }
    }

    /// Deletes the record of a job that has ended.
    pub(in crate::disks) fn delete_job(&self, disk: &Name, unfinished: &JobRecord) {
        if let Some(draft) = unfinished.draft() {
            self.shared.disks.stores.unprotect_image(&unfinished.store, &draft);
        }
        if let Err(error) = self.store.commit(&[(DISK_JOBS_TABLE, disk.to_string(), None)]) {
            tracing::warn!(%disk, %error, "cannot record the end of a job on a disk");
        }
    }

    /// Loads the jobs that former daemons did not complete, and protects their unfinished images.
    /// Must be called before stores are opened, which removes unprotected ones.
    pub(crate) fn load_unfinished(&mut self) -> Result<(), StateStoreError> {
        self.unfinished = load_unfinished(self.store.as_ref())?;
        for unfinished in self.unfinished.values() {
            if let Some(draft) = unfinished.draft() {
                self.shared.disks.stores.protect_image(&unfinished.store, draft);
            }
        }
        Ok(())
    }

    /// Resumes the jobs of former daemons, or abandons them. Called when the desired state of the
    /// host file is in effect.
    pub(crate) fn resume_jobs(&mut self) {
        for (disk, unfinished) in std::mem::take(&mut self.unfinished) {
            let Some(entry) = self.shared.disks.find(&disk) else {
                self.abandon_job(&disk, &unfinished);
                continue;
            };
            match self.resume_job(&entry, unfinished.clone()) {
                Ok(()) => {}
                Err(None) => {
                    self.abandon_job(&disk, &unfinished);
                    self.open_after(&entry);
                }
                Err(Some(reason)) => {
                    let verb = unfinished.work.verb();
                    let text = format!(
                        "The interrupted job (disk {verb}) was abandoned: {reason}. The disk is \
                         unchanged. Run the command again."
                    );
                    let draft = EventDraft::new(EventKind::DiskWorkGivenUp, entry.label(), text);
                    self.drafts.push(draft.with("work", verb).with("reason", &reason));
                    self.abandon_job(&disk, &unfinished);
                    self.open_after(&entry);
                }
            }
        }
    }

    /// Resumes a job.
    ///
    /// # Errors
    /// The job must be abandoned, for the reason in `Some`. `None`: nothing remains to be done,
    /// because the result of the job is already in the desired state.
    fn resume_job(
        &mut self,
        entry: &Arc<DiskEntry>,
        mut unfinished: JobRecord,
    ) -> Result<(), Option<String>> {
        if !unfinished.is_about(&entry.lock().required) {
            // The desired state already has the result of the merge; only the record remained.
            let is_merge = unfinished.work == DiskFileJob::Merge;
            return Err((!is_merge).then(|| "the disk has another file now".to_owned()));
        }
        if unfinished.attempts >= EXITS_WITHOUT_PROGRESS_MAX {
            let text = format!(
                "{EXITS_WITHOUT_PROGRESS_MAX} daemons in succession exited during the job; start it again if \
                 those exits had other causes"
            );
            return Err(Some(text));
        }
        let work = unfinished.work.clone();
        let message = |error: ApiError| Some(error.message);
        self.shared.check_disk_job(&entry.name, &work).map_err(message)?;
        let kind = format!("disk {}", work.verb());
        let operation =
            self.shared.operations.add(&kind, &entry.label(), false).map_err(message)?;
        operation.begin();
        unfinished.attempts += 1;
        let (id, from_bytes) = (operation.id(), unfinished.at_bytes);
        let start_point = match from_bytes {
            0 => "from the beginning".to_owned(),
            _ => format!("from byte {from_bytes}, unless the disk was changed"),
        };
        let verb = work.verb();
        let text = format!(
            "The exit of the previous daemon interrupted the job (disk {verb}); it was resumed as \
             operation {id}, {start_point}."
        );
        let draft = EventDraft::new(EventKind::DiskWorkResumed, entry.label(), text);
        let draft = draft.with("work", work.verb()).with("operation", id);
        self.drafts.push(draft.with("from_bytes", from_bytes));
        self.start_job(operation, entry.clone(), unfinished, true);
        Ok(())
    }

    /// Deletes the record of a job and the image that it has created.
    fn abandon_job(&mut self, disk: &Name, unfinished: &JobRecord) {
        self.delete_job(disk, unfinished);
        let stores = self.shared.disks.stores.clone();
        let Some(draft) = unfinished.draft() else { return };
        let store = unfinished.store.clone();
        let removed = move || {
            if let Ok(files) = stores.files(&store) {
                let _ = files.remove(&draft);
            }
        };
        if !self.shared.disks.threads.run_eventually(&unfinished.store, removed) {
            tracing::warn!(%disk, "an incomplete image is removed when its store responds");
        }
    }

    /// Opens a disk whose job was abandoned.
    fn open_after(&mut self, entry: &DiskEntry) {
        let is_served = {
            let state = entry.lock();
            state.open.is_some() || state.opening.is_some()
        };
        if is_served {
            return;
        }
        if let Err(OpenError::Failed(error)) =
            self.open_disk_with_timeout(entry, OPTIONAL_RESULT_TIMEOUT)
        {
            let reason = error.to_string();
            self.drafts.push(disk_failed_event(entry, &reason));
            self.fail_disk(entry, reason);
        }
    }
}
