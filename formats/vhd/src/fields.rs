//! Big-endian fields of the format's structures, and their checksum.

/// Sector size in bytes, the unit of the format.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Returns the `N` bytes at `offset`; zeros if they exceed the buffer.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|tail| tail.first_chunk()).copied().unwrap_or([0; N])
}

/// Returns the 32-bit field at `offset`.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(bytes_at(bytes, offset))
}

/// Returns the 64-bit field at `offset`.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(bytes_at(bytes, offset))
}

/// Writes `field` at `offset`; bytes beyond the end of the buffer are dropped.
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    for (target, byte) in bytes.iter_mut().skip(offset).zip(field) {
        *target = *byte;
    }
}

/// Returns the ones' complement of the sum of all bytes except the checksum field at offset
/// `checksum_at` (appendix "Checksum Calculation").
pub(crate) fn checksum(bytes: &[u8], checksum_at: usize) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u32, |sum, byte| sum.wrapping_add((*byte).into()));
    !sum(bytes).wrapping_sub(sum(&bytes_at::<4>(bytes, checksum_at)))
}

/// Converts `value` to an index. A value that does not fit becomes an index beyond every buffer.
pub(crate) fn to_index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Rounds `value` up to a multiple of `unit`, which must not be 0; `None` on overflow.
pub(crate) fn round_up(value: u64, unit: u64) -> Option<u64> {
    value.checked_next_multiple_of(unit)
}
