//! Access to image files of stores for requests about images.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, Name};
use suimon_ports::{FileName, StoreFileError, StoreFiles, StoreSpace};

use super::Disks;

impl Disks {
    /// Checks that a store responds.
    ///
    /// # Errors
    /// The store has not responded to an earlier request.
    pub(crate) fn check_store_responds(&self, store: &Path) -> Result<(), ApiError> {
        self.threads.check_responds(store)
    }

    /// Returns the files of a store. Blocks while the store does not respond.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub(crate) fn store_files(&self, store: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        self.stores.files(store)
    }

    /// Returns the space in bytes that the largest image file of a disk occupies; `None` if the
    /// disk is not open, its store does not respond within `limit`, or the image is fixed: such a
    /// file occupies its whole size, whatever a dynamic copy of it would occupy.
    pub(crate) fn allocated_bytes(&self, disk: &Name, limit: Duration) -> Option<u64> {
        let entry = self.find(disk)?;
        let (store, files, layers) = {
            let state = entry.lock();
            let open = state
                .open
                .as_ref()
                .filter(|open_disk| open_disk.kind != Some(suimon_image_files::DiskKind::Fixed))?;
            (state.required.store.path.clone(), open.files.clone(), open.layer_files.clone())
        };
        let query = move || {
            let statuses = layers.iter().filter_map(|name| files.status(name).ok());
            statuses.map(|file| file.allocated_bytes).max()
        };
        self.threads.run(&store, limit, query, drop).ok().flatten()
    }

    /// Returns the space of a store.
    ///
    /// # Errors
    /// The store does not respond or cannot be queried.
    pub(crate) fn store_space(&self, store: &Path) -> Result<StoreSpace, ApiError> {
        let space = self.query_store(store, |files| files.space())?;
        space.map_err(|error| ApiError::new(ErrorCode::HostError, error.to_string()))
    }

    /// Empties the cache of parents. Called after an image was linked to another parent.
    pub(crate) fn clear_parent_cache(&self) {
        self.known_parents.clear();
    }

    /// Checks that no disk with this file belongs to a VM that migrates. The other node opens the
    /// file as soon as this node has closed it.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the disk.
    pub(crate) fn check_not_migrating(
        &self,
        store: &Path,
        file: &FileName,
    ) -> Result<(), ApiError> {
        for entry in self.all() {
            let state = entry.lock();
            let Some(moving) = state.migration.filter(|_| state.required.store.path == store)
            else {
                continue;
            };
            let mut layers = state.open.iter().flat_map(|open| &open.layer_files);
            if state.required.plan().file.as_ref() == Some(file)
                || layers.any(|layer| layer == file)
            {
                let text =
                    format!("{file} belongs to disk {}: {}", entry.name, moving.description());
                return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
            }
        }
        Ok(())
    }
}
