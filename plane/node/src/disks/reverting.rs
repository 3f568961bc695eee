//! Changes that replace the image of a disk by one of the image's parents.
//!
//! A host file that was written before a snapshot names the parent, explicitly or by default. Opening the
//! parent for writing would discard everything that was written since the snapshot, and make the child
//! unusable.

use suimon_contract::{ApiError, ErrorCode};
use suimon_ports::FileName;

use super::Disks;
use super::entry::DiskEntry;
use super::wanted::{WantedDisk, WantedDisks, file_name};

impl Disks {
    /// Returns an error for each disk whose image the change replaces by one of its parents, unless the
    /// disk becomes read-only.
    pub(crate) fn check_not_reverted(&self, from: &WantedDisks, to: &WantedDisks) -> Vec<ApiError> {
        let errors = from.iter().filter_map(|(name, before)| {
            let (after, entry) = (to.get(name)?, self.find(name)?);
            let file = replaced_file(before, after)?;
            parents(&entry, before).contains(&file).then(|| refusal(&entry, before, &file))
        });
        errors.collect()
    }
}

/// Returns the new file of a disk that stays in its store and gets another one.
fn replaced_file(before: &WantedDisk, after: &WantedDisk) -> Option<FileName> {
    if after.config.read_only || after.store.path != before.store.path {
        return None;
    }
    let file = after.config.effective_file()?;
    if before.config.effective_file().as_ref() == Some(&file) { None } else { file_name(&file) }
}

/// Returns the files of the parents of a disk's image. Of an image that is not open only the parent that
/// the configuration names is known.
fn parents(entry: &DiskEntry, wanted: &WantedDisk) -> Vec<FileName> {
    let open = entry.lock().open.as_ref().map(|open| open.layers.clone());
    match open.as_deref() {
        Some([_, parents @ ..]) => parents.to_vec(),
        Some([]) | None => wanted.config.parent.as_ref().and_then(file_name).into_iter().collect(),
    }
}

fn refusal(entry: &DiskEntry, before: &WantedDisk, file: &FileName) -> ApiError {
    let image = before.config.effective_file().map(|file| file.to_string()).unwrap_or_default();
    let text = format!(
        "`{file}` is a parent of the disk's image `{image}`: what was written since the snapshot would be \
         lost. To keep it, set file, kind and parent as `suimon export` prints them, or merge the \
         snapshot first (suimon disk merge {name}). To discard it, delete the disk first (suimon disk \
         delete {name})",
        name = entry.name
    );
    ApiError::new(ErrorCode::Conflict, text).about(entry.label()).field("file")
}
