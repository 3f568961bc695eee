//! Encoding of one metadata change of an image as an entry of a redo record.

use suimon_image::{MetadataChange, NewContent};

/// Size of an entry in bytes. It divides the page size, because a process that is killed during a
/// write has written complete pages only.
pub(crate) const ENTRY_BYTES: usize = 64;
/// Offset of an entry's checksum in bytes: CRC-32C of all preceding bytes of the entry. An
/// incomplete or damaged entry has an invalid checksum.
const CHECKSUM_AT: usize = ENTRY_BYTES - 4;
/// Maximum length in bytes of a range that one entry fills with a byte: the size of the sector
/// bitmap of the largest block of any format (VHD: 2 GB).
const FILL_MAX: u32 = 1 << 20;

const KIND_ENTRY: u32 = 1;
/// Kind of an entry that fills a range; its lowest 8 bits are replaced with the fill byte.
const KIND_FILL: u32 = 0x100;

/// Metadata change, its number in the record, and the minimum length of the image file in bytes
/// that it requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) file_len: u64,
    pub(crate) change: MetadataChange,
}

impl Entry {
    pub(crate) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let (kind, before, after) = match self.change.content {
            NewContent::Entry { before, after } => (KIND_ENTRY, before, after),
            NewContent::Fill(byte) => (KIND_FILL | u32::from(byte), [0; 8], [0; 8]),
        };
        let fields: [&[u8]; 7] = [
            &self.number.to_le_bytes(),
            &self.file_len.to_le_bytes(),
            &self.change.offset.to_le_bytes(),
            &self.change.len.to_le_bytes(),
            &kind.to_le_bytes(),
            &before,
            &after,
        ];
        let mut bytes = [0; ENTRY_BYTES];
        let encoded = fields.into_iter().flatten();
        bytes.iter_mut().zip(encoded).for_each(|(to, from)| *to = *from);
        let checksum = checksum(&bytes).to_le_bytes();
        bytes.iter_mut().skip(CHECKSUM_AT).zip(checksum).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Returns the number of an entry whose checksum is valid, and whose other fields
    /// [`Entry::decode`] may refuse. Returns `None` for all other bytes.
    pub(crate) fn number_of(bytes: &[u8]) -> Option<u64> {
        let entry: &[u8; ENTRY_BYTES] = bytes.first_chunk()?;
        let stored = entry.get(CHECKSUM_AT..)?.first_chunk()?;
        let is_valid = u32::from_le_bytes(*stored) == checksum(entry);
        is_valid.then_some(u64::from_le_bytes(*entry.first_chunk()?))
    }

    /// Decodes the first [`ENTRY_BYTES`] bytes. Returns `None` if there are fewer, the checksum
    /// differs, or a field is invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |offset: usize| Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?));
        let u32_at = |offset: usize| Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?));
        let eight = |offset: usize| bytes.get(offset..)?.first_chunk().copied();
        let entry: &[u8; ENTRY_BYTES] = bytes.first_chunk()?;
        if u32_at(CHECKSUM_AT)? != checksum(entry) {
            return None;
        }
        let (len, kind) = (u32_at(24)?, u32_at(28)?);
        let content = match kind {
            KIND_ENTRY if matches!(len, 4 | 8) => {
                NewContent::Entry { before: eight(32)?, after: eight(40)? }
            }
            _ if kind & !0xff == KIND_FILL && (1..=FILL_MAX).contains(&len) => {
                NewContent::Fill((kind & 0xff) as u8)
            }
            _ => return None,
        };
        let change = MetadataChange { offset: u64_at(16)?, len, content };
        Some(Self { number: u64_at(0)?, file_len: u64_at(8)?, change })
    }
}

fn checksum(bytes: &[u8; ENTRY_BYTES]) -> u32 {
    crc32c::crc32c(bytes.get(..CHECKSUM_AT).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_image::ByteRange;

    #[test]
    fn an_entry_is_read_as_it_was_written_and_others_are_none() {
        for change in [
            MetadataChange::entry(512, [1, 2, 3, 4], [5, 6, 7, 8]),
            MetadataChange::entry(u64::MAX, [9; 8], [0; 8]),
            MetadataChange::fill(ByteRange::new(7, 4096).unwrap(), 0xff),
        ] {
            let entry = Entry { number: 77, file_len: 1 << 40, change };
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
            for index in 0..ENTRY_BYTES {
                let mut bytes = entry.encode();
                bytes[index] ^= 0x55;
                assert_eq!(Entry::decode(&bytes), None, "{index}");
            }
            assert_eq!(Entry::decode(&entry.encode()[..ENTRY_BYTES - 1]), None);
        }
        assert_eq!(Entry::decode(&[0; ENTRY_BYTES]), None);
    }
}
