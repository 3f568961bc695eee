//! Repair of redundant structures, and change of the recorded parent.

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile, RedoChanges};

use crate::check::exceeds_reserve;
use crate::fields::put;
use crate::header::{Headers, restore_identifier};
use crate::metadata::find_parent_locator_slot;
use crate::open::{Structures, image_error_from};
use crate::region::restore_copies;
use crate::replayed_view::{LogOverlay, ReplayedView};
use crate::space::SpaceAllocator;
use crate::{Guid, ParentLocator, Vhdx, WriteGuids};

/// Repair that was performed on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAction {
    /// The signature of the file type identifier was restored.
    Identifier,
    /// The damaged header was restored from the other one.
    Header,
    /// A copy of the region table was restored from the other one.
    RegionTable {
        /// Offset of the copy in the file, in bytes.
        offset: u64,
    },
    /// The log was replayed and the image marked as closed.
    LogReplayed {
        /// Number of log entries replayed.
        entries: usize,
    },
    /// Unreferenced space at the end of the file was released.
    SpaceReleased {
        /// Number of bytes by which the file was shortened.
        bytes: u64,
    },
}

/// Result of [`repair`]: performed repairs and remaining damage.
#[derive(Debug, Default)]
pub struct RepairResult {
    /// Repairs in the order in which they were carried out.
    pub performed_repairs: Vec<RepairAction>,
    /// Damage that has no redundant copy; `None` if there is none. It prevented the replay of the
    /// log and the release of space.
    pub remaining_damage: Option<ImageError>,
}

/// Repairs structures with a redundant copy: file type identifier, headers and region tables;
/// replays the log of an image that was not closed; and releases unreferenced space at the end of
/// the file. Payload is not written, and links of children stay valid: `guids.data_write` is not
/// used. A consistent file is not written at all.
///
/// # Errors
///
/// No header or no region table is valid, or the file cannot be written.
pub fn repair(file: &dyn ImageFile, guids: &WriteGuids) -> Result<RepairResult, ImageError> {
    let mut repaired = RepairResult::default();
    let len = file.len().map_err(image_error_from)?;
    if restore_identifier(file, len)? {
        repaired.performed_repairs.push(RepairAction::Identifier);
    }
    let mut headers = Headers::read(file, len)?;
    if headers.other_fault.is_some() {
        headers.update(file, |header| header.file_write = guids.file_write)?;
        repaired.performed_repairs.push(RepairAction::Header);
    }
    for offset in restore_copies(file, len)? {
        repaired.performed_repairs.push(RepairAction::RegionTable { offset });
    }
    let read = match Structures::read(file, false, &RedoChanges::default(), &mut Err) {
        Ok(read) => read,
        Err(error) => {
            repaired.remaining_damage = Some(error);
            return Ok(repaired);
        }
    };
    let is_open = !headers.current.log_guid.is_nil();
    let end =
        SpaceAllocator::new(&read.occupancy, read.metadata.block_bytes, read.geometry.has_parent)
            .required_file_bytes();
    let exceeds = exceeds_reserve(len.saturating_sub(end), &read.metadata);
    if !is_open && !exceeds {
        return Ok(repaired);
    }
    let guids = WriteGuids { data_write: headers.current.data_write, ..*guids };
    Vhdx::open(file, &guids)?.close(file)?;
    if is_open {
        repaired.performed_repairs.push(RepairAction::LogReplayed { entries: read.log_entries });
    }
    if exceeds {
        repaired.performed_repairs.push(RepairAction::SpaceReleased { bytes: len - end });
    }
    Ok(repaired)
}

/// Replaces the parent path recorded in a differencing image. Paths in other notations are removed,
/// because they refer to the former location. After a crash, the image has either the old or the
/// new path.
///
/// # Errors
///
/// The image has no parent or was not closed, the path is too long, or the file cannot be written.
pub fn set_parent_path(
    file: &dyn ImageFile,
    linkage: Guid,
    path: &str,
    file_write: Guid,
) -> Result<(), ImageError> {
    let mut read = Structures::read(file, false, &RedoChanges::default(), &mut Err)?;
    if read.metadata.parent.is_none() {
        return Err(ImageError::new("ParentLocator", 0, ImageFault::MissingStructure));
    }
    if !read.headers.current.log_guid.is_nil() {
        let what = "an image that was closed; repair it first".to_owned();
        return Err(ImageError::new(
            "Header.LogGuid",
            0,
            ImageFault::Unsupported { feature: what },
        ));
    }
    let locator = ParentLocator::new(linkage).with_relative_path(path).encode()?;
    let overlay = LogOverlay::default();
    let view = ReplayedView {
        file,
        file_len: read.file_len,
        replayed_len: read.file_len,
        overlay: &overlay,
    };
    let slot = find_parent_locator_slot(&view, read.regions.metadata, locator.len() as u64)?;
    read.headers.update(file, |header| header.file_write = file_write)?;
    // The new record is complete and durable before the table refers to it.
    file.write_at(slot.content.offset(), &locator).map_err(image_error_from)?;
    file.flush().map_err(image_error_from)?;
    let offset = slot.content.offset() - read.regions.metadata.offset();
    let mut entry = [0; 8];
    put(&mut entry, 0, &u32::try_from(offset).unwrap_or(u32::MAX).to_le_bytes());
    put(&mut entry, 4, &u32::try_from(locator.len()).unwrap_or(u32::MAX).to_le_bytes());
    file.write_at(slot.entry_offset, &entry).map_err(image_error_from)?;
    file.flush().map_err(image_error_from)
}

impl Vhdx {
    /// Returns true if the image was not closed: the next writer must replay its log.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.headers.current.log_guid.is_nil()
    }

    /// Returns the file ranges of allocated blocks, in disk order.
    pub fn payload_ranges(&self) -> impl Iterator<Item = ByteRange> {
        let present = self.bat.entries().filter(|entry| entry.is_present());
        present.filter_map(|entry| ByteRange::new(entry.offset(), self.metadata.block_bytes))
    }
}
