//! Parent locator of differencing images ([MS-VHDX] 2.6.2.6).

use std::collections::BTreeMap;

use suimon_image::{ImageError, ImageFault};

use crate::Guid;
use crate::fields::{bytes_at, put, u16_at, u32_at};

const VHDX_TYPE: Guid = Guid::new(0xb04a_efb7_d19e_4a81_b789_25b8_e944_5913);
const HEADER_LEN: usize = 20;
const ENTRY_LEN: usize = 12;
const FIELD: &str = "ParentLocator";

const LINKAGE: &str = "parent_linkage";
const LINKAGE2: &str = "parent_linkage2";
const RELATIVE_PATH: &str = "relative_path";
const VOLUME_PATH: &str = "volume_path";
const ABSOLUTE_WIN32_PATH: &str = "absolute_win32_path";

/// Key-value pairs that describe the parent of an image.
///
/// Untrusted: paths may have been written by another system. The caller decides which paths to
/// follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentLocator {
    entries: BTreeMap<String, String>,
}

impl ParentLocator {
    /// Creates a locator without paths. `linkage` is the DataWriteGuid of the parent.
    #[must_use]
    pub fn new(linkage: Guid) -> Self {
        Self { entries: [(LINKAGE.to_owned(), format!("{{{linkage}}}"))].into() }
    }

    /// Adds a path relative to the child's folder, in Windows syntax: `.\parent.vhdx`.
    #[must_use]
    pub fn with_relative_path(self, path: &str) -> Self {
        self.with(RELATIVE_PATH, path)
    }

    /// Adds a path with a volume GUID: `\\?\Volume{…}\parent.vhdx`.
    #[must_use]
    pub fn with_volume_path(self, path: &str) -> Self {
        self.with(VOLUME_PATH, path)
    }

    /// Adds an absolute path: `\\?\c:\parent.vhdx`.
    #[must_use]
    pub fn with_absolute_win32_path(self, path: &str) -> Self {
        self.with(ABSOLUTE_WIN32_PATH, path)
    }

    fn with(mut self, key: &str, value: &str) -> Self {
        self.entries.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Returns the value of a key; `None` if the locator does not have the key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(String::as_str)
    }

    /// Returns the DataWriteGuid that the parent must have; `None` if the entry is missing or
    /// malformed.
    #[must_use]
    pub fn linkage(&self) -> Option<Guid> {
        self.value(LINKAGE)?.parse().ok()
    }

    /// Returns true if an image with this DataWriteGuid is the parent, with the contents on which
    /// the child is based. Otherwise the parent has been modified and the child is invalid.
    #[must_use]
    pub fn is_linked_to(&self, data_write: Guid) -> bool {
        let second = self.value(LINKAGE2).and_then(|text| text.parse().ok());
        self.linkage() == Some(data_write) || second == Some(data_write)
    }

    /// Returns the path relative to the child's folder, in Windows syntax, or `None`.
    #[must_use]
    pub fn relative_path(&self) -> Option<&str> {
        self.value(RELATIVE_PATH)
    }

    /// Returns the path with a volume GUID, or `None`.
    #[must_use]
    pub fn volume_path(&self) -> Option<&str> {
        self.value(VOLUME_PATH)
    }

    /// Returns the absolute path in Windows syntax, or `None`.
    #[must_use]
    pub fn absolute_win32_path(&self) -> Option<&str> {
        self.value(ABSOLUTE_WIN32_PATH)
    }

    /// Decodes a locator item that was read at `offset` of the file. Allocates at most twice the
    /// item's length.
    ///
    /// # Errors
    ///
    /// The item is malformed.
    pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Self, ImageError> {
        let kind = Guid::from_stored(bytes_at(bytes, 0));
        if kind != VHDX_TYPE {
            let fault = ImageFault::Unsupported { feature: format!("parent locator type {kind}") };
            return Err(ImageError::new("ParentLocator.LocatorType", offset, fault));
        }
        let count = usize::from(u16_at(bytes, 18));
        let table = bytes.get(HEADER_LEN..).unwrap_or_default();
        if table.len() / ENTRY_LEN < count {
            let allowed = "a length within the item";
            let fault = ImageFault::InvalidValue { value: count as u64, allowed };
            return Err(ImageError::new("ParentLocator.KeyValueCount", offset + 18, fault));
        }
        // Several strings may refer to the same bytes of the item. The budget bounds the memory of
        // their copies.
        let mut budget = bytes.len();
        let mut entries = BTreeMap::new();
        for (index, entry) in table.chunks_exact(ENTRY_LEN).take(count).enumerate() {
            let entry_offset = offset + (HEADER_LEN + ENTRY_LEN * index) as u64;
            let mut text = |field_offset: usize, len_at: usize| {
                let (start, len) =
                    (u32_at(entry, field_offset) as usize, u16_at(entry, len_at).into());
                let text = bytes.get(start..start.saturating_add(len));
                let text = text.filter(|text| text.len() % 2 == 0 && text.len() <= budget);
                budget = budget.saturating_sub(len);
                let units = text.map(|text| text.chunks_exact(2).map(|unit| u16_at(unit, 0)));
                units.and_then(|units| String::from_utf16(&units.collect::<Vec<_>>()).ok())
            };
            let invalid = |value: usize, allowed| {
                let fault = ImageFault::InvalidValue { value: value as u64, allowed };
                ImageError::new("ParentLocator.Entry", entry_offset, fault)
            };
            let allowed = "a key and a value of UTF-16 within the item";
            let (Some(key), Some(value)) = (text(0, 8), text(4, 10)) else {
                return Err(invalid(index, allowed));
            };
            if entries.insert(key, value).is_some() {
                return Err(invalid(index, "a key that no other entry has"));
            }
        }
        let locator = Self { entries };
        if locator.linkage().is_none() {
            return Err(ImageError::new("parent_linkage", offset, ImageFault::MissingStructure));
        }
        Ok(locator)
    }

    /// Encodes the locator as a metadata item.
    ///
    /// # Errors
    ///
    /// A path exceeds the format's limit.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, ImageError> {
        let mut bytes = vec![0; HEADER_LEN + ENTRY_LEN * self.entries.len()];
        put(&mut bytes, 0, &VHDX_TYPE.to_stored_bytes());
        let count = u16::try_from(self.entries.len()).unwrap_or(u16::MAX);
        put(&mut bytes, 18, &count.to_le_bytes());
        for ((key, value), offset) in self.entries.iter().zip((HEADER_LEN..).step_by(ENTRY_LEN)) {
            for (text, field_offset, len_at) in
                [(key, offset, offset + 8), (value, offset + 4, offset + 10)]
            {
                let start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
                let len = bytes.len() - start as usize;
                let len = u16::try_from(len).map_err(|_| {
                    let allowed = "at most 65534 bytes of UTF-16";
                    let fault = ImageFault::InvalidValue { value: len as u64, allowed };
                    ImageError::new(FIELD, u64::from(start), fault)
                })?;
                put(&mut bytes, field_offset, &start.to_le_bytes());
                put(&mut bytes, len_at, &len.to_le_bytes());
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: Guid = Guid::new(0x1234);

    #[test]
    fn locator_round_trips_and_checks_linkage() {
        let locator = ParentLocator::new(PARENT)
            .with_relative_path(r".\väter\p.vhdx")
            .with_volume_path(r"\\?\Volume{26a21bda-a627-11d7-9931-806e6f6e6963}\p.vhdx")
            .with_absolute_win32_path(r"\\?\c:\p.vhdx");
        let read = ParentLocator::parse(&locator.encode().unwrap(), 0).unwrap();
        assert_eq!(read, locator);
        assert_eq!(read.relative_path(), Some(r".\väter\p.vhdx"));
        assert_eq!(read.absolute_win32_path(), Some(r"\\?\c:\p.vhdx"));
        assert!(read.volume_path().unwrap().ends_with("p.vhdx"));
        assert!(read.is_linked_to(PARENT));
        assert!(!read.is_linked_to(Guid::new(0x1235)));
        let second = locator.with(LINKAGE2, &Guid::new(0x1235).to_string());
        assert!(second.is_linked_to(Guid::new(0x1235)));
    }

    #[test]
    fn invalid_locators_return_the_entry_offset() {
        let encoded = ParentLocator::new(PARENT).with_relative_path("p").encode().unwrap();
        let changed = |position: usize, byte: u8| {
            let mut bytes = encoded.clone();
            bytes[position] = byte;
            ParentLocator::parse(&bytes, 1000).unwrap_err()
        };
        for (position, byte, offset, field) in [
            (0, 0, 1000, "ParentLocator.LocatorType"),
            (19, 1, 1018, "ParentLocator.KeyValueCount"),
            (18, 1 + 2, 1000 + 20 + 24, "ParentLocator.Entry"),
            (22, 9, 1020, "ParentLocator.Entry"),
            (28, 3, 1020, "ParentLocator.Entry"),
            (18, 0, 1000, "parent_linkage"),
        ] {
            let error = changed(position, byte);
            assert_eq!((error.offset, error.field), (offset, field), "{position}: {error}");
        }
        let too_long = ParentLocator::new(PARENT).with_relative_path(&"x".repeat(1 << 16));
        assert!(too_long.encode().is_err());
    }
}
