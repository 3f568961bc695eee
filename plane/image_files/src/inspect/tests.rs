//! Damage is detected, repaired from copies without touching payload, and can be reverted.

use std::sync::Arc;

use suimon_contract::{ImageCheck, ImageSeverity, ImageVerdict};
use suimon_ports::testing::MemoryStore;
use suimon_ports::{FileLockMode, FileName, StoreFault, StoreFiles};

use super::*;
use crate::jobs::offline_disk::{LayerScope, OfflineDisk, RangeLocation};
use crate::open_tests::{child, name, plan, seeded};
use crate::{DiskFormat, DiskKind, DiskPlan, close, create, open};

pub(super) const MB: u64 = 1 << 20;
pub(super) const NOW: u64 = 1_700_000_000;

pub(super) struct Bench {
    pub(super) store: MemoryStore,
    pub(super) files: Arc<dyn StoreFiles>,
}

/// Overwritten part of a file: offset (from the end if negative) and length.
pub(super) type Damage = (i64, usize);

impl Bench {
    /// Creates a dynamic image with the format's suffix and payload in its second megabyte.
    pub(super) fn new(format: DiskFormat) -> (Self, FileName) {
        let store = MemoryStore::default();
        store.set_time(NOW);
        let bench = Self { files: Arc::new(store.clone()), store };
        let file = name(&format!("disk.{}", format.as_str()));
        let plan = plan(format, DiskKind::Dynamic, file.as_str());
        seeded(1, |seeds| create(&bench.files, &plan, seeds)).unwrap();
        bench.fill(&plan, 7);
        bench.store.set_time(NOW + 100);
        (bench, file)
    }

    fn fill(&self, plan: &DiskPlan, byte: u8) {
        let opened = seeded(50, |seeds| open(self.files.as_ref(), plan, seeds)).unwrap();
        let mut disk = OfflineDisk::from(opened);
        let range = suimon_image::ByteRange::new(MB, MB).unwrap();
        disk.write(range, &vec![byte; MB as usize]).unwrap();
        disk.close().unwrap();
    }

    pub(super) fn target<'a>(&'a self, name: &'a FileName) -> ImageTarget<'a> {
        ImageTarget { files: &self.files, name, format: None, display_prefix: "" }
    }

    pub(super) fn check(&self, name: &FileName) -> ImageCheck {
        check(self.target(name)).unwrap()
    }

    pub(super) fn bytes(&self, name: &FileName) -> Vec<u8> {
        self.store.files()[name].clone()
    }

    pub(super) fn damage(&self, name: &FileName, (damage_offset, len): Damage) {
        let file = self.files.open(name, FileLockMode::Write, 1).unwrap();
        let position = if damage_offset < 0 {
            file.len().unwrap().checked_add_signed(damage_offset).unwrap()
        } else {
            damage_offset as u64
        };
        let mut bytes = vec![0; len];
        file.read_at(position, &mut bytes).unwrap();
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        file.write_at(position, &bytes).unwrap();
    }

    pub(super) fn repair(&self, name: &FileName, dry_run: bool) -> suimon_contract::ImageChanges {
        seeded(700, |seeds| repair(self.target(name), dry_run, seeds)).unwrap()
    }

    /// Asserts that the payload is unchanged.
    pub(super) fn reads(&self, name: &FileName) {
        let format = self.target(name).read_format().unwrap();
        let plan = DiskPlan {
            is_read_only: true,
            size_bytes: None,
            ..plan(format, DiskKind::Dynamic, name.as_str())
        };
        let opened = seeded(60, |seeds| open(self.files.as_ref(), &plan, seeds)).unwrap();
        let range = suimon_image::ByteRange::new(MB, MB).unwrap();
        let mut disk = OfflineDisk::from(opened);
        let mut bytes = vec![0; MB as usize];
        for (piece, location) in disk.locate_range(range, LayerScope::All).unwrap() {
            let RangeLocation::File { layer, offset } = location else { continue };
            let buffer_range = (piece.offset() - MB) as usize..(piece.end() - MB) as usize;
            disk.read(layer, offset, &mut bytes[buffer_range]).unwrap();
        }
        assert!(bytes.iter().all(|byte| *byte == 7), "{name}");
    }
}

pub(super) fn formats() -> [DiskFormat; 2] {
    [DiskFormat::Vhd, DiskFormat::Vhdx]
}

#[test]
fn an_image_is_described_and_sound() {
    for format in formats() {
        let (bench, file) = Bench::new(format);
        let info = seeded(5, |seeds| info(bench.target(&file), seeds)).unwrap();
        assert_eq!((info.size_bytes, info.file_bytes), (3 * MB, bench.bytes(&file).len() as u64));
        assert_eq!(info.kind, Some(suimon_contract::DiskKind::Dynamic));
        assert_eq!(info.block_bytes, Some(if format == DiskFormat::Vhd { 2 * MB } else { MB }));
        assert!(!info.dirty && info.parent.is_none() && info.disk_id.is_some());
        let check = bench.check(&file);
        assert_eq!((check.verdict, check.errors, check.leaked_bytes), (ImageVerdict::Sound, 0, 0));
        assert!(check.allocated_blocks == 1 && check.blocks > 1, "{check:?}");
        let before = bench.bytes(&file);
        let repaired = bench.repair(&file, false);
        assert!(repaired.actions.is_empty() && repaired.backup.is_none(), "{repaired:?}");
        assert_eq!(bench.bytes(&file), before);
        assert_eq!(bench.store.files().len(), 1);
    }
}

#[test]
fn damage_with_a_copy_is_repaired_backed_up_and_can_be_reverted() {
    let vhd: [Damage; 4] = [(-512, 512), (0, 512), (-300, 8), (64, 4)];
    let vhdx: [Damage; 6] =
        [(0, 8), (64 << 10, 4096), (128 << 10, 8), (192 << 10, 16), (256 << 10, 65536), (65540, 4)];
    let cases = vhd.map(|damage| (DiskFormat::Vhd, damage)).into_iter();
    for (format, damage) in cases.chain(vhdx.map(|damage| (DiskFormat::Vhdx, damage))) {
        let (bench, file) = Bench::new(format);
        let sound = bench.bytes(&file);
        bench.damage(&file, damage);
        let damaged = bench.bytes(&file);
        let modified = bench.files.status(&file).unwrap().modified_unix_s;
        bench.store.set_time(NOW + 500);
        let check = bench.check(&file);
        assert!(check.verdict == ImageVerdict::Damaged && check.errors > 0, "{damage:?} {check:?}");
        let planned = bench.repair(&file, true);
        assert_eq!(planned.check.verdict, ImageVerdict::Sound, "{damage:?} {planned:?}");
        assert!(planned.dry_run && planned.backup.is_none());
        assert_eq!(bench.bytes(&file), damaged);
        let changes = bench.repair(&file, false);
        assert_eq!((&changes.actions, &changes.changes), (&planned.actions, &planned.changes));
        assert_eq!(bench.check(&file).verdict, ImageVerdict::Sound, "{damage:?}");
        assert_eq!(bench.files.status(&file).unwrap().modified_unix_s, modified);
        if format == DiskFormat::Vhd {
            assert_eq!(bench.bytes(&file), sound, "{damage:?}");
        }
        bench.reads(&file);
        let backup = name(changes.backup.as_deref().unwrap());
        let restored = undo(bench.target(&file), &backup, false).unwrap();
        assert_eq!(restored.check.verdict, ImageVerdict::Damaged);
        assert_eq!(bench.bytes(&file), damaged, "{damage:?}");
        // A change is not reverted after the image was written to.
        bench.damage(&file, (damage.0, 1));
        assert!(undo(bench.target(&file), &backup, false).is_err());
    }
}

#[test]
fn damage_without_a_copy_is_reported_and_left() {
    for (format, damage) in [
        (DiskFormat::Vhd, (1536, 1)),
        (DiskFormat::Vhd, (512, 8)),
        (DiskFormat::Vhdx, (3 << 20, 8)),
        (DiskFormat::Vhdx, (2 << 20, 8)),
    ] {
        let (bench, file) = Bench::new(format);
        bench.damage(&file, damage);
        let damaged = bench.bytes(&file);
        let check = bench.check(&file);
        assert_eq!(check.verdict, ImageVerdict::Damaged, "{damage:?} {check:?}");
        let repaired = bench.repair(&file, false);
        assert_eq!(repaired.check.verdict, ImageVerdict::Damaged, "{repaired:?}");
        assert_eq!(bench.bytes(&file), damaged);
    }
}

#[test]
fn unreferenced_space_at_the_end_is_a_leak_and_is_released() {
    for format in formats() {
        let (bench, file) = Bench::new(format);
        let len = bench.bytes(&file).len() as u64;
        let opened = bench.files.open(&file, FileLockMode::Write, 1).unwrap();
        let added = 80 * MB;
        let mut footer = [0; 512];
        opened.read_at(len - 512, &mut footer).unwrap();
        opened.set_len(len + added).unwrap();
        if format == DiskFormat::Vhd {
            opened.write_at(len + added - 512, &footer).unwrap();
        }
        drop(opened);
        let check = bench.check(&file);
        assert_eq!((check.verdict, check.errors), (ImageVerdict::Leaks, 0), "{check:?}");
        assert!(check.leaked_bytes >= added, "{check:?}");
        assert!(check.findings.iter().all(|finding| finding.severity == ImageSeverity::Leak));
        let changes = bench.repair(&file, false);
        assert!(changes.file_bytes_after <= len, "{changes:?}");
        assert_eq!(changes.check.verdict, ImageVerdict::Sound, "{changes:?}");
        bench.reads(&file);
        let backup = name(changes.backup.as_deref().unwrap());
        let restored = undo(bench.target(&file), &backup, false).unwrap();
        assert_eq!(restored.check.verdict, ImageVerdict::Leaks, "{restored:?}");
    }
}

#[test]
fn an_image_that_was_not_closed_is_dirty_until_it_is_repaired() {
    let (bench, file) = Bench::new(DiskFormat::Vhdx);
    let writing = plan(DiskFormat::Vhdx, DiskKind::Dynamic, file.as_str());
    let opened = seeded(70, |seeds| open(bench.files.as_ref(), &writing, seeds)).unwrap();
    // A file in use is refused.
    let error = check(bench.target(&file)).unwrap_err();
    assert!(matches!(*error.fault, DiskFault::Store(StoreFault::InUse { .. })), "{error}");
    drop(opened);
    let described = || seeded(5, |seeds| info(bench.target(&file), seeds)).unwrap();
    let before = described();
    assert!(before.dirty);
    assert_eq!(bench.check(&file).verdict, ImageVerdict::Sound);
    let changes = bench.repair(&file, false);
    assert!(changes.actions[0].contains("close the image"), "{changes:?}");
    let after = described();
    assert!(!after.dirty && after.content_id == before.content_id);
    bench.reads(&file);
}

#[test]
fn a_parent_is_recorded_at_its_new_location() {
    for format in formats() {
        let (bench, base) = Bench::new(format);
        let top = name(&format!("top.{}", format.as_str()));
        let child_plan = child(format, top.as_str(), base.as_str());
        seeded(100, |seeds| create(&bench.files, &child_plan, seeds)).unwrap();
        bench.fill(&child_plan, 9);
        let moved = name(&format!("elsewhere/parent.{}", format.as_str()));
        bench.files.rename(&base, &moved).unwrap();
        let described =
            || seeded(5, |seeds| info(bench.target(&top), seeds)).unwrap().parent.unwrap();
        let lost = described();
        assert!(lost.found_file.is_none() && lost.reason.unwrap().contains("parent not found"));
        let link = |dry_run, target: &FileName| {
            seeded(900, |seeds| set_parent(bench.target(&top), target, dry_run, seeds))
        };
        let before = bench.bytes(&top);
        let planned = link(true, &moved).unwrap();
        assert_eq!(bench.bytes(&top), before);
        // Another disk is refused as the parent.
        let other = name(&format!("other.{}", format.as_str()));
        let other_plan = plan(format, DiskKind::Dynamic, other.as_str());
        seeded(5000, |seeds| create(&bench.files, &other_plan, seeds)).unwrap();
        assert!(link(false, &other).is_err());
        assert!(link(false, &name("nothing")).is_err());
        assert_eq!(bench.bytes(&top), before);
        // The change is repeated, so that the space of the record is reused.
        for _ in 0..3 {
            let changes = link(false, &moved).unwrap();
            assert_eq!(changes.actions.len(), planned.actions.len());
            assert_eq!(changes.check.verdict, ImageVerdict::Sound, "{changes:?}");
            bench.files.remove(&name(changes.backup.as_deref().unwrap())).unwrap();
        }
        let info = described();
        assert_eq!(info.found_file.as_deref(), Some(moved.as_str()));
        assert_eq!(info.recorded_paths[0], format!(r".\elsewhere\parent.{}", format.as_str()));
        let plan = DiskPlan { parent: None, size_bytes: None, ..child_plan };
        let opened = seeded(60, |seeds| open(bench.files.as_ref(), &plan, seeds)).unwrap();
        assert_eq!(opened.layer_files, [top.clone(), moved.clone()]);
        close(opened.layer_stack, "top").unwrap();
        // An image without parent is refused.
        let result = seeded(900, |seeds| set_parent(bench.target(&moved), &other, false, seeds));
        assert!(result.unwrap_err().to_string().contains("other images have no parent"));
    }
}

#[test]
fn a_backup_that_names_payload_is_refused() {
    for format in formats() {
        let (bench, file) = Bench::new(format);
        let bytes = bench.bytes(&file);
        let payload = bytes.windows(512).position(|part| part == [7; 512]).unwrap();
        let modified = bench.files.status(&file).unwrap().modified_unix_s;
        let head = format!(
            "Suimon image backup 2\nlength {0} {0} {0}\nmodified {modified} 0\n\
             range {payload} 512\n\n",
            bytes.len()
        );
        let forged = [head.as_bytes(), &[9; 512], &[7; 512]].concat();
        let backup = bench.files.create(&name("forged"), 1).unwrap();
        backup.write_at(0, &forged).unwrap();
        drop(backup);
        let error = undo(bench.target(&file), &name("forged"), false).unwrap_err().to_string();
        assert!(error.contains("a change of payload"), "{error}");
        assert_eq!(bench.bytes(&file), bytes);
        for broken in ["", "Suimon image backup 2\n", "Suimon image backup 2\nlength 1\n\n"] {
            bench.files.remove(&name("forged")).unwrap();
            bench.files.create(&name("forged"), 1).unwrap().write_at(0, broken.as_bytes()).unwrap();
            assert!(undo(bench.target(&file), &name("forged"), false).is_err(), "{broken}");
        }
    }
}

#[test]
fn data_of_a_guest_does_not_make_a_raw_disk_an_image() {
    let store = MemoryStore::with_files([(
        name("disk.raw"),
        [b"vhdxfile".to_vec(), vec![0; 4096]].concat(),
    )]);
    let files: Arc<dyn StoreFiles> = Arc::new(store);
    let file = name("disk.raw");
    let target = ImageTarget { files: &files, name: &file, format: None, display_prefix: "" };
    let error = seeded(1, |seeds| repair(target, false, seeds)).unwrap_err().to_string();
    assert!(error.contains("with --format"), "{error}");
    let raw = ImageTarget { format: Some(DiskFormat::Raw), ..target };
    assert_eq!(check(raw).unwrap().verdict, ImageVerdict::Unsupported);
    assert!(seeded(1, |seeds| repair(raw, false, seeds)).is_err());
}
