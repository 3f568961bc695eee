//! Protects parents of disks that are not open from being written by other disks.
//!
//! While a child is open, the lock on its parent prevents writes by others. A parent opened for
//! writing before its child would make the child unusable: writing to a VHDX changes the identifier
//! by which its children refer to it. If the configuration names no parent, the parent is read from
//! the child's image.
//!
//! The file of a new disk comes from a host file that may be older than the last snapshot, and the
//! daemon has no stored state of the disk: for example on another node after a failure, or without
//! the former state directory. For a new disk, the parents of all images in the store are read.

mod cache;
mod closed_disks;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode};
use suimon_image_files::{DiskFormat, DiskPlan};
use suimon_ports::{FileName, StoreFiles};

use self::cache::CachedParents;
pub(super) use self::cache::ClosedDisk;
pub(crate) use self::cache::ParentCache;
use super::file_work::ImageTask;

impl ImageTask {
    /// Checks that the disk does not write to a file that is a parent of another disk's image or,
    /// if the disk is new, of an image in the store. An unreadable image is ignored, so that it
    /// does not prevent opening this disk.
    pub(super) fn check_not_parent(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let plan = self.required.plan();
        let Some(file) = plan.file.as_ref().filter(|_| !plan.is_read_only) else { return Ok(()) };
        if !plan.format.has_metadata() || files.status(file).is_err() {
            return Ok(());
        }
        let child = self.closed_disks.iter().find(|other| {
            other.plan.format == plan.format
                && self.parents_of(&self.required.store.path, files, &other.plan).contains(file)
        });
        let text = if let Some(ClosedDisk { label, .. }) = child {
            format!(
                "{file} is a parent of {label}, which a write to it would destroy; set read_only = \
                 true for this disk, name another file, or delete {label}"
            )
        } else if let Some(child) = self.child_in_store(files, &plan, file) {
            format!(
                "{file} is the parent of {child} in the same store, which a write to it would make \
                 unusable. If {child} has the present data, set file = \"{child}\" for this disk, \
                 and neither kind nor parent. If {child} is not needed, delete it or move it out \
                 of the store. To read {file} only, set read_only = true"
            )
        } else {
            return Ok(());
        };
        Err(ApiError::new(ErrorCode::Conflict, text).about(&self.label).field("file"))
    }

    /// Returns an image in the store whose parent is the disk's image `file`, if the disk is new.
    /// Files with the usual endings of the format are searched. An image that does not accept
    /// `file` as its parent any more is not returned.
    fn child_in_store(
        &self,
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
        file: &FileName,
    ) -> Option<FileName> {
        if !self.is_new {
            return None;
        }
        let endings = match plan.format {
            DiskFormat::Vhdx => [".vhdx", ".avhdx"],
            _ => [".vhd", ".avhd"],
        };
        let names = endings.into_iter().flat_map(|ending| files.names(ending).unwrap_or_default());
        names.filter(|name| name != file).find(|name| {
            let image = DiskPlan {
                kind: None,
                file: Some(name.clone()),
                size: None,
                parent: None,
                is_read_only: true,
                block_bytes: None,
                ..plan.clone()
            };
            self.parents_of(&self.required.store.path, files, &image).first() == Some(file)
        })
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
