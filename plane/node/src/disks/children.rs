//! Protects parents of disks that are not open from being written by other disks.
//!
//! While a child is open, the lock on its parent prevents writes by others. A parent opened for
//! writing before its child would make the child unusable: writing to a VHDX changes the identifier
//! by which its children refer to it. If the configuration names no parent, the parent is read from
//! the child's image.

mod cache;
mod closed_disks;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode};
use suimon_image_files::DiskPlan;
use suimon_ports::{FileName, StoreFiles};

use self::cache::CachedParents;
pub(super) use self::cache::ClosedDisk;
pub(crate) use self::cache::ParentCache;
use super::file_work::ImageTask;

impl ImageTask {
    /// Checks that the disk does not write to a file that is a parent of another disk's image. An
    /// unreadable image of another disk is ignored, so that it does not prevent opening this disk.
    pub(super) fn check_not_parent(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let plan = self.required.plan();
        let Some(file) = plan.file.as_ref().filter(|_| !plan.is_read_only) else { return Ok(()) };
        let exists = plan.format.has_metadata() && files.status(file).is_ok();
        let child = self.closed_disks.iter().filter(|_| exists).find(|other| {
            other.plan.format == plan.format
                && self.parents_of(&self.required.store.path, files, &other.plan).contains(file)
        });
        let Some(ClosedDisk { label, .. }) = child else { return Ok(()) };
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
        let read =
            self.with_seeds(|seeds| suimon_image_files::parents(files.as_ref(), plan, seeds));
        let Ok(parents) = read else { return Vec::new() };
        let (read, parent) = (Instant::now(), plan.parent.clone());
        let cached = CachedParents { read, status, named: parent, parents: parents.clone() };
        self.known_parents.lock().insert(key, cached);
        parents
    }
}
