//! Kinds of image that disks are tested with.

use suimon_image::testing::MemoryFile;
use suimon_image::{Image, Linear, Redo, Shape};
use suimon_vhd::{Access, NewDisk, NewSize, NewVhd, OpenOptions, SizeRule, Vhd};
use suimon_vhdx::{Guid, NewImage, Vhdx, WriteGuids};

use crate::work_tests::SIZE;

/// A kind of image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) create: fn() -> MemoryFile,
    /// Opens one for writing, and repairs what a crash has left.
    pub(crate) open: fn(&MemoryFile) -> Box<dyn Image>,
    /// Makes the changes that a killed process has left.
    pub(crate) redo: fn(&MemoryFile, &Redo),
}

/// All of them.
pub(crate) const KINDS: [Kind; 3] = [
    Kind { name: "raw", create: create_raw, open: open_raw, redo: |_, _| {} },
    Kind { name: "dynamic VHD", create: create_vhd, open: open_vhd, redo: redo_vhd },
    Kind { name: "dynamic VHDX", create: create_vhdx, open: open_vhdx, redo: redo_vhdx },
];

fn create_raw() -> MemoryFile {
    MemoryFile::new(vec![0; SIZE as usize])
}

fn open_raw(_: &MemoryFile) -> Box<dyn Image> {
    let (logical_sector, physical_sector) = (512, 4096);
    let shape = Shape { size: SIZE, logical_sector, physical_sector, block: 0 };
    Box::new(Linear::new(shape, 0, false))
}

fn create_vhd() -> MemoryFile {
    let file = MemoryFile::default();
    let new = NewVhd {
        disk: NewDisk::Dynamic { block_size: 64 << 10 },
        size: SIZE,
        size_told: NewSize::Exact,
        unique_id: [7; 16],
        created: 1,
    };
    new.create(&file).unwrap();
    file
}

fn open_vhd(file: &MemoryFile) -> Box<dyn Image> {
    let options = OpenOptions { access: Access::Write, size: SizeRule::Creator };
    Box::new(Vhd::open(file, options).unwrap())
}

fn redo_vhd(file: &MemoryFile, redo: &Redo) {
    let options = OpenOptions { access: Access::Write, size: SizeRule::Creator };
    Vhd::open_and_redo(file, options, redo).unwrap();
}

fn redo_vhdx(file: &MemoryFile, redo: &Redo) {
    let file_write = Guid::from_stored(redo.redone_as);
    let guids = WriteGuids { file_write, data_write: Guid::new(5), log: Guid::new(7) };
    Vhdx::open_and_redo(file, &guids, redo).unwrap();
}

fn create_vhdx() -> MemoryFile {
    let file = MemoryFile::default();
    let new = NewImage {
        size: SIZE,
        block_bytes: 1 << 20,
        logical_sector: 512,
        physical_sector: 4096,
        is_fixed: false,
        parent: None,
        file_write: Guid::new(1),
        data_write: Guid::new(2),
        disk_id: Guid::new(3),
    };
    new.create(&file).unwrap();
    file
}

fn open_vhdx(file: &MemoryFile) -> Box<dyn Image> {
    let guids =
        WriteGuids { file_write: Guid::new(4), data_write: Guid::new(5), log: Guid::new(6) };
    Box::new(Vhdx::open(file, &guids).unwrap())
}
