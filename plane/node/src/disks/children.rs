//! Parents of disks that are not open, which no other disk may write to.
//!
//! The lock of a parent keeps others from writing to it while its child is open. Opening it for
//! writing before its child would end the child: a VHDX becomes another image for its children then.
//! A child whose configuration names no parent shows only by its image, which is read here.

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

/// How long parents that were read of an image whose status is the same are not read again.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// A disk that is not open and may have a parent.
pub(super) struct OtherDisk {
    label: String,
    plan: DiskPlan,
}

/// Parents of images as they were read, by store and file. Entries end after [`KNOWN_FOR`].
#[derive(Default)]
pub(crate) struct KnownParents(Mutex<BTreeMap<(PathBuf, FileName), Known>>);

struct Known {
    read: Instant,
    status: FileStatus,
    named: Option<FileName>,
    parents: Vec<FileName>,
}

impl KnownParents {
    /// Forgets all: an image was linked to another parent.
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
    /// Returns the desired disks of the same store that are not open, of formats whose images have
    /// parents.
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
    /// Fails if the disk would write to the file of another disk's parent. What cannot be read of
    /// other disks does not keep this one from being opened.
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
