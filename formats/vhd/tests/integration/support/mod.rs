//! Reference model of a disk: each sector is filled with one repeated number.

#![allow(dead_code, reason = "each test uses what it needs")]

#[path = "../../../../vhdx/tests/integration/support/disk_file.rs"]
pub(crate) mod disk_file;
pub(crate) mod history;
#[path = "../../../../vhdx/tests/integration/support/peer_bench.rs"]
pub(crate) mod peer_bench;

use suimon_image::testing::{MemoryFile, ParentRead, TestDisk};
use suimon_image::{ByteRange, Image, ImageError};
use suimon_vhd::{
    Access, CreateParameters, NewVhd, OpenOptions, Parent, ParentLocator, SizeEncoding, SizeSource,
    Vhd,
};

pub(crate) const SECTOR: u64 = 512;
/// Bit that is set in the numbers of the parent's sectors.
pub(crate) const PARENT_SECTOR: u64 = 1 << 63;

pub(crate) fn parent() -> Parent {
    Parent {
        unique_id: [7; 16],
        modified_s_since_2000: 86_400,
        name: "parent.vhd".to_owned(),
        locators: vec![
            ParentLocator::WindowsRelative(r".\parent.vhd".to_owned()),
            ParentLocator::WindowsAbsolute(r"C:\disks\parent.vhd".to_owned()),
            ParentLocator::FileUrl("file:///disks/parent.vhd".to_owned()),
        ],
    }
}

pub(crate) fn new_vhd(disk: CreateParameters, size: u64) -> NewVhd {
    NewVhd {
        disk,
        size,
        size_encoding: SizeEncoding::Exact,
        unique_id: [9; 16],
        created_s_since_2000: 1000,
    }
}

pub(crate) fn dynamic(block_size: u32, size: u64) -> MemoryFile {
    created(CreateParameters::Dynamic { block_size }, size)
}

pub(crate) fn differencing(block_size: u32, size: u64) -> MemoryFile {
    created(CreateParameters::Differencing { block_size, parent: parent() }, size)
}

pub(crate) fn created(disk: CreateParameters, size: u64) -> MemoryFile {
    let file = MemoryFile::default();
    new_vhd(disk, size).create(&file).unwrap();
    file
}

pub(crate) fn open(file: &MemoryFile, access: Access) -> Result<Vhd, ImageError> {
    Vhd::open(file, OpenOptions { access, size: SizeSource::Creator })
}

/// Fills `bytes` with the parent's contents: each sector contains its sector number.
pub(crate) fn read_parent(range: ByteRange, bytes: &mut [u8]) {
    for (sector, bytes) in (range.offset() / SECTOR..).zip(bytes.chunks_exact_mut(512)) {
        bytes.copy_from_slice(&sector_data(PARENT_SECTOR | sector));
    }
}

pub(crate) fn disk_on<'a>(
    file: &'a MemoryFile,
    access: Access,
    parent: &'a mut ParentRead<'a>,
) -> Result<TestDisk<'a, Vhd>, ImageError> {
    Ok(TestDisk { image: open(file, access)?, file, parent: Some(parent) })
}

pub(crate) fn sector_data(number: u64) -> [u8; 512] {
    let mut bytes = [0; 512];
    bytes.chunks_exact_mut(8).for_each(|target| target.copy_from_slice(&number.to_le_bytes()));
    bytes
}

/// Returns the number stored in a sector; asserts that the sector is not torn.
pub(crate) fn sector_number(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, sector_data(number), "a sector is torn");
    number
}

pub(crate) fn range(sector: u64, sectors: u64) -> ByteRange {
    ByteRange::new(sector * SECTOR, sectors * SECTOR).unwrap()
}

/// Returns the numbers of all sectors.
pub(crate) fn numbers<I: Image>(disk: &mut TestDisk<'_, I>) -> Vec<u64> {
    let size = disk.image.disk_geometry().size_bytes;
    let bytes = disk.read(ByteRange::new(0, size).unwrap()).unwrap();
    bytes.chunks_exact(512).map(sector_number).collect()
}

/// Returns the contents of `sectors` sectors from `sector` on, each filled with `number` combined
/// with its sector number.
pub(crate) fn payload(number: u64, sector: u64, sectors: u64) -> Vec<u8> {
    (sector..sector + sectors).flat_map(|position| sector_data(number << 24 | position)).collect()
}
