//! Search for the footer: at the end of the file, otherwise its copy at the start of the file.

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::fields::SECTOR_BYTES;
use crate::footer::{DiskType, FOOTER_BYTES, Footer};

/// Length in bytes of footers written by versions before Virtual PC 2004.
const OLD_FOOTER: u64 = FOOTER_BYTES - 1;

/// Footer found in a file, with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct FoundFooter {
    pub(crate) footer: Footer,
    pub(crate) bytes: [u8; 512],
    /// Offset of the footer in the file, in bytes.
    pub(crate) offset: u64,
}

/// Footer of a file and its copy.
#[derive(Debug)]
pub(crate) struct Footers {
    /// Footer that determines the disk's properties: the one at the end of the file or the copy.
    pub(crate) selected: FoundFooter,
    /// Error of the footer that is not in `found`; `None` if it is valid, and for fixed disks,
    /// which have no copy.
    pub(crate) other_error: Option<ImageError>,
    /// True if `found` is the footer at the end of the file.
    pub(crate) is_at_end: bool,
    /// Maximum end of payload and structures in the file, in bytes.
    pub(crate) payload_end_max: u64,
    /// Offset, in bytes, at which the footer should be.
    pub(crate) correct_offset: u64,
    /// True if the footer at the end has 512 bytes and is aligned to a sector.
    pub(crate) is_complete: bool,
}

/// Returns the footers of a file.
///
/// The last bytes of a file are never guest data: the payload of a fixed disk ends before the
/// footer, and growing images write the new footer first. The first sector of a fixed disk, in
/// contrast, is guest data. The copy at the start is therefore used only if the footer at the end
/// is invalid.
///
/// # Errors
///
/// The file cannot be read, or neither footer is valid.
pub(crate) fn find_footers(file: &dyn ImageFile) -> Result<Footers, ImageError> {
    let len = file.len().map_err(|error| ImageError::new("footer", 0, error))?;
    let end = at_end(file, len);
    let start = read(file, 0, FOOTER_BYTES);
    match (end, start) {
        (Ok(found), start) => {
            let other = match start {
                _ if found.footer.disk_type == DiskType::Fixed => None,
                Ok(start) if start.bytes == found.bytes => None,
                Ok(_) => Some(ImageError::new(
                    "footer copy",
                    0,
                    ImageFault::Unsupported {
                        feature: "the copy differs from the footer".to_owned(),
                    },
                )),
                Err(error) => Some(error),
            };
            let (limit, is_whole) = (found.offset, len - found.offset == FOOTER_BYTES);
            let is_whole = is_whole && limit % SECTOR_BYTES == 0;
            let correct_offset = limit.next_multiple_of(SECTOR_BYTES);
            Ok(Footers {
                selected: found,
                other_error: other,
                is_at_end: true,
                payload_end_max: limit,
                correct_offset,
                is_complete: is_whole,
            })
        }
        (Err(error), Ok(found)) if found.footer.disk_type != DiskType::Fixed => Ok(Footers {
            selected: found,
            other_error: Some(error),
            is_at_end: false,
            payload_end_max: len,
            correct_offset: len.checked_next_multiple_of(SECTOR_BYTES).unwrap_or(len),
            is_complete: false,
        }),
        (Err(end), Err(start)) if matches!(end.fault, ImageFault::BadMagic { .. }) => {
            Err(if matches!(start.fault, ImageFault::BadMagic { .. }) { end } else { start })
        }
        (Err(end), _) => Err(end),
    }
}

fn at_end(file: &dyn ImageFile, len: u64) -> Result<FoundFooter, ImageError> {
    let short = || ImageError::new("footer", 0, ImageFault::Truncated { file_len: len });
    let result = read(file, len.checked_sub(FOOTER_BYTES).ok_or_else(short)?, FOOTER_BYTES);
    match result {
        Err(ImageError { fault: ImageFault::BadMagic { .. }, .. }) => {
            read(file, len - OLD_FOOTER, OLD_FOOTER).or(result)
        }
        result => result,
    }
}

fn read(file: &dyn ImageFile, offset: u64, len: u64) -> Result<FoundFooter, ImageError> {
    let mut bytes = [0; 512];
    let target = bytes.get_mut(..crate::fields::to_index(len)).unwrap_or_default();
    file.read_at(offset, target).map_err(|error| ImageError::new("footer", offset, error))?;
    Ok(FoundFooter { footer: Footer::parse(&bytes, offset)?, bytes, offset })
}
