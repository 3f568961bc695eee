//! Kinds of images with which tests run.

use suimon_image::testing::MemoryFile;
use suimon_image::{DiskGeometry, Image, LinearImage, RedoChanges};
use suimon_vhd::{
    Access, CreateParameters, NewVhd, OpenOptions, Parent, SizeEncoding, SizeSource, Vhd,
};
use suimon_vhdx::{Guid, NewVhdx, ParentLocator, Vhdx, WriteGuids};

use crate::testing::requests::SIZE;

/// Format and parent of a disk's image, for tests that run with each of them.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Name in messages of tests.
    pub name: &'static str,
    /// Creates a file with an empty image.
    pub create: fn() -> MemoryFile,
    /// Opens an image for writing, and repairs it after a crash.
    pub open: fn(&MemoryFile) -> Box<dyn Image>,
    /// Applies the redo record that a killed process left.
    pub redo: fn(&MemoryFile, &RedoChanges),
    /// Value of every byte of the parent, if there is one.
    pub parent: Option<u8>,
}

const RAW: Kind =
    Kind { name: "raw", create: create_raw, open: open_raw, redo: |_, _| {}, parent: None };
const VHD: Kind =
    Kind { name: "dynamic VHD", create: create_vhd, open: open_vhd, redo: redo_vhd, parent: None };
/// Dynamic VHDX without a parent.
pub const VHDX: Kind = Kind {
    name: "dynamic VHDX",
    create: create_vhdx,
    open: open_vhdx,
    redo: redo_vhdx,
    parent: None,
};

/// Kinds of images without a parent.
pub const KINDS: [Kind; 3] = [RAW, VHD, VHDX];

/// Kinds of images with a parent.
pub const CHILDREN: [Kind; 2] = [
    Kind { name: "differencing VHD", create: create_child_vhd, parent: Some(0xa7), ..VHD },
    Kind { name: "differencing VHDX", create: create_child_vhdx, parent: Some(0xa7), ..VHDX },
];

fn create_raw() -> MemoryFile {
    MemoryFile::new(vec![0; SIZE as usize])
}

fn open_raw(_: &MemoryFile) -> Box<dyn Image> {
    let (logical_sector, physical_sector) = (512, 4096);
    let shape = DiskGeometry {
        size_bytes: SIZE,
        logical_sector_bytes: logical_sector,
        physical_sector_bytes: physical_sector,
        block_bytes: 0,
    };
    Box::new(LinearImage::new(shape, 0, false))
}

fn create_vhd() -> MemoryFile {
    new_vhd(CreateParameters::Dynamic { block_size: 64 << 10 })
}

fn create_child_vhd() -> MemoryFile {
    let parent = Parent {
        unique_id: [8; 16],
        modified_s_since_2000: 1,
        name: "parent.vhd".to_owned(),
        locators: Vec::new(),
    };
    new_vhd(CreateParameters::Differencing { block_size: 64 << 10, parent })
}

fn new_vhd(disk: CreateParameters) -> MemoryFile {
    let file = MemoryFile::default();
    let size_encoding = SizeEncoding::Exact;
    let new =
        NewVhd { disk, size: SIZE, size_encoding, unique_id: [7; 16], created_s_since_2000: 1 };
    new.create(&file).unwrap();
    file
}

fn open_vhd(file: &MemoryFile) -> Box<dyn Image> {
    let options = OpenOptions { access: Access::Write, size: SizeSource::Creator };
    Box::new(Vhd::open(file, options).unwrap())
}

fn redo_vhd(file: &MemoryFile, redo: &RedoChanges) {
    let options = OpenOptions { access: Access::Write, size: SizeSource::Creator };
    Vhd::open_with_redo(file, options, redo).unwrap();
}

fn redo_vhdx(file: &MemoryFile, redo: &RedoChanges) {
    let file_write = Guid::from_stored(redo.new_write_id);
    let guids = WriteGuids { file_write, data_write: Guid::new(5), log: Guid::new(7) };
    Vhdx::open_with_redo(file, &guids, redo).unwrap();
}

fn create_vhdx() -> MemoryFile {
    created(&new_vhdx(None))
}

fn create_child_vhdx() -> MemoryFile {
    let locator = ParentLocator::new(Guid::new(8));
    created(&new_vhdx(Some(locator.with_relative_path(r".\parent.vhdx"))))
}

fn created(new: &NewVhdx) -> MemoryFile {
    let file = MemoryFile::default();
    new.create(&file).unwrap();
    file
}

/// Returns the parameters of a dynamic VHDX, with this parent if there is one.
#[must_use]
pub fn new_vhdx(parent: Option<ParentLocator>) -> NewVhdx {
    NewVhdx {
        size: SIZE,
        block_bytes: 1 << 20,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        is_fixed: false,
        parent,
        file_write: Guid::new(1),
        data_write: Guid::new(2),
        disk_id: Guid::new(3),
    }
}

fn open_vhdx(file: &MemoryFile) -> Box<dyn Image> {
    let guids =
        WriteGuids { file_write: Guid::new(4), data_write: Guid::new(5), log: Guid::new(6) };
    Box::new(Vhdx::open(file, &guids).unwrap())
}
