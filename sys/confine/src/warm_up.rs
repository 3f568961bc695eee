//! What libraries look up once, in the middle of something else.
//!
//! Each of these opens a file the first time it is needed. On a confined thread that
//! would be refused, be counted as an attempt to break out, and leave the library
//! with its fallback for the rest of the process: system calls for every look at the
//! clock, in the first case.
#![allow(unsafe_code, reason = "tells glibc's allocator how many arenas it may have")]

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Fits below the size from which the allocator maps memory of its own.
const CHUNK_BYTES: usize = 100 << 10;
/// Together well above what the allocator keeps when it could give it back.
const CHUNKS: usize = 64;

/// Arenas of glibc's allocator for each CPU: as many as it would choose.
const ARENAS_PER_CPU: usize = 8;

/// Makes the libraries look, now.
pub(crate) fn warm_up() {
    limit_arenas();
    // Both find what they need through the auxiliary vector.
    black_box(clock_gettime(ClockId::Monotonic));
    black_box(rustix::param::page_size());
    // When glibc's allocator gives memory of a thread's own arena back for the first
    // time, it reads /proc/sys/vm/overcommit_memory.
    let chunks: Vec<Vec<u8>> = (0..CHUNKS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect();
    drop(black_box(chunks));
}

/// When threads need more than eight arenas, glibc's allocator counts the CPUs to know how many
/// there may be (`arena_get2` in malloc/arena.c): whichever thread that is reads
/// /sys/devices/system/cpu/online, or else /proc/stat. It does not if it was told.
#[cfg(target_env = "gnu")]
fn limit_arenas() {
    let cpus = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    let arenas = cpus.saturating_mul(ARENAS_PER_CPU);
    // SAFETY: has no precondition; it sets one number.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas.try_into().unwrap_or(libc::c_int::MAX));
    }
}

#[cfg(not(target_env = "gnu"))]
fn limit_arenas() {}
