//! Little-endian fields of structures, and the checksum over them.

/// Bytes of one unit of space: regions and blocks are multiples of it.
pub(crate) const MB: u64 = 1 << 20;
/// Metadata of at most so many bytes gets its space in the file before it is needed: the log, and the
/// BAT of a disk of 16 TB with blocks of 32 MB.
pub(crate) const WRITTEN_MAX: u64 = 4 * MB;
/// Bytes of a sector of the log, and of what it changes.
pub(crate) const PAGE: u64 = 4096;
/// The same, for memory.
pub(crate) const PAGE_LEN: usize = 4096;

/// A field; zeros if it lies behind the end.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let field = bytes.get(at..at.saturating_add(N));
    field.and_then(|field| field.try_into().ok()).unwrap_or([0; N])
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// Writes a field; what does not fit is left out.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(field.len())) {
        place.copy_from_slice(field);
    }
}

/// CRC-32C of a structure whose checksum, at `field`, counts as zeros.
pub(crate) fn checksum(bytes: &[u8], field: usize) -> u32 {
    let (before, rest) = bytes.split_at(field.min(bytes.len()));
    let after = rest.get(4..).unwrap_or_default();
    let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(crc, after)
}

/// Writes the checksum of a structure into it.
pub(crate) fn seal(bytes: &mut [u8], field: usize) {
    let sum = checksum(bytes, field);
    put(bytes, field, &sum.to_le_bytes());
}

/// A length in memory. Whoever asks has checked it against a bound.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The next multiple of a megabyte; the largest one if that is more than 64 bits.
pub(crate) fn round_up_mb(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(MB).unwrap_or(u64::MAX - (MB - 1))
}
