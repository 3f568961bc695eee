//! Metadata region: properties of the disk ([MS-VHDX] 2.6).

use suimon_image::{ByteRange, ImageError, ImageFault};

use crate::fields::{MB, bytes_at, put, u16_at, u32_at, u64_at};
use crate::replayed_view::ReplayedView;
use crate::{Guid, ParentLocator};

const TABLE_LEN: u64 = 64 << 10;
const ENTRIES_MAX: u16 = 2047;
const ITEM_LEN_MAX: u64 = MB;
/// Maximum size of a disk in bytes.
pub const DISK_BYTES_MAX: u64 = 64 << 40;
/// Minimum block size in bytes.
pub const BLOCK_BYTES_MIN: u64 = MB;
/// Maximum block size in bytes.
pub const BLOCK_BYTES_MAX: u64 = 256 * MB;

const FILE_PARAMETERS: Guid = Guid::new(0xcaa1_6737_fa36_4d43_b3b6_33f0_aa44_e76b);
const DISK_SIZE: Guid = Guid::new(0x2fa5_4224_cd1b_4876_b211_5dbe_d83b_f4b8);
const DISK_ID: Guid = Guid::new(0xbeca_12ab_b2e6_4523_93ef_c309_e000_c746);
const LOGICAL_SECTOR: Guid = Guid::new(0x8141_bf1d_a96f_4709_ba47_f233_a8fa_ab5f);
const PHYSICAL_SECTOR: Guid = Guid::new(0xcda3_48c7_445d_4471_9cc9_e988_5251_c556);
const PARENT_LOCATOR: Guid = Guid::new(0xa8d3_5f2d_b30b_454d_abf7_d3d8_4834_ab0c);

const IS_USER: u32 = 1;
const IS_VIRTUAL_DISK: u32 = 2;
const IS_REQUIRED: u32 = 4;
const LEAVE_ALLOCATED: u32 = 1;
const HAS_PARENT: u32 = 2;

/// Decoded metadata items ([MS-VHDX] 2.6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub block_bytes: u64,
    /// LeaveBlocksAllocated: blocks are never freed (fixed image).
    pub leave_allocated: bool,
    pub disk_bytes: u64,
    pub disk_id: Guid,
    pub logical_sector_bytes: u32,
    pub physical_sector_bytes: u32,
    /// Parent locator; present exactly for differencing images.
    pub parent: Option<ParentLocator>,
    /// File offset of the Virtual Disk Size item, in bytes.
    pub size_offset: u64,
}

/// Decoded entry of the metadata table.
#[derive(Clone, Copy)]
struct Item {
    id: Guid,
    range: ByteRange,
}

struct Items<'a> {
    view: &'a ReplayedView<'a>,
    region: ByteRange,
    items: Vec<Item>,
}

impl Metadata {
    pub(crate) fn read(view: &ReplayedView<'_>, region: ByteRange) -> Result<Self, ImageError> {
        let items = Items::read(view, region)?;
        let (parameters, offset) = items.content(FILE_PARAMETERS, "FileParameters", 8)?;
        let block = u64::from(u32_at(&parameters, 0));
        let flags = u32_at(&parameters, 4);
        check_block_size(block).map_err(|fault| ImageError::new("BlockSize", offset, fault))?;
        if flags & !(LEAVE_ALLOCATED | HAS_PARENT) != 0 {
            let fault = ImageFault::Unsupported { feature: format!("flags {flags:#x}") };
            return Err(ImageError::new("FileParameters", offset + 4, fault));
        }
        let mut sectors = [0_u32; 2];
        for (sector, id, name) in
            [(0, LOGICAL_SECTOR, "LogicalSectorSize"), (1, PHYSICAL_SECTOR, "PhysicalSectorSize")]
        {
            let (bytes, offset) = items.content(id, name, 4)?;
            let value = u32_at(&bytes, 0);
            check_sector_size(value).map_err(|fault| ImageError::new(name, offset, fault))?;
            if let Some(slot) = sectors.get_mut(sector) {
                *slot = value;
            }
        }
        let [logical_sector, physical_sector] = sectors;
        let (size, size_offset) = items.content(DISK_SIZE, "VirtualDiskSize", 8)?;
        let size = u64_at(&size, 0);
        check_disk_size(size, logical_sector)
            .map_err(|fault| ImageError::new("VirtualDiskSize", size_offset, fault))?;
        let (disk_id, _) = items.content(DISK_ID, "VirtualDiskId", 16)?;
        let parent = if flags & HAS_PARENT == 0 { None } else { Some(items.parent()?) };
        Ok(Self {
            block_bytes: block,
            leave_allocated: flags & LEAVE_ALLOCATED != 0,
            disk_bytes: size,
            disk_id: Guid::from_stored(bytes_at(&disk_id, 0)),
            logical_sector_bytes: logical_sector,
            // The value is corrected, because guests would reject a disk with inconsistent sector
            // sizes.
            physical_sector_bytes: physical_sector.max(logical_sector),
            parent,
            size_offset,
        })
    }

    /// Encodes the metadata table and the items behind it.
    ///
    /// # Errors
    ///
    /// A path of the parent exceeds the format's limit.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, ImageError> {
        let flags = u32::from(self.leave_allocated) * LEAVE_ALLOCATED
            | u32::from(self.parent.is_some()) * HAS_PARENT;
        // The block size was checked to be at most 256 MB.
        let block = u32::try_from(self.block_bytes).unwrap_or(u32::MAX);
        let parameters = [block.to_le_bytes(), flags.to_le_bytes()].concat();
        let disk = IS_VIRTUAL_DISK | IS_REQUIRED;
        let mut items = vec![
            (FILE_PARAMETERS, IS_REQUIRED, parameters),
            (DISK_SIZE, disk, self.disk_bytes.to_le_bytes().to_vec()),
            (DISK_ID, disk, self.disk_id.to_stored_bytes().to_vec()),
            (LOGICAL_SECTOR, disk, self.logical_sector_bytes.to_le_bytes().to_vec()),
            (PHYSICAL_SECTOR, disk, self.physical_sector_bytes.to_le_bytes().to_vec()),
        ];
        if let Some(parent) = &self.parent {
            items.push((PARENT_LOCATOR, IS_REQUIRED, parent.encode()?));
        }
        let mut bytes = vec![0; TABLE_LEN as usize];
        put(&mut bytes, 0, b"metadata");
        put(&mut bytes, 10, &(items.len() as u16).to_le_bytes());
        for ((id, flags, content), at) in items.into_iter().zip((32..).step_by(32)) {
            let offset = bytes.len() as u32;
            bytes.extend(&content);
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            put(&mut bytes, at, &id.to_stored_bytes());
            put(&mut bytes, at + 16, &offset.to_le_bytes());
            put(&mut bytes, at + 20, &(content.len() as u32).to_le_bytes());
            put(&mut bytes, at + 24, &flags.to_le_bytes());
        }
        Ok(bytes)
    }
}

impl<'a> Items<'a> {
    fn read(view: &'a ReplayedView<'a>, region: ByteRange) -> Result<Self, ImageError> {
        let start = region.offset();
        let (table, _) = region.split_at(TABLE_LEN);
        let bytes = view.read("MetadataTable", table)?;
        if bytes_at(&bytes, 0) != *b"metadata" {
            let fault = ImageFault::BadMagic { expected: "the signature \"metadata\"" };
            return Err(ImageError::new("MetadataTable.Signature", start, fault));
        }
        let count = u16_at(&bytes, 10);
        if count > ENTRIES_MAX {
            let fault = ImageFault::InvalidValue { value: count.into(), allowed: "at most 2047" };
            return Err(ImageError::new("MetadataTable.EntryCount", start + 10, fault));
        }
        let mut items: Vec<Item> = Vec::new();
        let entries = bytes.get(32..).unwrap_or_default().chunks_exact(32).take(count.into());
        for (index, entry) in entries.enumerate() {
            let entry_offset = start + 32 + 32 * index as u64;
            let id = Guid::from_stored(bytes_at(entry, 0));
            let (offset, len) = (u64::from(u32_at(entry, 16)), u64::from(u32_at(entry, 20)));
            let flags = u32_at(entry, 24);
            let recognized = is_known(id) && flags & IS_USER == 0;
            if !recognized && flags & IS_REQUIRED != 0 {
                let fault = ImageFault::Unsupported { feature: format!("metadata item {id}") };
                return Err(ImageError::new("MetadataTableEntry.ItemId", entry_offset, fault));
            }
            let range = ByteRange::new(start.saturating_add(offset), len);
            let range = range.filter(|range| {
                len <= ITEM_LEN_MAX
                    && range.end() <= region.end()
                    && (offset >= TABLE_LEN || (offset, len) == (0, 0))
            });
            let Some(range) = range else {
                let allowed = "an item of at most 1 MB behind the table and within the region";
                let fault = ImageFault::InvalidValue { value: offset, allowed };
                return Err(ImageError::new("MetadataTableEntry.Offset", entry_offset + 16, fault));
            };
            if !recognized {
                continue;
            }
            if items.iter().any(|item| item.id == id) {
                let fault = ImageFault::Overlap { other: "an entry of the same item" };
                return Err(ImageError::new("MetadataTableEntry.ItemId", entry_offset, fault));
            }
            items.push(Item { id, range });
        }
        Ok(Self { view, region, items })
    }

    fn range(&self, id: Guid, name: &'static str) -> Result<ByteRange, ImageError> {
        let item = self.items.iter().find(|item| item.id == id);
        item.map(|item| item.range).ok_or_else(|| {
            ImageError::new(name, self.region.offset(), ImageFault::MissingStructure)
        })
    }

    /// Returns the first `len` bytes of the item with this id, and their file offset. `name` is for
    /// errors.
    ///
    /// # Errors
    ///
    /// The item is missing, too short or cannot be read.
    fn content(
        &self,
        id: Guid,
        name: &'static str,
        len: u64,
    ) -> Result<(Vec<u8>, u64), ImageError> {
        let range = self.range(id, name)?;
        if range.len() < len {
            let allowed = "the length of its value";
            let fault = ImageFault::InvalidValue { value: range.len(), allowed };
            return Err(ImageError::new(name, range.offset(), fault));
        }
        let (content, _) = range.split_at(len);
        Ok((self.view.read(name, content)?, range.offset()))
    }

    fn parent(&self) -> Result<ParentLocator, ImageError> {
        let range = self.range(PARENT_LOCATOR, "ParentLocator")?;
        let bytes = self.view.read("ParentLocator", range)?;
        ParentLocator::parse(&bytes, range.offset())
    }
}

/// File range for a further parent locator, and the table entry that must refer to it.
pub(crate) struct ParentLocatorSlot {
    /// Range of the new item, which overlaps no other item.
    pub content: ByteRange,
    /// File offset of the entry's Offset and Length fields, in bytes.
    pub entry_offset: u64,
}

/// Returns a free range for a parent locator of `len` bytes in addition to the current one.
///
/// # Errors
///
/// The region has no space, or the image has no parent.
pub(crate) fn find_parent_locator_slot(
    view: &ReplayedView<'_>,
    region: ByteRange,
    len: u64,
) -> Result<ParentLocatorSlot, ImageError> {
    let start = region.offset();
    let (table, _) = region.split_at(TABLE_LEN);
    let bytes = view.read("MetadataTable", table)?;
    let entries = bytes.get(32..).unwrap_or_default().chunks_exact(32);
    let (mut entry_offset, mut occupied) = (None, Vec::new());
    for (index, entry) in entries.take(u16_at(&bytes, 10).into()).enumerate() {
        occupied.push((u64::from(u32_at(entry, 16)), u64::from(u32_at(entry, 20))));
        if Guid::from_stored(bytes_at(entry, 0)) == PARENT_LOCATOR {
            entry_offset = Some(start + 32 + 32 * index as u64 + 16);
        }
    }
    occupied.sort_unstable();
    let mut free_from = TABLE_LEN;
    for (offset, item_len) in occupied {
        if offset >= free_from.saturating_add(len) {
            break;
        }
        free_from = free_from.max(offset.saturating_add(item_len)).next_multiple_of(16);
    }
    let content = ByteRange::new(start.saturating_add(free_from), len);
    let content = content.filter(|content| content.end() <= region.end() && len <= ITEM_LEN_MAX);
    let full =
        || ImageError::new("ParentLocator", start, ImageFault::FormatLimit { limit: region.len() });
    let missing = || ImageError::new("ParentLocator", start, ImageFault::MissingStructure);
    Ok(ParentLocatorSlot {
        content: content.ok_or_else(full)?,
        entry_offset: entry_offset.ok_or_else(missing)?,
    })
}

fn is_known(id: Guid) -> bool {
    [FILE_PARAMETERS, DISK_SIZE, DISK_ID, LOGICAL_SECTOR, PHYSICAL_SECTOR, PARENT_LOCATOR]
        .contains(&id)
}

/// Checks that the format supports a block size in bytes.
///
/// # Errors
///
/// The size is not supported.
pub(crate) fn check_block_size(block: u64) -> Result<(), ImageFault> {
    if block.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block) {
        return Ok(());
    }
    Err(ImageFault::InvalidValue { value: block, allowed: "a power of two from 1 MB to 256 MB" })
}

/// Checks that the format supports a sector size in bytes.
///
/// # Errors
///
/// The size is not supported.
pub(crate) fn check_sector_size(sector: u32) -> Result<(), ImageFault> {
    if matches!(sector, 512 | 4096) {
        return Ok(());
    }
    Err(ImageFault::InvalidValue { value: sector.into(), allowed: "512 or 4096" })
}

/// Checks that the format supports a disk size in bytes with this sector size.
///
/// # Errors
///
/// The size is not supported.
pub(crate) fn check_disk_size(size: u64, logical_sector: u32) -> Result<(), ImageFault> {
    if size % u64::from(logical_sector) == 0 && (1..=DISK_BYTES_MAX).contains(&size) {
        return Ok(());
    }
    let allowed = "a multiple of the logical sector from one sector to 64 TB";
    Err(ImageFault::InvalidValue { value: size, allowed })
}
