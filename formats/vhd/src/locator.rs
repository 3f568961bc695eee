//! Parent locators of differencing disks (VHD specification, "Dynamic Disk Header Format").

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::fields::{bytes_at, to_index};
use crate::header::{DynamicHeader, locator_offset};

/// Maximum length of a parent path in bytes: the longest Windows path in UTF-16.
pub const LOCATOR_BYTES_MAX: u32 = 65536;

const WINDOWS_RELATIVE: [u8; 4] = *b"W2ru";
const WINDOWS_ABSOLUTE: [u8; 4] = *b"W2ku";
const FILE_URL: [u8; 4] = *b"MacX";

/// Path of a parent in one platform's notation. Untrusted: the caller decides which paths to
/// follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentLocator {
    /// W2ru: Windows path relative to the child.
    WindowsRelative(String),
    /// W2ku: absolute Windows path.
    WindowsAbsolute(String),
    /// MacX: `file` URL in UTF-8 (RFC 2396).
    FileUrl(String),
    /// Locator of another platform, not decoded.
    Other {
        /// Platform Code of the locator.
        platform: [u8; 4],
        /// Content of the locator, not decoded.
        bytes: Vec<u8>,
    },
}

impl ParentLocator {
    /// Returns the platform code and the encoded path.
    pub(crate) fn encode(&self) -> ([u8; 4], Vec<u8>) {
        let utf16 = |path: &str| path.encode_utf16().flat_map(u16::to_le_bytes).collect();
        match self {
            Self::WindowsRelative(path) => (WINDOWS_RELATIVE, utf16(path)),
            Self::WindowsAbsolute(path) => (WINDOWS_ABSOLUTE, utf16(path)),
            Self::FileUrl(url) => (FILE_URL, url.as_bytes().to_vec()),
            Self::Other { platform, bytes } => (*platform, bytes.clone()),
        }
    }

    fn decode(platform: [u8; 4], bytes: Vec<u8>) -> Self {
        let utf16 = || {
            let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes(bytes_at(unit, 0)));
            let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
            String::from_utf16_lossy(&units)
        };
        match platform {
            WINDOWS_RELATIVE => Self::WindowsRelative(utf16()),
            WINDOWS_ABSOLUTE => Self::WindowsAbsolute(utf16()),
            FILE_URL => Self::FileUrl(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Self::Other { platform, bytes },
        }
    }
}

/// Information that a differencing disk records about its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Unique Id of the parent, which identifies it.
    pub unique_id: [u8; 16],
    /// Modification time of the parent at the creation of the child, in seconds since 2000-01-01
    /// UTC.
    pub modified_s_since_2000: u32,
    /// File name of the parent.
    pub name: String,
    /// Paths of the parent in the order of the header's table.
    pub locators: Vec<ParentLocator>,
}

impl Parent {
    /// Checks that a disk with this Unique Id and modification time is the parent and unmodified.
    /// Copying a file may change its modification time, so callers may treat
    /// [`ParentMismatch::Modified`] as a warning.
    ///
    /// # Errors
    ///
    /// The Unique Id or the modification time differs.
    pub fn check(&self, unique_id: [u8; 16], modified: u32) -> Result<(), ParentMismatch> {
        if unique_id != self.unique_id {
            return Err(ParentMismatch::UniqueId);
        }
        if modified != self.modified_s_since_2000 {
            return Err(ParentMismatch::Modified {
                expected: self.modified_s_since_2000,
                found: modified,
            });
        }
        Ok(())
    }
}

/// Difference between a disk and the parent that the child records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParentMismatch {
    /// The Unique Id differs: the disk is not the parent.
    #[error("the parent's unique id differs from the one in the child; find the right parent")]
    UniqueId,
    /// The modification time differs: if the parent's contents changed, the child is corrupt.
    #[error(
        "the parent was modified at {found} s, the child expects {expected} s (since 2000); \
         harmless if the parent was only copied, but the child is damaged if it was written to"
    )]
    Modified {
        /// Modification time recorded in the child.
        expected: u32,
        /// Modification time of the disk found.
        found: u32,
    },
}

/// Reads the parent information of a differencing disk whose header is at `header_offset` of the
/// file.
///
/// # Errors
///
/// A locator is invalid or the file cannot be read.
pub(crate) fn read_parent(
    file: &dyn ImageFile,
    header: &DynamicHeader,
    header_offset: u64,
) -> Result<Parent, ImageError> {
    let mut locators = Vec::new();
    for (nth, entry) in header.locators.iter().enumerate().filter(|(_, entry)| entry.is_used()) {
        let entry_offset = header_offset.saturating_add(locator_offset(nth) as u64);
        if entry.data_length > LOCATOR_BYTES_MAX {
            let fault = ImageFault::InvalidValue {
                value: entry.data_length.into(),
                allowed: "up to 65536 bytes",
            };
            return Err(ImageError::new("Platform Data Length", entry_offset + 8, fault));
        }
        let mut bytes = vec![0; to_index(entry.data_length.into())];
        file.read_at(entry.data_offset, &mut bytes)
            .map_err(|error| ImageError::new("Platform Data Offset", entry_offset + 16, error))?;
        locators.push(ParentLocator::decode(entry.platform, bytes));
    }
    Ok(Parent {
        unique_id: header.parent_unique_id,
        modified_s_since_2000: header.parent_modified_s_since_2000,
        name: header.parent_name.clone(),
        locators,
    })
}
