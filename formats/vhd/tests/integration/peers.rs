//! Interoperability with qemu-img and libvhdi in both directions. `scripts/setup` installs both.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::disk_file::DiskFile;
use crate::support::peer_bench::{Bench, run};
use crate::support::{new_vhd, parent};
use suimon_image::testing::TestDisk;
use suimon_image::{ByteRange, Image};
use suimon_vhd::{
    Access, CreateParameters, DiskType, NewVhd, OpenOptions, SizeEncoding, SizeSource, Vhd, check,
    resize,
};
use tempfile::TempDir;

const MB: u64 = 1 << 20;

impl Bench {
    /// Writes to the image and to the reference contents: at both ends of the disk and across block
    /// boundaries.
    fn fill(&self, disk: &mut TestDisk<'_, Vhd>, first: u8) {
        let ranges = [
            (0, 512),
            (MB - 512, 1024),
            (2 * MB - 4096, 8192),
            (self.size / 1024 * 512, 3 * MB / 2),
            (self.size - 1536, 1536),
        ];
        for (number, (offset, len)) in (first..).zip(ranges) {
            let bytes = vec![number; len.min(self.size - offset) as usize];
            disk.write(offset, &bytes).unwrap();
            self.expect(offset, &bytes);
        }
        disk.flush().unwrap();
    }

    /// Asserts that qemu-img reads the reference contents from the image.
    fn qemu_agrees(&self, image: &str) {
        let (image, raw) = (self.path(image), self.path("raw"));
        let output = run("qemu-img", &["info", "--output=json", "-f", "vpc"], &[&image]);
        assert!(output.contains(&format!("\"virtual-size\": {},", self.size)), "{output}");
        run("qemu-img", &["compare", "-f", "vpc", "-F", "raw"], &[&image, &raw]);
    }

    /// Asserts that this crate reads the reference contents from the image and finds no
    /// inconsistency.
    fn we_agree(&self, image: &str) {
        let file = self.file(image);
        let report = check(&file, SizeSource::Creator);
        assert!(report.findings.is_empty(), "{report:?}");
        let mut disk = TestDisk { image: opened(&file, Access::Read), file: &file, parent: None };
        self.is_read_from(&mut disk);
    }
}

fn opened(file: &DiskFile, access: Access) -> Vhd {
    Vhd::open(file, OpenOptions { access, size: SizeSource::Creator }).unwrap()
}

fn kinds() -> [CreateParameters; 4] {
    let dynamic = |block_size| CreateParameters::Dynamic { block_size };
    [CreateParameters::Fixed, dynamic(2 << 20), dynamic(512 << 10), dynamic(16 << 20)]
}

const SIZES: [(u64, SizeEncoding); 4] = [
    (20 * MB, SizeEncoding::Exact),
    (9 * MB + 512, SizeEncoding::Exact),
    (12 * MB + 7, SizeEncoding::Geometry),
    (33 * MB, SizeEncoding::Geometry),
];

/// Tests each kind and each size once; the full tier tests all combinations.
#[test]
fn other_programs_read_created_images() {
    for (disk, size) in kinds().into_iter().zip(SIZES) {
        check_created(disk, size);
    }
}

fn check_created(disk: CreateParameters, (size, size_encoding): (u64, SizeEncoding)) {
    let spec = NewVhd { size_encoding, ..new_vhd(disk, size) };
    let folder = TempDir::new().unwrap();
    let size = spec.create(&DiskFile::open(&folder.path().join("image"))).unwrap();
    let bench = Bench::new(size);
    std::fs::rename(folder.path().join("image"), bench.path("image")).unwrap();
    bench.qemu_agrees("image");
    let file = bench.file("image");
    let image = opened(&file, Access::Write);
    let mut disk = TestDisk { image, file: &file, parent: None };
    bench.fill(&mut disk, 1);
    bench.qemu_agrees("image");
    bench.libvhdi_agrees(&["image"]);
    // Freed space is reused.
    let range = ByteRange::new(2 * MB, 4 * MB).unwrap();
    for retained in disk.discard(range).unwrap() {
        disk.write(retained.offset(), &vec![0; retained.len() as usize]).unwrap();
    }
    let raw = File::options().write(true).open(bench.path("raw")).unwrap();
    raw.write_all_at(&vec![0; 4 * MB as usize], 2 * MB).unwrap();
    disk.flush().unwrap();
    bench.fill(&mut disk, 9);
    drop(disk);
    bench.qemu_agrees("image");
    bench.libvhdi_agrees(&["image"]);
    bench.we_agree("image");
}

#[test]
fn qemu_images_are_read_and_written() {
    for subformat in ["fixed", "dynamic"] {
        for (size, force) in [(20 * MB, "on"), (7 * MB + 1024, "on"), (20 * MB, "off")] {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("image");
            let options = format!("subformat={subformat},force_size={force}");
            let arguments = ["create", "-q", "-f", "vpc", "-o", &options];
            run("qemu-img", &arguments, &[&path, Path::new(&size.to_string())]);
            let file = DiskFile::open(&path);
            let image = opened(&file, Access::Write);
            let reported = image.disk_geometry().size_bytes;
            assert!(if force == "on" { reported == size } else { reported >= size }, "{reported}");
            let expected = if subformat == "fixed" { DiskType::Fixed } else { DiskType::Dynamic };
            assert_eq!(image.footer().disk_type, expected);
            drop(image);
            let bench = Bench::new(reported);
            std::fs::rename(&path, bench.path("image")).unwrap();
            let file = bench.file("image");
            // Writes by QEMU and by this crate alternate.
            let io =
                ["-f", "vpc", "-c", "write -q -P 77 65536 131072", "-c", "write -q -P 78 5M 512"];
            run("qemu-io", &io, &[&bench.path("image")]);
            let raw = File::options().write(true).open(bench.path("raw")).unwrap();
            raw.write_all_at(&[77; 131_072], 65536).unwrap();
            raw.write_all_at(&[78; 512], 5 * MB).unwrap();
            bench.we_agree("image");
            let image = opened(&file, Access::Write);
            bench.fill(&mut TestDisk { image, file: &file, parent: None }, 1);
            bench.qemu_agrees("image");
            run("qemu-io", &["-f", "vpc", "-c", "write -q -P 79 3M 64k"], &[&bench.path("image")]);
            raw.write_all_at(&[79; 65536], 3 * MB).unwrap();
            bench.qemu_agrees("image");
            bench.libvhdi_agrees(&["image"]);
            bench.we_agree("image");
        }
    }
}

#[test]
fn images_converted_by_qemu_have_equal_contents() {
    let bench = Bench::new(11 * MB + 512);
    let raw = File::options().write(true).open(bench.path("raw")).unwrap();
    for (number, offset) in (1..).zip([0, MB - 512, 4 * MB, 11 * MB]) {
        raw.write_all_at(&[number; 512], offset).unwrap();
    }
    for subformat in ["fixed", "dynamic"] {
        let options = format!("subformat={subformat},force_size=on");
        let arguments = ["convert", "-f", "raw", "-O", "vpc", "-o", &options];
        run("qemu-img", &arguments, &[&bench.path("raw"), &bench.path(subformat)]);
        bench.we_agree(subformat);
        bench.libvhdi_agrees(&[subformat]);
    }
}

/// Tests each kind with one of the size encodings; the full tier tests all combinations.
#[test]
fn other_programs_read_resized_disks() {
    let encodings = [SizeEncoding::Exact, SizeEncoding::Geometry];
    for (disk, encoding) in kinds().into_iter().zip(encodings.into_iter().cycle()) {
        check_resized(disk, encoding);
    }
}

fn check_resized(disk: CreateParameters, encoding: SizeEncoding) {
    let bench = Bench::new(Bench::rounded(&disk, encoding, 10 * MB));
    let file = bench.file("image");
    let created =
        NewVhd { size_encoding: encoding, ..new_vhd(disk, 10 * MB) }.create(&file).unwrap();
    let image = opened(&file, Access::Write);
    bench.fill(&mut TestDisk { image, file: &file, parent: None }, 1);
    // The table must move, because there is no space behind it.
    let size = resize(&file, 270 * MB, SizeSource::Creator).unwrap();
    File::options().write(true).open(bench.path("raw")).unwrap().set_len(size).unwrap();
    let bench = Bench { size, ..bench };
    bench.qemu_agrees("image");
    let image = opened(&file, Access::Write);
    bench.fill(&mut TestDisk { image, file: &file, parent: None }, 20);
    bench.qemu_agrees("image");
    // libvhdi uses Original Size, the size at creation, as the disk's size.
    bench.libvhdi_agrees_on(created, &["image"]);
    bench.we_agree("image");
}

impl Bench {
    fn rounded(disk: &CreateParameters, size_encoding: SizeEncoding, size: u64) -> u64 {
        let file = suimon_image::testing::MemoryFile::default();
        NewVhd { size_encoding, ..new_vhd(disk.clone(), size) }.create(&file).unwrap()
    }
}

#[test]
fn differencing_disk_overlays_its_parent() {
    for block_size in [2 << 20, 512 << 10] {
        let bench = Bench::new(20 * MB + 512);
        let of_parent = bench.file("parent.vhd");
        NewVhd {
            unique_id: [7; 16],
            ..new_vhd(CreateParameters::Dynamic { block_size: 2 << 20 }, bench.size)
        }
        .create(&of_parent)
        .unwrap();
        let image = opened(&of_parent, Access::Write);
        bench.fill(&mut TestDisk { image, file: &of_parent, parent: None }, 1);
        let file = bench.file("child.vhd");
        new_vhd(CreateParameters::Differencing { block_size, parent: parent() }, bench.size)
            .create(&file)
            .unwrap();
        bench.libvhdi_agrees(&["child.vhd", "parent.vhd"]);
        let image = opened(&file, Access::Write);
        assert_eq!(image.parent(), Some(&parent()));
        let mut disk = TestDisk { image, file: &file, parent: None };
        let raw = File::options().write(true).open(bench.path("raw")).unwrap();
        // libvhdi assigns all sectors of a bitmap byte after a set bit to the child, so writes end
        // at byte boundaries of the bitmap.
        for (number, (sector, sectors)) in
            (60..).zip([(3, 5), (15, 1), (4095, 1), (4096, 8), (5002, 30), (8190, 10)])
        {
            let bytes = vec![number; sectors * 512];
            disk.write(sector * 512, &bytes).unwrap();
            raw.write_all_at(&bytes, sector * 512).unwrap();
        }
        disk.flush().unwrap();
        bench.libvhdi_agrees(&["child.vhd", "parent.vhd"]);
        let output = run("vhdiinfo", &[], &[&bench.path("child.vhd")]);
        assert!(output.contains("Differential") && output.contains("parent.vhd"), "{output}");
    }
}

mod full {
    use super::*;

    #[test]
    fn other_programs_read_created_images() {
        for disk in kinds() {
            for size in SIZES {
                check_created(disk.clone(), size);
            }
        }
    }

    #[test]
    fn other_programs_read_resized_disks() {
        for disk in kinds() {
            for encoding in [SizeEncoding::Exact, SizeEncoding::Geometry] {
                check_resized(disk.clone(), encoding);
            }
        }
    }
}
