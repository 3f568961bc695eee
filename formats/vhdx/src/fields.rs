//! Little-endian fields of the format's structures, and their checksum.

/// Maximum file length in megabytes (512 TB): an entry of the BAT has 29 bits for the offset.
pub(crate) const FILE_MB_MAX: u64 = 1 << 29;

/// Bytes of a megabyte (2^20), the unit of space: regions and blocks are multiples of it.
pub(crate) const MB: u64 = 1 << 20;
/// Largest size in bytes of metadata that is written instead of zeroed. Writing allocates its space
/// in advance. Covers the log, and the BAT of a 16 TB disk with blocks of 32 MB.
pub(crate) const METADATA_WRITE_BYTES_MAX: u64 = 4 * MB;
/// Length of a log sector and of a metadata page in bytes.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// [`PAGE_BYTES`] as a `usize`, for buffers in memory.
pub(crate) const PAGE_LEN: usize = 4096;

/// Returns the `N` bytes at `offset`; zeros if they exceed the buffer.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let field = bytes.get(offset..offset.saturating_add(N));
    field.and_then(|field| field.try_into().ok()).unwrap_or([0; N])
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, offset))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, offset))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, offset))
}

/// Writes `field` at `offset`; ignored if it exceeds the buffer.
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    if let Some(target) = bytes.get_mut(offset..offset.saturating_add(field.len())) {
        target.copy_from_slice(field);
    }
}

/// Returns the CRC-32C of a structure, with its checksum field at offset `field` counted as zeros.
pub(crate) fn checksum(bytes: &[u8], field: usize) -> u32 {
    let (before, rest) = bytes.split_at(field.min(bytes.len()));
    let after = rest.get(4..).unwrap_or_default();
    let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(crc, after)
}

/// Stores the checksum of a structure in its checksum field at offset `field`.
pub(crate) fn store_checksum(bytes: &mut [u8], field: usize) {
    let sum = checksum(bytes, field);
    put(bytes, field, &sum.to_le_bytes());
}

/// Converts a length to `usize`. The caller has checked that it is bounded.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Rounds a number of bytes up to a multiple of 1 MB; saturates at the largest multiple.
pub(crate) fn round_up_mb(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(MB).unwrap_or(u64::MAX - (MB - 1))
}
