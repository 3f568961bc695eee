//! Tests with huge pages, whose pool can be empty: a page fault of a mapping without reservation
//! then raises `SIGBUS`, as beyond the end of a file.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use super::*;

/// Size of a huge page of x86 and of most ARM machines.
const PAGE_BYTES: usize = 2 << 20;

/// Creates a file of `pages` huge pages; `None` on kernels without hugetlbfs.
fn huge_file(pages: usize) -> Option<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_HUGETLB | libc::MFD_HUGE_2MB;
    // SAFETY: the name is a valid string, and the result is checked.
    let fd = unsafe { libc::memfd_create(c"huge".as_ptr(), flags) };
    if fd < 0 {
        eprintln!("skipped: {}", io::Error::last_os_error());
        return None;
    }
    // SAFETY: the descriptor is new.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len((pages * PAGE_BYTES) as u64).unwrap();
    Some(file)
}

fn map(file: &File, pages: usize) -> *mut u8 {
    let (read_write, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let map = unsafe {
        let bytes = pages * PAGE_BYTES;
        libc::mmap(core::ptr::null_mut(), bytes, read_write, flags, file.as_raw_fd(), 0)
    };
    assert_ne!(map, libc::MAP_FAILED, "{}", io::Error::last_os_error());
    map.cast()
}

/// Reads and writes a byte in each of these pages, beginning with the last one.
fn touch(map: *mut u8, pages: core::ops::Range<usize>) {
    for page in pages.rev() {
        // SAFETY: the page is mapped, and a fault is handled by the guard.
        unsafe {
            let byte = map.add(page * PAGE_BYTES + 4097);
            assert_eq!(byte.read_volatile(), 0, "page {page}");
            byte.write_volatile(7);
            assert_eq!(byte.read_volatile(), 7, "page {page}");
        }
    }
}

#[test]
fn a_pool_without_huge_pages_stops_the_device_only() {
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    if free.unwrap_or_default().trim() != "0" {
        eprintln!("skipped: huge pages are free, or hugetlbfs is missing");
        return;
    }
    let Some(file) = huge_file(4) else { return };
    let map = map(&file, 4);
    let guard = TruncationGuard::new(map as usize, 4 * PAGE_BYTES, PAGE_BYTES).unwrap();
    assert!(!guard.is_truncated());
    touch(map, 1..4);
    assert!(guard.is_truncated());
    touch(map, 0..1);
    drop(guard);
    // SAFETY: nothing accesses the mapping.
    assert_eq!(unsafe { libc::munmap(map.cast(), 4 * PAGE_BYTES) }, 0);
}

/// Files of huge pages can be truncated to whole pages only.
#[test]
fn a_truncated_file_of_huge_pages_reads_as_zeros() {
    let Some(file) = huge_file(3) else { return };
    let map = map(&file, 3);
    let guard = TruncationGuard::new(map as usize, 3 * PAGE_BYTES, PAGE_BYTES).unwrap();
    // Within the file until the first access.
    file.set_len(0).unwrap();
    touch(map, 0..3);
    assert!(guard.is_truncated());
    drop(guard);
    // SAFETY: nothing accesses the mapping.
    assert_eq!(unsafe { libc::munmap(map.cast(), 3 * PAGE_BYTES) }, 0);
}
