//! Finding the footer: at the file's end, else its copy at the beginning.

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::fields::SECTOR;
use crate::footer::{DiskType, FOOTER, Footer};

/// Bytes of a footer before Virtual PC 2004.
const OLD_FOOTER: u64 = FOOTER - 1;

/// A footer, and the bytes it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) footer: Footer,
    pub(crate) bytes: [u8; 512],
    /// Where it is.
    pub(crate) offset: u64,
}

/// What the file says of the disk.
#[derive(Debug)]
pub(crate) struct Footers {
    /// The one that counts.
    pub(crate) found: Found,
    /// What is wrong with the other: the one at the end if the copy counts, else the copy,
    /// which fixed disks do not have.
    pub(crate) other: Option<ImageError>,
    /// Whether the one at the end counts.
    pub(crate) is_at_end: bool,
    /// Where payload and structures must end.
    pub(crate) limit: u64,
    /// Where the footer belongs.
    pub(crate) place: u64,
    /// Whether it is all there, in 512 bytes at a sector of its own.
    pub(crate) is_whole: bool,
}

/// Finds the footer that counts.
///
/// The one at the end is never what a guest wrote: a fixed disk ends before it, and images
/// grow by writing it further out first. The copy at the beginning is a guest's first sector
/// in a fixed disk, so it counts only if there is none at the end.
pub(crate) fn footers(file: &dyn ImageFile) -> Result<Footers, ImageError> {
    let len = file.len().map_err(|error| ImageError::new("footer", 0, error))?;
    let end = at_end(file, len);
    let start = read(file, 0, FOOTER);
    match (end, start) {
        (Ok(found), start) => {
            let other = match start {
                _ if found.footer.disk_type == DiskType::Fixed => None,
                Ok(start) if start.bytes == found.bytes => None,
                Ok(_) => Some(ImageError::new(
                    "footer copy",
                    0,
                    ImageFault::Unsupported { what: "it differs from the footer".to_owned() },
                )),
                Err(error) => Some(error),
            };
            let (limit, is_whole) = (found.offset, len - found.offset == FOOTER);
            let is_whole = is_whole && limit % SECTOR == 0;
            let place = limit.next_multiple_of(SECTOR);
            Ok(Footers { found, other, is_at_end: true, limit, place, is_whole })
        }
        (Err(error), Ok(found)) if found.footer.disk_type != DiskType::Fixed => Ok(Footers {
            found,
            other: Some(error),
            is_at_end: false,
            limit: len,
            place: len.checked_next_multiple_of(SECTOR).unwrap_or(len),
            is_whole: false,
        }),
        (Err(end), Err(start)) if matches!(end.fault, ImageFault::Magic { .. }) => {
            Err(if matches!(start.fault, ImageFault::Magic { .. }) { end } else { start })
        }
        (Err(end), _) => Err(end),
    }
}

fn at_end(file: &dyn ImageFile, len: u64) -> Result<Found, ImageError> {
    let short = || ImageError::new("footer", 0, ImageFault::Short { file_len: len });
    let found = read(file, len.checked_sub(FOOTER).ok_or_else(short)?, FOOTER);
    match found {
        Err(ImageError { fault: ImageFault::Magic { .. }, .. }) => {
            read(file, len - OLD_FOOTER, OLD_FOOTER).or(found)
        }
        found => found,
    }
}

fn read(file: &dyn ImageFile, offset: u64, len: u64) -> Result<Found, ImageError> {
    let mut bytes = [0; 512];
    let there = bytes.get_mut(..crate::fields::index(len)).unwrap_or_default();
    file.read_at(offset, there).map_err(|error| ImageError::new("footer", offset, error))?;
    Ok(Found { footer: Footer::parse(&bytes, offset)?, bytes, offset })
}
