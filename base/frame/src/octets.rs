//! Big-endian fields at offsets, without panics.

/// Returns the `N` bytes at `offset`; `None` if they exceed the slice.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<&[u8; N]> {
    bytes.get(offset..)?.first_chunk()
}

/// Returns the byte at `offset`; `None` if it exceeds the slice.
#[inline]
pub(crate) fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// Returns the big-endian 16-bit field at `offset`; `None` if it exceeds the slice.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(|field| u16::from_be_bytes(*field))
}

/// Returns the big-endian 32-bit field at `offset`; `None` if it exceeds the slice.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(|field| u32::from_be_bytes(*field))
}

/// Writes `field` at `offset`; returns false, with nothing written, if it exceeds the slice.
#[inline]
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) -> bool {
    let Some(target) = bytes.get_mut(offset..).and_then(|tail| tail.get_mut(..field.len())) else {
        return false;
    };
    target.copy_from_slice(field);
    true
}
