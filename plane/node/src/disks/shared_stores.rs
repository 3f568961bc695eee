//! Verification that a store of one name on two nodes is the same directory, and that a lock on a
//! file of it on one node is in effect on the other.

use std::path::PathBuf;

use suimon_contract::{
    ApiError, ErrorCode, HostConfig, Name, ResourceKind, StoreConfig, StoreToken,
};
use suimon_image_files::{StoreMarker, StoreMarkerFault};

use super::opening::errors::{disk_error, store_file_error};
use super::store_threads::{STORE_TIMEOUT, StoreOperationError, StoreThreads};
use crate::errors::not_found;
use crate::shared::Shared;

/// Locked mark file in a store, checked by another node. Dropping it removes the file, in a store
/// thread.
pub(crate) struct CreatedStoreMarker {
    mark: Option<StoreMarker>,
    store: PathBuf,
    threads: StoreThreads,
}

impl Drop for CreatedStoreMarker {
    fn drop(&mut self) {
        let mark = self.mark.take();
        self.threads.run_eventually(&self.store, move || drop(mark));
    }
}

fn find<'a>(config: &'a HostConfig, store: &Name) -> Result<&'a StoreConfig, ApiError> {
    let store_config = config.stores.iter().find(|store_config| store_config.name == *store);
    store_config.ok_or_else(|| not_found(ResourceKind::Store, store))
}

impl Shared {
    /// Creates the mark file in each of these stores.
    ///
    /// # Errors
    /// Fails if there is no such store, or it does not respond or cannot be written.
    pub(crate) fn create_store_markers(
        &self,
        stores: &[StoreToken],
    ) -> Result<Vec<CreatedStoreMarker>, ApiError> {
        let desired = self.desired();
        let mark = |store_token: &StoreToken| {
            let (label, path) = (
                format!("store/{}", store_token.store),
                find(&desired.config, &store_token.store)?.path.clone(),
            );
            let (open, token) = (self.disks.stores.clone(), store_token.token.clone());
            let (mark_label, mark_path) = (label.clone(), path.clone());
            let make = move || {
                let files = open
                    .files(&mark_path)
                    .map_err(|error| store_file_error(&mark_label, &error))?;
                StoreMarker::make(&files, &token).map_err(|error| disk_error(&mark_label, &error))
            };
            let threads = &self.disks.threads;
            let result =
                threads.run(&path, STORE_TIMEOUT, make, drop).map_err(StoreOperationError::abandon);
            let mark = result.map_err(|error| error.with_resource(&label))??;
            Ok(CreatedStoreMarker { mark: Some(mark), store: path, threads: threads.clone() })
        };
        stores.iter().map(mark).collect()
    }

    /// Checks that these stores are the same as those of the node `source_node`, which has created
    /// the mark files.
    ///
    /// # Errors
    /// Fails if a store is not the same or not shared, or locks on its files do not hold between
    /// the nodes.
    pub(crate) fn check_store_markers(
        &self,
        config: &HostConfig,
        stores: &[StoreToken],
        source_node: &str,
    ) -> Result<(), ApiError> {
        let host_name = self.host_name();
        for store_token in stores {
            let store = find(config, &store_token.store)?;
            let refuse = |code, text: String| {
                let error =
                    ApiError::new(code, text).with_resource(format!("store/{}", store_token.store));
                Err(error.with_field("shared"))
            };
            if !store.shared {
                let text = format!(
                    "node {source_node} has shared = true for this store, and node {host_name} \
                     does not. If both use the same directory, run `suimon store set {} \
                     --shared=true` on node {host_name}; if not, rename one of the two stores, or \
                     set shared = false on node {source_node}, which copies the disks",
                    store_token.store
                );
                return refuse(ErrorCode::Conflict, text);
            }
            let token = store_token.token.clone();
            let result =
                self.disks.query_store(&store.path, move |files| StoreMarker::check(files, &token));
            let path = store.path.display();
            match result
                .map_err(|error| error.with_resource(format!("store/{}", store_token.store)))?
            {
                Ok(()) => {}
                Err(StoreMarkerFault::Missing) => {
                    let text = format!(
                        "{path} is not the same directory as on node {source_node}, whose test \
                         file is missing on node {host_name}; mount the same file system on both \
                         nodes, or rename one of the two stores"
                    );
                    return refuse(ErrorCode::Conflict, text);
                }
                Err(StoreMarkerFault::NotLocked) => {
                    let text = format!(
                        "{path} is the same directory as on node {source_node}, but file locks are \
                         not effective between the nodes, so both could write to one disk; mount \
                         it with locks (NFS: version 4, without `local_lock`)"
                    );
                    return refuse(ErrorCode::Unsupported, text);
                }
                Err(StoreMarkerFault::Store(error)) => {
                    return refuse(ErrorCode::HostError, error.to_string());
                }
            }
        }
        Ok(())
    }
}
