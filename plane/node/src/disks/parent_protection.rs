//! Protects parents of disks that are not open from being written by other disks.
//!
//! While a child is open, the lock on its parent prevents writes by others. A parent opened for
//! writing before its child would make the child unusable: writing to a VHDX changes the identifier
//! by which its children refer to it. If the configuration names no parent, the parent is read from
//! the child's image.
//!
//! The file of a new disk comes from a host file that may be older than the last snapshot, and the
//! daemon has no stored state of the disk: for example on another node after a failure, or without
//! the former state directory. Until a disk is in service for writing, and again after a change of
//! its file, the parents of all images in the store are therefore read (`unchecked_disks.rs`).
//!
//! Images are read without locks: the images of a failed node stay locked for some time, and its
//! disks must be found during this time, too.

pub(super) mod cache;
mod closed_disks;

use std::collections::BTreeSet;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_image_files::{DiskError, DiskFormat, DiskPlan, ImageLinks, LAYERS_MAX};
use suimon_ports::{FileName, FileStatus, StoreFiles};

use self::cache::ClosedDisk;
use super::image_task::ImageTask;

/// Image that is about to be opened for writing.
struct WrittenImage<'a> {
    file: &'a FileName,
    format: DiskFormat,
    modified_unix_s: u64,
    /// `None` if the image cannot be read. Then its name decides whether it is a parent.
    links: Option<ImageLinks>,
}

impl WrittenImage<'_> {
    /// Returns true if this is the parent of `child`. `parents`: names of the child's parent.
    fn is_parent_of(&self, child: &ImageLinks, parents: &[FileName]) -> bool {
        let is_accepted = |links: &ImageLinks| child.accepts(links, self.modified_unix_s);
        parents.contains(self.file) && self.links.as_ref().is_none_or(is_accepted)
    }
}

impl ImageTask {
    /// Checks that the disk does not write to a file that is a parent of another disk's image or,
    /// if the disk was not in service with this file for writing, of an image in the store.
    ///
    /// # Errors
    /// The file is such a parent, or an image in the store cannot be read, so that its parent is
    /// not known. A damaged image is ignored, and so is an unreadable image of another disk, so
    /// that it does not prevent opening this disk.
    pub(super) fn check_not_parent(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let plan = self.required.plan();
        let Some(file) = plan.file.as_ref().filter(|_| !plan.is_read_only) else { return Ok(()) };
        if !plan.format.has_metadata() {
            return Ok(());
        }
        let status = match files.status(file) {
            Ok(status) => status,
            Err(error) if self.checks_children && !error.is_missing() => {
                return Err(self.to_api_error(&DiskError::from(error)));
            }
            Err(_) => return Ok(()),
        };
        self.known_parents.remove_expired();
        let image = WrittenImage {
            file,
            format: plan.format,
            modified_unix_s: status.modified_unix_s,
            links: ImageLinks::read(files.as_ref(), file, plan.format).ok(),
        };
        let child = self.closed_disks.iter().find(|other| {
            other.plan.format == plan.format && self.has_parent(files, &other.plan, &image)
        });
        let text = if let Some(ClosedDisk { label, .. }) = child {
            format!(
                "{file} is a parent of {label}, which a write to it would destroy; set read_only = \
                 true for this disk, name another file, or delete {label}"
            )
        } else if let Some(child) = self.child_in_store(files, &image)? {
            format!(
                "{file} is the parent of {child} in the same store, which a write to it would make \
                 unusable. If {child} has the present data, set file = \"{child}\" for this disk, \
                 and neither kind nor parent. If {child} is not needed, delete it or move it out \
                 of the store. To read {file} only, set read_only = true"
            )
        } else {
            return Ok(());
        };
        Err(ApiError::new(ErrorCode::Conflict, text).with_resource(&self.label).with_field("file"))
    }

    /// Checks that the parent into which the disk's image is about to be merged is not a parent of
    /// another disk that is not open. The merge itself finds other children only by the usual
    /// endings of their names.
    ///
    /// # Errors
    /// The parent is also a parent of the image of such a disk.
    pub(super) fn check_merge_target(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let plan = self.required.plan();
        let Some(file) = &plan.file else { return Ok(()) };
        // The merge reports an image that cannot be read.
        let Ok(Some((links, _))) = self.links(files, file, plan.format) else { return Ok(()) };
        let parents = plan.parent.clone().map_or_else(|| links.parents(), |name| vec![name]);
        for target in parents {
            let Ok(status) = files.status(&target) else { continue };
            let image = WrittenImage {
                file: &target,
                format: plan.format,
                modified_unix_s: status.modified_unix_s,
                links: ImageLinks::read(files.as_ref(), &target, plan.format).ok(),
            };
            if !image.is_parent_of(&links, std::slice::from_ref(&target)) {
                continue;
            }
            let is_other_child = |other: &&ClosedDisk| {
                other.plan.format == plan.format
                    && other.plan.file.as_ref() != Some(file)
                    && self.has_parent(files, &other.plan, &image)
            };
            if let Some(ClosedDisk { label, .. }) = self.closed_disks.iter().find(is_other_child) {
                let text = format!(
                    "{target} is also a parent of {label}, which a merge would damage; convert \
                     {label} first, or delete it"
                );
                let error = ApiError::new(ErrorCode::Conflict, text);
                return Err(error.with_resource(&self.label));
            }
        }
        Ok(())
    }

    /// Returns an image in the store whose parent is `image`, if the disk was not in service with
    /// this image for writing. Files with the usual endings of the format are searched. An image
    /// that does not accept `image` as its parent any more is not returned.
    fn child_in_store(
        &self,
        files: &Arc<dyn StoreFiles>,
        image: &WrittenImage<'_>,
    ) -> Result<Option<FileName>, ApiError> {
        if !self.checks_children {
            return Ok(None);
        }
        let endings = match image.format {
            DiskFormat::Vhdx => [".vhdx", ".avhdx"],
            _ => [".vhd", ".avhd"],
        };
        let names = files.names_with(&endings);
        let names = names.map_err(|error| self.to_api_error(&DiskError::from(error)))?;
        let mut unreadable = None;
        for name in names.into_iter().filter(|name| name != image.file) {
            match self.links(files, &name, image.format) {
                Ok(Some((links, _))) if image.is_parent_of(&links, &links.parents()) => {
                    return Ok(Some(name));
                }
                Ok(_) => {}
                Err(error) => unreadable = unreadable.or(Some(error)),
            }
        }
        let Some(error) = unreadable else { return Ok(None) };
        let (file, name) = (image.file, &error.file);
        let text = format!(
            "{name} in the same store cannot be read, so that it is not known whether {file} is \
             its parent, which a write would make unusable ({error}). Make {name} readable, or \
             move it out of the store. To read {file} only, set read_only = true"
        );
        Err(ApiError::new(ErrorCode::HostError, text).with_resource(&self.label).with_field("file"))
    }

    /// Returns true if `image` is among the parents of the closed disk `disk`. The search ends at
    /// the first file that is missing, unreadable, or not the disk that its child references.
    fn has_parent(
        &self,
        files: &Arc<dyn StoreFiles>,
        disk: &DiskPlan,
        image: &WrittenImage<'_>,
    ) -> bool {
        let Some(mut child) = disk.file.clone() else { return false };
        let mut configured = disk.parent.clone();
        let mut seen = BTreeSet::new();
        while seen.len() < LAYERS_MAX && seen.insert(child.clone()) {
            let Ok(Some((links, _))) = self.links(files, &child, image.format) else {
                return false;
            };
            let parents = configured.take().map_or_else(|| links.parents(), |name| vec![name]);
            if image.is_parent_of(&links, &parents) {
                return true;
            }
            let is_parent = |name: &FileName| {
                let parent = self.links(files, name, image.format).ok().flatten();
                !seen.contains(name)
                    && parent.is_some_and(|(parent, status)| {
                        links.accepts(&parent, status.modified_unix_s)
                    })
            };
            let Some(parent) = parents.into_iter().find(is_parent) else { return false };
            child = parent;
        }
        false
    }

    /// Returns identifiers and parent of an image, with the status of its file; `None` if the file
    /// is missing or not an intact image.
    ///
    /// # Errors
    /// The file cannot be read.
    fn links(
        &self,
        files: &Arc<dyn StoreFiles>,
        file: &FileName,
        format: DiskFormat,
    ) -> Result<Option<(Arc<ImageLinks>, FileStatus)>, DiskError> {
        let status = match files.status(file).map_err(DiskError::from) {
            Ok(status) => status,
            Err(error) if error.is_unreadable() => return Err(error),
            Err(_) => return Ok(None),
        };
        let store = &self.required.store.path;
        if let Some(known) = self.known_parents.find(store, file, status, format) {
            return Ok(known.map(|links| (links, status)));
        }
        let links = match ImageLinks::read(files.as_ref(), file, format) {
            Ok(links) => Some(Arc::new(links)),
            Err(error) if error.is_unreadable() => return Err(error),
            Err(_) => None,
        };
        self.known_parents.insert(store, file, status, format, links.clone());
        Ok(links.map(|links| (links, status)))
    }
}
