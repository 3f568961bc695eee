//! Header of a redo record; the crate documentation shows its fields.

const MAGIC: [u8; 8] = *b"SuimonRd";
/// Version of the format of header and entries. A change of either one needs another version.
pub(crate) const VERSION: u32 = 1;
/// Size of the header at the start of a record, in bytes. Entries follow it.
pub(crate) const HEADER_BYTES: usize = 128;
/// Offset in bytes of the number of the first entry that is not truncated (u64), followed by its
/// bitwise complement, which detects damage.
pub(crate) const FIRST_AT: u64 = 64;
/// Size of the number and its complement in bytes.
const FIRST_BYTES: usize = 16;
/// Value of [`Header::first_entry`] that marks a record as abandoned. No entry has this number.
pub(crate) const ABANDONED: u64 = u64::MAX;
/// Offset in bytes of [`Header::replayed_id`].
pub(crate) const REPLAYED_ID_AT: u64 = 48;

/// Offset in bytes of the header's CRC-32C.
const CHECKSUM_AT: usize = 88;

/// Header of a record, without magic number, version and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Maximum number of entries of the record.
    pub(crate) capacity: u32,
    /// Id of the boot of the host in which the record was created.
    pub(crate) boot_id: [u8; 16],
    /// Identifier of the image file while it is open for writing; see
    /// [`suimon_image::ImageIdentity`].
    pub(crate) write_id: [u8; 16],
    /// Identifier that applying the record assigns to the image file; see
    /// [`suimon_image::RedoChanges`]. Zeros until the record is loaded for the first time.
    pub(crate) replayed_id: [u8; 16],
    /// Number of the first entry that is not truncated, or [`ABANDONED`].
    pub(crate) first_entry: u64,
    /// Minimum length of the image file in bytes; see [`suimon_image::ImageIdentity`].
    pub(crate) file_len: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let fields: [&[u8]; 8] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &self.capacity.to_le_bytes(),
            &[],
            &self.boot_id,
            &self.write_id,
            &self.replayed_id,
            &[],
        ];
        let tail: [&[u8]; 2] =
            [&encode_first_entry(self.first_entry), &self.file_len.to_le_bytes()];
        let mut bytes = [0; HEADER_BYTES];
        let encoded = fields.into_iter().chain(tail).flatten();
        bytes.iter_mut().zip(encoded).for_each(|(to, from)| *to = *from);
        let checksum = checksum(&bytes).to_le_bytes();
        bytes.iter_mut().skip(CHECKSUM_AT).zip(checksum).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Decodes a header. Returns `None` if the bytes are invalid or of another version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |offset: usize| Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?));
        let u32_at = |offset: usize| Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?));
        let id_at = |offset: usize| bytes.get(offset..)?.first_chunk().copied();
        if bytes.get(..8)? != MAGIC || u32_at(8)? != VERSION {
            return None;
        }
        if u32_at(CHECKSUM_AT)? != checksum(bytes.first_chunk()?) {
            return None;
        }
        let first = u64_at(FIRST_AT as usize)?;
        if bytes.get(FIRST_AT as usize..)?.first_chunk()? != &encode_first_entry(first) {
            return None;
        }
        Some(Self {
            capacity: u32_at(12)?,
            boot_id: id_at(16)?,
            write_id: id_at(32)?,
            replayed_id: id_at(48)?,
            first_entry: first,
            file_len: u64_at(80)?,
        })
    }
}

/// Returns the version of a record that begins with `bytes`; `None` if it is not a record.
pub(crate) fn version(bytes: &[u8]) -> Option<u32> {
    let version = bytes.get(8..)?.first_chunk()?;
    (bytes.get(..8)? == MAGIC).then(|| u32::from_le_bytes(*version))
}

/// Encodes the number of the first entry, followed by its bitwise complement.
pub(crate) fn encode_first_entry(first: u64) -> [u8; FIRST_BYTES] {
    let mut bytes = [0; FIRST_BYTES];
    let (number, complement) = bytes.split_at_mut(8);
    number.copy_from_slice(&first.to_le_bytes());
    complement.copy_from_slice(&(!first).to_le_bytes());
    bytes
}

/// Returns the CRC-32C of the fields that never change: all except [`Header::replayed_id`] and
/// [`Header::first_entry`].
fn checksum(bytes: &[u8; HEADER_BYTES]) -> u32 {
    let (before, rest) = bytes.split_at(REPLAYED_ID_AT as usize);
    let after = rest.get(16 + FIRST_BYTES..CHECKSUM_AT - before.len()).unwrap_or_default();
    crc32c::crc32c_append(crc32c::crc32c(before), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_another_version_is_none() {
        let header = Header {
            capacity: 1024,
            boot_id: [1; 16],
            write_id: [2; 16],
            replayed_id: [3; 16],
            first_entry: 4,
            file_len: 5,
        };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        assert_eq!(bytes[FIRST_AT as usize], 4);
        assert_eq!(bytes[REPLAYED_ID_AT as usize..][..16], [3; 16]);
        for index in [0, 8, 12, 20, 40, 64, 75, 83, 89] {
            let mut other = bytes;
            other[index] ^= 1;
            assert_eq!(Header::decode(&other), None);
        }
        // These fields are rewritten later, individually.
        let mut other = bytes;
        other[50] ^= 1;
        other[64..80].copy_from_slice(&encode_first_entry(9));
        assert!(Header::decode(&other).is_some_and(|other| other.first_entry == 9));
        assert_eq!(Header::decode(&bytes[..70]), None);
        assert_eq!(version(&bytes), Some(VERSION));
        assert_eq!((version(&bytes[..11]), version(&[0; HEADER_BYTES])), (None, None));
    }
}
