//! Entries of the parent locator table in the dynamic disk header.

use crate::fields::{bytes_at, put, u32_at, u64_at};

/// Entry of the parent locator table in the dynamic disk header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocatorEntry {
    /// Platform Code; zeros if the entry is unused.
    pub platform: [u8; 4],
    /// Platform Data Space: number of sectors, although some programs store bytes. Not used.
    pub data_space: u32,
    /// Platform Data Length in bytes.
    pub data_length: u32,
    /// Platform Data Offset in the file, in bytes.
    pub data_offset: u64,
}

impl LocatorEntry {
    pub(crate) const BYTES: usize = 24;

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self {
            platform: bytes_at(bytes, 0),
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
