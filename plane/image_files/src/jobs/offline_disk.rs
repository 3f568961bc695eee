//! Blocking access to a disk that is not in service.

use suimon_image::{
    ByteRange, CommitOutcome, FailedStep, FileError, Image, ImageError, ImageExtent, ImageFault,
    ImageFile, Location, Translation, zero_freed,
};

use crate::layer_stack::DiskLayer;
use crate::{DiskError, OpenLayer, OpenedDisk};

/// Bytes of uncommitted metadata above which a commit is performed.
const UNCOMMITTED_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of repeated translations of one range before an image counts as damaged. A range
/// has fewer blocks.
const ANSWERS_MAX: usize = 1 << 20;

/// Location of a range of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeLocation {
    /// In the file of the layer with this number, at this offset in bytes.
    File { layer: usize, offset: u64 },
    /// Unallocated range that reads as zeros.
    Zero,
    /// In a parent, which was not queried because of [`LayerScope::Own`].
    Parent,
}

/// Layers that are queried for the location of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerScope {
    /// Only the disk's own layer.
    Own,
    /// The disk's own layer and all parents.
    All,
}

/// Disk that is not in service, opened for blocking access: its layers, own image first.
pub(crate) struct OfflineDisk {
    layers: Vec<DiskLayer>,
    names: Vec<String>,
}

impl From<OpenedDisk> for OfflineDisk {
    fn from(disk: OpenedDisk) -> Self {
        let names = disk.layer_files.iter().map(String::from).collect();
        Self { layers: disk.layer_stack.layers, names }
    }
}

impl From<Vec<OpenLayer>> for OfflineDisk {
    fn from(layers: Vec<OpenLayer>) -> Self {
        let names = layers.iter().map(|layer| String::from(&layer.name)).collect();
        Self { layers: layers.into_iter().map(OpenLayer::into_layer).collect(), names }
    }
}

impl OfflineDisk {
    /// Returns the size of the disk in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.layers.first().map_or(0, |layer| layer.image.disk_geometry().size_bytes)
    }

    /// Returns the length in bytes of the ranges in which jobs process the disk: a whole number of
    /// blocks, at least [`STEP_BYTES`](super::STEP_BYTES).
    pub(crate) fn chunk_bytes(&self) -> u64 {
        let block = self.layers.first().map_or(0, |layer| layer.image.disk_geometry().block_bytes);
        block.max(super::STEP_BYTES)
    }

    fn error(&self, layer: usize, error: ImageError) -> DiskError {
        let name = self.names.get(layer).map_or("device", String::as_str);
        DiskError::new(name, error).normalize_store_full()
    }

    fn layer(&mut self, number: usize) -> Result<&mut DiskLayer, DiskError> {
        if number >= self.layers.len() {
            return Err(self.error(0, ImageError::new("parent", 0, ImageFault::MissingStructure)));
        }
        Ok(&mut self.layers[number])
    }

    /// Returns the locations of a range in ascending order and without gaps.
    pub(crate) fn locate_range(
        &mut self,
        range: ByteRange,
        depth: LayerScope,
    ) -> Result<Vec<(ByteRange, RangeLocation)>, DiskError> {
        let mut located = Vec::new();
        let mut open = vec![(0, range)];
        while let Some((number, range)) = open.pop() {
            let size = self.layer(number)?.image.disk_geometry().size_bytes.max(range.offset());
            // A parent reads as zeros beyond its end.
            let (inside, after) = range.split_at(size - range.offset());
            let mut extents: Vec<ImageExtent> = Vec::new();
            if !inside.is_empty() {
                self.wait_for(number, |image| image.translate_read(inside, &mut extents))?;
            }
            let mut parent_ranges = Vec::new();
            let mut remaining = inside;
            for ImageExtent { location, len } in extents {
                let (current, next) = remaining.split_at(len);
                remaining = next;
                match location {
                    Location::File(offset) => {
                        located.push((current, RangeLocation::File { layer: number, offset }));
                    }
                    Location::Zero => located.push((current, RangeLocation::Zero)),
                    Location::Parent if depth == LayerScope::Own => {
                        located.push((current, RangeLocation::Parent));
                    }
                    Location::Parent => parent_ranges.push((number + 1, current)),
                }
            }
            if !after.is_empty() {
                located.push((after, RangeLocation::Zero));
            }
            open.append(&mut parent_ranges);
        }
        located.sort_unstable_by_key(|(range, _)| range.offset());
        Ok(located)
    }

    /// Fills `bytes` from the file of a layer; bytes beyond the file's end are zeros.
    pub(crate) fn read(
        &mut self,
        layer: usize,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), DiskError> {
        let file = &self.layer(layer)?.file;
        read_past_end(file.as_image_file(), offset, bytes)
            .map_err(|error| self.error(layer, ImageError::new("payload", offset, error)))
    }

    /// Writes to the disk's own image.
    pub(crate) fn write(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), DiskError> {
        let mut extents: Vec<ImageExtent> = Vec::new();
        self.wait_for(0, |image| image.translate_write(range, &mut extents))?;
        let DiskLayer { image, file } = self.layer(0)?;
        let mut unwritten = bytes;
        let write = || {
            for ImageExtent { location, len } in extents {
                let Location::File(offset) = location else {
                    return Err(ImageError::new(
                        "payload",
                        range.offset(),
                        ImageFault::MissingStructure,
                    ));
                };
                let (part, next) =
                    unwritten.split_at(usize::try_from(len).unwrap_or(0).min(unwritten.len()));
                unwritten = next;
                file.write_at(offset, part)
                    .map_err(|error| ImageError::new("payload", offset, error))?;
            }
            Ok(())
        };
        if let Err(error) = write() {
            image.handle_write_failed(range);
            return Err(self.error(0, error));
        }
        image.handle_written(range);
        if image.uncommitted_bytes() > UNCOMMITTED_BYTES_MAX { self.commit(0) } else { Ok(()) }
    }

    /// Makes a range of the disk's own image read as zeros. Whole blocks are freed if the format
    /// permits that; others are overwritten.
    pub(crate) fn write_zeros(&mut self, range: ByteRange) -> Result<(), DiskError> {
        let mut zeroed = Vec::new();
        if self.layer(0)?.image.linear_offset().is_some() {
            zeroed.push(range);
        } else {
            self.wait_for(0, |image| {
                zeroed.clear();
                image.discard(range, &mut zeroed)
            })?;
        }
        let zeros = vec![0; usize::try_from(range.len().min(super::STEP_BYTES)).unwrap_or(0)];
        for piece in zeroed.into_iter().flat_map(|zeroed| zeroed.blocks(super::STEP_BYTES)) {
            let len = usize::try_from(piece.1.len()).unwrap_or(0);
            self.write(piece.1, zeros.get(..len).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Closes the disk's own image, which was open for writing.
    pub(crate) fn close(mut self) -> Result<(), DiskError> {
        let DiskLayer { image, file } = self.layers.remove(0);
        image.close(file.as_image_file()).map_err(|error| self.error(0, error))
    }

    /// Makes writes to the disk's own image durable.
    pub(crate) fn make_durable(&mut self) -> Result<(), DiskError> {
        self.commit(0)
    }

    fn commit(&mut self, number: usize) -> Result<(), DiskError> {
        let DiskLayer { image, file } = self.layer(number)?;
        let result = match image.begin_commit() {
            None => file.flush(),
            Some(commit) => {
                let result = commit.execute(file.as_image_file());
                let outcome =
                    result.as_ref().err().map_or(CommitOutcome::Done, FailedStep::outcome);
                image.handle_commit(outcome);
                result.map_err(|failed| failed.error)
            }
        };
        let result = result.map_err(|error| ImageError::new("commit", 0, error));
        let result = result.and_then(|()| zero_freed(image.as_mut(), file.as_image_file()));
        result.map_err(|error| self.error(number, error))
    }

    /// Repeats a translation by a layer's image until the image has loaded the metadata, or
    /// performed the commit, that the result requires.
    fn wait_for(
        &mut self,
        number: usize,
        mut question: impl FnMut(&mut dyn Image) -> Result<Translation, ImageError>,
    ) -> Result<(), DiskError> {
        for _ in 0..ANSWERS_MAX {
            let layer = self.layer(number)?;
            let needed = match question(layer.image.as_mut()) {
                Ok(Translation::Ready) => return Ok(()),
                Ok(Translation::NeedsCommit) => {
                    self.commit(number)?;
                    continue;
                }
                Ok(Translation::NeedsMetadata(needed)) => needed,
                Err(error) => return Err(self.error(number, error)),
            };
            let mut bytes = vec![0; usize::try_from(needed.len()).unwrap_or(0)];
            let read = match layer.file.read_at(needed.offset(), &mut bytes) {
                Ok(()) => layer.image.handle_metadata(needed, &bytes),
                Err(error) => {
                    layer.image.handle_metadata_failure(needed);
                    Err(ImageError::new("metadata", needed.offset(), error))
                }
            };
            read.map_err(|error| self.error(number, error))?;
        }
        let fault =
            ImageFault::InvalidValue { value: ANSWERS_MAX as u64, allowed: "fewer questions" };
        Err(self.error(number, ImageError::new("metadata", 0, fault)))
    }
}

fn read_past_end(file: &dyn ImageFile, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
    let existing_len = usize::try_from(file.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
    let (read, zeros) = bytes.split_at_mut(existing_len.min(bytes.len()));
    zeros.fill(0);
    if read.is_empty() { Ok(()) } else { file.read_at(offset, read) }
}
