//! Marker files by which a node detects that another node's store is the same as its own.
//!
//! A node creates a file with a random unique name, and keeps it open. A node that finds a file of
//! that name accesses the same store, regardless of paths. If it cannot open the file, file locks
//! hold between both nodes, so that two nodes cannot open the same image for writing.

use std::sync::Arc;

use suimon_ports::{FileLockMode, FileName, StoreFault, StoreFiles};
use thiserror::Error;

use super::error::{DiskError, DiskFault};
use super::incomplete_image::IncompleteImage;

/// Marker file, held open while this value exists. After a crash,
/// [`remove_all_incomplete`](super::sweep) removes the file.
pub struct StoreMarker {
    _draft: IncompleteImage,
}

/// Reason why two stores are not accepted as the same one.
#[derive(Debug, Error)]
pub enum StoreMarkerFault {
    /// The marker file does not exist.
    #[error("the test file of the other node does not exist in the store")]
    Missing,
    /// The marker file can be opened although the other node has it open.
    #[error("file locks are not effective between the two nodes")]
    NotLocked,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] DiskError),
}

impl StoreMarker {
    /// Creates a marker file. `token` consists of random letters and digits with 128 bits of
    /// entropy.
    ///
    /// # Errors
    /// The file cannot be created, or a file of this name is in use.
    pub fn make(files: &Arc<dyn StoreFiles>, token: &str) -> Result<Self, DiskError> {
        Ok(Self { _draft: IncompleteImage::new(files, &target(token)?, 1)? })
    }

    /// Checks by the marker file of another node, with that node's `token`, that both nodes access
    /// the same store and that file locks hold between them.
    ///
    /// # Errors
    /// The stores are not verified to be the same one.
    pub fn check(files: &dyn StoreFiles, token: &str) -> Result<(), StoreMarkerFault> {
        let name = IncompleteImage::name_for(&target(token)?)?;
        match files.open(&name, FileLockMode::Write, 1) {
            Ok(_) => Err(StoreMarkerFault::NotLocked),
            Err(error) => match error.fault {
                StoreFault::InUse { .. } => Ok(()),
                StoreFault::Missing => Err(StoreMarkerFault::Missing),
                fault => Err(DiskError::new(&name, fault).into()),
            },
        }
    }
}

fn target(token: &str) -> Result<FileName, DiskError> {
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let name = FileName::new(&format!("mark-{token}")).ok().filter(|_| is_token);
    name.ok_or_else(|| {
        let fault = DiskFault::InvalidPlan {
            field: "token",
            value: token.to_owned(),
            allowed: "letters and digits",
        };
        DiskError { file: "a mark".to_owned(), fault: Box::new(fault) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_ports::testing::MemoryStore;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn store() -> (MemoryStore, Arc<dyn StoreFiles>) {
        let store = MemoryStore::default();
        (store.clone(), Arc::new(store))
    }

    #[test]
    fn the_same_store_is_detected_by_a_locked_file() {
        let (mark_store, files) = store();
        let (other, _) = store();
        let mark = StoreMarker::make(&files, TOKEN).unwrap();
        StoreMarker::check(&mark_store, TOKEN).unwrap();
        assert!(matches!(StoreMarker::check(&other, TOKEN), Err(StoreMarkerFault::Missing)));
        let other_token = TOKEN.replace('0', "1");
        assert!(matches!(
            StoreMarker::check(&mark_store, &other_token),
            Err(StoreMarkerFault::Missing)
        ));
        drop(mark);
        assert!(matches!(StoreMarker::check(&mark_store, TOKEN), Err(StoreMarkerFault::Missing)));
        assert!(mark_store.files().is_empty());
    }

    /// File locks are local to each node: the file exists and appears to be unlocked.
    #[test]
    fn a_store_without_locks_between_nodes_is_reported() {
        let (_, files) = store();
        let mark = StoreMarker::make(&files, TOKEN).unwrap();
        let copied_store = MemoryStore::with_files(
            files.names("").unwrap().into_iter().map(|name| (name, Vec::new())),
        );
        assert!(matches!(
            StoreMarker::check(&copied_store, TOKEN),
            Err(StoreMarkerFault::NotLocked)
        ));
        drop(mark);
    }

    #[test]
    fn files_left_by_a_crash_are_swept_and_created_again() {
        let (store, files) = store();
        let name = IncompleteImage::name_for(&target(TOKEN).unwrap()).unwrap();
        let crashed_store = MemoryStore::with_files([(name, Vec::new())]);
        crate::remove_all_incomplete(&crashed_store, &[]).unwrap();
        assert!(crashed_store.files().is_empty());
        // A file in use is not removed.
        let mark = StoreMarker::make(&files, TOKEN).unwrap();
        crate::remove_all_incomplete(&store, &[]).unwrap();
        StoreMarker::check(&store, TOKEN).unwrap();
        drop(mark);
        let _again = StoreMarker::make(&files, TOKEN).unwrap();
    }

    #[test]
    fn a_token_is_no_path() {
        let (store, files) = store();
        for token in ["", "../x", "a/b", "a.b"] {
            assert!(StoreMarker::make(&files, token).is_err(), "{token}");
            assert!(
                matches!(StoreMarker::check(&store, token), Err(StoreMarkerFault::Store(_))),
                "{token}"
            );
        }
    }
}
