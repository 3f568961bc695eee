//! Merge of a child's content into its parent.
//!
//! During and after the merge, the disk formed by both reads as before: the parent receives the
//! content that the child has at the same positions. No reversal is necessary after a crash. A VHDX
//! parent keeps the content identifier that the child references. A VHD parent is identified by its
//! modification time, which must be restored; until then, a *note file* beside the parent contains
//! that time.

use std::sync::Arc;

use suimon_image::ImageError;
use suimon_ports::{DiskFile, FileLockMode, FileName, StoreFault, StoreFiles};
use suimon_vhd::SizeSource;

use super::checkpoint::SourceFileNames;
use super::copy::DiskCopier;
use super::{Checkpoint, DiskJob, JobProgress};
use crate::{
    DiskError, DiskFault, DiskFormat, DiskKind, DiskPlan, HostInputs, Identity, IncompleteImage,
    LAYERS_READ_MAX, LayerOptions, OpenLayer, is_child_of, open_layers,
};

/// Suffix of the names of note files; the names begin with a dot.
const NOTE_ENDING: &str = ".suimon-merge";

/// Maximum size of a note file in bytes. It contains a modification time as decimal seconds of Unix
/// time.
const NOTE_BYTES_MAX: u64 = 20;

/// Job that merges a child into its parent. Afterwards the disk is the parent's image, and the
/// child, which has the same content, can be removed. Neither may be open elsewhere meanwhile.
///
/// After a crash, [`recover_merges`] makes the disk usable with its content. The merge continues
/// from a [`Checkpoint`] if the child is unchanged.
pub struct MergeJob {
    files: Arc<dyn StoreFiles>,
    /// The child's file, the source of the merge.
    sources: SourceFileNames,
    merged: DiskPlan,
    /// Copy in progress; `None` once the images are closed.
    copy: Option<DiskCopier>,
    /// Note file beside a VHD parent, open and locked, with the parent's modification time; `None`
    /// for VHDX.
    note: Option<(FileName, Arc<dyn DiskFile>)>,
    done: JobProgress,
}

impl MergeJob {
    /// Begins a merge. `plan` is the child's plan.
    ///
    /// # Errors
    /// The plan is not that of a child; the disk cannot be opened or is in use; the parent has
    /// other children in this store, among the files named `*.vhd`, `*.avhd`, `*.vhdx` and
    /// `*.avhdx`; one of these files cannot be read; or the parent cannot be extended to the child's
    /// size.
    pub fn begin(
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
        checkpoint: Option<&Checkpoint>,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        plan.check()?;
        let reading = DiskPlan { is_read_only: true, ..plan.clone() };
        match &plan.parent {
            Some(parent) => recover(files.as_ref(), &note_name(parent)?).map(|_| ())?,
            // The image records its parent, and may not open before the recovery.
            None => recover_merges(files.as_ref()).map(|_| ())?,
        }
        let mut layers = open_layers(files.as_ref(), &reading, LAYERS_READ_MAX, seeds)?.into_iter();
        let (Some(child), Some(parent)) = (layers.next(), layers.next()) else {
            let allowed = "differencing; only a disk with a parent can be merged";
            return Err(plan.invalid_value_error("kind", &plan.creation_kind().as_str(), allowed));
        };
        let options = plan.layer_options(FileLockMode::Read);
        refuse_siblings(files.as_ref(), &child, &parent, options, seeds)?;
        let (size, before, identity) =
            (child.geometry().size_bytes, parent.geometry().size_bytes, parent.identity());
        let name = parent.name.clone();
        let merged = DiskPlan {
            kind: Some(parent.kind().unwrap_or(DiskKind::Fixed)),
            file: Some(name.clone()),
            parent: layers.next().map(|grandparent| grandparent.name),
            ..plan.clone()
        };
        // The parent is reopened for writing.
        drop((parent, layers));
        let note = match plan.format {
            DiskFormat::Vhd => Some(write_note(files, &name)?),
            _ => None,
        };
        let total_bytes = size;
        let sources = SourceFileNames::new(vec![child.name.clone()]);
        let resume_at = sources.resume_position(files.as_ref(), checkpoint)?.min(size);
        let mut job = Self {
            files: Arc::clone(files),
            sources,
            merged,
            copy: None,
            note,
            done: JobProgress { done_bytes: total_bytes, total_bytes, is_done: true },
        };
        let file = files.open(&name, FileLockMode::Write, plan.io_alignment())?;
        if size > before {
            enlarge(file.as_ref(), plan.format, size, identity, seeds)
                .map_err(|error| DiskError::new(&name, error).normalize_store_full())?;
        }
        let content = match identity {
            Identity::Vhdx { content, .. } => Some(content),
            _ => None,
        };
        let options = LayerOptions { lock_mode: FileLockMode::Write, ..options };
        let target = OpenLayer::from_file(file, &name, options, content, seeds)?;
        let mut copy = DiskCopier::new_own_layer(vec![child].into(), vec![target].into());
        copy.set_position(resume_at);
        job.copy = Some(copy);
        Ok(job)
    }

    /// Returns the plan of the disk after the merge: the parent with its own kind and parent.
    #[must_use]
    pub const fn merged_plan(&self) -> &DiskPlan {
        &self.merged
    }

    /// Closes the parent, and restores its modification time from the note file.
    fn end(&mut self) -> Result<(), DiskError> {
        let closed = match self.copy.take() {
            Some(copy) => copy.target.close(),
            None => Ok(()),
        };
        // Done even if the close failed: the parent is in the state after a crash, and still the
        // child's parent.
        let noted = match self.note.take() {
            Some((note, file)) => settle(self.files.as_ref(), &note, file.as_ref()),
            None => Ok(()),
        };
        closed.and(noted)
    }
}

impl DiskJob for MergeJob {
    fn step(&mut self) -> Result<JobProgress, DiskError> {
        let Some(copy) = &mut self.copy else { return Ok(self.done) };
        if !copy.step()? {
            return Ok(copy.progress(false));
        }
        copy.make_durable()?;
        self.end().map_err(DiskError::into_close_failed)?;
        Ok(self.done)
    }

    fn checkpoint(&mut self, now_unix_s: u64) -> Result<Option<Checkpoint>, DiskError> {
        let Some(copy) = &mut self.copy else { return Ok(None) };
        let durable_at = copy.make_durable()?;
        self.sources.checkpoint(self.files.as_ref(), durable_at, now_unix_s)
    }
}

impl Drop for MergeJob {
    fn drop(&mut self) {
        // If this fails, `recover_merges` restores the time later.
        let _ = self.end();
    }
}

/// Fails if the parent or the child is the parent of another image in the store, or if an image in
/// the store cannot be read. The content of an image whose parent is the merge's parent would
/// change, and one whose parent is the child would lose its parent.
fn refuse_siblings(
    files: &dyn StoreFiles,
    child: &OpenLayer,
    parent: &OpenLayer,
    options: LayerOptions,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    let endings = match options.format {
        DiskFormat::Vhdx => [".vhdx", ".avhdx"],
        _ => [".vhd", ".avhd"],
    };
    for ending in endings {
        for name in files.names(ending)? {
            if name == child.name || name == parent.name {
                continue;
            }
            let opened = files.open(&name, options.lock_mode, options.io_alignment);
            // The file remains unchanged: redo records of a killed process affect neither it nor
            // its parent's identifiers.
            let opened = opened
                .map_err(DiskError::from)
                .and_then(|file| OpenLayer::from_file(file, &name, options, None, seeds));
            let other = match opened {
                Ok(other) => other,
                // A writable child that is open has locked its parent.
                Err(error) if error.is_unreadable() && !error.is_in_use() => {
                    let fault = DiskFault::ChildUnknown { file: name, error: Box::new(error) };
                    return Err(DiskError::new(&parent.name, fault));
                }
                // A damaged file, or a file of another format, is not a child.
                Err(_) => continue,
            };
            for layer in [parent, child] {
                if is_child_of(&other, layer) {
                    let fault = DiskFault::OtherChildren { child: name };
                    return Err(DiskError::new(&layer.name, fault));
                }
            }
        }
    }
    Ok(())
}

fn enlarge(
    file: &dyn DiskFile,
    format: DiskFormat,
    size: u64,
    identity: Identity,
    seeds: &mut HostInputs<'_>,
) -> Result<(), ImageError> {
    match (format, identity) {
        (DiskFormat::Vhdx, Identity::Vhdx { content, .. }) => {
            let guids = suimon_vhdx::WriteGuids { data_write: content, ..seeds.write_guids() };
            suimon_vhdx::resize(file.as_image_file(), size, &guids)
        }
        _ => suimon_vhd::resize(file.as_image_file(), size, SizeSource::Creator).map(|_| ()),
    }
}

fn note_name(parent: &FileName) -> Result<FileName, DiskError> {
    let last = parent.file_name();
    parent.with_file_name(&format!(".{last}{NOTE_ENDING}")).map_err(|bad| {
        let value = format!("{last} ({bad})");
        let allowed = "a name that leaves room for 14 bytes";
        DiskError::new(parent, DiskFault::InvalidPlan { field: "parent", value, allowed })
    })
}

/// Creates the note file of `parent` with its modification time, durably, before the parent is
/// changed. Returns its name and the open file.
fn write_note(
    files: &Arc<dyn StoreFiles>,
    parent: &FileName,
) -> Result<(FileName, Arc<dyn DiskFile>), DiskError> {
    let name = note_name(parent)?;
    recover(files.as_ref(), &name)?;
    let modified = files.status(parent)?.modified_unix_s;
    let draft = IncompleteImage::new(files, &name, 1)?;
    draft.write(modified.to_string().as_bytes())?;
    draft.publish()?;
    let file = files.open(&name, FileLockMode::Write, 1)?;
    Ok((name, file))
}

/// Restores the parent's modification time from an open note file, and removes the file.
fn settle(files: &dyn StoreFiles, note: &FileName, file: &dyn DiskFile) -> Result<(), DiskError> {
    let last = note.file_name();
    let parent_name = last.strip_prefix('.').and_then(|last| last.strip_suffix(NOTE_ENDING));
    let parent = parent_name.and_then(|parent_name| note.with_file_name(parent_name).ok());
    let failed = |error| DiskError::new(note, ImageError::new("file", 0, error));
    let len = file.len().map_err(failed)?.min(NOTE_BYTES_MAX);
    let mut text = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_at(0, &mut text).map_err(failed)?;
    let modified = core::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    if let (Some(parent), Some(modified)) = (parent, modified) {
        match files.set_modified(&parent, modified) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(files.remove(note)?)
}

/// Restores the parent's modification time from the note file that a killed process left, and
/// removes the file. Returns false if there is none.
fn recover(files: &dyn StoreFiles, note: &FileName) -> Result<bool, DiskError> {
    match files.open(note, FileLockMode::Write, 1) {
        Ok(file) => settle(files, note, file.as_ref()).map(|()| true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Restores the modification times of parents after merges that a crash interrupted, so that their
/// disks can be opened; the content is unchanged. Called when a store is opened, before its disks
/// are. Returns the names of the note files found.
///
/// # Errors
/// The store cannot be read or written.
pub fn recover_merges(files: &dyn StoreFiles) -> Result<Vec<FileName>, DiskError> {
    let mut recovered = Vec::new();
    let notes = files.names(NOTE_ENDING)?;
    for note in notes.into_iter().filter(|note| note.file_name().starts_with('.')) {
        match recover(files, &note) {
            Ok(true) => recovered.push(note),
            Ok(false) => {}
            Err(error) => match *error.fault {
                DiskFault::Store(StoreFault::InUse { .. }) => {}
                _ => return Err(error),
            },
        }
    }
    Ok(recovered)
}
