//! Cache of the parents of images.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_image_files::DiskPlan;
use suimon_ports::{FileName, FileStatus};

/// Time for which the parents read from an image are cached, provided that the file's status is
/// unchanged.
const PARENT_CACHE_TTL: Duration = Duration::from_secs(60);

/// Desired disk that is not open and may have a parent.
pub(in crate::disks) struct ClosedDisk {
    pub(super) label: String,
    pub(super) plan: DiskPlan,
}

/// Cache of the parents of images, by store and file. Entries expire after [`PARENT_CACHE_TTL`].
#[derive(Default)]
pub(crate) struct ParentCache(pub(super) Mutex<BTreeMap<(PathBuf, FileName), CachedParents>>);

pub(super) struct CachedParents {
    pub(super) read: Instant,
    pub(super) status: FileStatus,
    pub(super) named: Option<FileName>,
    pub(super) parents: Vec<FileName>,
}

impl ParentCache {
    /// Empties the cache. Called after an image was linked to another parent.
    pub(in crate::disks) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<(PathBuf, FileName), CachedParents>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(
        &self,
        key: &(PathBuf, FileName),
        status: FileStatus,
        plan: &DiskPlan,
    ) -> Option<Vec<FileName>> {
        let mut cache = self.lock();
        cache.retain(|_, cached| cached.read.elapsed() < PARENT_CACHE_TTL);
        let cached = cache.get(key)?;
        let is_same = cached.status == status && cached.named == plan.parent;
        is_same.then(|| cached.parents.clone())
    }
}
