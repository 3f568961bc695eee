//! Work on disks that a daemon did not end: the next one goes on with it, from where it was.
//!
//! What is under way stands in the state store, with the last checkpoint. It is forgotten
//! before the operation ends, so that nothing goes on that somebody was told is over.

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

/// Daemons that may end in it before it has got any further; it may be why they end.
const DEATHS_MAX: u32 = 3;

/// Work on a disk, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnfinishedWork {
    work: DiskWork,
    /// What the disk was when it was begun.
    store: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<StoreFile>,
    /// What need not be done again.
    #[serde(default)]
    at_bytes: u64,
    #[serde(default)]
    sources: Vec<StoredSource>,
    /// How often it was gone on with since it last got further.
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
    /// Work that begins.
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

    /// Whether the disk is still what the work was begun on.
    fn is_about(&self, wanted: &WantedDisk) -> bool {
        self.store == wanted.store.path && self.file == wanted.config.effective_file()
    }

    /// The image that it makes.
    fn draft(&self) -> Option<FileName> {
        let target = match &self.work {
            DiskWork::Compact => self.file.as_ref(),
            DiskWork::Convert(request) => Some(&request.file),
            DiskWork::Check | DiskWork::Snapshot(_) | DiskWork::Merge | DiskWork::Reopen => None,
        };
        images::draft_name(&file_name(target?)?).ok()
    }

    /// What it goes on from.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let source = |of: &StoredSource| {
            let (len, modified_unix_s) = (of.len, of.modified_unix_s);
            Some(SourceFile { name: file_name(&of.file)?, len, modified_unix_s })
        };
        // Without one of them it begins anew.
        let sources: Option<Vec<SourceFile>> = self.sources.iter().map(source).collect();
        Checkpoint { at_bytes: self.at_bytes, sources: sources.unwrap_or_default() }
    }

    /// It has got so far.
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

/// What daemons before this one have not ended.
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
    /// Writes down that work begins or how far it is.
    pub(super) fn note_work(&self, disk: &Name, work: &UnfinishedWork) -> Result<(), ApiError> {
        let noted = save(disk, work).and_then(|change| self.store.commit(&[change]));
        noted.map_err(|error| store_error(&error).about(format!("disk/{disk}")))
    }

    /// The same while it goes on, which it does whatever becomes of that.
    pub(super) fn note_checkpoint(
        &self,
        disk: &Name,
        work: &mut UnfinishedWork,
        checkpoint: &Checkpoint,
    ) {
        work.go_to(checkpoint);
        if let Err(error) = self.note_work(disk, work) {
            tracing::warn!(%disk, %error, "it is not recorded how far work on a disk is");
        }
    }

    /// The daemon ends in good order, and not because of the work, however long that is held up.
    pub(super) fn note_left(&self, disk: &Name, work: &mut UnfinishedWork) {
        if work.tries == 0 {
            return;
        }
        work.tries = 0;
        if let Err(error) = self.note_work(disk, work) {
            tracing::warn!(%disk, %error, "it is not recorded how work on a disk has ended");
        }
    }

    /// Work has ended, and does not go on.
    pub(super) fn forget_work(&self, disk: &Name, unfinished: &UnfinishedWork) {
        if let Some(draft) = unfinished.draft() {
            self.shared.disks.stores.keep_no_more(&unfinished.store, &draft);
        }
        if let Err(error) = self.store.commit(&[(DISK_WORK, disk.to_string(), None)]) {
            tracing::warn!(%disk, %error, "it is not recorded that work on a disk has ended");
        }
    }

    /// Reads what daemons before this one have not ended. Before stores are opened, so that what
    /// it has made stays there.
    pub(crate) fn load_unfinished(&mut self) -> Result<(), StoreError> {
        self.unfinished = load_unfinished(self.store.as_ref())?;
        for unfinished in self.unfinished.values() {
            if let Some(draft) = unfinished.draft() {
                self.shared.disks.stores.keep(&unfinished.store, draft);
            }
        }
        Ok(())
    }

    /// Goes on with it, when desired state is what it is to be.
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
                    let text = format!("What was left of disk {verb} was given up: {reason}.");
                    let draft = Draft::new(EventKind::DiskWorkGivenUp, entry.label(), text);
                    self.drafts.push(draft.with("work", verb).with("reason", &reason));
                    self.drop_work(&disk, &unfinished);
                    self.open_after(&entry);
                }
            }
        }
    }

    /// # Errors
    /// It does not go on, and why, if that is worth a word.
    fn go_on_with_one(
        &mut self,
        entry: &Arc<DiskEntry>,
        mut unfinished: UnfinishedWork,
    ) -> Result<(), Option<String>> {
        if !unfinished.is_about(&entry.lock().wanted) {
            // A merge was done then, but for this note.
            let is_merge = unfinished.work == DiskWork::Merge;
            return Err((!is_merge).then(|| "the disk has another file now".to_owned()));
        }
        if unfinished.tries >= DEATHS_MAX {
            let text = format!(
                "{DEATHS_MAX} daemons have ended in it; begin it again if they had other reasons to"
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
            _ => format!("from byte {from_bytes} on, if nobody has changed the disk"),
        };
        let verb = work.verb();
        let text =
            format!("The daemon had ended in disk {verb}; it goes on as operation {id}, {from}.");
        let draft = Draft::new(EventKind::DiskWorkResumed, entry.label(), text);
        let draft = draft.with("work", work.verb()).with("operation", id);
        self.drafts.push(draft.with("from_bytes", from_bytes));
        self.start_job(operation, entry.clone(), unfinished, true);
        Ok(())
    }

    /// Forgets work, and removes what it has made.
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
            tracing::warn!(%disk, "an unfinished image is removed when its store answers");
        }
    }

    /// Opens a disk that was to be worked on first.
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
