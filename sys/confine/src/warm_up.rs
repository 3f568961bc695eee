//! Early initialisation of library state that is otherwise initialised on first use.
//!
//! Each of these initialisations opens a file. On a confined thread that would be rejected and
//! counted as an attack, and the library would use its fallback for the rest of the process; for
//! clocks, that is a system call per read.
#![allow(unsafe_code, reason = "tells glibc's allocator how many arenas it may have")]

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Size in bytes of one allocation: below the threshold from which the allocator maps memory
/// separately.
const CHUNK_BYTES: usize = 100 << 10;
/// Number of allocations. Their total size exceeds the free memory that the allocator keeps.
const CHUNKS: usize = 64;

/// Maximum number of arenas of glibc's allocator per CPU: its default on 64-bit machines.
const ARENAS_PER_CPU: usize = 8;

/// Initialises clocks, page size and allocator. Called before the process is confined.
pub(crate) fn warm_up() {
    limit_arenas();
    // Both use the auxiliary vector.
    black_box(clock_gettime(ClockId::Monotonic));
    black_box(rustix::param::page_size());
    // When glibc's allocator returns memory of a thread's arena for the first time, it reads
    // /proc/sys/vm/overcommit_memory.
    let chunks: Vec<Vec<u8>> = (0..CHUNKS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect();
    drop(black_box(chunks));
}

/// Sets the maximum number of arenas of glibc's allocator. Otherwise, when threads need more than
/// eight arenas, the allocator counts the CPUs (`arena_get2` in malloc/arena.c): the thread
/// concerned reads /sys/devices/system/cpu/online, or else /proc/stat.
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
