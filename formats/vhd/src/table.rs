//! Block allocation table (VHD specification, "Block Allocation Table and Data Blocks").

use core::ops::ControlFlow;

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::fields::{SECTOR_BYTES, bytes_at, to_index};
use crate::gap::Gap;
use crate::layout::{Layout, Region};

/// Table entry of an unallocated block.
pub(crate) const UNUSED: u32 = u32::MAX;

/// Reads the table. It must lie within the file, which bounds the memory.
///
/// # Errors
///
/// The table exceeds the file, or the file cannot be read.
pub(crate) fn read(file: &dyn ImageFile, layout: &Layout) -> Result<Vec<u32>, ImageError> {
    let mut bytes = vec![0; to_index(u64::from(layout.entry_count) * 4)];
    file.read_at(layout.table_offset, &mut bytes)
        .map_err(|error| ImageError::new("block allocation table", layout.table_offset, error))?;
    Ok(bytes.chunks_exact(4).map(|entry| u32::from_be_bytes(bytes_at(entry, 0))).collect())
}

/// Returns the allocated blocks in order of sectors: (first sector, entry number).
pub(crate) fn blocks_by_sector(table: &[u32]) -> Vec<(u32, u32)> {
    let mut blocks: Vec<_> =
        table.iter().copied().zip(0..).filter(|(sector, _)| *sector != UNUSED).collect();
    blocks.sort_unstable();
    blocks
}

/// Calls `fault` for each block that exceeds `limit` or overlaps a structure or another block.
pub(crate) fn validate(
    layout: &Layout,
    blocks: &[(u32, u32)],
    regions: &[Region],
    limit: u64,
    report: &mut dyn FnMut(ImageError) -> ControlFlow<ImageError>,
) -> ControlFlow<ImageError> {
    let slot = layout.slot_sectors() * SECTOR_BYTES;
    let entry_error =
        |entry, fault| ImageError::new("BAT entry", layout.entry_offset(entry), fault);
    let mut free_from = 0;
    for (sector, entry) in blocks.iter().copied() {
        let start = u64::from(sector) * SECTOR_BYTES;
        let end = start + slot;
        if end > limit {
            report(entry_error(entry, ImageFault::Truncated { file_len: limit }))?;
        }
        if start < free_from {
            report(entry_error(entry, ImageFault::Overlap { other: "another block" }))?;
        }
        free_from = end;
        for region in
            regions.iter().filter(|region| start < region.end_sector && region.start_sector < end)
        {
            report(entry_error(entry, ImageFault::Overlap { other: region.name }))?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns the unused gaps of the file in ascending order; the last one ends at `limit` and may be
/// empty.
pub(crate) fn gaps(
    layout: &Layout,
    blocks: &[(u32, u32)],
    regions: &[Region],
    limit: u64,
) -> Vec<Gap> {
    let slot = layout.slot_sectors();
    let mut occupied: Vec<(u64, u64)> = regions
        .iter()
        .map(|region| (region.start_sector / SECTOR_BYTES, region.end_sector / SECTOR_BYTES))
        .collect();
    occupied
        .extend(blocks.iter().map(|(sector, _)| (u64::from(*sector), u64::from(*sector) + slot)));
    occupied.sort_unstable();
    occupied.push((limit / SECTOR_BYTES, u64::MAX));
    let mut gaps = Vec::new();
    let mut free_from = 0;
    let last = occupied.len() - 1;
    for (index, (start, end)) in occupied.into_iter().enumerate() {
        if start > free_from || index == last {
            gaps.push(Gap { start_sector: free_from, end_sector: start.max(free_from) });
        }
        free_from = free_from.max(end);
    }
    gaps
}
