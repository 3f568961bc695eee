//! Protection against changes that open a parent of a disk's image for writing.
//!
//! A host file written before a snapshot names the parent as the disk's file, explicitly or by
//! default. Opening the parent for writing would discard all writes since the snapshot and make the
//! child unusable.

use std::collections::BTreeMap;
use std::path::PathBuf;

use suimon_contract::{ApiError, DiskKind, ErrorCode, Name};
use suimon_ports::FileName;

use super::Disks;
use super::required::{RequiredDisk, RequiredDisks, file_name};
use crate::transaction::normalize_path;

impl Disks {
    /// Returns an error for each disk whose file the change replaces by a parent of the image of
    /// this or another disk, unless the disk becomes read-only.
    ///
    /// The parents of an image that is not open are not known. Its disk therefore must keep its
    /// file.
    pub(crate) fn check_not_reverted(
        &self,
        from: &RequiredDisks,
        to: &RequiredDisks,
    ) -> Vec<ApiError> {
        let children = self.children(from);
        let errors = to.iter().filter_map(|(name, after)| {
            let file = after.image_path();
            let before = from.get(name);
            if after.config.read_only || before.is_some_and(|before| before.image_path() == file) {
                return None;
            }
            if let Some(child) = children.get(&file) {
                return Some(refusal(name, after, child));
            }
            let before = before.filter(|before| before.store.path == after.store.path)?;
            let is_unknown = self.layers(name).is_none() && is_differencing(before);
            is_unknown.then(|| unknown(name))
        });
        errors.collect()
    }

    /// Returns the disks whose images have parents, by the paths of the parents.
    fn children<'a>(&self, disks: &'a RequiredDisks) -> BTreeMap<PathBuf, &'a RequiredDisk> {
        let parents = disks.iter().flat_map(|(name, disk)| {
            let layers = self.layers(name).unwrap_or_default();
            let parent = disk.config.parent.as_ref().and_then(file_name);
            let parents: Vec<FileName> = layers.into_iter().skip(1).chain(parent).collect();
            parents
                .into_iter()
                .map(move |parent| (normalize_path(&disk.store.path.join(parent.as_str())), disk))
        });
        parents.collect()
    }

    /// Returns the files of a disk's image and of its parents; `None` if the disk is not open.
    fn layers(&self, name: &Name) -> Option<Vec<FileName>> {
        let entry = self.find(name)?;
        let layers = entry.lock().open.as_ref().map(|open| open.layer_files.clone());
        layers.filter(|layers| !layers.is_empty())
    }
}

fn is_differencing(disk: &RequiredDisk) -> bool {
    disk.config.parent.is_some() || disk.config.required_kind() == Some(DiskKind::Differencing)
}

fn refusal(name: &Name, after: &RequiredDisk, child: &RequiredDisk) -> ApiError {
    let image_name = |disk: &RequiredDisk| {
        disk.config.effective_file().map(|file| file.to_string()).unwrap_or_default()
    };
    let (file, image, disk) = (image_name(after), image_name(child), &child.config.name);
    let text = format!(
        "`{file}` is a parent of `{image}`, the image of disk/{disk}, and data written since the \
         snapshot would be lost. To keep this data, set file, kind and parent as `suimon export` \
         prints them, or merge the snapshot first (suimon disk merge {disk}). To discard it, \
         delete the disk first (suimon disk delete {disk}), and delete `{image}` or move it out of \
         the store"
    );
    ApiError::new(ErrorCode::Conflict, text)
        .with_resource(format!("disk/{name}"))
        .with_field("file")
}

fn unknown(name: &Name) -> ApiError {
    let text = format!(
        "the image of the disk has parents and is not open, so the daemon cannot check whether \
         the new file is one of them. Repair the disk (suimon disk show {name} has the reason), \
         or delete it first (suimon disk delete {name})"
    );
    ApiError::new(ErrorCode::Conflict, text)
        .with_resource(format!("disk/{name}"))
        .with_field("file")
}
