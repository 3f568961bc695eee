//! Creation of VHD images.

use suimon_image::{FileError, ImageError, ImageFault, ImageFile};

use crate::fields::{SECTOR_BYTES, round_up};
use crate::footer::{DISK_BYTES_MAX, DiskType, FOOTER_BYTES, Footer};
use crate::geometry::Geometry;
use crate::header::{
    DynamicHeader, HEADER_BYTES, LOCATOR_COUNT, block_count, check_block_size, encode_table,
    table_bytes,
};
use crate::locator::{LOCATOR_BYTES_MAX, Parent};
use crate::locator_entry::LocatorEntry;
use crate::table::UNUSED;

/// Default block size in bytes, which all programs support.
pub const BLOCK_SIZE_DEFAULT: u32 = 2 << 20;

/// Type of a new image, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateParameters {
    /// Fixed: the file contains the whole disk, sparse where the file system supports it.
    Fixed,
    /// Dynamic: blocks are allocated when they are written.
    Dynamic {
        /// Block size in bytes, a power of two.
        block_size: u32,
    },
    /// Differencing: like dynamic; unwritten sectors are read from a parent of the same size.
    Differencing {
        /// Block size in bytes, a power of two.
        block_size: u32,
        /// Parent of the new disk.
        parent: Parent,
    },
}

/// How the footer of a new image represents the size of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeEncoding {
    /// Exact size in the field Current Size. The creator is recorded as Windows, because some
    /// programs decide by creator whether to use the geometry, which may be smaller.
    Exact,
    /// Size rounded up to a value that the geometry represents exactly, so that every program
    /// computes the same size.
    Geometry,
}

/// Specification of a new image. The Unique Id and the time are parameters, because this crate uses
/// neither randomness nor a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVhd {
    /// Type of the disk image.
    pub disk: CreateParameters,
    /// Size of the disk in bytes; rounded up to whole sectors.
    pub size: u64,
    /// How the footer represents the size.
    pub size_encoding: SizeEncoding,
    /// Unique Id of the disk.
    pub unique_id: [u8; 16],
    /// Creation time in seconds since 2000-01-01 UTC.
    pub created_s_since_2000: u32,
}

const CREATOR_VERSION: u32 = 0x000a_0000;
const CREATOR_HOST_OS: [u8; 4] = *b"Wi2k";

impl NewVhd {
    /// Creates the image in `file`, which is overwritten. Returns the size of the disk in bytes.
    ///
    /// # Errors
    ///
    /// The format does not support the disk, or the file cannot be written.
    pub fn create(&self, file: &dyn ImageFile) -> Result<u64, ImageError> {
        let size = self.rounded_size()?;
        let failed = |error: FileError| ImageError::new("image", 0, error);
        match &self.disk {
            CreateParameters::Fixed => {
                let footer = self.footer(DiskType::Fixed, size).encode();
                file.set_len(0).map_err(failed)?;
                file.set_len(size).map_err(failed)?;
                file.write_at(size, &footer).map_err(failed)?;
            }
            CreateParameters::Dynamic { block_size } => {
                let footer = self.footer(DiskType::Dynamic, size).encode();
                write_sparse(file, size, *block_size, None, &footer)?;
            }
            CreateParameters::Differencing { block_size, parent } => {
                let footer = self.footer(DiskType::Differencing, size).encode();
                write_sparse(file, size, *block_size, Some(parent), &footer)?;
            }
        }
        file.flush().map_err(failed)?;
        Ok(size)
    }

    fn rounded_size(&self) -> Result<u64, ImageError> {
        let sectors = self.size.div_ceil(SECTOR_BYTES);
        let sectors = match self.size_encoding {
            SizeEncoding::Exact => sectors,
            SizeEncoding::Geometry => Geometry::round_up(sectors),
        };
        let size = sectors.saturating_mul(SECTOR_BYTES);
        if size == 0 || size > DISK_BYTES_MAX {
            let fault =
                ImageFault::InvalidValue { value: self.size, allowed: "1 byte to 2040 GiB" };
            return Err(ImageError::new("Current Size", 0, fault));
        }
        Ok(size)
    }

    fn footer(&self, disk_type: DiskType, size: u64) -> Footer {
        let creator_application = match self.size_encoding {
            SizeEncoding::Exact => *b"win ",
            SizeEncoding::Geometry => *b"suim",
        };
        Footer {
            features: 0,
            data_offset: if disk_type == DiskType::Fixed { u64::MAX } else { FOOTER_BYTES },
            created_s_since_2000: self.created_s_since_2000,
            creator_application,
            creator_version: CREATOR_VERSION,
            creator_host_os: CREATOR_HOST_OS,
            original_size: size,
            current_size: size,
            geometry: Geometry::from_sectors(size / SECTOR_BYTES),
            disk_type,
            unique_id: self.unique_id,
            is_in_saved_state: false,
        }
    }
}

fn write_sparse(
    file: &dyn ImageFile,
    size: u64,
    block_size: u32,
    parent: Option<&Parent>,
    footer: &[u8; 512],
) -> Result<(), ImageError> {
    let header_offset = FOOTER_BYTES;
    check_block_size(block_size)
        .map_err(|fault| ImageError::new("Block Size", header_offset + 32, fault))?;
    let entries = block_count(size, block_size).ok_or_else(|| {
        let allowed = "large enough that the disk has at most 4194304 blocks";
        let fault = ImageFault::InvalidValue { value: block_size.into(), allowed };
        ImageError::new("Block Size", header_offset + 32, fault)
    })?;
    let table_offset = header_offset + HEADER_BYTES;
    let mut end = table_offset + table_bytes(entries);
    let mut header = DynamicHeader {
        table_offset,
        max_table_entries: entries,
        block_size,
        parent_unique_id: [0; 16],
        parent_modified_s_since_2000: 0,
        parent_name: String::new(),
        locators: [LocatorEntry::default(); LOCATOR_COUNT],
    };
    let mut paths = Vec::new();
    if let Some(parent) = parent {
        paths = assign_locator_sectors(&mut header, parent, &mut end)?;
    }
    let failed = |error: FileError| ImageError::new("image", 0, error);
    file.set_len(0).map_err(failed)?;
    file.write_at(0, footer).map_err(failed)?;
    file.write_at(header_offset, &header.encode()).map_err(failed)?;
    let table = vec![UNUSED; crate::fields::to_index(entries.into())];
    file.write_at(table_offset, &encode_table(&table)).map_err(failed)?;
    for (offset, bytes) in paths {
        file.write_at(offset, &bytes).map_err(failed)?;
    }
    file.write_at(end, footer).map_err(failed)
}

/// Enters `parent` into `header`, and assigns file sectors to its locators from byte offset `end`
/// on. Advances `end`. Returns file offset in bytes and content of each locator.
///
/// # Errors
///
/// The name, a path or the number of paths exceeds the limits of the format.
fn assign_locator_sectors(
    header: &mut DynamicHeader,
    parent: &Parent,
    end: &mut u64,
) -> Result<Vec<(u64, Vec<u8>)>, ImageError> {
    header.parent_unique_id = parent.unique_id;
    header.parent_modified_s_since_2000 = parent.modified_s_since_2000;
    header.parent_name.clone_from(&parent.name);
    let invalid_value = |name, value, allowed| {
        Err(ImageError::new(name, FOOTER_BYTES, ImageFault::InvalidValue { value, allowed }))
    };
    if parent.locators.len() > LOCATOR_COUNT {
        return invalid_value("Parent Locator Entry", parent.locators.len() as u64, "up to 8");
    }
    if parent.name.encode_utf16().count() > crate::header::NAME_UTF16_UNITS_MAX {
        let units = parent.name.encode_utf16().count() as u64;
        return invalid_value("Parent Unicode Name", units, "up to 256 UTF-16 units");
    }
    let mut paths = Vec::new();
    for (entry, locator) in header.locators.iter_mut().zip(&parent.locators) {
        let (platform, bytes) = locator.encode();
        let data_length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if data_length > LOCATOR_BYTES_MAX || data_length == 0 {
            return invalid_value("Platform Data Length", data_length.into(), "1 to 65536 bytes");
        }
        let sectors = data_length.div_ceil(512);
        *entry = LocatorEntry { platform, data_space: sectors, data_length, data_offset: *end };
        paths.push((*end, bytes));
        *end = round_up(end.saturating_add(data_length.into()), SECTOR_BYTES).unwrap_or(u64::MAX);
    }
    Ok(paths)
}
