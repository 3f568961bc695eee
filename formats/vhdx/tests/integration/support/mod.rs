//! In-memory images for several tests.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{ByteRange, Image};
use suimon_vhdx::{Guid, NewVhdx, ParentLocator, Vhdx, WriteGuids};

pub const MB: u64 = 1 << 20;
pub const DATA_WRITE: Guid = Guid::new(2);

/// Returns a dynamic image with blocks of 1 MB.
pub fn dynamic(size: u64) -> NewVhdx {
    NewVhdx {
        size,
        block_bytes: MB,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        is_fixed: false,
        parent: None,
        file_write: Guid::new(1),
        data_write: DATA_WRITE,
        disk_id: Guid::new(3),
    }
}

/// Returns a differencing image with blocks of 1 MB.
pub fn child(size: u64) -> NewVhdx {
    let parent = ParentLocator::new(Guid::new(77)).with_relative_path(r".\parent.vhdx");
    NewVhdx { parent: Some(parent), ..dynamic(size) }
}

/// Returns GUIDs for the opening number `index` of an image, distinct for each number.
pub fn guids(index: u128) -> WriteGuids {
    let guid = |kind| Guid::new(index << 8 | kind);
    WriteGuids { file_write: guid(4), data_write: guid(5), log: guid(6) }
}

/// Creates an image in memory.
pub fn created(image: &NewVhdx) -> MemoryFile {
    let file = MemoryFile::default();
    image.create(&file).unwrap();
    file
}

/// Returns a disk without parent data.
pub fn disk(image: Vhdx, file: &MemoryFile) -> TestDisk<'_, Vhdx> {
    TestDisk { image, file, parent: None }
}

pub fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

/// Returns the byte of the parent at disk offset `offset`; never zero.
pub fn parent_byte(offset: u64) -> u8 {
    (offset / 512 % 251) as u8 + 1
}

/// Fills `bytes` with the parent's contents in `range`.
pub fn read_parent(range: ByteRange, bytes: &mut [u8]) {
    let mut offset = range.offset();
    let mut rest = bytes;
    while !rest.is_empty() {
        let sector = ((512 - offset % 512) as usize).min(rest.len());
        let (filled, next) = rest.split_at_mut(sector);
        filled.fill(parent_byte(offset));
        offset += sector as u64;
        rest = next;
    }
}

/// Returns the contents of the whole disk.
pub fn content(image: Vhdx, file: &MemoryFile) -> Vec<u8> {
    let full_range = range(0, image.disk_geometry().size_bytes);
    let mut parent = read_parent;
    TestDisk { image, file, parent: Some(&mut parent) }.read(full_range).unwrap()
}
