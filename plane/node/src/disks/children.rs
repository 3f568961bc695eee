//! Protects parents of disks that are not open from being written by other disks.
//!
//! While a child is open, the lock on its parent prevents writes by others. A parent opened for
//! writing before its child would make the child unusable: writing to a VHDX changes the identifier
//! by which its children refer to it. If the configuration names no parent, the parent is read from
//! the child's image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, Name};
use suimon_ports::{FileName, FileStatus, StoreFiles};
use suimon_storage::images::{self, DiskPlan};

use super::Disks;
use super::entry::{DiskEntry, Moving};
use super::file_work::FileWork;

/// Time for which the parents read from an image are cached, provided that the file's status is
/// unchanged.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Desired disk that is not open and may have a parent.
pub(super) struct OtherDisk {
    label: String,
    plan: DiskPlan,
}

/// Cache of the parents of images, by store and file. Entries expire after [`KNOWN_FOR`].
#[derive(Default)]
pub(crate) struct KnownParents(Mutex<BTreeMap<(PathBuf, FileName), Known>>);

struct Known {
    read: Instant,
    status: FileStatus,
    named: Option<FileName>,
    parents: Vec<FileName>,
}

impl KnownParents {
    /// Empties the cache. Called after an image was linked to another parent.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(PathBuf, FileName), Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(
        &self,
        key: &(PathBuf, FileName),
        status: FileStatus,
        plan: &DiskPlan,
    ) -> Option<Vec<FileName>> {
        let mut known = self.lock();
        known.retain(|_, known| known.read.elapsed() < KNOWN_FOR);
        let found = known.get(key)?;
        let is_same = found.status == status && found.named == plan.parent;
        is_same.then(|| found.parents.clone())
    }
}

impl Disks {
    /// Returns the desired disks of the same store path that are not open and whose format has
    /// metadata, so that their images may have parents.
    pub(super) fn unopened_beside(&self, entry: &DiskEntry) -> Vec<OtherDisk> {
        let store = entry.lock().wanted.store.path.clone();
        let wanted = self.wanted();
        let beside = wanted.iter().filter(|(name, disk)| {
            **name != entry.name && disk.store.path == store && !self.is_open_or_away(name)
        });
        let others = beside.map(|(name, disk)| (format!("disk/{name}"), disk.plan()));
        let others = others.filter(|(_, plan)| plan.format.has_metadata());
        others.map(|(label, plan)| OtherDisk { label, plan }).collect()
    }

    fn is_open_or_away(&self, name: &Name) -> bool {
        self.find(name).is_some_and(|entry| {
            let state = entry.lock();
            state.open.is_some() || state.moving.is_some_and(Moving::is_away)
        })
    }
}

impl FileWork {
    /// Checks that the disk does not write to a file that is a parent of another disk's image. An
    /// unreadable image of another disk is ignored, so that it does not prevent opening this disk.
    pub(super) fn refuse_parent_of_others(
        &self,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<(), ApiError> {
        let plan = self.wanted.plan();
        let Some(file) = plan.file.as_ref().filter(|_| !plan.is_read_only) else { return Ok(()) };
        let is_there = plan.format.has_metadata() && files.status(file).is_ok();
        let child = self.beside.iter().filter(|_| is_there).find(|other| {
            other.plan.format == plan.format
                && self.parents_of(&self.wanted.store.path, files, &other.plan).contains(file)
        });
        let Some(OtherDisk { label, .. }) = child else { return Ok(()) };
        let text = format!(
            "{file} is a parent of {label}, which a write to it would destroy; set read_only = \
             true for this disk, name another file, or delete {label}"
        );
        Err(ApiError::new(ErrorCode::Conflict, text).about(&self.label).field("file"))
    }

    fn parents_of(
        &self,
        store: &Path,
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
    ) -> Vec<FileName> {
        let Some(file) = &plan.file else { return Vec::new() };
        let Ok(status) = files.status(file) else { return Vec::new() };
        let key = (store.to_owned(), file.clone());
        if let Some(parents) = self.known_parents.find(&key, status, plan) {
            return parents;
        }
        let read = self.with_seeds(|seeds| images::parents(files.as_ref(), plan, seeds));
        let Ok(parents) = read else { return Vec::new() };
        let (read, named) = (Instant::now(), plan.parent.clone());
        let known = Known { read, status, named, parents: parents.clone() };
        self.known_parents.lock().insert(key, known);
        parents
    }
}
