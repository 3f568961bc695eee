//! Fields of structures in network byte order, and their checksum.

/// Bytes of a sector, the unit in which the format counts.
pub(crate) const SECTOR: u64 = 512;

/// The `N` bytes at `at`; zeros if they are not all there.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|tail| tail.first_chunk()).copied().unwrap_or([0; N])
}

/// The 32-bit field at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

/// The 64-bit field at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(bytes, at))
}

/// Writes a field at `at`, as far as there is room.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    for (place, byte) in bytes.iter_mut().skip(at).zip(field) {
        *place = *byte;
    }
}

/// The ones' complement of the sum of all bytes, without those of the checksum itself
/// (appendix "Checksum Calculation").
pub(crate) fn checksum(bytes: &[u8], checksum_at: usize) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u32, |sum, byte| sum.wrapping_add((*byte).into()));
    !sum(bytes).wrapping_sub(sum(&field::<4>(bytes, checksum_at)))
}

/// `value` as an index; what does not fit is behind every slice.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Rounded up to a multiple of `unit`, which is not 0; `None` beyond 64 bits.
pub(crate) fn round_up(value: u64, unit: u64) -> Option<u64> {
    value.checked_next_multiple_of(unit)
}
