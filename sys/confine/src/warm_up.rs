//! What libraries look up once, in the middle of something else.
//!
//! Each of these opens a file the first time it is needed. On a confined thread that
//! would be refused, be counted as an attempt to break out, and leave the library
//! with its fallback for the rest of the process: system calls for every look at the
//! clock, in the first case.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Fits below the size from which the allocator maps memory of its own.
const CHUNK_BYTES: usize = 100 << 10;
/// Together well above what the allocator keeps when it could give it back.
const CHUNKS: usize = 64;

/// Makes the libraries look, now.
pub(crate) fn warm_up() {
    // Both find what they need through the auxiliary vector.
    black_box(clock_gettime(ClockId::Monotonic));
    black_box(rustix::param::page_size());
    // When glibc's allocator gives memory of a thread's own arena back for the first
    // time, it reads /proc/sys/vm/overcommit_memory.
    let chunks: Vec<Vec<u8>> = (0..CHUNKS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect();
    drop(black_box(chunks));
}
