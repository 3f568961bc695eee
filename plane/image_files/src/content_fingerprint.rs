//! Digest of a new image's content, by which a file is recognized to be unchanged since its
//! creation.

use suimon_image::{ByteRange, FileError, ImageError, ImageFault};
use suimon_ports::{Allocation, DiskFile};

use super::format::DiskFormat;

/// Unit of the content, in bytes.
const PAGE: u64 = PAGE_LEN as u64;
const PAGE_LEN: usize = 4096;
const ZEROS: [u8; PAGE_LEN] = [0; PAGE_LEN];
/// Length of one read, in bytes.
const READ: u64 = 1 << 20;
/// Maximum number of bytes that are read from a file.
const READ_MAX: u64 = 64 << 20;
/// Maximum number of data and hole extents of a file that are examined.
const EXTENTS_MAX: usize = 4096;
/// Initial value and factor of the digest, 64-bit FNV-1a.
const DIGEST_INITIAL: u64 = 0xcbf2_9ce4_8422_2325;
const DIGEST_FACTOR: u64 = 0x100_0000_01b3;

/// Summary of all bytes of an image that are not zero. Holes, unwritten extents and allocated zeros
/// are equal. For a VHDX, headers and log are not included, because opening the image for writing
/// changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentFingerprint {
    /// Number of pages of 4096 bytes that are not all zeros.
    pub nonzero_pages: u64,
    /// Digest of offsets and contents of these pages.
    pub digest: u64,
    /// True for an image of format VHDX.
    pub is_vhdx: bool,
}

/// Result of reading the content of a file, up to a maximum.
enum Scan {
    /// Pages that are not all zeros, and their digest.
    Complete { pages: u64, digest: u64 },
    /// More pages than the maximum are not all zeros.
    MorePages,
    /// More data would have to be read than is permitted.
    TooLarge,
}

impl ContentFingerprint {
    /// Computes the mark of a new image from its file; `None` if the file cannot be read, or
    /// exceeds the limits of this module. The file must not have cached writes that can still fail.
    /// Blocks on the file system.
    #[must_use]
    pub fn compute(file: &dyn DiskFile, format: DiskFormat) -> Option<Self> {
        let is_vhdx = matches!(format, DiskFormat::Vhdx);
        let omitted = omitted_ranges(file, is_vhdx).ok()??;
        match scan(file, &omitted, u64::MAX).ok()? {
            Scan::Complete { pages, digest } => {
                Some(Self { nonzero_pages: pages, digest, is_vhdx })
            }
            Scan::MorePages | Scan::TooLarge => None,
        }
    }

    /// Returns true if the file still has this content, even if a VHDX was opened for writing
    /// since; `None` if that cannot be determined. Blocks on the file system, and reads 64 MiB of
    /// data at most.
    #[must_use]
    pub fn matches(&self, file: &dyn DiskFile) -> Option<bool> {
        let omitted = match omitted_ranges(file, self.is_vhdx) {
            Ok(Some(ranges)) => ranges,
            // The log has changes, or the file is not a valid image of the format.
            Ok(None) => return Some(false),
            Err(ImageError { fault: ImageFault::File(_), .. }) => return None,
            Err(_) => return Some(false),
        };
        match scan(file, &omitted, self.nonzero_pages).ok()? {
            Scan::Complete { pages, digest } => {
                Some((pages, digest) == (self.nonzero_pages, self.digest))
            }
            Scan::MorePages => Some(false),
            Scan::TooLarge => None,
        }
    }
}

/// Returns the file ranges that are not part of the content; `None` if the log of a VHDX has
/// changes.
fn omitted_ranges(
    file: &dyn DiskFile,
    is_vhdx: bool,
) -> Result<Option<Vec<ByteRange>>, ImageError> {
    if !is_vhdx {
        return Ok(Some(Vec::new()));
    }
    Ok(suimon_vhdx::ranges_changed_by_opening(file.as_image_file())?.map(Vec::from))
}

/// Digest of pages, in ascending order.
struct Digest {
    pages: u64,
    value: u64,
}

impl Digest {
    fn add(&mut self, offset: u64, page: &[u8]) {
        self.pages += 1;
        for byte in offset.to_le_bytes().iter().chain(page) {
            self.value = (self.value ^ u64::from(*byte)).wrapping_mul(DIGEST_FACTOR);
        }
    }
}

/// Reads the data extents of a file, except the `omitted` ranges. Stops when more than `pages_max`
/// pages are not all zeros.
fn scan(file: &dyn DiskFile, omitted: &[ByteRange], pages_max: u64) -> Result<Scan, FileError> {
    let len = file.len()?;
    let mut digest = Digest { pages: 0, value: DIGEST_INITIAL };
    let (mut offset, mut read) = (0, 0);
    let mut bytes = Vec::new();
    for _ in 0..EXTENTS_MAX {
        let rest = ByteRange::new(offset, len - offset).filter(|rest| !rest.is_empty());
        let Some(rest) = rest else {
            let Digest { pages, value } = digest;
            return Ok(Scan::Complete { pages, digest: value });
        };
        let extent = file.allocation(rest)?;
        let end = offset.saturating_add(extent.len);
        let hole_end = if end >= len { len } else { end - end % PAGE };
        if extent.allocation == Allocation::Hole && hole_end > offset {
            offset = hole_end;
            continue;
        }
        // Whole pages are read, so that the digest does not depend on the extents.
        let end = end.max(offset + 1).div_ceil(PAGE).saturating_mul(PAGE).min(len);
        while offset < end {
            let piece = (end - offset).min(READ);
            read += piece;
            if read > READ_MAX {
                return Ok(Scan::TooLarge);
            }
            bytes.resize(usize::try_from(piece).unwrap_or(0), 0);
            file.read_at(offset, &mut bytes)?;
            for page in bytes.chunks(PAGE_LEN) {
                let is_omitted =
                    |range: &ByteRange| range.offset() <= offset && offset < range.end();
                let is_zero = ZEROS.get(..page.len()) == Some(page);
                if !is_zero && !omitted.iter().any(is_omitted) {
                    digest.add(offset, page);
                }
                offset += page.len() as u64;
            }
            if digest.pages > pages_max {
                return Ok(Scan::MorePages);
            }
        }
    }
    Ok(Scan::TooLarge)
}

#[cfg(test)]
mod tests;
