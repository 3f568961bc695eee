//! Dynamic disk header (VHD specification, "Dynamic Disk Header Format").

use suimon_image::{ImageError, ImageFault};

use crate::fields::{bytes_at, checksum, put, to_index, u32_at, u64_at};
use crate::locator_entry::LocatorEntry;

/// Length of the header in bytes.
pub(crate) const HEADER_BYTES: u64 = 1024;
/// Maximum number of block allocation table entries, which are kept in memory (16 MiB): sufficient
/// for the largest disk with blocks of 512 KiB.
pub const TABLE_ENTRIES_MAX: u32 = 1 << 22;
/// Minimum block size in bytes; block sizes are powers of two.
pub(crate) const BLOCK_MIN: u32 = 512;
pub(crate) const BLOCK_MAX: u32 = 1 << 31;
/// Maximum length of a parent's name in UTF-16 code units.
pub(crate) const NAME_UTF16_UNITS_MAX: usize = 256;

const COOKIE: &[u8; 8] = b"cxsparse";
const VERSION: u32 = 0x0001_0000;
const CHECKSUM_AT: usize = 36;
const NAME_AT: usize = 64;
const LOCATORS_AT: usize = 576;
/// Number of parent locator entries.
pub(crate) const LOCATOR_COUNT: usize = 8;

/// Decoded dynamic disk header of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicHeader {
    /// Offset of the block allocation table in the file, in bytes.
    pub table_offset: u64,
    /// Number of block allocation table entries.
    pub max_table_entries: u32,
    /// Size of a block's data in bytes, without the bitmap.
    pub block_size: u32,
    /// Unique Id of the parent; zeros if there is none.
    pub parent_unique_id: [u8; 16],
    /// Modification time of the parent in seconds since 2000-01-01 UTC.
    pub parent_modified_s_since_2000: u32,
    /// File name of the parent.
    pub parent_name: String,
    /// Locators of the parent's path.
    pub locators: [LocatorEntry; LOCATOR_COUNT],
}

/// Returns the offset in bytes of locator entry number `index` within the header.
pub(crate) const fn locator_offset(index: usize) -> usize {
    LOCATORS_AT + index * LocatorEntry::BYTES
}

impl DynamicHeader {
    /// Decodes a header that was read at `offset` of the file.
    ///
    /// # Errors
    ///
    /// The bytes are not a header or are damaged, or block size or table size are invalid.
    pub fn parse(bytes: &[u8; 1024], offset: u64) -> Result<Self, ImageError> {
        let invalid = |name, field_offset: u64, fault: ImageFault| {
            Err(ImageError::new(name, offset.saturating_add(field_offset), fault))
        };
        if bytes_at::<8>(bytes, 0) != *COOKIE {
            return invalid("Cookie", 0, ImageFault::BadMagic { expected: "cxsparse" });
        }
        let (stored, computed) = (u32_at(bytes, CHECKSUM_AT), checksum(bytes, CHECKSUM_AT));
        if stored != computed {
            let field_offset = CHECKSUM_AT as u64;
            return invalid("Checksum", field_offset, ImageFault::Checksum { stored, computed });
        }
        let version = u32_at(bytes, 24);
        if version >> 16 != VERSION >> 16 {
            let what = format!("version {}.{}", version >> 16, version & 0xffff);
            return invalid("Header Version", 24, ImageFault::Unsupported { feature: what });
        }
        let max_table_entries = u32_at(bytes, 28);
        if max_table_entries > TABLE_ENTRIES_MAX {
            let allowed = "at most 4194304; use larger blocks";
            let fault = ImageFault::InvalidValue { value: max_table_entries.into(), allowed };
            return invalid("Max Table Entries", 28, fault);
        }
        let block_size = u32_at(bytes, 32);
        if let Err(fault) = check_block_size(block_size) {
            return invalid("Block Size", 32, fault);
        }
        let units = bytes.get(NAME_AT..NAME_AT + 2 * NAME_UTF16_UNITS_MAX).unwrap_or_default();
        let units: Vec<u16> = units
            .chunks_exact(2)
            .map(|unit| u16::from_be_bytes(bytes_at(unit, 0)))
            .take_while(|unit| *unit != 0)
            .collect();
        let locator =
            |index| LocatorEntry::parse(bytes.get(locator_offset(index)..).unwrap_or_default());
        Ok(Self {
            table_offset: u64_at(bytes, 16),
            max_table_entries,
            block_size,
            parent_unique_id: bytes_at(bytes, 40),
            parent_modified_s_since_2000: u32_at(bytes, 56),
            parent_name: String::from_utf16_lossy(&units),
            locators: std::array::from_fn(locator),
        })
    }

    /// Encodes the header with its checksum. A parent name that is too long is truncated.
    #[must_use]
    pub fn encode(&self) -> [u8; 1024] {
        let mut bytes = [0; 1024];
        put(&mut bytes, 0, COOKIE);
        put(&mut bytes, 8, &u64::MAX.to_be_bytes());
        put(&mut bytes, 24, &VERSION.to_be_bytes());
        put(&mut bytes, 32, &self.block_size.to_be_bytes());
        put(&mut bytes, 40, &self.parent_unique_id);
        put(&mut bytes, 56, &self.parent_modified_s_since_2000.to_be_bytes());
        for (index, unit) in self.parent_name.encode_utf16().take(NAME_UTF16_UNITS_MAX).enumerate()
        {
            put(&mut bytes, NAME_AT + 2 * index, &unit.to_be_bytes());
        }
        for (index, locator) in self.locators.iter().enumerate() {
            put(&mut bytes, locator_offset(index), &locator.encode());
        }
        set_table(&mut bytes, self.table_offset, self.max_table_entries);
        bytes
    }
}

/// Changes position and size of the block allocation table in an encoded header, and its checksum;
/// other fields are preserved.
pub(crate) fn set_table(bytes: &mut [u8; 1024], table_offset: u64, max_table_entries: u32) {
    put(bytes, 16, &table_offset.to_be_bytes());
    put(bytes, 28, &max_table_entries.to_be_bytes());
    let sum = checksum(bytes, CHECKSUM_AT);
    put(bytes, CHECKSUM_AT, &sum.to_be_bytes());
}

/// Checks that the format supports a block size.
///
/// # Errors
///
/// The size is not a power of two or out of range.
pub(crate) fn check_block_size(bytes: u32) -> Result<(), ImageFault> {
    if bytes.is_power_of_two() && (BLOCK_MIN..=BLOCK_MAX).contains(&bytes) {
        return Ok(());
    }
    Err(ImageFault::InvalidValue {
        value: bytes.into(),
        allowed: "a power of two, 512 bytes to 2 GiB",
    })
}

/// Returns the number of blocks of a disk with `size` bytes; `None` if the block allocation table
/// would exceed [`TABLE_ENTRIES_MAX`].
pub(crate) fn block_count(size: u64, block_size: u32) -> Option<u32> {
    let blocks = size.div_ceil(u64::from(block_size).max(1));
    u32::try_from(blocks).ok().filter(|blocks| *blocks <= TABLE_ENTRIES_MAX)
}

/// Returns the length in bytes of a block allocation table with `entries` entries, in whole
/// sectors.
pub(crate) fn table_bytes(entries: u32) -> u64 {
    (u64::from(entries) * 4).next_multiple_of(512)
}

/// Encodes table entries; the remainder of the last sector is filled with unused entries.
pub(crate) fn encode_table(entries: &[u32]) -> Vec<u8> {
    let len = to_index(table_bytes(u32::try_from(entries.len()).unwrap_or(u32::MAX)));
    let mut bytes = Vec::with_capacity(len);
    bytes.extend(entries.iter().flat_map(|entry| entry.to_be_bytes()));
    bytes.resize(len, 0xff);
    bytes
}
