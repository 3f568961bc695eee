//! Disk size rules, size limits, and identification of parents.

use crate::support::{created, differencing, dynamic, new_vhd, open, parent};
use suimon_image::testing::MemoryFile;
use suimon_image::{Image, ImageFault, ImageFile};
use suimon_vhd::{
    Access, CreateParameters, DISK_BYTES_MAX, DiskType, Footer, Geometry, NewVhd, OpenOptions,
    ParentMismatch, SizeEncoding, SizeSource, Vhd,
};

const MB: u64 = 1 << 20;

fn read_footer(file: &MemoryFile) -> Footer {
    let bytes = file.bytes();
    let (rest, end) = bytes.split_last_chunk::<512>().unwrap();
    assert_eq!(rest[..512], end[..], "the copy");
    Footer::parse(end, rest.len() as u64).unwrap()
}

/// Returns a fixed disk of 20 MiB with this creator and geometry (that of 20 MiB has 40936
/// sectors).
fn by_creator(creator: [u8; 4], geometry: Geometry) -> MemoryFile {
    let file = created(CreateParameters::Fixed, 20 * MB);
    let bytes = file.bytes();
    let end = bytes.last_chunk::<512>().unwrap();
    let mut footer = Footer::parse(end, 20 * MB).unwrap();
    footer.creator_application = creator;
    footer.geometry = geometry;
    file.write_at(20 * MB, &footer.encode()).unwrap();
    file
}

#[test]
fn size_field_depends_on_creator() {
    let reported_geometry = Geometry::from_sectors(40_960);
    assert_eq!(reported_geometry.sectors(), 40_936);
    let largest = Geometry { cylinders: 65535, heads: 16, sectors_per_track: 255 };
    let (exact, geometry) = (20 * MB, 40_936 * 512);
    for (creator, in_footer, expected) in [
        (b"win ", reported_geometry, exact),
        (b"qem2", reported_geometry, exact),
        (b"d2v ", reported_geometry, exact),
        (b"tap\0", reported_geometry, exact),
        (b"CTXS", reported_geometry, exact),
        (b"vpc ", reported_geometry, geometry),
        (b"vs  ", reported_geometry, geometry),
        (b"qemu", reported_geometry, geometry),
        (b"abcd", reported_geometry, geometry),
        (b"vpc ", largest, exact),
    ] {
        let file = by_creator(*creator, in_footer);
        let size = |size| {
            let options = OpenOptions { access: Access::Read, size };
            Vhd::open(&file, options).unwrap().disk_geometry().size_bytes
        };
        assert_eq!(size(SizeSource::Creator), expected, "{creator:?}");
        assert_eq!(size(SizeSource::CurrentSize), exact, "{creator:?}");
        let by_geometry = if in_footer == largest { exact } else { geometry };
        assert_eq!(size(SizeSource::Geometry), by_geometry, "{creator:?}");
    }
}

#[test]
fn size_is_exact_or_rounded_to_geometry() {
    for (size, size_encoding, expected) in [
        (1, SizeEncoding::Exact, 512),
        (20 * MB + 1, SizeEncoding::Exact, 20 * MB + 512),
        (1, SizeEncoding::Geometry, 68 * 512),
        (20 * MB, SizeEncoding::Geometry, 41_004 * 512),
    ] {
        let file = MemoryFile::default();
        let spec = new_vhd(CreateParameters::Dynamic { block_size: 2 << 20 }, size);
        assert_eq!(NewVhd { size_encoding, ..spec }.create(&file).unwrap(), expected);
        let footer = read_footer(&file);
        assert_eq!((footer.current_size, footer.original_size), (expected, expected));
        let actual = footer.geometry.sectors() * 512;
        assert!(if size_encoding == SizeEncoding::Geometry {
            actual == expected
        } else {
            actual <= expected
        });
        assert_eq!(open(&file, Access::Read).unwrap().disk_geometry().size_bytes, expected);
    }
}

#[test]
fn unrepresentable_disks_are_rejected() {
    let largest = dynamic(2 << 20, DISK_BYTES_MAX);
    assert_eq!(open(&largest, Access::Read).unwrap().disk_geometry().size_bytes, DISK_BYTES_MAX);
    for (disk, size, field) in [
        (CreateParameters::Dynamic { block_size: 2 << 20 }, DISK_BYTES_MAX + 1, "Current Size"),
        (CreateParameters::Fixed, u64::MAX, "Current Size"),
        (CreateParameters::Fixed, 0, "Current Size"),
        (CreateParameters::Dynamic { block_size: 256 << 10 }, DISK_BYTES_MAX, "Block Size"),
        (CreateParameters::Dynamic { block_size: 3 << 20 }, MB, "Block Size"),
        (CreateParameters::Dynamic { block_size: 256 }, MB, "Block Size"),
    ] {
        let file = MemoryFile::default();
        let error = new_vhd(disk, size).create(&file).unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(matches!(error.fault, ImageFault::InvalidValue { .. }), "{error}");
        assert!(file.log().is_empty(), "{field}: the file is changed");
    }
}

#[test]
fn child_identifies_its_parent() {
    let file = differencing(4096, MB);
    assert_eq!(read_footer(&file).disk_type, DiskType::Differencing);
    let image = open(&file, Access::Read).unwrap();
    let actual = image.parent().unwrap();
    assert_eq!(*actual, parent());
    assert_eq!(actual.check([7; 16], 86_400), Ok(()));
    assert_eq!(actual.check([8; 16], 86_400), Err(ParentMismatch::UniqueId));
    let modified = ParentMismatch::Modified { expected: 86_400, found: 5 };
    assert_eq!(actual.check([7; 16], 5), Err(modified));
    assert_eq!(open(&dynamic(4096, MB), Access::Read).unwrap().parent(), None);
}

#[test]
fn footer_of_511_bytes_is_completed() {
    let file = dynamic(4096, MB);
    let complete = file.bytes();
    file.set_len(complete.len() as u64 - 1).unwrap();
    file.clear_log();
    drop(open(&file, Access::Read).unwrap());
    assert!(file.log().is_empty());
    drop(open(&file, Access::Write).unwrap());
    assert_eq!(file.bytes(), complete);
}
