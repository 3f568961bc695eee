//! File format of recordings: header and blocks.

use crate::byte_codec::ByteDecoder;
use crate::record::{Record, decode_record};
use crate::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, MAGIC, RecordError, RecordingError,
    VERSION,
};

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Length of the body in bytes.
    pub length: u32,
    /// CRC-32C of the body.
    pub checksum: u32,
}

/// Returns the header of a new file.
pub fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    let (magic, version) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// Checks the header of a file.
///
/// # Errors
///
/// The magic number or the version does not match.
pub fn check_file_header(header: &[u8]) -> Result<(), RecordingError> {
    let rest = header.strip_prefix(&MAGIC).ok_or(RecordingError::NotARecording)?;
    let version = rest.first_chunk().ok_or(RecordingError::NotARecording)?;
    let version = u32::from_le_bytes(*version);
    if version == VERSION { Ok(()) } else { Err(RecordingError::OtherVersion { version }) }
}

/// Decodes the header of the block that starts at `offset` in the file.
///
/// # Errors
///
/// The length exceeds [`BLOCK_BYTES_MAX`].
pub fn decode_block_header(
    header: [u8; BLOCK_HEADER_BYTES],
    offset: u64,
) -> Result<BlockHeader, RecordingError> {
    let [a, b, c, d, e, f, g, h] = header;
    let length = u32::from_le_bytes([a, b, c, d]);
    if length > BLOCK_BYTES_MAX {
        return Err(RecordingError::BlockTooLong { offset, length });
    }
    Ok(BlockHeader { length, checksum: u32::from_le_bytes([e, f, g, h]) })
}

/// Verifies the checksum of the body of a block that starts at `offset` in the file.
///
/// # Errors
///
/// The checksum does not match.
pub fn verify_block_body(
    header: BlockHeader,
    body: &[u8],
    offset: u64,
) -> Result<(), RecordingError> {
    let (stored, computed) = (header.checksum, crc32c::crc32c(body));
    if stored == computed {
        return Ok(());
    }
    Err(RecordingError::Checksum { offset, stored, computed })
}

/// Encodes a block with this body: header and body.
pub fn encode_block(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut block = Vec::with_capacity(body.len() + BLOCK_HEADER_BYTES);
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    block.extend_from_slice(body);
    block
}

/// Iterates over the records of a block, each with its file offset. `offset` is the start of the
/// body in the file. The iteration ends after an error.
pub fn decode_records(
    body: &[u8],
    offset: u64,
) -> impl Iterator<Item = Result<(u64, Record<'_>), RecordingError>> {
    let mut bytes = ByteDecoder::new(body);
    let (mut time_ns, mut is_over) = (0_u64, false);
    core::iter::from_fn(move || {
        if is_over || bytes.is_empty() {
            return None;
        }
        let begins = offset.saturating_add(bytes.consumed_bytes() as u64);
        let record = decode_record(&mut bytes, &mut time_ns);
        is_over = record.is_err();
        Some(
            record
                .map(|record| (begins, record))
                .map_err(|fault: RecordError| fault.at_offset(begins)),
        )
    })
}
