//! Persistent records of jobs, by which the next daemon resumes jobs that a daemon did not
//! complete.
//!
//! A record contains the job and its last checkpoint. It is deleted before the operation ends, so
//! that a job is never resumed after its end was reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, EventKind, Name, StoreFile};
use suimon_ports::{FileName, StateStore, StoreError};
use suimon_storage::images;
use suimon_storage::jobs::{Checkpoint, SourceFile};

use super::entry::DiskEntry;
use super::notices::disk_failed;
use super::opening::NotOpened;
use super::store_threads::STORE_PATIENCE;
use super::wanted::{WantedDisk, file_name};
use super::work::DiskWork;
use crate::apply::store_error;
use crate::control::Controller;
use crate::events::Draft;
use crate::records::{DISK_WORK, StoreChange, decode, encode, scan_all};

/// Number of consecutive daemon exits without progress after which a job is abandoned: the job may
/// be their cause.
const DEATHS_MAX: u32 = 3;

/// Persistent record of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnfinishedWork {
    work: DiskWork,
    /// Store and file of the disk when the job began.
    store: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<StoreFile>,
    /// Checkpoint: bytes that need not be processed again.
    #[serde(default)]
    at_bytes: u64,
    #[serde(default)]
    sources: Vec<StoredSource>,
    /// Number of times the job was resumed since its last progress.
    #[serde(default)]
    tries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredSource {
    file: StoreFile,
    len: u64,
    modified_unix_s: u64,
}

pub(crate) type UnfinishedWorks = BTreeMap<Name, UnfinishedWork>;

impl UnfinishedWork {
    /// Creates the record of a new job.
    pub(super) fn new(work: DiskWork, wanted: &WantedDisk) -> Self {
        Self {
            work,
            store: wanted.store.path.clone(),
            file: wanted.config.effective_file(),
            at_bytes: 0,
            sources: Vec::new(),
            tries: 0,
        }
    }

    pub(super) const fn work(&self) -> &DiskWork {
        &self.work
    }

    /// Returns true if the disk still has the file that the job began with.
    fn is_about(&self, wanted: &WantedDisk) -> bool {
        self.store == wanted.store.path && self.file == wanted.config.effective_file()
    }

    /// Returns the name of the unfinished image that the job writes; `None` if the job creates
    /// none.
    fn draft(&self) -> Option<FileName> {
        let target = match &self.work {
            DiskWork::Compact => self.file.as_ref(),
            DiskWork::Convert(request) => Some(&request.file),
            DiskWork::Check | DiskWork::Snapshot(_) | DiskWork::Merge | DiskWork::Reopen => None,
        };
        images::draft_name(&file_name(target?)?).ok()
    }

    /// Returns the checkpoint to resume from.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let source = |of: &StoredSource| {
            let (len, modified_unix_s) = (of.len, of.modified_unix_s);
            Some(SourceFile { name: file_name(&of.file)?, len, modified_unix_s })
        };
        // If a source has an invalid name, the job starts from the beginning.
        let sources: Option<Vec<SourceFile>> = self.sources.iter().map(source).collect();
        Checkpoint { at_bytes: self.at_bytes, sources: sources.unwrap_or_default() }
    }

    /// Records a checkpoint. Progress resets the number of tries.
    fn go_to(&mut self, checkpoint: &Checkpoint) {
        let source = |of: &SourceFile| {
            let (len, modified_unix_s) = (of.len, of.modified_unix_s);
            Some(StoredSource { file: of.name.as_str().parse().ok()?, len, modified_unix_s })
        };
        let Some(sources) = checkpoint.sources.iter().map(source).collect() else { return };
        if checkpoint.at_bytes > self.at_bytes {
            self.tries = 0;
        }
        (self.at_bytes, self.sources) = (checkpoint.at_bytes, sources);
    }
}

/// Loads the records of jobs that former daemons did not complete.
pub(crate) fn load_unfinished(store: &dyn StateStore) -> Result<UnfinishedWorks, StoreError> {
    let mut works = BTreeMap::new();
    scan_all(store, DISK_WORK, &mut |key, value| {
        if let Ok(disk) = key.parse::<Name>() {
            works.insert(disk, decode(DISK_WORK, key, value)?);
        }
        Ok(())
    })?;
    Ok(works)
}

fn save(disk: &Name, work: &UnfinishedWork) -> Result<StoreChange, StoreError> {
    Ok((DISK_WORK, disk.to_string(), Some(encode(DISK_WORK, work)?)))
}

impl Controller {
    /// Stores the record of a job.
    pub(super) fn note_work(&self, disk: &Name, work: &UnfinishedWork) -> Result<(), ApiError> {
        let noted = save(disk, work).and_then(|change| self.store.commit(&[change]));
        noted.map_err(|error| store_error(&error).about(format!("disk/{disk}")))
    }

    /// Records a checkpoint of a running job. A failure is logged; the job continues.
    pub(super) fn note_checkpoint(
        &self,
        disk: &Name,
        work: &mut UnfinishedWork,
        checkpoint: &Checkpoint,
    ) {
        work.go_to(checkpoint);
        if let Err(error) = self.note_work(disk, work) {
            tracing::warn!(%disk, %error, "cannot record the progress of a job on a disk");
        }
    }

    /// Resets the number of tries when the daemon stops regularly: the job, for example one queued
    /// for space, is not the cause.
    pub(super) fn note_left(&self, disk: &Name, work: &mut UnfinishedWork) {
        if work.tries == 0 {
            return;
        }
        work.tries = 0;
        if let Err(error) = self.note_work(disk, work) {
            tracing::warn!(%disk, %error, "cannot record the result of a job on a disk");
        }
    }

    /// Deletes the record of a job that has ended.
    pub(super) fn forget_work(&self, disk: &Name, unfinished: &UnfinishedWork) {
        if let Some(draft) = unfinished.draft() {
            self.shared.disks.stores.keep_no_more(&unfinished.store, &draft);
        }
        if let Err(error) = self.store.commit(&[(DISK_WORK, disk.to_string(), None)]) {
            tracing::warn!(%disk, %error, "cannot record the end of a job on a disk");
        }
    }

    /// Loads the jobs that former daemons did not complete, and protects their unfinished images.
    /// Must be called before stores are opened, which removes unprotected ones.
    pub(crate) fn load_unfinished(&mut self) -> Result<(), StoreError> {
        self.unfinished = load_unfinished(self.store.as_ref())?;
        for unfinished in self.unfinished.values() {
            if let Some(draft) = unfinished.draft() {
                self.shared.disks.stores.keep(&unfinished.store, draft);
            }
        }
        Ok(())
    }

    /// Resumes the jobs of former daemons, or abandons them. Called when the desired state of the
    /// host file is in effect.
    pub(crate) fn go_on_with_work(&mut self) {
        for (disk, unfinished) in std::mem::take(&mut self.unfinished) {
            let Some(entry) = self.shared.disks.find(&disk) else {
                self.drop_work(&disk, &unfinished);
                continue;
            };
            match self.go_on_with_one(&entry, unfinished.clone()) {
                Ok(()) => {}
                Err(None) => {
                    self.drop_work(&disk, &unfinished);
                    self.open_after(&entry);
                }
                Err(Some(reason)) => {
                    let verb = unfinished.work.verb();
                    let text = format!(
                        "The interrupted job (disk {verb}) was abandoned: {reason}. The disk is \
                         unchanged."
                    );
                    let draft = Draft::new(EventKind::DiskWorkGivenUp, entry.label(), text);
                    self.drafts.push(draft.with("work", verb).with("reason", &reason));
                    self.drop_work(&disk, &unfinished);
                    self.open_after(&entry);
                }
            }
        }
    }

    /// Resumes a job.
    ///
    /// # Errors
    /// Fails if the job must be abandoned. `Some` has the reason to report; `None`: the job was
    /// complete except for its record.
    fn go_on_with_one(
        &mut self,
        entry: &Arc<DiskEntry>,
        mut unfinished: UnfinishedWork,
    ) -> Result<(), Option<String>> {
        if !unfinished.is_about(&entry.lock().wanted) {
            // The desired state already has the result of the merge; only the record remained.
            let is_merge = unfinished.work == DiskWork::Merge;
            return Err((!is_merge).then(|| "the disk has another file now".to_owned()));
        }
        if unfinished.tries >= DEATHS_MAX {
            let text = format!(
                "{DEATHS_MAX} daemons in succession exited during the job; start it again if \
                 those exits had other causes"
            );
            return Err(Some(text));
        }
        let work = unfinished.work.clone();
        let told = |error: ApiError| Some(error.message);
        self.shared.check_disk_work(&entry.name, &work).map_err(told)?;
        let kind = format!("disk {}", work.verb());
        let operation = self.shared.operations.add(&kind, &entry.label(), false).map_err(told)?;
        operation.begin();
        unfinished.tries += 1;
        let (id, from_bytes) = (operation.id(), unfinished.at_bytes);
        let from = match from_bytes {
            0 => "from the beginning".to_owned(),
            _ => format!("from byte {from_bytes}, unless the disk was changed"),
        };
        let verb = work.verb();
        let text = format!(
            "The exit of the previous daemon interrupted the job (disk {verb}); it was resumed as \
             operation {id}, {from}."
        );
        let draft = Draft::new(EventKind::DiskWorkResumed, entry.label(), text);
        let draft = draft.with("work", work.verb()).with("operation", id);
        self.drafts.push(draft.with("from_bytes", from_bytes));
        self.start_job(operation, entry.clone(), unfinished, true);
        Ok(())
    }

    /// Deletes the record of a job and the image that it has created.
    fn drop_work(&mut self, disk: &Name, unfinished: &UnfinishedWork) {
        self.forget_work(disk, unfinished);
        let stores = self.shared.disks.stores.clone();
        let Some(draft) = unfinished.draft() else { return };
        let store = unfinished.store.clone();
        let removed = move || {
            if let Ok(files) = stores.files(&store) {
                let _ = files.remove(&draft);
            }
        };
        if !self.shared.disks.threads.run_in_the_end(&unfinished.store, removed) {
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
        if let Err(NotOpened::Failed(error)) = self.open_disk_in_the_end(entry, STORE_PATIENCE) {
            let reason = error.to_string();
            self.drafts.push(disk_failed(entry, &reason));
            self.fail_disk(entry, reason);
        }
    }
}
