//! Verification that a store of one name on two nodes is the same directory, with locks that hold
//! between the nodes.

use std::path::PathBuf;

use suimon_contract::{
    ApiError, ErrorCode, HostConfig, Name, ResourceKind, StoreConfig, StoreToken,
};
use suimon_storage::images::{MarkFault, StoreMark};

use super::opening::{disk_error, store_file_error};
use super::store_threads::{NoResult, STORE_TIMEOUT, StoreThreads};
use crate::errors::not_found;
use crate::shared::Shared;

/// Locked mark file in a store, checked by another node. Dropping it removes the file, in a store
/// thread.
pub(crate) struct ReservedMark {
    mark: Option<StoreMark>,
    store: PathBuf,
    threads: StoreThreads,
}

impl Drop for ReservedMark {
    fn drop(&mut self) {
        let mark = self.mark.take();
        self.threads.run_eventually(&self.store, move || drop(mark));
    }
}

fn find<'a>(config: &'a HostConfig, store: &Name) -> Result<&'a StoreConfig, ApiError> {
    let found = config.stores.iter().find(|of| of.name == *store);
    found.ok_or_else(|| not_found(ResourceKind::Store, store))
}

impl Shared {
    /// Creates the mark file in each of these stores.
    ///
    /// # Errors
    /// Fails if there is no such store, or it does not respond or cannot be written.
    pub(crate) fn mark_stores(&self, stores: &[StoreToken]) -> Result<Vec<ReservedMark>, ApiError> {
        let desired = self.desired();
        let mark = |of: &StoreToken| {
            let (label, path) =
                (format!("store/{}", of.store), find(&desired.config, &of.store)?.path.clone());
            let (open, token) = (self.disks.stores.clone(), of.token.clone());
            let (about, at) = (label.clone(), path.clone());
            let make = move || {
                let files = open.files(&at).map_err(|error| store_file_error(&about, &error))?;
                StoreMark::make(&files, &token).map_err(|error| disk_error(&about, &error))
            };
            let threads = &self.disks.threads;
            let made = threads.run(&path, STORE_TIMEOUT, make, drop).map_err(NoResult::abandon);
            let mark = made.map_err(|error| error.about(&label))??;
            Ok(ReservedMark { mark: Some(mark), store: path, threads: threads.clone() })
        };
        stores.iter().map(mark).collect()
    }

    /// Checks that these stores are the same as those of the node `from`, which has created the
    /// mark files.
    ///
    /// # Errors
    /// Fails if a store is not the same or not shared, or locks on its files do not hold between
    /// the nodes.
    pub(crate) fn check_marks(
        &self,
        config: &HostConfig,
        stores: &[StoreToken],
        from: &str,
    ) -> Result<(), ApiError> {
        let here = self.host_name();
        for of in stores {
            let store = find(config, &of.store)?;
            let refuse = |code, text: String| {
                let error = ApiError::new(code, text).about(format!("store/{}", of.store));
                Err(error.field("shared"))
            };
            if !store.shared {
                let text = format!(
                    "node {from} has shared = true for this store, and node {here} does not. If \
                     both use the same directory, run `suimon store set {} --shared=true` on node \
                     {here}; if not, rename one of the two stores, or set shared = false on node \
                     {from}, which copies the disks",
                    of.store
                );
                return refuse(ErrorCode::Conflict, text);
            }
            let token = of.token.clone();
            let ask =
                self.disks.query_store(&store.path, move |files| StoreMark::check(files, &token));
            let path = store.path.display();
            match ask.map_err(|error| error.about(format!("store/{}", of.store)))? {
                Ok(()) => {}
                Err(MarkFault::Missing) => {
                    let text = format!(
                        "{path} is not the same directory as on node {from}, whose test file is \
                         missing on node {here}; mount the same file system on both nodes, or rename one of \
                         the two stores"
                    );
                    return refuse(ErrorCode::Conflict, text);
                }
                Err(MarkFault::NotLocked) => {
                    let text = format!(
                        "{path} is the same directory as on node {from}, but file locks are not \
                         effective between the nodes, so both could write to one disk; mount it \
                         with locks (NFS: version 4, without `local_lock`)"
                    );
                    return refuse(ErrorCode::Unsupported, text);
                }
                Err(MarkFault::Store(error)) => {
                    return refuse(ErrorCode::HostError, error.to_string());
                }
            }
        }
        Ok(())
    }
}
