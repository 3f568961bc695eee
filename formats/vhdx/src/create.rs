//! Creation of VHDX images.

use suimon_image::{ByteRange, FileError, ImageError, ImageFault, ImageFile};

use crate::bat::BlockState;
use crate::fields::{FILE_MB_MAX, MB, METADATA_WRITE_BYTES_MAX, put, round_up_mb, to_usize};
use crate::geometry::{BatEntryTarget, Geometry};
use crate::header::{HEADER_OFFSETS, Header, encode_identifier};
use crate::metadata::{Metadata, check_block_size, check_disk_size, check_sector_size};
use crate::open::image_error_from;
use crate::region::{REGION_TABLE_OFFSETS, Regions};
use crate::{Guid, ImageType, ParentLocator};

const LOG_OFFSET: u64 = MB;
const LOG_LEN: u64 = MB;
const METADATA_OFFSET: u64 = LOG_OFFSET + LOG_LEN;
const CREATOR: &str = "Suimon";

/// Specification of a new image.
#[derive(Clone, Debug)]
pub struct NewVhdx {
    /// Size of the disk in bytes: a multiple of the logical sector size, at most
    /// [`DISK_BYTES_MAX`](crate::DISK_BYTES_MAX) (64 TB).
    pub size: u64,
    /// Block size in bytes: a power of two from 1 MB to 256 MB; usually 32 MB.
    pub block_bytes: u64,
    /// Logical sector size in bytes: 512 or 4096.
    pub logical_sector_bytes: u32,
    /// Physical sector size in bytes: 512 or 4096, at least the logical sector size.
    pub physical_sector_bytes: u32,
    /// True to allocate all blocks at creation. Ignored for images with a parent.
    pub is_fixed: bool,
    /// Parent of a differencing image; `None` for fixed and dynamic images.
    pub parent: Option<ParentLocator>,
    /// New FileWriteGuid, which identifies this version of the file.
    pub file_write: Guid,
    /// New DataWriteGuid, which identifies the contents of the disk.
    pub data_write: Guid,
    /// New identifier of the disk (Virtual Disk ID).
    pub disk_id: Guid,
}

impl NewVhdx {
    /// Returns the type of the image that [`NewVhdx::create`] creates.
    #[must_use]
    pub fn kind(&self) -> ImageType {
        match self {
            Self { parent: Some(_), .. } => ImageType::Differencing,
            Self { is_fixed: true, .. } => ImageType::Fixed,
            Self { .. } => ImageType::Dynamic,
        }
    }

    fn metadata(&self) -> Result<Metadata, ImageError> {
        let invalid = |field, fault| ImageError::new(field, 0, fault);
        check_block_size(self.block_bytes).map_err(|fault| invalid("BlockSize", fault))?;
        check_sector_size(self.logical_sector_bytes)
            .map_err(|fault| invalid("LogicalSectorSize", fault))?;
        check_sector_size(self.physical_sector_bytes)
            .map_err(|fault| invalid("PhysicalSectorSize", fault))?;
        if self.physical_sector_bytes < self.logical_sector_bytes {
            let allowed = "not below the logical sector";
            let fault =
                ImageFault::InvalidValue { value: self.physical_sector_bytes.into(), allowed };
            return Err(invalid("PhysicalSectorSize", fault));
        }
        check_disk_size(self.size, self.logical_sector_bytes)
            .map_err(|fault| invalid("VirtualDiskSize", fault))?;
        Ok(Metadata {
            block_bytes: self.block_bytes,
            leave_allocated: self.kind() == ImageType::Fixed,
            disk_bytes: self.size,
            disk_id: self.disk_id,
            logical_sector_bytes: self.logical_sector_bytes,
            physical_sector_bytes: self.physical_sector_bytes,
            parent: self.parent.clone(),
            size_offset: 0,
        })
    }

    /// Writes the image to an empty file. The file becomes a valid image with the last step, so
    /// that a crash leaves a complete image or none.
    ///
    /// # Errors
    ///
    /// The format does not support the image, the file is not empty, or it cannot be written.
    pub fn create(&self, file: &dyn ImageFile) -> Result<(), ImageError> {
        let metadata = self.metadata()?;
        let geometry = Geometry::new(&metadata);
        let file_len = file.len().map_err(image_error_from)?;
        if file_len != 0 {
            let fault = ImageFault::InvalidValue { value: file_len, allowed: "an empty file" };
            return Err(ImageError::new("file", 0, fault));
        }
        let items = metadata.encode()?;
        let too_large = || {
            let fault = ImageFault::FormatLimit { limit: FILE_MB_MAX * MB };
            ImageError::new("file", 0, fault)
        };
        // The sum of some megabytes and a BAT of a few hundred megabytes does not overflow.
        let region = |offset, len| ByteRange::new(offset, round_up_mb(len)).ok_or_else(too_large);
        let metadata_region = region(METADATA_OFFSET, items.len() as u64)?;
        let bat = region(metadata_region.end(), geometry.entry_count() * 8)?;
        let payload = match self.kind() {
            ImageType::Fixed => geometry.blocks() * self.block_bytes,
            ImageType::Dynamic | ImageType::Differencing => 0,
        };
        let log = region(LOG_OFFSET, LOG_LEN)?;
        let end = bat.end().checked_add(payload).filter(|end| *end <= FILE_MB_MAX * MB);
        let end = end.ok_or_else(too_large)?;
        let tables = Regions::new(metadata_region, bat).encode();
        let header = |sequence| Header {
            sequence,
            file_write: self.file_write,
            data_write: self.data_write,
            log_guid: Guid::NIL,
            log_version: 0,
            log,
        };
        let write = || -> Result<(), FileError> {
            file.set_len(end)?;
            file.write_at(metadata_region.offset(), &items)?;
            for offset in REGION_TABLE_OFFSETS {
                file.write_at(offset, &tables)?;
            }
            if payload != 0 {
                write_fixed_bat(file, bat, &geometry)?;
            } else if bat.len() <= METADATA_WRITE_BYTES_MAX {
                file.write_at(bat.offset(), &vec![0; to_usize(bat.len())])?;
            }
            for (sequence, offset) in (0..).zip(HEADER_OFFSETS) {
                file.write_at(offset, &header(sequence).encode())?;
            }
            file.flush()?;
            file.write_at(0, &encode_identifier(CREATOR))?;
            file.flush()
        };
        write().map_err(image_error_from)
    }
}

/// Writes a BAT to `region` whose blocks follow it contiguously.
fn write_fixed_bat(
    file: &dyn ImageFile,
    region: ByteRange,
    geometry: &Geometry,
) -> Result<(), FileError> {
    let (used, _) = region.split_at(geometry.entry_count() * 8);
    for (_, part) in used.blocks(MB) {
        let mut bytes = vec![0; to_usize(part.len())];
        let first = (part.offset() - region.offset()) / 8;
        for (entry, at) in (first..).zip((0..bytes.len()).step_by(8)) {
            if let BatEntryTarget::Payload(block) = geometry.entry_target(entry) {
                let offset = region.end() + block * geometry.block_bytes();
                let stored = offset | BlockState::FullyPresent as u64;
                put(&mut bytes, at, &stored.to_le_bytes());
            }
        }
        file.write_at(part.offset(), &bytes)?;
    }
    Ok(())
}
