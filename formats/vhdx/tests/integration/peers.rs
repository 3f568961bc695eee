//! Interoperability with qemu-img and libvhdi in both directions. `scripts/setup` installs both.

use std::fs::File;
use std::path::Path;

use suimon_image::testing::TestDisk;
use suimon_image::{Image, Step};
use suimon_vhdx::{ImageType, NewVhdx, ParentLocator, Vhdx, check, resize};

use crate::disk_file::DiskFile;
use crate::peer_bench::{Bench, run};
use crate::support::{MB, dynamic, guids, range};

impl Bench {
    /// Writes at both ends of the disk and across block boundaries.
    fn fill(&self, disk: &mut TestDisk<'_, Vhdx>, first: u8) {
        let last = self.size - 4096;
        for (index, (offset, len)) in
            [(0, 4096), (MB - 4096, 8192), (2 * MB, MB), (self.size / 2, 3 * MB), (last, 4096)]
                .into_iter()
                .enumerate()
        {
            let bytes = vec![first + index as u8; len as usize];
            disk.write(offset, &bytes).unwrap();
            self.expect(offset, &bytes);
        }
    }

    /// Asserts that qemu-img reads the reference contents and finds no inconsistency.
    fn qemu_agrees(&self, image: &str) {
        let (image, raw) = (self.path(image), self.path("raw"));
        run("qemu-img", &["check", "-f", "vhdx"], &[&image]);
        run("qemu-img", &["compare", "-f", "vhdx", "-F", "raw"], &[&image, &raw]);
    }

    fn is_content(&self, name: &str) -> bool {
        let read = |name: &str| std::fs::read(self.path(name)).unwrap();
        read("raw") == read(name)
    }

    /// Asserts that this crate reads the reference contents.
    fn assert_readable_here(&self, image: &str) {
        let file = self.file(image);
        let report = check(&file);
        assert!(report.is_clean(), "{report:?}");
        let image = Vhdx::open_read_only(&file).unwrap();
        let mut disk = TestDisk { image, file: &file, parent: None };
        self.is_read_from(&mut disk);
    }
}

fn created(bench: &Bench, name: &str, spec: &NewVhdx) -> DiskFile {
    let file = bench.file(name);
    spec.create(&file).unwrap();
    file
}

fn opened(file: &DiskFile, index: u128) -> TestDisk<'_, Vhdx> {
    TestDisk { image: Vhdx::open(file, &guids(index)).unwrap(), file, parent: None }
}

#[test]
fn other_programs_read_created_images() {
    for (block_bytes, is_fixed, size) in [
        (MB, false, 20 * MB + 4096),
        (MB, true, 20 * MB),
        (32 * MB, false, 70 * MB),
        (32 * MB, true, 40 * MB + 512 * 8),
        (256 * MB, false, 300 * MB),
    ] {
        let bench = Bench::new(size);
        let file = created(&bench, "ours", &NewVhdx { block_bytes, is_fixed, ..dynamic(size) });
        bench.qemu_agrees("ours");
        let mut disk = opened(&file, 1);
        bench.fill(&mut disk, 10);
        disk.flush().unwrap();
        // Write again, so that freed and used blocks alternate.
        if !is_fixed && block_bytes == MB {
            assert!(disk.discard(range(2 * MB, MB)).unwrap().is_empty());
            bench.expect(2 * MB, &vec![0; MB as usize]);
            disk.flush().unwrap();
            disk.write(5 * MB + 512, &[77; 512]).unwrap();
            bench.expect(5 * MB + 512, &[77; 512]);
        }
        disk.image.close(&file).unwrap();
        bench.qemu_agrees("ours");
        bench.libvhdi_agrees(&["ours"]);
        bench.assert_readable_here("ours");
        let output = run("vhdiinfo", &[], &[&bench.path("ours")]);
        assert!(output.contains(if is_fixed { "Fixed" } else { "Dynamic" }), "{output}");
        assert!(output.contains(&format!("({size} bytes)")), "{output}");
    }
}

#[test]
fn images_of_other_programs_are_read_and_written() {
    for (block, subformat, size) in [
        ("1M", "dynamic", 20 * MB + 4096),
        ("32M", "dynamic", 70 * MB),
        ("256M", "dynamic", 300 * MB),
        ("1M", "fixed", 20 * MB),
        ("32M", "fixed", 40 * MB + 4096),
    ] {
        let bench = Bench::new(size);
        bench.expect(MB / 2, &vec![1; MB as usize]);
        bench.expect(size - 512, &[2; 512]);
        let options = format!("block_size={block},subformat={subformat}");
        let arguments = ["convert", "-f", "raw", "-O", "vhdx", "-o", &options];
        run("qemu-img", &arguments, &[&bench.path("raw"), &bench.path("theirs")]);
        bench.assert_readable_here("theirs");
        let file = bench.file("theirs");
        let mut disk = opened(&file, 1);
        let kind = if subformat == "fixed" { ImageType::Fixed } else { ImageType::Dynamic };
        assert_eq!(disk.image.kind(), kind);
        bench.fill(&mut disk, 30);
        disk.image.close(&file).unwrap();
        bench.qemu_agrees("theirs");
        bench.libvhdi_agrees(&["theirs"]);
        bench.assert_readable_here("theirs");
    }
}

#[test]
fn empty_images_of_other_programs_are_filled() {
    let bench = Bench::new(9 * MB);
    let options = ["create", "-f", "vhdx", "-o", "block_size=1M,log_size=2M"];
    let path = bench.path("theirs");
    run("qemu-img", &options, &[&path, Path::new("9M")]);
    let file = bench.file("theirs");
    let mut disk = opened(&file, 1);
    bench.fill(&mut disk, 50);
    disk.image.close(&file).unwrap();
    bench.qemu_agrees("theirs");
    let arguments = ["convert", "-f", "vhdx", "-O", "raw"];
    run("qemu-img", &arguments, &[&path, &bench.path("back")]);
    assert!(bench.is_content("back"));
}

#[test]
fn other_programs_replay_this_log() {
    let bench = Bench::new(9 * MB);
    let file = created(&bench, "ours", &dynamic(9 * MB));
    let mut disk = opened(&file, 1);
    bench.fill(&mut disk, 60);
    let commit = disk.image.begin_commit().unwrap();
    // Power failure when the commit is durable but not applied in place.
    let marker = commit.steps.iter().position(|step| *step == Step::DurableMarker).unwrap();
    for step in &commit.steps[..marker] {
        carry_out(&file, step);
    }
    bench.assert_readable_here("ours");
    assert_eq!(check(&file).log_entries, 1);
    let output = run("qemu-img", &["check", "-r", "all", "-f", "vhdx"], &[&bench.path("ours")]);
    assert!(output.contains("No errors"), "{output}");
    bench.qemu_agrees("ours");
    bench.libvhdi_agrees(&["ours"]);
    assert_eq!(check(&file).log_entries, 0);
}

fn carry_out(file: &DiskFile, step: &Step) {
    use suimon_image::ImageFile;
    match step {
        Step::Write { offset, bytes } => file.write_at(*offset, bytes).unwrap(),
        Step::Extend { len, .. } => file.set_len(*len).unwrap(),
        Step::Zero(range) => file.zero(range.offset(), range.len()).unwrap(),
        Step::Flush | Step::DurableMarker => {}
    }
}

#[test]
fn logs_of_other_programs_are_replayed() {
    let bench = Bench::new(9 * MB);
    let path = bench.path("theirs");
    run("qemu-img", &["create", "-f", "vhdx", "-o", "block_size=1M"], &[&path, Path::new("9M")]);
    for (offset, byte) in [(MB, 5), (4 * MB + 4096, 6), (8 * MB, 7)] {
        bench.expect(offset, &[byte; 4096]);
    }
    let write = ["-c", "write -P 5 1M 4k", "-c", "write -P 6 4100k 4k", "-c", "write -P 7 8M 4k"];
    run("qemu-io", &[["-f", "vhdx"].as_slice(), &write].concat(), &[&path]);
    bench.assert_readable_here("theirs");
    revert_last_entry(&path);
    let file = bench.file("theirs");
    assert_eq!(check(&file).log_entries, 1);
    bench.assert_readable_here("theirs");
    opened(&file, 1).image.close(&file).unwrap();
    assert_eq!(check(&file).log_entries, 0);
    bench.qemu_agrees("theirs");
    bench.assert_readable_here("theirs");
}

/// Reverts an image closed by qemu-io to its state before the last log entry was applied: the entry
/// is still in the log, its page has its old contents, and the headers mark the log as in use.
fn revert_last_entry(path: &Path) {
    const PAGE: usize = 4096;
    let mut bytes = std::fs::read(path).unwrap();
    let log = &bytes[MB as usize..2 * MB as usize];
    let sequence = |entry: &&[u8]| entry[16..24].iter().rev().copied().collect::<Vec<u8>>();
    let entries = log.chunks(PAGE).filter(|sector| sector.starts_with(b"loge"));
    let last = entries.max_by_key(sequence).expect("qemu-io has logged");
    assert_eq!(last[24..28], 1_u32.to_le_bytes(), "one page");
    let guid = last[32..48].to_vec();
    let page = usize::from_le_bytes(last[80..88].try_into().unwrap());
    bytes[page..page + PAGE].fill(0);
    for header in [64 << 10, 128 << 10] {
        let header = &mut bytes[header..header + PAGE];
        header[48..64].copy_from_slice(&guid);
        header[4..8].fill(0);
        let checksum = crc32c::crc32c(header);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn other_programs_read_resized_images() {
    let bench = Bench::new(6 * MB);
    let file = created(&bench, "ours", &dynamic(6 * MB));
    let mut disk = opened(&file, 1);
    bench.fill(&mut disk, 70);
    disk.image.close(&file).unwrap();
    // The BAT moves for the second size and stays for the third.
    for (index, size) in (2..).zip([7 * MB, 150 << 30, 3 * MB + 4096]) {
        resize(&file, size, &guids(index)).unwrap();
        let raw = File::options().write(true).open(bench.path("raw")).unwrap();
        raw.set_len(size).unwrap();
        run("qemu-img", &["check", "-f", "vhdx"], &[&bench.path("ours")]);
        // Comparing large images takes minutes even if they are sparse.
        if size < 1 << 30 {
            bench.qemu_agrees("ours");
        }
    }
    let bench = Bench { size: 3 * MB + 4096, ..bench };
    bench.libvhdi_agrees(&["ours"]);
    bench.assert_readable_here("ours");
}

#[test]
fn libvhdi_reads_a_child_over_its_parent() {
    for logical_sector in [512, 4096] {
        let bench = Bench::new(9 * MB);
        let like = NewVhdx { logical_sector_bytes: logical_sector, ..dynamic(9 * MB) };
        let file = created(&bench, "parent", &like);
        let mut parent = opened(&file, 1);
        bench.fill(&mut parent, 80);
        parent.image.close(&file).unwrap();
        let linkage = guids(1).data_write;
        let locator = ParentLocator::new(linkage).with_relative_path(r".\parent");
        let child = NewVhdx { parent: Some(locator), ..like };
        let child_file = created(&bench, "child", &child);
        let image = Vhdx::open_read_only(&file).unwrap();
        assert!(child.parent.unwrap().is_linked_to(image.data_write_guid()));
        let mut parent = TestDisk { image, file: &file, parent: None };
        let mut read = |range, bytes: &mut [u8]| {
            bytes.copy_from_slice(&parent.read(range).unwrap());
        };
        let image = Vhdx::open(&child_file, &guids(3)).unwrap();
        let mut disk = TestDisk { image, file: &child_file, parent: Some(&mut read) };
        for (offset, len) in [(4096, 4096), (MB, 4096), (6 * MB - 8192, 3 * MB)] {
            let bytes = vec![90; len as usize];
            disk.write(offset, &bytes).unwrap();
            bench.expect(offset, &bytes);
        }
        let raw = std::fs::read(bench.path("raw")).unwrap();
        assert!(disk.read(range(0, 9 * MB)).unwrap() == raw);
        disk.image.close(&child_file).unwrap();
        assert!(check(&child_file).is_clean());
        bench.libvhdi_agrees(&["child", "parent"]);
    }
}
