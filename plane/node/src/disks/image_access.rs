//! Access to image files of stores for requests about images.

use std::path::Path;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_ports::{FileName, StoreFileError, StoreFiles};

use super::Disks;

impl Disks {
    /// Checks that a store responds.
    ///
    /// # Errors
    /// The store has not responded to an earlier request.
    pub(crate) fn check_store_responds(&self, store: &Path) -> Result<(), ApiError> {
        self.threads.check(store)
    }

    /// Returns the files of a store. Blocks while the store does not respond.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub(crate) fn store_files(&self, store: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        self.stores.files(store)
    }

    /// Empties the cache of parents. Called after an image was linked to another parent.
    pub(crate) fn forget_known_parents(&self) {
        self.known_parents.clear();
    }

    /// Checks that no disk with this file belongs to a VM that migrates. The other node opens the
    /// file as soon as this node has closed it.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the disk.
    pub(crate) fn check_not_moving(&self, store: &Path, file: &FileName) -> Result<(), ApiError> {
        for entry in self.all() {
            let state = entry.lock();
            let Some(moving) = state.moving.filter(|_| state.required.store.path == store) else {
                continue;
            };
            let mut layers = state.open.iter().flat_map(|open| &open.layers);
            if state.required.plan().file.as_ref() == Some(file) || layers.any(|of| of == file) {
                let text =
                    format!("{file} belongs to disk {}: {}", entry.name, moving.description());
                return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
            }
        }
        Ok(())
    }
}
