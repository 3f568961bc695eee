//! The file: its beginning, and its blocks.

use crate::bytes::Bytes;
use crate::record::{Record, decode_record};
use crate::{Fault, RecordingError};

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"SUIMONRC";
/// What this crate writes and reads.
pub const VERSION: u32 = 2;
/// Bytes before the first block.
pub const FILE_HEADER_BYTES: usize = 12;
/// Bytes before a block's body.
pub const BLOCK_HEADER_BYTES: usize = 8;
/// A block's body is not longer.
pub const BLOCK_BYTES_MAX: u32 = 16 << 20;

/// What is before a block's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Bytes of the body.
    pub length: u32,
    /// Their CRC-32C.
    pub checksum: u32,
}

/// The beginning of a file.
pub fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    let (magic, version) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// Whether a file that begins so is a recording that can be read here.
///
/// # Errors
/// Why it is not.
pub fn open(header: &[u8]) -> Result<(), RecordingError> {
    let rest = header.strip_prefix(&MAGIC).ok_or(RecordingError::NotARecording)?;
    let version = rest.first_chunk().ok_or(RecordingError::NotARecording)?;
    let version = u32::from_le_bytes(*version);
    if version == VERSION { Ok(()) } else { Err(RecordingError::OtherVersion { version }) }
}

/// What is before a block's body; `offset` is where that is in the file.
///
/// # Errors
/// Nobody writes such a block.
pub fn block_header(
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

/// Whether a block's body is what was written; `offset` is where the block begins.
///
/// # Errors
/// It was changed.
pub fn block_body(header: BlockHeader, body: &[u8], offset: u64) -> Result<(), RecordingError> {
    let (stored, computed) = (header.checksum, crc32c::crc32c(body));
    if stored == computed {
        return Ok(());
    }
    Err(RecordingError::Checksum { offset, stored, computed })
}

/// A block's body, with what is before it.
pub fn encode_block(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut block = Vec::with_capacity(body.len() + BLOCK_HEADER_BYTES);
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    block.extend_from_slice(body);
    block
}

/// The records of a block, each with where it begins in the file; `offset` is where the body begins.
/// Behind an error there is nothing more.
pub fn records(
    body: &[u8],
    offset: u64,
) -> impl Iterator<Item = Result<(u64, Record<'_>), RecordingError>> {
    let mut bytes = Bytes::new(body);
    let (mut at, mut is_over) = (0_u64, false);
    core::iter::from_fn(move || {
        if is_over || bytes.is_empty() {
            return None;
        }
        let begins = offset.saturating_add(bytes.read() as u64);
        let record = decode_record(&mut bytes, &mut at);
        is_over = record.is_err();
        Some(record.map(|record| (begins, record)).map_err(|fault: Fault| fault.at(begins)))
    })
}
