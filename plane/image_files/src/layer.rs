//! One image of a disk's chain of layers, with its open file.

use std::sync::Arc;

use suimon_image::{DiskGeometry, Image, ImageError, Linear, RedoChanges};
use suimon_ports::{DiskFile, FileLockMode, FileName, FileTime, StoreFiles};
use suimon_vhd::{Access, DiskType, OpenOptions, SizeSource, Vhd};
use suimon_vhdx::{Guid, ImageType, Vhdx};

use super::error::DiskError;
use super::redoing::RemainingRedo;
use super::unfinished::refuse_unfinished;
use super::{HostInputs, vhd_time};
use crate::disk_spec::DiskLayer;
use crate::format::{DiskFormat, DiskKind};
use crate::layer_options::LayerOptions;

/// Opened image, by format.
pub(crate) enum Opened {
    Raw(Linear),
    Vhd(Box<Vhd>),
    Vhdx(Box<Vhdx>),
}

/// Opened image with its file.
pub(crate) struct OpenLayer {
    pub(crate) name: FileName,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) image: Opened,
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
        if options.used == FileLockMode::Read {
            Self::redo_remaining(files, name, options, seeds)?;
        } else if options.format.has_metadata() {
            refuse_unfinished(files, name)?;
        }
        let file = files.open(name, options.used, options.unit)?;
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
        if seeds.records.is_none() || !options.format.has_metadata() {
            return Ok(());
        }
        let reading = LayerOptions { used: FileLockMode::Read, ..options };
        let file = files.open(name, reading.used, options.unit)?;
        if RemainingRedo::load(file.as_ref(), name, seeds)?.is_none() {
            return Ok(());
        }
        let content = match Self::from_file(file, name, reading, None, seeds)?.identity() {
            Identity::Vhdx { content, .. } => Some(content),
            Identity::None | Identity::Vhd(_) => None,
        };
        let writing = LayerOptions { used: FileLockMode::Write, ..options };
        let file = files.open(name, writing.used, options.unit)?;
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
        let remaining_redo = if options.used == FileLockMode::Write && options.format.has_metadata()
        {
            RemainingRedo::load(file.as_ref(), name, seeds)?
        } else {
            None
        };
        let nothing = RedoChanges::default();
        let redo = remaining_redo.as_ref().map_or(&nothing, |remaining_redo| &remaining_redo.redo);
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
                return Err(remaining_redo.failed(file.as_ref(), name, error));
            }
        };
        Ok(Self { name: name.clone(), file, image })
    }

    /// Returns the identifiers of the disk and its content.
    pub(crate) fn identity(&self) -> Identity {
        match &self.image {
            Opened::Raw(_) => Identity::None,
            Opened::Vhd(image) => Identity::Vhd(image.footer().unique_id),
            Opened::Vhdx(image) => {
                Identity::Vhdx { disk: image.disk_id(), content: image.data_write_guid() }
            }
        }
    }

    /// Returns the allocation kind of the image; `None` for a raw file, which does not record it.
    pub(crate) fn kind(&self) -> Option<DiskKind> {
        match &self.image {
            Opened::Raw(_) => None,
            Opened::Vhd(image) => Some(match image.footer().disk_type {
                DiskType::Fixed => DiskKind::Fixed,
                DiskType::Dynamic => DiskKind::Dynamic,
                DiskType::Differencing => DiskKind::Differencing,
            }),
            Opened::Vhdx(image) => Some(match image.kind() {
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
    pub(crate) fn shape(&self) -> DiskGeometry {
        match &self.image {
            Opened::Raw(image) => image.disk_geometry(),
            Opened::Vhd(image) => Image::disk_geometry(image.as_ref()),
            Opened::Vhdx(image) => Image::disk_geometry(image.as_ref()),
        }
    }

    /// Returns the block size in bytes; `None` if the image has no blocks.
    pub(crate) fn block_bytes(&self) -> Option<u64> {
        match &self.image {
            Opened::Vhdx(image) => Some(image.block_bytes()),
            _ => Some(self.shape().block).filter(|block| *block != 0),
        }
    }

    /// Converts the layer to the form that the storage engine uses.
    pub(crate) fn into_layer(self) -> DiskLayer {
        let image: Box<dyn Image> = match self.image {
            Opened::Raw(image) => Box::new(image),
            Opened::Vhd(image) => image,
            Opened::Vhdx(image) => image,
        };
        DiskLayer { image, file: self.file }
    }

    /// Closes an image that was opened for writing, so that it needs no repair.
    pub(crate) fn close(self) -> Result<(), DiskError> {
        let name = self.name.clone();
        let DiskLayer { image, file } = self.into_layer();
        image.close(file.as_image_file()).map_err(|error| DiskError::new(&name, error).or_full())
    }

    /// Returns the modification time of the file in VHD time (seconds since 2000-01-01 UTC).
    pub(crate) fn modified(&self, files: &dyn StoreFiles) -> Result<u32, DiskError> {
        Ok(vhd_time(files.status(&self.name)?.modified_unix_s))
    }
}

/// Restores the modification time of a VHD after opening. Children identify its content by that
/// time, and opening only repairs metadata and zeroes unreferenced space. If the time cannot be set
/// (the file belongs to another user), the new time must be recorded in the children.
fn keep_modified(file: &dyn DiskFile, image: &Opened, before: Option<FileTime>) {
    let (Opened::Vhd(_), Some(before)) = (image, before) else { return };
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
) -> Result<Opened, ImageError> {
    let is_read_only = options.used == FileLockMode::Read;
    match options.format {
        DiskFormat::Raw | DiskFormat::PassThrough => {
            let (logical_sector, physical_sector) = options.sectors;
            let len = file.len().map_err(|error| ImageError::new("file", 0, error))?;
            // A partial sector at the end is not part of the disk.
            let size = len - len % u64::from(logical_sector.max(1));
            let shape = DiskGeometry { size, logical_sector, physical_sector, block: 0 };
            Ok(Opened::Raw(Linear::new(shape, 0, is_read_only)))
        }
        DiskFormat::Vhd => {
            let access = if is_read_only { Access::Read } else { Access::Write };
            let options = OpenOptions { access, size: SizeSource::Creator };
            Ok(Opened::Vhd(Box::new(Vhd::open_with_redo(file.as_image_file(), options, redo)?)))
        }
        DiskFormat::Vhdx if is_read_only => {
            Ok(Opened::Vhdx(Box::new(Vhdx::open_read_only(file.as_image_file())?)))
        }
        DiskFormat::Vhdx => {
            let mut guids = seeds.write_guids();
            guids.data_write = content.unwrap_or(guids.data_write);
            if !redo.changes.is_empty() {
                guids.file_write = Guid::from_stored(redo.new_write_id);
            }
            Ok(Opened::Vhdx(Box::new(Vhdx::open_with_redo(file.as_image_file(), &guids, redo)?)))
        }
    }
}
