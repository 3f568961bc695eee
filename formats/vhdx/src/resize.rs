//! Resizing of disks.
//!
//! New BAT entries, a new location of the BAT and new blocks are written to unreferenced space
//! first. A single log entry then changes the disk size and, if the BAT has moved, its location. A
//! crash therefore leaves the image with the old or the new size.

use suimon_image::{ByteRange, Commit, ImageError, ImageFault, ImageFile, Step};

use crate::bat::{Bat, BatEntry, BlockState};
use crate::fields::{MB, PAGE_BYTES, PAGE_LEN, put, round_up_mb, to_usize};
use crate::geometry::{Geometry, PAGE_ENTRIES};
use crate::log::Page;
use crate::metadata::check_disk_size;
use crate::open::image_error_from;
use crate::region::{REGION_TABLE_OFFSETS, Regions};
use crate::vhdx::WriteState;
use crate::{ImageType, Vhdx, WriteGuids};

/// Changes the size of the disk to `size` bytes. Data beyond a lower end is lost; added space reads
/// as zeros or from the parent. The image must not be in use: the caller suspends requests, closes
/// the image, resizes it, and opens it again.
///
/// # Errors
///
/// The format does not support the size, the image is damaged, or the file cannot be written. After
/// a crash the disk has the old or the new size.
pub fn resize(file: &dyn ImageFile, size: u64, guids: &WriteGuids) -> Result<(), ImageError> {
    let mut image = Vhdx::open(file, guids)?;
    let sector = image.metadata.logical_sector_bytes;
    let size_offset = image.metadata.size_offset;
    check_disk_size(size, sector)
        .map_err(|fault| ImageError::new("VirtualDiskSize", size_offset, fault))?;
    let before = image.geometry;
    let after = Geometry { size, ..before };
    zero_end(file, &image)?;
    image.bat.resize(&after);
    let is_fixed = image.kind() == ImageType::Fixed;
    let Some(mut writing) = image.write_state.take() else { return Ok(()) };
    if is_fixed {
        let added = before.blocks()..after.blocks();
        for block in added {
            let block_start = writing.space.allocate_block()?;
            writing.space.add_reference(block_start, true);
            image.bat.set_payload_entry(
                block,
                BatEntry::present(BlockState::FullyPresent, block_start),
                &after,
            );
        }
    }
    let mut pages = changed_pages(file, size_offset, &size.to_le_bytes())?;
    let required = after.entry_count() * 8;
    let first = before.payload_entry_index(before.blocks().min(after.blocks())) / PAGE_ENTRIES;
    let last = before.entry_count().max(after.entry_count()).div_ceil(PAGE_ENTRIES);
    if required > image.bat.region.len() {
        image.bat.region = allocate_bat(file, required, &mut writing)?;
        write_pages(file, &image.bat, 0..last, &after)?;
        pages.extend(region_table_pages(file, &mut image.regions, image.bat.region)?);
    } else if after.size >= before.size {
        write_pages(file, &image.bat, first..last, &after)?;
    }
    write_size(file, &mut writing, &pages)?;
    if after.size < before.size {
        // Entries beyond the end of the disk are undefined, but some programs read them.
        write_pages(file, &image.bat, first..last, &after)?;
    }
    image.bat.dirty_pages.clear();
    image.write_state = Some(writing);
    image.close(file)
}

/// Zeroes the part of the last block that is beyond the end of the disk, because it becomes part of
/// the disk if that grows.
fn zero_end(file: &dyn ImageFile, image: &Vhdx) -> Result<(), ImageError> {
    let last = image.geometry.blocks().saturating_sub(1);
    let (entry, len) = (image.bat.payload_entry(last), image.geometry.bytes_in_block(last));
    if !entry.is_present() || len == image.geometry.block_bytes() {
        return Ok(());
    }
    let (start, len) = (entry.offset() + len, image.geometry.block_bytes() - len);
    file.zero(start, len).map_err(image_error_from)
}

/// Allocates space for a BAT of `required` bytes at the end of the file.
fn allocate_bat(
    file: &dyn ImageFile,
    required: u64,
    writing: &mut WriteState,
) -> Result<ByteRange, ImageError> {
    let len = round_up_mb(required);
    let full = || ImageError::new("BAT", 0, ImageFault::FormatLimit { limit: u64::from(u32::MAX) });
    let mb = u32::try_from(len / MB).map_err(|_| full())?;
    let offset = u64::from(writing.space.extend_for_region(mb)?) * MB;
    file.set_len(writing.space.required_file_bytes().max(writing.file_len))
        .map_err(image_error_from)?;
    ByteRange::new(offset, len).ok_or_else(full)
}

fn write_pages(
    file: &dyn ImageFile,
    bat: &Bat,
    pages: core::ops::Range<u64>,
    geometry: &Geometry,
) -> Result<(), ImageError> {
    for page in pages {
        let (offset, bytes) = bat.encode_page(page, geometry);
        if offset.saturating_add(PAGE_BYTES) <= bat.region.end() {
            file.write_at(offset, bytes.as_slice()).map_err(image_error_from)?;
        }
    }
    file.flush().map_err(image_error_from)
}

/// Returns the pages of the file that contain the bytes from `offset` on, with these replaced by
/// `bytes`.
fn changed_pages(file: &dyn ImageFile, offset: u64, bytes: &[u8]) -> Result<Vec<Page>, ImageError> {
    let mut pages = Vec::new();
    let end = offset.saturating_add(bytes.len() as u64);
    let mut start = offset - offset % PAGE_BYTES;
    while start < end {
        let mut page = Box::new([0; PAGE_LEN]);
        file.read_at(start, page.as_mut_slice())
            .map_err(|error| ImageError::new("metadata", start, error))?;
        let from = start.max(offset);
        let to = end.min(start + PAGE_BYTES);
        let part = bytes.get(to_usize(from - offset)..to_usize(to - offset));
        put(page.as_mut_slice(), to_usize(from - start), part.unwrap_or_default());
        pages.push((start, page));
        start += PAGE_BYTES;
    }
    Ok(pages)
}

/// Returns the pages of both region tables that change if the BAT moves to `bat`.
fn region_table_pages(
    file: &dyn ImageFile,
    regions: &mut Regions,
    bat: ByteRange,
) -> Result<Vec<Page>, ImageError> {
    regions.set_bat(bat);
    let table = regions.encode();
    let mut pages = Vec::new();
    for offset in REGION_TABLE_OFFSETS {
        pages.extend(changed_pages(file, offset, &table)?);
    }
    Ok(pages)
}

/// Writes pages through the log. Their number is small enough for one entry.
fn write_size(
    file: &dyn ImageFile,
    writing: &mut WriteState,
    pages: &[Page],
) -> Result<(), ImageError> {
    let file_len = writing.file_len.max(writing.space.required_file_bytes());
    let mut steps = vec![Step::Extend { len: file_len, required_len: file_len }, Step::Flush];
    let end = writing.space.required_file_bytes();
    writing.log.append_entry(pages, file_len, end, &mut steps);
    steps.extend([Step::Flush, Step::DurableMarker]);
    steps.extend(
        pages.iter().map(|(offset, page)| Step::Write { offset: *offset, bytes: page.to_vec() }),
    );
    steps.push(Step::Flush);
    writing.file_len = file_len;
    Commit { steps }.execute(file).map_err(|step| image_error_from(step.error))
}
