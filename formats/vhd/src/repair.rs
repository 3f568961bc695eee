//! Repair of redundant structures, and change of the recorded parent.

use suimon_image::{ByteRange, FileError, ImageError, ImageFault, ImageFile};

use crate::fields::SECTOR_BYTES;
use crate::find_footers::{Footers, find_footers};
use crate::footer::{DiskType, FOOTER_BYTES, SizeSource};
use crate::gap::tail_gap;
use crate::header::{LOCATOR_COUNT, NAME_UTF16_UNITS_MAX};
use crate::locator::{LOCATOR_BYTES_MAX, Parent};
use crate::locator_entry::LocatorEntry;
use crate::open::Structures;
use crate::space::exceeds_reserve;
use crate::table;

/// Repair that was performed on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAction {
    /// The footer was restored from its copy, or completed to 512 bytes.
    Footer {
        /// Offset of the footer in the file, in bytes.
        offset: u64,
    },
    /// The copy of the footer was restored from the footer.
    FooterCopy,
    /// Unreferenced space before the footer was released.
    SpaceReleased {
        /// Number of bytes by which the file was shortened.
        bytes: u64,
    },
}

/// Repairs the footer and its copy, and releases unreferenced space at the end of the file. Returns
/// the performed repairs. Payload, header and block allocation table are not written. A consistent
/// file is not written at all.
///
/// # Errors
///
/// Neither footer is valid, or the file cannot be written.
pub fn repair(file: &dyn ImageFile, rule: SizeSource) -> Result<Vec<RepairAction>, ImageError> {
    let footers = find_footers(file)?;
    if footers.selected.footer.disk_type == DiskType::Fixed {
        return Ok(Vec::new());
    }
    let mut actions = Vec::new();
    let is_whole = footers.is_at_end && footers.is_complete;
    let (footer_offset, exceeds) = correct_footer_offset(file, &footers, rule)?;
    let failed = |error: FileError| ImageError::new("footer", footer_offset, error);
    if !is_whole || exceeds {
        let before = file.len().map_err(failed)?;
        let after = footer_offset.saturating_add(FOOTER_BYTES);
        file.write_at(footer_offset, &footers.selected.bytes).map_err(failed)?;
        file.flush().map_err(failed)?;
        file.set_len(after).map_err(failed)?;
        file.flush().map_err(failed)?;
        if !is_whole {
            actions.push(RepairAction::Footer { offset: footer_offset });
        }
        if exceeds {
            actions.push(RepairAction::SpaceReleased { bytes: before.saturating_sub(after) });
        }
    }
    if footers.is_at_end && footers.other_error.is_some() {
        file.write_at(0, &footers.selected.bytes).map_err(failed)?;
        file.flush().map_err(failed)?;
        actions.push(RepairAction::FooterCopy);
    }
    Ok(actions)
}

/// Returns the correct offset of the footer in bytes. The second value is true if the free space
/// before the footer exceeds the reserve for new blocks.
fn correct_footer_offset(
    file: &dyn ImageFile,
    footers: &Footers,
    rule: SizeSource,
) -> Result<(u64, bool), ImageError> {
    let len = file.len().map_err(|error| ImageError::new("footer", 0, error))?;
    let tail = Structures::read(file, footers, rule).and_then(|structures| {
        let (_, gaps) = structures.read_table(file, footers)?;
        let tail = tail_gap(&gaps, footers.correct_offset);
        Ok((tail.start_sector * SECTOR_BYTES, exceeds_reserve(&structures.layout, tail)))
    });
    // Unreferenced space cannot be determined if other structures are damaged.
    let Ok((end_of_use, exceeds)) = tail else { return Ok((footers.correct_offset, false)) };
    if exceeds {
        return Ok((end_of_use, true));
    }
    if footers.is_at_end {
        return Ok((footers.correct_offset, false));
    }
    // Offset of the damaged footer, unless it lies within a block.
    let last = len
        .checked_sub(FOOTER_BYTES)
        .filter(|last| *last >= end_of_use && last % SECTOR_BYTES == 0);
    Ok((last.unwrap_or(end_of_use), false))
}

/// Returns the file ranges of the payload: blocks with their bitmaps, or everything before the
/// footer of a fixed disk.
///
/// # Errors
///
/// The image is damaged or cannot be read.
pub fn payload_ranges(
    file: &dyn ImageFile,
    rule: SizeSource,
) -> Result<Vec<ByteRange>, ImageError> {
    let footers = find_footers(file)?;
    if footers.selected.footer.disk_type == DiskType::Fixed {
        return Ok(ByteRange::new(0, footers.payload_end_max).into_iter().collect());
    }
    let structures = Structures::read(file, &footers, rule)?;
    let blocks = table::blocks_by_sector(&table::read(file, &structures.layout)?);
    let bytes = structures.layout.slot_sectors() * SECTOR_BYTES;
    let range = |sector: u32| ByteRange::new(u64::from(sector) * SECTOR_BYTES, bytes);
    Ok(blocks.into_iter().filter_map(|(sector, _)| range(sector)).collect())
}

/// Replaces paths, name and modification time of the parent recorded in a differencing image. Paths
/// in other notations are removed, because they refer to the former location. After a crash, the
/// image has either the old or the new values.
///
/// # Errors
///
/// The image is not differencing or needs repair, a path is too long, or the file cannot be
/// written.
pub fn set_parent_path(
    file: &dyn ImageFile,
    parent: &Parent,
    rule: SizeSource,
) -> Result<(), ImageError> {
    let footers = find_footers(file)?;
    let located_footer = &footers.selected;
    if located_footer.footer.disk_type != DiskType::Differencing {
        let fault = ImageFault::InvalidValue {
            value: located_footer.footer.disk_type.code().into(),
            allowed: "4",
        };
        return Err(ImageError::new("Disk Type", located_footer.offset + 60, fault));
    }
    if !footers.is_at_end || !footers.is_complete {
        let what = "a footer that is damaged; repair the image first".to_owned();
        return Err(ImageError::new(
            "footer",
            footers.correct_offset,
            ImageFault::Unsupported { feature: what },
        ));
    }
    let Structures { mut header, .. } = Structures::read(file, &footers, rule)?;
    let header_offset = located_footer.footer.data_offset;
    let too_long = |name, value: usize, allowed| {
        let fault = ImageFault::InvalidValue { value: value as u64, allowed };
        Err(ImageError::new(name, header_offset, fault))
    };
    let units = parent.name.encode_utf16().count();
    if units > NAME_UTF16_UNITS_MAX {
        return too_long("Parent Unicode Name", units, "up to 256 UTF-16 units");
    }
    header.parent_unique_id = parent.unique_id;
    header.parent_modified_s_since_2000 = parent.modified_s_since_2000;
    header.parent_name.clone_from(&parent.name);
    header.locators = [LocatorEntry::default(); LOCATOR_COUNT];
    let failed = |error: FileError| ImageError::new("parent locator", header_offset, error);
    let (mut paths, mut end) = (Vec::new(), footers.correct_offset);
    for (entry, locator) in header.locators.iter_mut().zip(&parent.locators) {
        let (platform, bytes) = locator.encode();
        let data_length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if data_length > LOCATOR_BYTES_MAX || data_length == 0 {
            return too_long("Platform Data Length", bytes.len(), "1 to 65536 bytes");
        }
        let data_space = data_length.div_ceil(512);
        *entry = LocatorEntry { platform, data_space, data_length, data_offset: end };
        paths.push((end, bytes));
        end = end.saturating_add(u64::from(data_space) * SECTOR_BYTES);
    }
    // The new record is complete and durable before the header refers to it.
    file.write_at(end, &located_footer.bytes).map_err(failed)?;
    file.flush().map_err(failed)?;
    for (offset, bytes) in paths {
        let mut sectors = bytes;
        sectors.resize(sectors.len().next_multiple_of(512), 0);
        file.write_at(offset, &sectors).map_err(failed)?;
    }
    file.flush().map_err(failed)?;
    file.write_at(header_offset, &header.encode()).map_err(failed)?;
    file.flush().map_err(failed)
}
