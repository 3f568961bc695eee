//! jemalloc as the global allocator, its options and its control function.
#![allow(unsafe_code, reason = "configures jemalloc and calls its control function")]

use core::ffi::c_char;
use core::ptr;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Options that jemalloc reads when it starts (jemalloc(3), `malloc_conf`): two arenas; caches of
/// threads, which idle threads keep, hold at most 20 blocks of each size up to 1 KiB, instead of 200
/// and 32 KiB; and free pages are returned to the system after 500 ms instead of 10 s.
// SAFETY: jemalloc reads a pointer to a string that ends with NUL, as this reference is; the name
// is reserved for it.
#[unsafe(export_name = "_rjem_malloc_conf")]
#[used]
static OPTIONS: &[u8; 89] =
    b"narenas:2,tcache_max:1024,tcache_nslots_small_max:20,dirty_decay_ms:500,muzzy_decay_ms:0\0";

/// Returns pages to the system that have been free for 500 ms. Does not block.
///
/// jemalloc does so by itself only during calls that allocate or free memory. Call this function
/// every few seconds, so that an idle process returns the memory of an earlier load.
pub fn return_free_pages() {
    /// Applies the decay of all arenas (`MALLCTL_ARENAS_ALL` is 4096).
    const NAME: &[u8] = b"arena.4096.decay\0";
    // SAFETY: the name ends with NUL; the control takes and returns no value, so that the other
    // arguments are null (jemalloc(3), `arena.<i>.decay`).
    let error = unsafe {
        tikv_jemalloc_sys::mallctl(
            NAME.as_ptr().cast::<c_char>(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
    debug_assert_eq!(error, 0, "jemalloc refuses arena.4096.decay");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns the size of anonymous memory of this process, in KiB.
    fn anonymous() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn number(name: &[u8]) -> u32 {
        let (mut value, mut size) = (0_u32, size_of::<u32>());
        // SAFETY: the name ends with NUL, and the control's value is an `unsigned`.
        let error = unsafe {
            tikv_jemalloc_sys::mallctl(
                name.as_ptr().cast(),
                (&raw mut value).cast(),
                &raw mut size,
                ptr::null_mut(),
                0,
            )
        };
        assert_eq!(error, 0);
        value
    }

    #[test]
    fn the_options_are_in_effect() {
        assert_eq!(number(b"opt.narenas\0"), 2);
        assert_eq!(number(b"opt.tcache_nslots_small_max\0"), 20);
    }

    #[test]
    fn freed_memory_is_returned_to_the_system() {
        let before = anonymous();
        let blocks: Vec<Vec<u8>> = (0..1000).map(|_| vec![1; 64 << 10]).collect();
        assert!(anonymous() >= before + 60_000);
        drop(black_box(blocks));
        let deadline = Instant::now() + Duration::from_secs(60);
        while anonymous() > before + 4000 {
            assert!(Instant::now() < deadline, "{} KiB before, {} now", before, anonymous());
            return_free_pages();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
