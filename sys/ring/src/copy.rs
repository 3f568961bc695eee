//! Copies between guest memory and our own, without a call for short ones.
#![allow(
    unsafe_code,
    reason = "copies through raw pointers, because guest memory has no references"
)]

/// Copies of at most this many bytes are done in line: a 64-byte frame with its
/// header is the case that decides packets per second.
const INLINE_BYTES_MAX: usize = 128;

/// Copies `len` bytes. What it read is final: the compiler may not read the
/// source a second time, however the copy is used afterwards.
///
/// # Safety
/// `src` is readable and `dst` writable for `len` bytes, and they do not overlap.
/// Another process may write to either meanwhile; the bytes are then any mixture.
#[inline(always)]
pub(crate) unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    if len <= INLINE_BYTES_MAX {
        // SAFETY: as the caller promises.
        unsafe { copy_short(src, dst, len) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { core::ptr::copy_nonoverlapping(src, dst, len) }
    }
    // An empty block that may touch all memory: values already copied cannot be
    // fetched again from where they came from.
    // SAFETY: it contains no instruction.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) }
}

/// Moves one block of `N` bytes at `offset`.
///
/// # Safety
/// Both pointers are good for `offset + N` bytes.
#[inline(always)]
unsafe fn block<const N: usize>(src: *const u8, dst: *mut u8, offset: usize) {
    // SAFETY: as the caller promises; arrays of bytes have no alignment.
    unsafe { dst.add(offset).cast::<[u8; N]>().write(src.add(offset).cast::<[u8; N]>().read()) }
}

/// Copies up to [`INLINE_BYTES_MAX`] bytes as blocks from the front and from the
/// back that may overlap in the middle.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
unsafe fn copy_short(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: in each arm every block ends at or before `len`.
    unsafe {
        if len > 64 {
            block::<32>(src, dst, 0);
            block::<32>(src, dst, 32);
            block::<32>(src, dst, len - 64);
            block::<32>(src, dst, len - 32);
        } else if len > 32 {
            block::<32>(src, dst, 0);
            block::<32>(src, dst, len - 32);
        } else if len >= 16 {
            block::<16>(src, dst, 0);
            block::<16>(src, dst, len - 16);
        } else if len >= 8 {
            block::<8>(src, dst, 0);
            block::<8>(src, dst, len - 8);
        } else if len >= 4 {
            block::<4>(src, dst, 0);
            block::<4>(src, dst, len - 4);
        } else if len >= 2 {
            block::<2>(src, dst, 0);
            block::<2>(src, dst, len - 2);
        } else if len == 1 {
            block::<1>(src, dst, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_beside_it() {
        let src: Vec<u8> = (0..600).map(|i| (i * 7 % 251) as u8).collect();
        for len in 0..300 {
            for start in [0, 1, 13] {
                let mut dst = vec![0xee; 400];
                // SAFETY: both vectors are longer than `start + len`.
                unsafe { copy(src.as_ptr().add(start), dst.as_mut_ptr().add(7), len) }
                assert_eq!(&dst[7..7 + len], &src[start..start + len]);
                assert!(dst[..7].iter().chain(&dst[7 + len..]).all(|b| *b == 0xee), "{len}");
            }
        }
    }
}
