//! Parent locators: where a differencing disk says that its parent is.

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::fields::{field, index, put, u32_at, u64_at};
use crate::header::{DynamicHeader, locator_at};

/// Bytes of a parent's path that are read: the longest of Windows, in UTF-16.
pub const LOCATOR_BYTES_MAX: u32 = 65536;

const WINDOWS_RELATIVE: [u8; 4] = *b"W2ru";
const WINDOWS_ABSOLUTE: [u8; 4] = *b"W2ku";
const FILE_URL: [u8; 4] = *b"MacX";

/// An entry of the header's locator table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocatorEntry {
    /// Platform Code; zeros if the entry is not used.
    pub platform: [u8; 4],
    /// Platform Data Space: sectors, though some write bytes. It is not relied on.
    pub data_space: u32,
    /// Platform Data Length, in bytes.
    pub data_length: u32,
    /// Platform Data Offset, in the file.
    pub data_offset: u64,
}

impl LocatorEntry {
    pub(crate) const BYTES: usize = 24;

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self {
            platform: field(bytes, 0),
            data_space: u32_at(bytes, 4),
            data_length: u32_at(bytes, 8),
            data_offset: u64_at(bytes, 16),
        }
    }

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.platform);
        put(&mut bytes, 4, &self.data_space.to_be_bytes());
        put(&mut bytes, 8, &self.data_length.to_be_bytes());
        put(&mut bytes, 16, &self.data_offset.to_be_bytes());
        bytes
    }

    pub(crate) fn is_used(&self) -> bool {
        self.platform != [0; 4] && self.data_length > 0
    }
}

/// Where a parent is, as one platform writes it. Who opens files decides which of them to
/// trust: an image may come from anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentLocator {
    /// W2ru: a path of Windows, relative to the child's.
    WindowsRelative(String),
    /// W2ku: an absolute path of Windows.
    WindowsAbsolute(String),
    /// MacX: a file URL.
    FileUrl(String),
    /// Anything else, as it is.
    Other {
        /// Platform Code.
        platform: [u8; 4],
        /// What is there.
        bytes: Vec<u8>,
    },
}

impl ParentLocator {
    /// The platform's code, and the bytes that are written.
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
            let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes(field(unit, 0)));
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

/// What a differencing disk says of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The parent's unique id. A parent with another one is not the parent.
    pub unique_id: [u8; 16],
    /// When the parent was last changed, as the child's creator saw it: seconds since the
    /// first of January 2000, UTC.
    pub modified: u32,
    /// The parent's file name.
    pub name: String,
    /// Where it is.
    pub locators: Vec<ParentLocator>,
}

impl Parent {
    /// Whether a disk is this parent, unchanged. Copying a file may have changed its time,
    /// so a caller may choose to only warn of [`ParentMismatch::Modified`].
    ///
    /// # Errors
    /// It is another disk, or was changed since the child was made.
    pub fn check(&self, unique_id: [u8; 16], modified: u32) -> Result<(), ParentMismatch> {
        if unique_id != self.unique_id {
            return Err(ParentMismatch::UniqueId);
        }
        if modified != self.modified {
            return Err(ParentMismatch::Modified { expected: self.modified, found: modified });
        }
        Ok(())
    }
}

/// Why a disk is not the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParentMismatch {
    /// It is another disk.
    #[error("the parent's unique id is not the one that the child names: find the right parent")]
    UniqueId,
    /// It was changed since the child was made: the child's content may be nonsense.
    #[error(
        "the parent was modified at {found} s, the child expects {expected} s (since 2000): if \
         it was only copied this is harmless, if it was written to the child is damaged"
    )]
    Modified {
        /// As the child says.
        expected: u32,
        /// As found.
        found: u32,
    },
}

/// Reads the locators of a differencing disk whose header is at `header_offset`.
pub(crate) fn read(
    file: &dyn ImageFile,
    header: &DynamicHeader,
    header_offset: u64,
) -> Result<Parent, ImageError> {
    let mut locators = Vec::new();
    for (nth, entry) in header.locators.iter().enumerate().filter(|(_, entry)| entry.is_used()) {
        let at = header_offset.saturating_add(locator_at(nth) as u64);
        if entry.data_length > LOCATOR_BYTES_MAX {
            let fault =
                ImageFault::Value { value: entry.data_length.into(), allowed: "up to 65536 bytes" };
            return Err(ImageError::new("Platform Data Length", at + 8, fault));
        }
        let mut bytes = vec![0; index(entry.data_length.into())];
        file.read_at(entry.data_offset, &mut bytes)
            .map_err(|error| ImageError::new("Platform Data Offset", at + 16, error))?;
        locators.push(ParentLocator::decode(entry.platform, bytes));
    }
    Ok(Parent {
        unique_id: header.parent_unique_id,
        modified: header.parent_modified,
        name: header.parent_name.clone(),
        locators,
    })
}
