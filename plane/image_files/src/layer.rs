//! One image of a disk's chain of layers, with its open file.

use std::sync::Arc;

use suimon_image::{DiskGeometry, Image, ImageError, LinearImage, RedoChanges};
use suimon_ports::{DiskFile, FileLockMode, FileName, FileTime, StoreFiles};
use suimon_vhd::{Access, DiskType, OpenOptions, SizeSource, Vhd};
use suimon_vhdx::{Guid, ImageType, Vhdx};

use super::error::DiskError;
use super::incomplete_change::check_no_incomplete_change;
use super::redoing::RemainingRedo;
use super::{HostInputs, vhd_time};
use crate::format::{DiskFormat, DiskKind};
use crate::layer_options::LayerOptions;
use crate::layer_stack::DiskLayer;

/// Opened image, by format.
pub(crate) enum OpenedImage {
    Raw(LinearImage),
    Vhd(Box<Vhd>),
    Vhdx(Box<Vhdx>),
}

/// Opened image with its file.
pub(crate) struct OpenLayer {
    pub(crate) name: FileName,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) image: OpenedImage,
}

/// Identifiers of a disk and of its current content; children reference them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    None,
    Vhd([u8; 16]),
    Vhdx { disk: Guid, content: Guid },
}

impl OpenLayer {
    /// Opens the file `name` as an image. Fails if it is missing, in use, damaged, or not of the
    /// format in `options`.
    pub(crate) fn open(
        files: &dyn StoreFiles,
        name: &FileName,
        options: LayerOptions,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        if options.lock_mode == FileLockMode::Read {
            Self::redo_remaining(files, name, options, seeds)?;
        } else if options.format.has_metadata() {
            check_no_incomplete_change(files, name)?;
        }
        let file = files.open(name, options.lock_mode, options.io_alignment)?;
        Self::from_file(file, name, options, None, seeds)
    }

    /// Applies the metadata changes that a killed process recorded to an image that will be opened
    /// for reading. Children still accept the image as their parent.
    pub(crate) fn redo_remaining(
        files: &dyn StoreFiles,
        name: &FileName,
        options: LayerOptions,
        seeds: &mut HostInputs<'_>,
    ) -> Result<(), DiskError> {
        if seeds.redo_records.is_none() || !options.format.has_metadata() {
            return Ok(());
        }
        let reading = LayerOptions { lock_mode: FileLockMode::Read, ..options };
        let file = files.open(name, reading.lock_mode, options.io_alignment)?;
        if RemainingRedo::load(file.as_ref(), name, seeds)?.is_none() {
            return Ok(());
        }
        let content = match Self::from_file(file, name, reading, None, seeds)?.identity() {
            Identity::Vhdx { content, .. } => Some(content),
            Identity::None | Identity::Vhd(_) => None,
        };
        let writing = LayerOptions { lock_mode: FileLockMode::Write, ..options };
        let file = files.open(name, writing.lock_mode, options.io_alignment)?;
        Self::from_file(file, name, writing, content, seeds)?.close()
    }

    /// Uses an open file as an image. With `content`, a VHDX image that is opened for writing keeps
    /// this content identifier, because the content that children read does not change. If the
    /// image is opened for writing, the metadata changes that a killed process recorded are
    /// applied.
    pub(crate) fn from_file(
        file: Arc<dyn DiskFile>,
        name: &FileName,
        options: LayerOptions,
        content: Option<Guid>,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        let remaining_redo =
            if options.lock_mode == FileLockMode::Write && options.format.has_metadata() {
                RemainingRedo::load(file.as_ref(), name, seeds)?
            } else {
                None
            };
        let nothing = RedoChanges::default();
        let redo =
            remaining_redo.as_ref().map_or(&nothing, |remaining_redo| &remaining_redo.changes);
        let modified = file.modified().ok();
        let image = match (open_image(file.as_ref(), options, content, redo, seeds), remaining_redo)
        {
            (Ok(image), remaining_redo) => {
                keep_modified(file.as_ref(), &image, modified);
                remaining_redo.map_or(Ok(()), |remaining_redo| remaining_redo.finish(name))?;
                image
            }
            (Err(error), None) => return Err(DiskError::new(name, error)),
            (Err(error), Some(remaining_redo)) => {
                return Err(remaining_redo.into_error(file.as_ref(), name, error));
            }
        };
        Ok(Self { name: name.clone(), file, image })
    }

    /// Returns the identifiers of the disk and its content.
    pub(crate) fn identity(&self) -> Identity {
        match &self.image {
            OpenedImage::Raw(_) => Identity::None,
            OpenedImage::Vhd(image) => Identity::Vhd(image.footer().unique_id),
            OpenedImage::Vhdx(image) => {
                Identity::Vhdx { disk: image.disk_id(), content: image.data_write_guid() }
            }
        }
    }

    /// Returns the allocation kind of the image; `None` for a raw file, which does not record it.
    pub(crate) fn kind(&self) -> Option<DiskKind> {
        match &self.image {
            OpenedImage::Raw(_) => None,
            OpenedImage::Vhd(image) => Some(match image.footer().disk_type {
                DiskType::Fixed => DiskKind::Fixed,
                DiskType::Dynamic => DiskKind::Dynamic,
                DiskType::Differencing => DiskKind::Differencing,
            }),
            OpenedImage::Vhdx(image) => Some(match image.kind() {
                ImageType::Fixed => DiskKind::Fixed,
                ImageType::Dynamic => DiskKind::Dynamic,
                ImageType::Differencing => DiskKind::Differencing,
            }),
        }
    }

    /// Returns true if unwritten content is in a parent.
    pub(crate) fn is_differencing(&self) -> bool {
        self.kind() == Some(DiskKind::Differencing)
    }

    /// Returns the size and sector sizes that a guest sees.
    pub(crate) fn geometry(&self) -> DiskGeometry {
        match &self.image {
            OpenedImage::Raw(image) => image.disk_geometry(),
            OpenedImage::Vhd(image) => Image::disk_geometry(image.as_ref()),
            OpenedImage::Vhdx(image) => Image::disk_geometry(image.as_ref()),
        }
    }

    /// Returns the block size in bytes; `None` if the image has no blocks.
    pub(crate) fn block_bytes(&self) -> Option<u64> {
        match &self.image {
            OpenedImage::Vhdx(image) => Some(image.block_bytes()),
            _ => Some(self.geometry().block_bytes).filter(|block| *block != 0),
        }
    }

    /// Converts the layer to the form that the storage engine uses.
    pub(crate) fn into_layer(self) -> DiskLayer {
        let image: Box<dyn Image> = match self.image {
            OpenedImage::Raw(image) => Box::new(image),
            OpenedImage::Vhd(image) => image,
            OpenedImage::Vhdx(image) => image,
        };
        DiskLayer { image, file: self.file }
    }

    /// Closes an image that was opened for writing, so that it needs no repair.
    pub(crate) fn close(self) -> Result<(), DiskError> {
        let name = self.name.clone();
        let DiskLayer { image, file } = self.into_layer();
        image
            .close(file.as_image_file())
            .map_err(|error| DiskError::new(&name, error).normalize_store_full())
    }

    /// Returns the modification time of the file in VHD time (seconds since 2000-01-01 UTC).
    pub(crate) fn modified_vhd_time(&self, files: &dyn StoreFiles) -> Result<u32, DiskError> {
        Ok(vhd_time(files.status(&self.name)?.modified_unix_s))
    }
}

/// Restores the modification time of a VHD after opening. Children identify its content by that
/// time, and opening only repairs metadata and zeroes unreferenced space. If the time cannot be set
/// (the file belongs to another user), the new time must be recorded in the children.
fn keep_modified(file: &dyn DiskFile, image: &OpenedImage, before: Option<FileTime>) {
    let (OpenedImage::Vhd(_), Some(before)) = (image, before) else { return };
    if file.modified().is_ok_and(|now| now != before) {
        let _ = file.set_modified(before);
    }
}

fn open_image(
    file: &dyn DiskFile,
    options: LayerOptions,
    content: Option<Guid>,
    redo: &RedoChanges,
    seeds: &mut HostInputs<'_>,
) -> Result<OpenedImage, ImageError> {
    let is_read_only = options.lock_mode == FileLockMode::Read;
    match options.format {
        DiskFormat::Raw | DiskFormat::PassThrough => {
            let (logical_sector, physical_sector) = options.sector_sizes;
            let len = file.len().map_err(|error| ImageError::new("file", 0, error))?;
            // A partial sector at the end is not part of the disk.
            let size = len - len % u64::from(logical_sector.max(1));
            let shape = DiskGeometry {
                size_bytes: size,
                logical_sector_bytes: logical_sector,
                physical_sector_bytes: physical_sector,
                block_bytes: 0,
            };
            Ok(OpenedImage::Raw(LinearImage::new(shape, 0, is_read_only)))
        }
        DiskFormat::Vhd => {
            let access = if is_read_only { Access::Read } else { Access::Write };
            let options = OpenOptions { access, size: SizeSource::Creator };
            Ok(OpenedImage::Vhd(Box::new(Vhd::open_with_redo(
                file.as_image_file(),
                options,
                redo,
            )?)))
        }
        DiskFormat::Vhdx if is_read_only => {
            Ok(OpenedImage::Vhdx(Box::new(Vhdx::open_read_only(file.as_image_file())?)))
        }
        DiskFormat::Vhdx => {
            let mut guids = seeds.write_guids();
            guids.data_write = content.unwrap_or(guids.data_write);
            if !redo.changes.is_empty() {
                guids.file_write = Guid::from_stored(redo.new_write_id);
            }
            Ok(OpenedImage::Vhdx(Box::new(Vhdx::open_with_redo(
                file.as_image_file(),
                &guids,
                redo,
            )?)))
        }
    }
}
