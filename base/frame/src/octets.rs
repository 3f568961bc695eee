//! Big-endian fields at offsets, without panics.

/// Returns the `N` bytes at `at`; `None` if they exceed the buffer.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// Returns the byte at `at`.
#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the 16-bit field at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(|field| u16::from_be_bytes(*field))
}

/// Returns the 32-bit field at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|field| u32::from_be_bytes(*field))
}

/// Writes `field` at `at`; returns false, with nothing written, if it exceeds the buffer.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) -> bool {
    let Some(room) = bytes.get_mut(at..).and_then(|tail| tail.get_mut(..field.len())) else {
        return false;
    };
    room.copy_from_slice(field);
    true
}
