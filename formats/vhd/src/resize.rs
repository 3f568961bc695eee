//! Resizing of disks.
//!
//! Each step changes one sector atomically and is followed by a flush: after a crash the disk has
//! the old or the new size, with its contents preserved.

use suimon_image::{FileError, ImageError, ImageFault, ImageFile};

use crate::fields::{SECTOR_BYTES, to_index};
use crate::find_footers::{Footers, find_footers};
use crate::footer::{DISK_BYTES_MAX, DiskType, Footer, SizeSource};
use crate::geometry::Geometry;
use crate::header::{block_count, encode_table, set_table, table_bytes};
use crate::image::Vhd;
use crate::layout::Layout;
use crate::open::{Access, OpenOptions, Structures};
use crate::table::{self, UNUSED};

/// Changes the size of a disk that is not in use to `size` bytes, rounded up to a size that the
/// image's creator can represent. Returns the new size in bytes. Added space reads as zeros or from
/// the parent.
///
/// # Errors
///
/// The image is damaged or in saved state; a fixed disk or a disk with blocks beyond the new end
/// would shrink; the format does not support the size; or the file cannot be read or written.
pub fn resize(file: &dyn ImageFile, size: u64, rule: SizeSource) -> Result<u64, ImageError> {
    // This repairs the image, and rejects a damaged one.
    Vhd::open(file, OpenOptions { access: Access::Write, size: rule })?;
    let footers = find_footers(file)?;
    let footer = &footers.selected.footer;
    let invalid_value = |name, field_offset: u64, value, allowed| {
        let fault = ImageFault::InvalidValue { value, allowed };
        Err(ImageError::new(name, footers.selected.offset.saturating_add(field_offset), fault))
    };
    if footer.is_in_saved_state {
        return invalid_value(
            "Saved State",
            84,
            1,
            "0; start the VM of the image, shut it down, and try again",
        );
    }
    let is_exact = rule == SizeSource::CurrentSize || footer.has_exact_size();
    let sectors = size.div_ceil(SECTOR_BYTES);
    let sectors = if is_exact { sectors } else { Geometry::round_up(sectors) };
    let size = sectors.saturating_mul(SECTOR_BYTES);
    if size == 0 || size > DISK_BYTES_MAX {
        return invalid_value("Current Size", 48, size, "512 bytes to 2040 GiB");
    }
    let before = footer.size(rule, footers.selected.offset)?;
    if footer.disk_type != DiskType::Fixed {
        resize_blocks(file, &footers, rule, size)?;
    } else if size < before {
        return invalid_value(
            "Current Size",
            48,
            size,
            "at least the present size; a fixed disk cannot shrink",
        );
    } else if size > before {
        grow_fixed(file, &footers, before, size).map_err(failed)?;
    }
    Ok(size)
}

fn failed(error: FileError) -> ImageError {
    ImageError::new("image", 0, error)
}

/// Grows a fixed disk from `before` to `size` bytes. The sector of the former footer becomes part
/// of the disk. It is therefore zeroed while the disk has its old size and a footer at the new
/// offset.
fn grow_fixed(
    file: &dyn ImageFile,
    footers: &Footers,
    before: u64,
    size: u64,
) -> Result<(), FileError> {
    let footer_offset = footers.correct_offset.max(size);
    if footer_offset > footers.correct_offset || !footers.is_complete {
        file.write_at(footer_offset, &footers.selected.bytes)?;
        file.flush()?;
    }
    file.zero(before, size - before)?;
    file.flush()?;
    file.write_at(footer_offset, &Footer::with_size(&footers.selected.bytes, size))?;
    file.flush()
}

fn resize_blocks(
    file: &dyn ImageFile,
    footers: &Footers,
    rule: SizeSource,
    size: u64,
) -> Result<(), ImageError> {
    let mut structures = Structures::read(file, footers, rule)?;
    let layout = structures.layout;
    let block_size = structures.header.block_size;
    let Some(required) = block_count(size, block_size) else {
        let allowed = "a size of at most 4194304 blocks";
        let offset = layout.header_offset.saturating_add(28);
        let fault = ImageFault::InvalidValue { value: size, allowed };
        return Err(ImageError::new("Max Table Entries", offset, fault));
    };
    let mut footer_offset = footers.correct_offset;
    let table = table::read(file, &layout)?;
    if size < layout.disk_bytes {
        check_unused(&layout, &table, required)?;
    } else {
        let table = clear_behind_end(file, &layout, table).map_err(failed)?;
        if required > layout.entry_count {
            footer_offset = enlarge_table(file, footers, &mut structures, table, required)?;
        }
    }
    let footer = Footer::with_size(&footers.selected.bytes, size);
    for offset in [footer_offset, 0] {
        file.write_at(offset, &footer).map_err(failed)?;
        file.flush().map_err(failed)?;
    }
    Ok(())
}

/// Rejects shrinking to `required` blocks if blocks beyond the new end would be lost.
fn check_unused(layout: &Layout, table: &[u32], required: u32) -> Result<(), ImageError> {
    let beyond_end = (0..).zip(table).skip(required as usize);
    let used = beyond_end.into_iter().find(|(_, sector)| **sector != UNUSED);
    used.map_or(Ok(()), |(entry, sector)| {
        let allowed = "no block beyond the new end; discard that data first";
        let fault = ImageFault::InvalidValue { value: (*sector).into(), allowed };
        Err(ImageError::new("BAT entry", layout.entry_offset(entry), fault))
    })
}

/// Removes data beyond the end of the disk (in its last block or in further blocks), which must not
/// appear when the disk grows. Returns the updated table.
fn clear_behind_end(
    file: &dyn ImageFile,
    layout: &Layout,
    mut table: Vec<u32>,
) -> Result<Vec<u32>, FileError> {
    let last = layout.block_count.saturating_sub(1);
    let used = layout.block_sectors(last) * SECTOR_BYTES;
    if let Some(sector) = table.get(last as usize).filter(|sector| **sector != UNUSED) {
        file.zero(layout.payload_offset(*sector) + used, layout.block_bytes - used)?;
    }
    let beyond_end = table.get_mut(layout.block_count as usize..).unwrap_or_default();
    if beyond_end.iter().any(|sector| *sector != UNUSED) {
        beyond_end.fill(UNUSED);
        file.write_at(layout.table_offset, &encode_table(&table))?;
    }
    file.flush()?;
    Ok(table)
}

/// Enlarges the table to `entries` entries: in place if the space behind it is free, otherwise by
/// moving it to the end of the file, before a new footer. Returns the offset of the footer in
/// bytes.
fn enlarge_table(
    file: &dyn ImageFile,
    footers: &Footers,
    structures: &mut Structures,
    mut table: Vec<u32>,
    entries: u32,
) -> Result<u64, ImageError> {
    let Structures { layout, regions, .. } = structures;
    let blocks = table::blocks_by_sector(&table);
    let gaps = table::gaps(layout, &blocks, regions, footers.correct_offset);
    let len = table_bytes(entries);
    let old_end = layout.table_offset + table_bytes(layout.entry_count);
    let has_room = |start: u64| {
        let end = layout.table_offset + len;
        gaps.iter().any(|gap| {
            gap.start_sector * SECTOR_BYTES <= start && end <= gap.end_sector * SECTOR_BYTES
        })
    };
    table.resize(to_index(entries.into()), UNUSED);
    let bytes = encode_table(&table);
    let mut footer_offset = footers.correct_offset;
    let mut table_offset = layout.table_offset;
    if len > old_end - layout.table_offset && !has_room(old_end) {
        let tail = gaps.last().map_or(footer_offset, |tail| tail.start_sector * SECTOR_BYTES);
        table_offset = tail;
        footer_offset = footer_offset.max(tail.saturating_add(len));
        file.write_at(footer_offset, &footers.selected.bytes).map_err(failed)?;
        file.flush().map_err(failed)?;
    }
    // If the table is enlarged in place, existing entries are rewritten with identical contents.
    file.write_at(table_offset, &bytes).map_err(failed)?;
    file.flush().map_err(failed)?;
    let mut header = structures.header_bytes;
    set_table(&mut header, table_offset, entries);
    // The changed fields are in the header's first sector, which is written atomically.
    let first = header.get(..to_index(SECTOR_BYTES)).unwrap_or_default();
    file.write_at(structures.layout.header_offset, first).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(footer_offset)
}
