//! Region table and its copy ([MS-VHDX] 2.2.3).

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};

use crate::Guid;
use crate::fields::{bytes_at, checksum, put, store_checksum, u32_at, u64_at};
use crate::header::region_range;
use crate::replayed_view::{LogOverlay, ReplayedView};

pub(crate) const REGION_TABLE_OFFSETS: [u64; 2] = [192 << 10, 256 << 10];
pub(crate) const REGION_TABLE_LEN: u64 = 64 << 10;
const ENTRIES_MAX: u32 = 2047;
const CHECKSUM_AT: usize = 4;
const BAT: Guid = Guid::new(0x2dc2_7766_f623_4200_9d64_115e_9bfd_4a08);
const METADATA: Guid = Guid::new(0x8b7c_a206_4790_4b9a_b8fe_575f_050f_886e);

/// Decoded entry of the region table.
#[derive(Clone, Copy, Debug)]
struct Region {
    guid: Guid,
    range: ByteRange,
    is_required: bool,
    /// Offset of the entry in the file, in bytes.
    entry_offset: u64,
}

/// Decoded region table of an image.
#[derive(Debug)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    pub bat: ByteRange,
    pub metadata: ByteRange,
    /// Errors of the copies of the table that were not used.
    pub copy_faults: Vec<ImageError>,
}

impl Regions {
    /// Returns a table with the two required regions: metadata and BAT.
    pub(crate) fn new(metadata: ByteRange, bat: ByteRange) -> Self {
        let region = |guid, range| Region { guid, range, is_required: true, entry_offset: 0 };
        let regions = vec![region(METADATA, metadata), region(BAT, bat)];
        Self { regions, bat, metadata, copy_faults: Vec::new() }
    }

    /// Reads the first valid copy of the table.
    ///
    /// # Errors
    ///
    /// No copy is valid, an entry is invalid, or a required region is missing or unknown.
    pub(crate) fn read(view: &ReplayedView<'_>) -> Result<Self, ImageError> {
        let mut copy_faults = Vec::new();
        let mut copy = None;
        for offset in REGION_TABLE_OFFSETS {
            match read_copy(view, offset) {
                Ok(bytes) => copy = copy.or(Some((offset, bytes))),
                Err(fault) => copy_faults.push(fault),
            }
        }
        let Some((offset, bytes)) = copy else {
            return Err(copy_faults.into_iter().next().unwrap_or_else(|| missing("RegionTable")));
        };
        Ok(Self { copy_faults, ..Self::parse(&bytes, offset)? })
    }

    fn parse(bytes: &[u8], offset: u64) -> Result<Self, ImageError> {
        let count = u32_at(bytes, 8);
        if count > ENTRIES_MAX {
            let fault = ImageFault::InvalidValue { value: count.into(), allowed: "at most 2047" };
            return Err(ImageError::new("RegionTable.EntryCount", offset + 8, fault));
        }
        let mut regions: Vec<Region> = Vec::new();
        let (mut bat, mut metadata) = (None, None);
        for entry in bytes.get(16..).unwrap_or_default().chunks_exact(32).take(count as usize) {
            let entry_offset = offset + 16 + 32 * regions.len() as u64;
            let guid = Guid::from_stored(bytes_at(entry, 0));
            let len = u64::from(u32_at(entry, 24));
            let field = "RegionTableEntry.FileOffset";
            let range = region_range(field, entry_offset + 16, u64_at(entry, 16), len)?;
            let is_required = u32_at(entry, 28) & 1 == 1;
            let mut other = None;
            let slot = match guid {
                BAT => &mut bat,
                METADATA => &mut metadata,
                _ if is_required => {
                    let fault = ImageFault::Unsupported { feature: format!("region {guid}") };
                    return Err(ImageError::new("RegionTableEntry.Guid", entry_offset, fault));
                }
                _ => &mut other,
            };
            if slot.replace(range).is_some() {
                let fault = ImageFault::Overlap { other: "another entry of the same region" };
                return Err(ImageError::new("RegionTableEntry.Guid", entry_offset, fault));
            }
            regions.push(Region { guid, range, is_required, entry_offset });
        }
        let bat = bat.ok_or_else(|| missing("BAT region"))?;
        let metadata = metadata.ok_or_else(|| missing("metadata region"))?;
        Ok(Self { regions, bat, metadata, copy_faults: Vec::new() })
    }

    /// Returns the file range of each region, with the file offset of its table entry.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (ByteRange, u64)> {
        self.regions.iter().map(|region| (region.range, region.entry_offset))
    }

    /// Changes the range of the BAT region.
    pub(crate) fn set_bat(&mut self, bat: ByteRange) {
        for region in &mut self.regions {
            if region.guid == BAT {
                region.range = bat;
            }
        }
        self.bat = bat;
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; REGION_TABLE_LEN as usize];
        put(&mut bytes, 0, b"regi");
        // The number does not exceed the number of parsed entries.
        put(&mut bytes, 8, &u32::try_from(self.regions.len()).unwrap_or(0).to_le_bytes());
        for (region, offset) in self.regions.iter().zip((16..).step_by(32)) {
            put(&mut bytes, offset, &region.guid.to_stored_bytes());
            put(&mut bytes, offset + 16, &region.range.offset().to_le_bytes());
            let len = u32::try_from(region.range.len()).unwrap_or(u32::MAX);
            put(&mut bytes, offset + 24, &len.to_le_bytes());
            put(&mut bytes, offset + 28, &u32::from(region.is_required).to_le_bytes());
        }
        store_checksum(&mut bytes, CHECKSUM_AT);
        bytes
    }
}

/// Restores damaged copies of the table from the valid one. Returns the offsets of restored copies.
pub(crate) fn restore_copies(file: &dyn ImageFile, file_len: u64) -> Result<Vec<u64>, ImageError> {
    let overlay = LogOverlay::default();
    let view = ReplayedView { file, file_len, replayed_len: file_len, overlay: &overlay };
    let copies = REGION_TABLE_OFFSETS.map(|offset| (offset, read_copy(&view, offset)));
    let intact = copies.iter().find_map(|(_, copy)| copy.as_ref().ok().cloned());
    let Some(intact) = intact else { return Ok(Vec::new()) };
    let mut restored = Vec::new();
    for (offset, _) in copies.iter().filter(|(_, copy)| copy.is_err()) {
        let failed = |error| ImageError::new("RegionTable", *offset, error);
        file.write_at(*offset, &intact).and_then(|()| file.flush()).map_err(failed)?;
        restored.push(*offset);
    }
    Ok(restored)
}

fn missing(field: &'static str) -> ImageError {
    ImageError::new(field, REGION_TABLE_OFFSETS[0], ImageFault::MissingStructure)
}

fn read_copy(view: &ReplayedView<'_>, offset: u64) -> Result<Vec<u8>, ImageError> {
    let range = ByteRange::new(offset, REGION_TABLE_LEN).ok_or_else(|| missing("region table"))?;
    let bytes = view.read("RegionTable", range)?;
    if bytes_at(&bytes, 0) != *b"regi" {
        let fault = ImageFault::BadMagic { expected: "the signature \"regi\"" };
        return Err(ImageError::new("RegionTable.Signature", offset, fault));
    }
    let (stored, computed) = (u32_at(&bytes, CHECKSUM_AT), checksum(&bytes, CHECKSUM_AT));
    if stored != computed {
        let fault = ImageFault::Checksum { stored, computed };
        return Err(ImageError::new("RegionTable.Checksum", offset + 4, fault));
    }
    Ok(bytes)
}
