//! Tests of the block status of exports with independent clients: nbdinfo, qemu-img, nbdcopy.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use crate::bench::{Bench, SIZE, run_ok};
use suimon_image_files::DiskLayer;
use suimon_uring::{FileAccess, HostFile};
use suimon_vhd::{
    Access, CreateParameters, NewVhd, OpenOptions, Parent, ParentLocator, SizeEncoding, SizeSource,
    Vhd,
};

const MIB: u64 = 1 << 20;

/// Returns the ranges with data according to `nbdinfo --map`.
fn map(uri: &str) -> Vec<(u64, u64)> {
    let extents: serde_json::Value =
        serde_json::from_str(&run_ok("nbdinfo", &["--json", "--map", uri])).unwrap();
    data(
        extents.as_array().unwrap(),
        |extent| match extent["type"].as_u64().unwrap() {
            0 => true,
            3 => false,
            other => panic!("{other} is neither data nor a hole that is zero"),
        },
        "offset",
    )
}

/// Returns the ranges with data according to `qemu-img map`.
fn qemu_map(url: &str) -> Vec<(u64, u64)> {
    let arguments = ["map", "--output=json", "-f", "raw", url];
    let extents: serde_json::Value = serde_json::from_str(&run_ok("qemu-img", &arguments)).unwrap();
    data(
        extents.as_array().unwrap(),
        |extent| {
            let is_data = extent["data"].as_bool().unwrap();
            assert_eq!(extent["zero"].as_bool().unwrap(), !is_data);
            is_data
        },
        "start",
    )
}

/// Returns the merged data extents; asserts that the extents cover the whole disk.
fn data(
    extents: &[serde_json::Value],
    is_data: impl Fn(&serde_json::Value) -> bool,
    offset: &str,
) -> Vec<(u64, u64)> {
    let (mut end, mut data_ranges) = (0, Vec::<(u64, u64)>::new());
    for extent in extents {
        assert_eq!(extent[offset].as_u64().unwrap(), end);
        let len = extent["length"].as_u64().unwrap();
        if is_data(extent) {
            match data_ranges.last_mut() {
                Some(last) if last.0 + last.1 == end => last.1 += len,
                _ => data_ranges.push((end, len)),
            }
        }
        end += len;
    }
    assert_eq!(end, SIZE);
    data_ranges
}

fn url(bench: &Bench, export: &str) -> String {
    format!("nbd:unix:{}:exportname={export}", bench.path("nbd").display())
}

/// Returns the number of bytes that `copy` reads from a disk.
fn read_bytes(bench: &Bench, disk: suimon_disk_tests::OpenedDisk, copy: impl FnOnce()) -> u64 {
    let before = bench.exports.worker().counters(disk).unwrap().reads.bytes;
    copy();
    bench.exports.worker().counters(disk).unwrap().reads.bytes - before
}

#[test]
fn holes_of_a_raw_disk_are_reported_and_skipped() {
    let bench = Bench::start();
    let file = std::fs::File::options().write(true).open(bench.path("disk.raw")).unwrap();
    file.write_all_at(&vec![7; MIB as usize], 3 * MIB).unwrap();
    file.write_all_at(&vec![9; 65_536], 40 * MIB).unwrap();
    file.sync_all().unwrap();
    let expected = [(3 * MIB, MIB), (40 * MIB, 65_536)];
    let uri = bench.uri("disk");
    assert_eq!(map(&uri), expected);
    assert_eq!(qemu_map(&url(&bench, "disk")), expected);
    let (copy, converted) = (bench.path("copy"), bench.path("converted"));
    let arguments = [uri.as_str(), copy.to_str().unwrap()];
    let read = read_bytes(&bench, bench.disk, || drop(run_ok("nbdcopy", &arguments)));
    assert!(read < 2 * MIB, "{read}");
    let arguments = ["convert", "-f", "raw", "-O", "raw", &url(&bench, "disk")];
    let arguments = [&arguments[..], &[converted.to_str().unwrap()]].concat();
    let read = read_bytes(&bench, bench.disk, || drop(run_ok("qemu-img", &arguments)));
    assert!(read < 2 * MIB, "{read}");
    for copy in [copy, converted] {
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(bench.path("disk.raw")).unwrap());
        let used = std::fs::metadata(copy).unwrap().blocks() * 512;
        assert!(used < 2 * MIB, "{used} bytes of the copy are used");
    }
}

#[test]
fn a_disk_with_more_extents_than_fit_one_reply_is_reported_completely() {
    let bench = Bench::start();
    let file = std::fs::File::options().write(true).open(bench.path("disk.raw")).unwrap();
    let expected: Vec<_> = (0..900).map(|index| (index * 65_536, 4096)).collect();
    for &(offset, len) in &expected {
        file.write_all_at(&vec![1; len as usize], offset).unwrap();
    }
    file.sync_all().unwrap();
    assert_eq!(map(&bench.uri("disk")), expected);
    assert_eq!(qemu_map(&url(&bench, "disk")), expected);
}

#[test]
fn blocks_of_dynamic_images_are_reported_as_they_are_written() {
    for (format, ending, block) in [("vpc", "vhd", 2 * MIB), ("vhdx", "vhdx", 8 * MIB)] {
        let bench = Bench::start();
        let image = bench.path(&format!("image.{ending}"));
        let extra =
            if ending == "vhd" { "force_size=on,subformat=dynamic" } else { "subformat=dynamic" };
        let arguments = ["create", "-q", "-f", format, "-o", extra, image.to_str().unwrap(), "64M"];
        run_ok("qemu-img", &arguments);
        bench.exports.add_image("image", &image).unwrap();
        let uri = bench.uri("image");
        assert_eq!(map(&uri), []);
        let url = url(&bench, "image");
        run_ok("qemu-io", &["-f", "raw", "-c", "write 17M 4k", &url]);
        let expected = [(17 * MIB / block * block, block)];
        assert_eq!(qemu_map(&url), expected);
        assert_eq!(map(&uri), expected);
        run_ok("qemu-io", &["-f", "raw", "-c", "discard 16M 8M", &url]);
        assert_eq!(map(&uri), []);
    }
}

fn vhd(path: &Path, access: FileAccess, disk: Option<CreateParameters>) -> DiskLayer {
    let file = HostFile::open(path, access, 512).unwrap();
    if let Some(disk) = disk {
        let unique_id =
            [disk == CreateParameters::Dynamic { block_size: 2 << 20 }; 16].map(u8::from);
        let size_encoding = SizeEncoding::Exact;
        NewVhd { disk, size: SIZE, size_encoding, unique_id, created_s_since_2000: 1 }
            .create(&file)
            .unwrap();
    }
    let options = OpenOptions { access: Access::Write, size: SizeSource::Creator };
    DiskLayer { image: Box::new(Vhd::open(&file, options).unwrap()), file: Arc::new(file) }
}

#[test]
fn data_of_a_parent_is_data_of_its_child() {
    let bench = Bench::start();
    let (parent, child) = (bench.path("parent.vhd"), bench.path("child.vhd"));
    let dynamic = CreateParameters::Dynamic { block_size: 2 << 20 };
    let layer = vhd(&parent, FileAccess::Create, Some(dynamic));
    let disk = bench.exports.add("parent", vec![layer], false).unwrap();
    run_ok("qemu-io", &["-f", "raw", "-c", "write -P 5 10M 2M", &url(&bench, "parent")]);
    bench.exports.worker().close_disk(disk).unwrap();
    let parent_locator = Parent {
        unique_id: [1; 16],
        modified_s_since_2000: 1,
        name: "parent.vhd".to_owned(),
        locators: vec![ParentLocator::WindowsRelative(r".\parent.vhd".to_owned())],
    };
    let differencing =
        CreateParameters::Differencing { block_size: 2 << 20, parent: parent_locator };
    let layers = vec![
        vhd(&child, FileAccess::Create, Some(differencing)),
        vhd(&parent, FileAccess::Write, None),
    ];
    bench.exports.add("child", layers, false).unwrap();
    let uri = bench.uri("child");
    assert_eq!(map(&uri), [(10 * MIB, 2 * MIB)]);
    let url = url(&bench, "child");
    run_ok("qemu-io", &["-f", "raw", "-c", "write -P 6 20M 4k", "-c", "read -P 5 10M 2M", &url]);
    // A differencing image tracks sectors; the rest of the block is as in the parent.
    let expected = [(10 * MIB, 2 * MIB), (20 * MIB, 4096)];
    assert_eq!(map(&uri), expected);
    assert_eq!(qemu_map(&url), expected);
}
