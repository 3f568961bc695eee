//! Open stores by path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{FileName, StoreFileError, StoreFiles, StoreOpener};

use super::created_images::CreatedImages;
use super::reserved_files::ReservedFiles;

/// Slot of one store; empty until the store is open. Its lock is held while the store is opened, so
/// that opening blocks only users of the same store.
type Slot = Arc<Mutex<Option<Arc<dyn StoreFiles>>>>;

/// Open stores, and unfinished images that must not be removed from them.
pub(crate) struct OpenStores {
    source: Arc<dyn StoreOpener>,
    slots: Mutex<BTreeMap<PathBuf, Slot>>,
    /// Unfinished images of jobs that will be resumed, with the paths of their stores.
    kept: Mutex<Vec<(PathBuf, FileName)>>,
    /// Records of images that were created on request.
    created: Arc<CreatedImages>,
    /// Image files that no disk may open.
    pub(super) reserved_files: ReservedFiles,
}

impl OpenStores {
    pub(super) fn new(source: Arc<dyn StoreOpener>, created: Arc<CreatedImages>) -> Self {
        let (slots, kept, unsettled) = <_>::default();
        Self { source, slots, kept, created, reserved_files: unsettled }
    }

    /// Protects an unfinished image from removal when its store is opened.
    pub(super) fn protect_image(&self, path: &Path, draft: FileName) {
        self.lock_kept().push((path.to_owned(), draft));
    }

    /// Ends the protection of an unfinished image.
    pub(super) fn unprotect_image(&self, path: &Path, draft: &FileName) {
        self.lock_kept().retain(|(kept_path, name)| kept_path != path || name != draft);
    }

    /// Returns the files of the store at a path. Opens the store if necessary and removes remains
    /// of crashes. Blocks while the store does not respond.
    ///
    /// An open store is opened again if its path refers to another directory now: a file system
    /// that was mounted later would otherwise stay hidden behind the directory of its mount point.
    ///
    /// # Errors
    /// Fails if the store cannot be opened.
    pub(crate) fn files(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        let slot = self.lock().entry(path.to_owned()).or_default().clone();
        // The slot is not locked during the check, because a store that does not respond blocks it.
        let opened = slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(files) = &opened {
            if self.source.identity(path)? == files.identity() {
                return Ok(files.clone());
            }
            tracing::info!(store = %path.display(), "the path leads to another directory");
        }
        let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_opened = |files: &&Arc<dyn StoreFiles>| {
            opened.as_ref().is_some_and(|opened| Arc::ptr_eq(opened, files))
        };
        // Another caller may have opened the store meanwhile.
        if let Some(files) = open.as_ref().filter(|files| !is_opened(files)) {
            return Ok(files.clone());
        }
        let files = self.source.open(path)?;
        let kept_files =
            self.lock_kept().clone().into_iter().filter(|(kept_path, _)| kept_path == path);
        let kept_files: Vec<FileName> = kept_files.map(|(_, name)| name).collect();
        let swept = remove_remains(path, files.as_ref(), &kept_files);
        self.created.delete_unnamed_records(path, files.as_ref(), &swept);
        *open = Some(files.clone());
        Ok(files)
    }

    /// Checks that the path of a store exists. Does not open the store. Blocks while the store does
    /// not respond.
    ///
    /// # Errors
    /// The error of the query.
    pub(super) fn check(&self, path: &Path) -> Result<(), StoreFileError> {
        self.source.identity(path).map(drop)
    }

    /// Returns the stores that are open. Does not block.
    pub(super) fn opened_stores(&self) -> Vec<(PathBuf, Arc<dyn StoreFiles>)> {
        let slots = self.lock();
        let open = slots.iter().filter_map(|(path, slot)| {
            // A locked slot belongs to a store that is being opened.
            Some((path.clone(), slot.try_lock().ok()?.clone()?))
        });
        open.collect()
    }

    /// Drops stores whose path does not satisfy `is_used`, so that they can be unmounted.
    pub(crate) fn retain(&self, is_used: impl Fn(&Path) -> bool) {
        self.lock().retain(|path, _| is_used(path));
    }

    fn lock_kept(&self) -> MutexGuard<'_, Vec<(PathBuf, FileName)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes unfinished images that are not in `kept_files`, and makes disks usable whose merge was
/// interrupted by a crash. Returns the removed images. Failures are logged only.
fn remove_remains(path: &Path, files: &dyn StoreFiles, kept_files: &[FileName]) -> Vec<FileName> {
    let store = path.display();
    let removed =
        suimon_image_files::remove_all_incomplete(files, kept_files).unwrap_or_else(|error| {
            tracing::warn!(%store, %error, "incomplete images may be left");
            Vec::new()
        });
    for file in &removed {
        tracing::info!(%store, %file, "removed an image that was never completed");
    }
    match suimon_image_files::jobs::recover_merges(files) {
        Ok(notes) => {
            for note in notes {
                tracing::info!(
                    %store,
                    %note,
                    "a merge was interrupted; the disk is as before the merge"
                );
            }
        }
        Err(error) => tracing::warn!(
            %store,
            %error,
            "disks whose merge was interrupted may not open"
        ),
    }
    removed
}
