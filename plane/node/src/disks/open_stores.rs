//! Stores that are open, by their paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{StoreFileError, StoreFiles, StoreSource};
use suimon_storage::images;

/// One store; empty until somebody has opened it.
type Seat = Arc<Mutex<Option<Arc<dyn StoreFiles>>>>;

/// See the module.
pub(crate) struct OpenStores {
    source: Arc<dyn StoreSource>,
    seats: Mutex<BTreeMap<PathBuf, Seat>>,
}

impl OpenStores {
    pub(crate) fn new(source: Arc<dyn StoreSource>) -> Self {
        Self { source, seats: Mutex::default() }
    }

    /// The files of the store at a path. What a crash has left there is gone before
    /// anybody gets them. Waits for the store if it is not open yet, and for nobody else.
    pub(crate) fn files(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        let seat = self.lock().entry(path.to_owned()).or_default().clone();
        let mut open = seat.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &*open {
            return Ok(files.clone());
        }
        let files = self.source.open(path)?;
        clear_up(path, files.as_ref());
        *open = Some(files.clone());
        Ok(files)
    }

    /// Stores at other paths are let go, so that they can be unmounted.
    pub(crate) fn retain(&self, is_wanted: impl Fn(&Path) -> bool) {
        self.lock().retain(|path, _| is_wanted(path));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes what crashes have left of images that were being made, and makes disks open again
/// whose merge was cut off.
fn clear_up(path: &Path, files: &dyn StoreFiles) {
    let store = path.display();
    match images::sweep(files) {
        Ok(removed) => {
            for file in removed {
                tracing::info!(%store, %file, "removed an image that was never finished");
            }
        }
        Err(error) => tracing::warn!(%store, %error, "unfinished images may be left"),
    }
    match suimon_storage::jobs::recover_merges(files) {
        Ok(notes) => {
            for note in notes {
                tracing::info!(%store, %note, "a merge was cut off; the disk is as before it");
            }
        }
        Err(error) => tracing::warn!(%store, %error, "disks whose merge was cut off may not open"),
    }
}
