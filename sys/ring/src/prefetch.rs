//! CPU cache prefetch hints.
#![allow(unsafe_code, reason = "instructions that have no safe form")]

/// Hints to the CPU that the cache line at `pointer` will be accessed soon.
#[inline(always)]
pub(crate) fn prefetch<const WRITE: bool>(pointer: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing that can be seen.
    unsafe {
        if WRITE {
            core::arch::asm!("prefetchw [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(pointer.cast());
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        if WRITE {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = pointer;
}
