//! Compaction and conversion: both write the disk's content to a new image.

use std::collections::VecDeque;
use std::sync::Arc;

use suimon_image::ByteRange;
use suimon_ports::{FileName, StoreFiles};

use super::checkpoint::SourceFileNames;
use super::draft_image::{DraftImage, content_guid, reopen};
use super::offline_disk::{LayerScope, OfflineDisk, RangeLocation};
use super::{Checkpoint, DiskJob, JobProgress, STEP_BYTES};
use crate::{
    DiskError, DiskKind, DiskPlan, HostInputs, IncompleteImage, LAYERS_READ_MAX, check_free_space,
    new_image_spec, open_layers, open_up_to, parent_properties,
};

/// Maximum number of ranges that one step of the job copies, if they have little or no payload.
const STRETCHES_PER_STEP: usize = 64;

/// Unit in bytes in which zeros are detected, so that they need not be written to an image that
/// reads as zeros: the allocation unit of file systems.
const GRAIN: usize = 4096;

/// Copies the content of a disk to another one in steps.
pub(super) struct DiskCopier {
    pub(super) source: OfflineDisk,
    pub(super) target: OfflineDisk,
    depth: LayerScope,
    /// True if the target may read as other data where the source has zeros, so that zeros must be
    /// written.
    zeros_matter: bool,
    pieces: VecDeque<(ByteRange, RangeLocation)>,
    offset: u64,
    buffer: Vec<u8>,
}

impl DiskCopier {
    /// Creates a copy of the whole content of `source`, parents included, to a target that reads as
    /// zeros.
    pub(super) fn new_all_layers(source: OfflineDisk, target: OfflineDisk) -> Self {
        Self::new(source, target, LayerScope::All, false)
    }

    /// Creates a copy of the content of `source` itself, without parents, over the existing content
    /// of the target or its parents.
    pub(super) fn new_own_layer(source: OfflineDisk, target: OfflineDisk) -> Self {
        Self::new(source, target, LayerScope::Own, true)
    }

    fn new(
        source: OfflineDisk,
        target: OfflineDisk,
        depth: LayerScope,
        zeros_matter: bool,
    ) -> Self {
        let pieces = VecDeque::new();
        Self { source, target, depth, zeros_matter, pieces, offset: 0, buffer: Vec::new() }
    }

    /// Sets the position in bytes from which copying continues, because an earlier job has copied
    /// the content before it.
    pub(super) const fn set_position(&mut self, at_bytes: u64) {
        self.offset = at_bytes;
    }

    /// Makes the copied content durable. Returns the position in bytes up to which it is durable.
    pub(super) fn make_durable(&mut self) -> Result<u64, DiskError> {
        self.target.make_durable()?;
        Ok(self.offset)
    }

    /// Returns the progress: position in the source, and size of the source. `is_completed` becomes
    /// [`JobProgress::is_done`].
    pub(super) fn progress(&self, is_completed: bool) -> JobProgress {
        JobProgress {
            done_bytes: self.offset,
            total_bytes: self.source.size(),
            is_done: is_completed,
        }
    }

    /// Copies until [`STEP_BYTES`] of payload are transferred or [`STRETCHES_PER_STEP`] ranges are
    /// processed. Returns true if the end of the source is reached.
    pub(super) fn step(&mut self) -> Result<bool, DiskError> {
        let mut moved = 0;
        for _ in 0..STRETCHES_PER_STEP {
            if self.pieces.is_empty() {
                let remaining = self.source.size().saturating_sub(self.offset);
                let stretch = self.source.chunk_bytes();
                let Some(next) = ByteRange::new(self.offset, remaining.min(stretch)) else { break };
                if next.is_empty() {
                    return Ok(true);
                }
                self.pieces = self.source.locate_range(next, self.depth)?.into();
            }
            while let Some((range, location)) = self.pieces.pop_front() {
                let (current, rest) = split(range, location);
                if let Some(rest) = rest {
                    self.pieces.push_front(rest);
                }
                match self.copy_piece(current, location) {
                    Ok(bytes) => moved += bytes,
                    Err(error) => {
                        // If the step is repeated, it begins with this range.
                        self.pieces.push_front((current, location));
                        return Err(error);
                    }
                }
                if moved >= STEP_BYTES {
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Copies a range with one location. Returns the number of payload bytes transferred; 0 for a
    /// range without payload.
    fn copy_piece(&mut self, range: ByteRange, location: RangeLocation) -> Result<u64, DiskError> {
        let RangeLocation::File { layer, offset } = location else {
            if self.zeros_matter && location == RangeLocation::Zero {
                self.target.write_zeros(range)?;
            }
            self.offset = range.end();
            return Ok(0);
        };
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.resize(usize::try_from(range.len()).unwrap_or(0), 0);
        self.source.read(layer, offset, &mut bytes)?;
        if !self.zeros_matter {
            self.write_without_zeros(range, &bytes)?;
        } else if is_zeros(&bytes) {
            self.target.write_zeros(range)?;
        } else {
            self.target.write(range, &bytes)?;
        }
        self.buffer = bytes;
        self.offset = range.end();
        Ok(range.len())
    }

    /// Writes those parts of `bytes` to the target that are not zeros.
    fn write_without_zeros(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), DiskError> {
        let grains: Vec<bool> = bytes.chunks(GRAIN).map(is_zeros).collect();
        let mut grain = 0;
        for run in grains.chunk_by(|first, next| first == next) {
            let part_offset = grain * GRAIN;
            grain += run.len();
            let part = bytes.get(part_offset..bytes.len().min(grain * GRAIN)).unwrap_or_default();
            let part_range = ByteRange::new(range.offset() + part_offset as u64, part.len() as u64);
            if let (Some(false), Some(part_range)) = (run.first(), part_range) {
                self.target.write(part_range, part)?;
            }
        }
        Ok(())
    }
}

/// Splits a range into the part that is copied now, at most [`STEP_BYTES`], and the remainder with
/// its location; `None` if there is no remainder.
fn split(
    range: ByteRange,
    location: RangeLocation,
) -> (ByteRange, Option<(ByteRange, RangeLocation)>) {
    let RangeLocation::File { layer, offset } = location else { return (range, None) };
    let (current, rest) = range.split_at(STEP_BYTES);
    let offset = offset.saturating_add(current.len());
    (current, (!rest.is_empty()).then_some((rest, RangeLocation::File { layer, offset })))
}

fn is_zeros(bytes: &[u8]) -> bool {
    let chunks = bytes.chunks_exact(16);
    chunks.remainder().iter().all(|byte| *byte == 0)
        && chunks.into_iter().all(|chunk| chunk == [0; 16])
}

/// Writes a disk's content to a new image of another format or kind, or of the same without blocks
/// of zeros. The disk must not be written meanwhile. A crash, an error, or dropping the job leaves
/// the disk unchanged.
///
/// With a [`Checkpoint`], a job continues the image of an earlier job, if that image is intact and
/// the disk is unchanged. Otherwise it starts from the beginning.
pub struct CopyJob {
    files: Arc<dyn StoreFiles>,
    sources: SourceFileNames,
    /// Copy in progress; `None` once the images are closed.
    copy: Option<DiskCopier>,
    draft: Option<IncompleteImage>,
    is_reserved: bool,
    /// Modification time of the disk's file, if the new image replaces that file; seconds of Unix
    /// time.
    replaced_unix_s: Option<u64>,
    done: JobProgress,
}

impl CopyJob {
    /// Begins to convert a disk with all its parents to a new one. Without a size in `target`, the
    /// new disk has the source's size. If the target exists and a `checkpoint` is given, the target
    /// is the complete result of the earlier job.
    ///
    /// # Errors
    /// A plan is not possible, the target exists, has a parent or is too small, or the source
    /// cannot be opened.
    pub fn convert(
        files: &Arc<dyn StoreFiles>,
        source: &DiskPlan,
        target: &DiskPlan,
        checkpoint: Option<&Checkpoint>,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        target.check()?;
        let kind = target.creation_kind();
        if kind == DiskKind::Differencing {
            let allowed = "fixed or dynamic; a converted disk has no parent";
            return Err(target.invalid_value_error("kind", &kind.as_str(), allowed));
        }
        let exists = crate::exists(files.as_ref(), target)?;
        // The result of the earlier job has its final name already, and no incomplete file exists.
        let is_others = || -> Result<bool, DiskError> {
            let draft = IncompleteImage::reopen(files, target.file_name()?, target.io_alignment())?;
            Ok(checkpoint.is_none() || draft.is_some())
        };
        if exists && is_others()? {
            return Err(target.error(suimon_ports::StoreFault::Exists));
        }
        let reading = DiskPlan { is_read_only: true, ..source.clone() };
        let source = open_up_to(files.as_ref(), &reading, LAYERS_READ_MAX, seeds)?;
        let sources = SourceFileNames::new(source.layer_files.clone());
        let source = OfflineDisk::from(source);
        if exists {
            return Ok(Self::completed(files, sources, source.size()));
        }
        let size = target.size_bytes.unwrap_or(source.size());
        if size < source.size() {
            return Err(target.invalid_value_error(
                "size",
                &size,
                "at least the size of the converted disk",
            ));
        }
        let making = new_image_spec(&DiskPlan { size_bytes: Some(size), ..target.clone() }, None)?;
        check_free_space(files.as_ref(), &making).map_err(|fault| target.error(fault))?;
        let resume_at = sources.resume_position(files.as_ref(), checkpoint)?;
        let draft_image = match reopen(files, target, (resume_at, size), None, seeds)? {
            Some(draft_image) => draft_image,
            None => DraftImage::new(files, target, &making, seeds)?,
        };
        let DraftImage { draft, image, copied_bytes: resume_at } = draft_image;
        let mut copy = DiskCopier::new_all_layers(source, OfflineDisk::from(vec![image]));
        copy.set_position(resume_at);
        Ok(Self::new(files, sources, copy, draft, kind, None))
    }

    /// Begins to compact a dynamic or differencing disk: a new image without blocks of zeros
    /// replaces the old one. Children accept it as the same disk, unchanged.
    ///
    /// # Errors
    /// The plan is not possible, the disk is fixed, or it cannot be opened.
    pub fn compact(
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
        checkpoint: Option<&Checkpoint>,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        plan.check()?;
        let reading = DiskPlan { is_read_only: true, ..plan.clone() };
        let layers = open_layers(files.as_ref(), &reading, LAYERS_READ_MAX, seeds)?;
        let name = plan.file_name()?;
        let Some(top_layer) = layers.first() else {
            return Err(plan.error(suimon_ports::StoreFault::Missing));
        };
        let kind = top_layer.kind().unwrap_or(plan.creation_kind());
        if kind == DiskKind::Fixed {
            let allowed = "dynamic or differencing; all space of a fixed disk is allocated";
            return Err(plan.invalid_value_error("kind", &kind.as_str(), allowed));
        }
        let parent = layers.get(1).map(|parent| parent_properties(files.as_ref(), parent, name));
        let modified = files.status(name)?.modified_unix_s;
        let shape = top_layer.geometry();
        let compacted = DiskPlan {
            kind: Some(kind),
            size_bytes: Some(shape.size_bytes),
            block_bytes: top_layer.block_bytes(),
            physical_sector_bytes: shape.physical_sector_bytes,
            ..plan.clone()
        };
        let mut making = new_image_spec(&compacted, parent.transpose()?)?;
        making.identity = top_layer.identity();
        let sources = SourceFileNames::new(layers.iter().map(|layer| layer.name.clone()).collect());
        let resume_at = sources.resume_position(files.as_ref(), checkpoint)?;
        let content = content_guid(making.identity);
        let draft_image =
            match reopen(files, &compacted, (resume_at, shape.size_bytes), content, seeds)? {
                Some(draft_image) => draft_image,
                None => DraftImage::new(files, &compacted, &making, seeds)?,
            };
        let DraftImage { draft, image, copied_bytes: resume_at } = draft_image;
        let target = OfflineDisk::from(vec![image]);
        let source = OfflineDisk::from(layers);
        let mut copy = match kind {
            DiskKind::Differencing => DiskCopier::new_own_layer(source, target),
            _ => DiskCopier::new_all_layers(source, target),
        };
        copy.set_position(resume_at);
        Ok(Self::new(files, sources, copy, draft, kind, Some(modified)))
    }

    /// Creates a job that is done, because an earlier job has completed its work.
    fn completed(files: &Arc<dyn StoreFiles>, sources: SourceFileNames, total_bytes: u64) -> Self {
        Self {
            files: Arc::clone(files),
            sources,
            copy: None,
            draft: None,
            is_reserved: false,
            replaced_unix_s: None,
            done: JobProgress { done_bytes: total_bytes, total_bytes, is_done: true },
        }
    }

    fn new(
        files: &Arc<dyn StoreFiles>,
        sources: SourceFileNames,
        copy: DiskCopier,
        draft: IncompleteImage,
        kind: DiskKind,
        replaced_unix_s: Option<u64>,
    ) -> Self {
        let completed = copy.progress(true);
        Self {
            files: Arc::clone(files),
            sources,
            copy: Some(copy),
            draft: Some(draft),
            is_reserved: kind == DiskKind::Fixed,
            replaced_unix_s,
            done: JobProgress { done_bytes: completed.total_bytes, ..completed },
        }
    }

    /// Returns the temporary name of the file that is being written; `None` if the job is done.
    #[must_use]
    pub fn incomplete_name(&self) -> Option<&FileName> {
        self.draft.as_ref().map(IncompleteImage::name)
    }

    fn finish(&mut self) -> Result<JobProgress, DiskError> {
        if let Some(copy) = &mut self.copy {
            copy.make_durable()?;
        }
        if let Some(draft) = self.draft.as_ref().filter(|_| self.is_reserved) {
            self.files.reserve(draft.name())?;
        }
        self.close().map_err(DiskError::into_close_failed)
    }

    fn close(&mut self) -> Result<JobProgress, DiskError> {
        let Some(DiskCopier { source, target, .. }) = self.copy.take() else {
            return Ok(self.done);
        };
        target.close()?;
        let Some(draft) = self.draft.take() else { return Ok(self.done) };
        match self.replaced_unix_s {
            Some(modified) => {
                // Children of a VHD identify its content by this time.
                self.files.set_modified(draft.name(), modified)?;
                draft.replace_target()?;
            }
            None => draft.publish()?,
        }
        drop(source);
        Ok(self.done)
    }
}

impl DiskJob for CopyJob {
    fn step(&mut self) -> Result<JobProgress, DiskError> {
        let Some(copy) = &mut self.copy else { return Ok(self.done) };
        if copy.step()? { self.finish() } else { Ok(copy.progress(false)) }
    }

    fn checkpoint(&mut self, now_unix_s: u64) -> Result<Option<Checkpoint>, DiskError> {
        let Some(copy) = &mut self.copy else { return Ok(None) };
        let durable_at = copy.make_durable()?;
        self.sources.checkpoint(self.files.as_ref(), durable_at, now_unix_s)
    }

    fn keep_for_resume(&mut self) {
        if let Some(draft) = self.draft.take() {
            draft.keep_for_resume();
        }
    }
}
