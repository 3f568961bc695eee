//! Memory use, measured with a counting allocator: requests to allocated blocks allocate nothing,
//! and an untrusted file causes allocation of at most a few times its size.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::support::{created, differencing, dynamic, open, parent, payload, range};
use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{Image, ImageFile, Translation};
use suimon_vhd::{Access, CreateParameters, DynamicHeader, SizeSource, check};

struct Counting;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as u64));
        // SAFETY: upheld by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: upheld by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of bytes that `operation` allocates.
fn allocated<T>(operation: impl FnOnce() -> T) -> (u64, T) {
    let before = BYTES.get();
    let result = operation();
    (BYTES.get() - before, result)
}

#[test]
fn requests_to_allocated_blocks_do_not_allocate() {
    for file in [dynamic(4096, 1 << 20), differencing(4096, 1 << 20)] {
        let image = open(&file, Access::Write).unwrap();
        let mut disk = TestDisk { image, file: &file, parent: None };
        disk.write(0, &payload(1, 0, 2048)).unwrap();
        disk.flush().unwrap();
        // After reopening, bitmaps are read once.
        disk.image = open(&file, Access::Write).unwrap();
        disk.write(0, &payload(2, 0, 2048)).unwrap();
        let mut extents = Vec::with_capacity(300);
        let (bytes, ()) = allocated(|| {
            for sector in 0..2000 {
                extents.clear();
                let range = range(sector, 48);
                assert_eq!(
                    disk.image.translate_read(range, &mut extents).unwrap(),
                    Translation::Ready
                );
                extents.clear();
                assert_eq!(
                    disk.image.translate_write(range, &mut extents).unwrap(),
                    Translation::Ready
                );
                disk.image.handle_written(range);
            }
        });
        assert_eq!((bytes, disk.image.uncommitted_bytes()), (0, 0));
    }
}

#[test]
fn allocation_is_proportional_to_untrusted_file_size() {
    let valid =
        created(CreateParameters::Differencing { block_size: 512, parent: parent() }, 64 << 10);
    let valid = valid.bytes();
    let header: [u8; 1024] = valid[512..1536].try_into().unwrap();
    let header = DynamicHeader::parse(&header, 512).unwrap();
    let mut opened_count = 0;
    for entries in [0, 1, 128, 129, 1 << 22, (1 << 22) + 1, u32::MAX] {
        for data_length in [0, 1, 2000, 65_536, 65_537, u32::MAX] {
            for block_size in [512, 4096, 1 << 31] {
                let mut header = header.clone();
                header.max_table_entries = entries;
                header.block_size = block_size;
                header.locators.iter_mut().for_each(|entry| entry.data_length = data_length);
                let file = MemoryFile::new(valid.clone());
                file.write_at(512, &header.encode()).unwrap();
                let bound = 16 * valid.len() as u64;
                let (bytes, opened) = allocated(|| open(&file, Access::Read).is_ok());
                assert!(bytes <= bound, "{entries} {data_length} {block_size}: {bytes}");
                let (bytes, _) = allocated(|| check(&file, SizeSource::Creator));
                assert!(bytes <= 2 * bound, "{entries} {data_length} {block_size}: {bytes}");
                opened_count += u32::from(opened);
            }
        }
    }
    assert!(opened_count > 0, "some of them open");
}
