//! Copies between guest memory and process memory; short copies are inlined.
#![allow(
    unsafe_code,
    reason = "copies through raw pointers, because guest memory has no references"
)]

/// Maximum length in bytes of inlined copies. Frames of 64 bytes, which determine the packet rate,
/// fit with their header.
const INLINE_BYTES_MAX: usize = 128;

/// Minimum length in bytes of copies by [`copy_wide`], if the CPU has AVX. glibc of Debian 12 uses
/// `rep movsb` for copies of this size, which is slower than loads and stores on some CPUs (AMD Zen
/// 3 and 4), especially if source and destination are aligned differently (glibc bug 30994).
#[cfg(target_arch = "x86_64")]
const WIDE_BYTES_MIN: usize = 4096;

/// Copies `len` bytes. The compiler cannot read the source a second time when the copy is used.
///
/// # Safety
/// `src` is readable and `dst` writable for `len` bytes, and they do not overlap. Another process
/// may write to either concurrently; the result is then any mixture of old and new bytes.
#[inline(always)]
pub(crate) unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    if len <= INLINE_BYTES_MAX {
        // SAFETY: by this function's contract.
        unsafe { copy_short(src, dst, len) }
    } else {
        // SAFETY: by this function's contract.
        unsafe { copy_long(src, dst, len) }
    }
    // An empty block that may access all memory: the compiler cannot load copied values again from
    // the source.
    // SAFETY: it contains no instruction.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) }
}

/// Copies `len` bytes between ranges that may overlap; in that case the result is any mixture of
/// the bytes.
///
/// # Safety
/// `src` is readable and `dst` writable for `len` bytes.
#[inline]
pub(crate) unsafe fn copy_within(src: *const u8, dst: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= WIDE_BYTES_MIN && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: by this function's contract; the CPU has AVX.
        return unsafe { copy_wide(src, dst, len) };
    }
    // SAFETY: by this function's contract.
    unsafe { core::ptr::copy(src, dst, len) }
}

/// Copies ranges that are too long to be inlined.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= WIDE_BYTES_MIN && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: by this function's contract; the CPU has AVX.
        return unsafe { copy_wide(src, dst, len) };
    }
    // SAFETY: by this function's contract.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, len) }
}

/// Copies with the widest registers. Stores are aligned, because a store across a cache line costs
/// two.
///
/// # Safety
/// As for [`copy_within`]; `len` is at least [`WIDE_BYTES_MIN`], and the CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline(never)]
unsafe fn copy_wide(src: *const u8, dst: *mut u8, len: usize) {
    use core::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256,
    };

    const WIDTH: usize = size_of::<__m256i>();
    const ROUND: usize = 4 * WIDTH;
    // First aligned offset after the start; the first block reaches it.
    let mut offset = WIDTH - dst as usize % WIDTH;
    // SAFETY: every block lies within `len` bytes of both pointers. `dst + at` is a
    // multiple of `WIDTH` from the first block on.
    unsafe {
        _mm256_storeu_si256(dst.cast(), _mm256_loadu_si256(src.cast()));
        while offset + ROUND <= len {
            let from = src.add(offset);
            let a = _mm256_loadu_si256(from.cast());
            let b = _mm256_loadu_si256(from.add(WIDTH).cast());
            let c = _mm256_loadu_si256(from.add(2 * WIDTH).cast());
            let d = _mm256_loadu_si256(from.add(3 * WIDTH).cast());
            let to = dst.add(offset);
            _mm256_store_si256(to.cast(), a);
            _mm256_store_si256(to.add(WIDTH).cast(), b);
            _mm256_store_si256(to.add(2 * WIDTH).cast(), c);
            _mm256_store_si256(to.add(3 * WIDTH).cast(), d);
            offset += ROUND;
        }
        // The remainder is shorter than a round. Its blocks may overlap bytes already copied.
        while offset < len {
            let last = offset.min(len - WIDTH);
            _mm256_storeu_si256(dst.add(last).cast(), _mm256_loadu_si256(src.add(last).cast()));
            offset += WIDTH;
        }
    }
}

/// Copies one block of `N` bytes at `offset`.
///
/// # Safety
/// Both pointers are valid for `offset + N` bytes.
#[inline(always)]
unsafe fn block<const N: usize>(src: *const u8, dst: *mut u8, offset: usize) {
    // SAFETY: by this function's contract; arrays of bytes have no alignment.
    unsafe { dst.add(offset).cast::<[u8; N]>().write(src.add(offset).cast::<[u8; N]>().read()) }
}

/// Copies up to [`INLINE_BYTES_MAX`] bytes as blocks from the front and from the back, which may
/// overlap in the middle.
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

    #[test]
    fn long_copies_are_complete_at_any_alignment() {
        let src: Vec<u8> = (0..66_000).map(|i| (i * 7 % 251) as u8).collect();
        let lengths = (4094..4260).chain([65_226, 65_600]);
        for (index, len) in lengths.enumerate() {
            for start in [0, 1, 13] {
                // Every alignment within a register's width occurs.
                let to = 7 + (index * 3 + start) % 32;
                let mut dst = vec![0xee; len + 80];
                // SAFETY: both vectors are longer than what is copied.
                unsafe { copy(src.as_ptr().add(start), dst.as_mut_ptr().add(to), len) }
                assert_eq!(&dst[to..to + len], &src[start..start + len]);
                assert!(dst[..to].iter().chain(&dst[to + len..]).all(|b| *b == 0xee), "{len}");
            }
        }
    }
}
