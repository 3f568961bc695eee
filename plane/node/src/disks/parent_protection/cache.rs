//! Cache of the references of images to their parents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_image_files::{DiskFormat, DiskPlan, ImageLinks};
use suimon_ports::{FileName, FileStatus};

/// Time for which the links read from an image are cached, provided that the file's status is
/// unchanged.
const PARENT_CACHE_TTL: Duration = Duration::from_secs(60);

/// Time for which it is cached that a file is not an intact image.
const FAULT_CACHE_TTL: Duration = Duration::from_secs(5);

/// Desired disk that is not open and may have a parent.
pub(in crate::disks) struct ClosedDisk {
    pub(super) label: String,
    pub(super) plan: DiskPlan,
}

/// Cache of the identifiers of images and of their references to parents, by store and file. An
/// entry describes one file only: whether a parent exists and is accepted, is found out each time.
/// Entries expire after [`PARENT_CACHE_TTL`] or [`FAULT_CACHE_TTL`].
#[derive(Default)]
pub(crate) struct ParentCache(Mutex<BTreeMap<PathBuf, BTreeMap<FileName, CachedLinks>>>);

struct CachedLinks {
    read_at: Instant,
    status: FileStatus,
    format: DiskFormat,
    /// `None` if the file is not an intact image.
    links: Option<Arc<ImageLinks>>,
}

impl ParentCache {
    /// Empties the cache. Called after an image was linked to another parent.
    pub(in crate::disks) fn clear(&self) {
        self.lock().clear();
    }

    /// Removes expired entries.
    pub(super) fn remove_expired(&self) {
        let mut cache = self.lock();
        cache.values_mut().for_each(|files| files.retain(|_, cached| !cached.is_expired()));
        cache.retain(|_, files| !files.is_empty());
    }

    /// Returns the cached result of reading a file with this status, if any.
    pub(super) fn find(
        &self,
        store: &Path,
        file: &FileName,
        status: FileStatus,
        format: DiskFormat,
    ) -> Option<Option<Arc<ImageLinks>>> {
        let cache = self.lock();
        let cached = cache.get(store)?.get(file).filter(|cached| !cached.is_expired())?;
        let is_same = cached.status == status && cached.format == format;
        is_same.then(|| cached.links.clone())
    }

    pub(super) fn insert(
        &self,
        store: &Path,
        file: &FileName,
        status: FileStatus,
        format: DiskFormat,
        links: Option<Arc<ImageLinks>>,
    ) {
        let cached = CachedLinks { read_at: Instant::now(), status, format, links };
        self.lock().entry(store.to_owned()).or_default().insert(file.clone(), cached);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, BTreeMap<FileName, CachedLinks>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedLinks {
    fn is_expired(&self) -> bool {
        let ttl = if self.links.is_some() { PARENT_CACHE_TTL } else { FAULT_CACHE_TTL };
        self.read_at.elapsed() >= ttl
    }
}
