//! Jobs on disks preserve the disk's content, even if a job is interrupted.

use std::sync::Arc;

use suimon_image::ByteRange;
use suimon_ports::StoreFiles;
use suimon_ports::testing::MemoryStore;

use super::offline_disk::{LayerScope, OfflineDisk, RangeLocation};
use super::*;
use crate::open_tests::{child, name, plan, seeded};
use crate::{DiskFault, DiskFormat, DiskKind, DiskPlan, create, open, remove_all_incomplete};

pub(super) const MB: usize = 1 << 20;
const NOW: u64 = 1_700_000_000;

pub(super) struct Bench {
    pub(super) store: MemoryStore,
    pub(super) files: Arc<dyn StoreFiles>,
}

/// Write to a disk of a test: offset and length in bytes, and value of each byte.
pub(super) type Fill = (usize, usize, u8);

/// Writes that result in blocks of zeros, blocks without zeros, and a block with both.
pub(super) const BASE: [Fill; 4] =
    [(0, 4096, 1), (MB - 512, 1024, 2), (2 * MB, MB, 0), (2 * MB + 65536, 512, 3)];
pub(super) const CHILD: [Fill; 4] =
    [(512, 512, 4), (MB - 512, 512, 0), (MB + 8192, 70_000, 5), (2 * MB, 65536, 6)];

pub(super) fn model(fills: &[&[Fill]], size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (offset, len, byte) in fills.iter().flat_map(|fills| fills.iter().copied()) {
        let end = (offset + len).div_ceil(512) * 512;
        bytes[offset..end].fill(byte);
    }
    bytes
}

impl Bench {
    pub(super) fn with_store(store: MemoryStore) -> Self {
        Self { files: Arc::new(store.clone()), store }
    }

    pub(super) fn new() -> Self {
        let store = MemoryStore::default();
        store.set_time(NOW);
        Self::with_store(store)
    }

    fn open_offline(&self, plan: &DiskPlan) -> OfflineDisk {
        seeded(5000, |seeds| open(self.files.as_ref(), plan, seeds)).unwrap().into()
    }

    pub(super) fn make(&self, plan: &DiskPlan, first: u128) {
        seeded(first, |seeds| create(&self.files, plan, seeds)).unwrap();
    }

    pub(super) fn fill(&self, plan: &DiskPlan, fills: &[Fill]) {
        let mut disk = self.open_offline(plan);
        for (offset, len, byte) in fills {
            let bytes = vec![*byte; len.div_ceil(512) * 512];
            let range = ByteRange::new(*offset as u64, bytes.len() as u64).unwrap();
            disk.write(range, &bytes).unwrap();
        }
        disk.close().unwrap();
    }

    pub(super) fn read(&self, plan: &DiskPlan) -> Vec<u8> {
        let mut disk = self.open_offline(&DiskPlan { is_read_only: true, ..plan.clone() });
        let mut bytes = vec![0; disk.size() as usize];
        for (range, location) in
            disk.locate_range(ByteRange::new(0, disk.size()).unwrap(), LayerScope::All).unwrap()
        {
            if let RangeLocation::File { layer, offset } = location {
                let range = range.offset() as usize..range.end() as usize;
                disk.read(layer, offset, &mut bytes[range]).unwrap();
            }
        }
        bytes
    }

    fn len(&self, file: &str) -> usize {
        self.store.files()[&name(file)].len()
    }

    /// Creates `base` with its content, and its child `top`.
    pub(super) fn with_child(format: DiskFormat) -> (Self, DiskPlan) {
        let bench = Self::new();
        let base = plan(format, DiskKind::Dynamic, &format!("base.{}", format.as_str()));
        bench.make(&base, 1);
        bench.fill(&base, &BASE);
        let top = child(
            format,
            &format!("top.{}", format.as_str()),
            &format!("base.{}", format.as_str()),
        );
        bench.make(&top, 100);
        bench.fill(&top, &CHILD);
        bench.store.set_time(NOW + 1000);
        (bench, top)
    }
}

/// Performs steps of a job until it is done.
pub(super) fn run(job: &mut dyn DiskJob) -> Result<(), DiskError> {
    let mut before = 0;
    for _ in 0..10_000 {
        let progress = job.step()?;
        assert!(progress.done_bytes >= before && progress.done_bytes <= progress.total_bytes);
        before = progress.done_bytes;
        if progress.is_done {
            assert_eq!(progress.done_bytes, progress.total_bytes);
            return Ok(());
        }
    }
    panic!("the job does not end");
}

pub(super) fn convert(bench: &Bench, from: &DiskPlan, to: &DiskPlan) -> Result<(), DiskError> {
    run(&mut seeded(700, |seeds| CopyJob::convert(&bench.files, from, to, None, seeds))?)
}

pub(super) fn compact(bench: &Bench, plan: &DiskPlan) -> Result<(), DiskError> {
    run(&mut seeded(800, |seeds| CopyJob::compact(&bench.files, plan, None, seeds))?)
}

pub(super) fn merge(bench: &Bench, plan: &DiskPlan) -> Result<(), DiskError> {
    run(&mut seeded(900, |seeds| MergeJob::begin(&bench.files, plan, None, seeds))?)
}

pub(super) fn kinds() -> Vec<DiskPlan> {
    use DiskFormat::{Raw, Vhd, Vhdx};
    use DiskKind::{Dynamic, Fixed};
    let kinds = [
        (Raw, Fixed),
        (Raw, Dynamic),
        (Vhd, Fixed),
        (Vhd, Dynamic),
        (Vhdx, Fixed),
        (Vhdx, Dynamic),
    ];
    kinds
        .map(|(format, kind)| plan(format, kind, &format!("{}-{}", format.as_str(), kind.as_str())))
        .into()
}

#[test]
fn a_disk_converted_to_any_format_and_kind_keeps_its_content() {
    for from in kinds() {
        let bench = Bench::new();
        // One of three blocks is unallocated.
        let fills = [BASE[0], BASE[3]];
        bench.make(&from, 1);
        bench.fill(&from, &fills);
        for to in kinds() {
            let to = DiskPlan {
                size_bytes: None,
                file: Some(name(&format!("new-{}", to.label()))),
                ..to
            };
            convert(&bench, &from, &to).unwrap();
            let content = model(&[&fills], 3 * MB);
            assert!(bench.read(&to) == content, "{} {}", from.label(), to.label());
            let error = convert(&bench, &from, &to).unwrap_err();
            assert!(error.to_string().contains("already"), "{error}");
        }
        let sectors = DiskPlan {
            logical_sector_bytes: 4096,
            ..plan(DiskFormat::Vhdx, DiskKind::Dynamic, "4k")
        };
        convert(&bench, &from, &DiskPlan { size_bytes: None, ..sectors.clone() }).unwrap();
        let converted =
            DiskPlan { size_bytes: None, ..plan(DiskFormat::Vhd, DiskKind::Dynamic, "back") };
        convert(&bench, &sectors, &converted).unwrap();
        assert!(bench.read(&converted) == model(&[&fills], 3 * MB));
        assert!(bench.len("new-vhdx-dynamic") < bench.len("new-vhdx-fixed"));
        assert!(remove_all_incomplete(bench.files.as_ref(), &[]).unwrap().is_empty());
    }
}

#[test]
fn a_child_is_converted_with_its_parents() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        for target_plan in kinds() {
            convert(&bench, &top, &target_plan).unwrap();
            assert!(
                bench.read(&target_plan) == model(&[&BASE, &CHILD], 3 * MB),
                "{}",
                target_plan.label()
            );
        }
    }
}

#[test]
fn compaction_releases_zeros_and_preserves_disk_and_children() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let bench = Bench::new();
        let plan =
            DiskPlan { block_bytes: Some(MB as u64), ..plan(format, DiskKind::Dynamic, "disk") };
        bench.make(&plan, 1);
        bench.fill(&plan, &BASE);
        bench.fill(&plan, &[(0, 2 * MB, 0)]);
        let (before, content) = (bench.len("disk"), bench.read(&plan));
        compact(&bench, &plan).unwrap();
        let after = bench.len("disk");
        assert!(before - after >= 2 * MB, "{format:?}: {before} {after}");
        assert!(bench.read(&plan) == content);

        let (bench, top) = Bench::with_child(format);
        compact(&bench, &top).unwrap();
        assert!(bench.read(&top) == model(&[&BASE, &CHILD], 3 * MB), "{format:?}");
        compact(&bench, &plan_of_parent(&top)).unwrap();
        assert!(bench.read(&top) == model(&[&BASE, &CHILD], 3 * MB), "{format:?}");
    }
    let bench = Bench::new();
    let fixed = plan(DiskFormat::Vhdx, DiskKind::Fixed, "disk");
    bench.make(&fixed, 1);
    assert!(matches!(
        *compact(&bench, &fixed).unwrap_err().fault,
        DiskFault::InvalidPlan { field: "kind", .. }
    ));
}

pub(super) fn plan_of_parent(top: &DiskPlan) -> DiskPlan {
    plan(top.format, DiskKind::Dynamic, top.parent.as_ref().unwrap().as_str())
}

#[test]
fn a_disk_grows_and_never_shrinks() {
    for plan in kinds() {
        let bench = Bench::new();
        bench.make(&plan, 1);
        bench.fill(&plan, &BASE);
        let resized = |size| seeded(600, |seeds| resize(bench.files.as_ref(), &plan, size, seeds));
        let larger = 7 * MB as u64 + 512;
        assert_eq!(resized(larger).unwrap(), larger);
        assert_eq!(resized(larger).unwrap(), larger);
        assert!(bench.read(&plan) == model(&[&BASE], larger as usize), "{}", plan.label());
        for size in [larger - 512, larger + 1, 0, u64::MAX] {
            let error = resized(size).unwrap_err();
            assert!(
                matches!(*error.fault, DiskFault::InvalidPlan { field: "size", .. }),
                "{size}: {error}"
            );
        }
        assert_eq!(bench.read(&plan).len() as u64, larger);
    }
}

#[test]
fn a_disk_continues_with_a_child_that_is_merged_later() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let next =
            seeded(300, |seeds| snapshot(&bench.files, &top, name("sub/next"), seeds)).unwrap();
        bench.store.set_time(NOW + 2000);
        let fills = [(0, 512, 9), (2 * MB, 512, 0)];
        bench.fill(&next, &fills);
        let expected = model(&[&BASE, &CHILD, &fills], 3 * MB);
        assert!(
            bench.read(&next) == expected && bench.read(&top) == model(&[&BASE, &CHILD], 3 * MB)
        );
        for merged in [&next, &top] {
            merge(&bench, merged).unwrap();
            // The child remains a child. The disk without it has its content.
            assert!(bench.read(merged) == expected, "{format:?} {}", merged.label());
            bench.files.remove(merged.file.as_ref().unwrap()).unwrap();
        }
        assert!(bench.read(&plan_of_parent(&top)) == expected);
        assert!(bench.store.files().len() == 1);
    }
    let bench = Bench::new();
    let raw = plan(DiskFormat::Raw, DiskKind::Dynamic, "disk");
    bench.make(&raw, 1);
    let error = seeded(1, |seeds| snapshot(&bench.files, &raw, name("child"), seeds)).unwrap_err();
    assert!(matches!(*error.fault, DiskFault::InvalidPlan { field: "format", .. }), "{error}");
}

#[test]
fn a_parent_grows_with_the_child_that_is_merged() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let size = 5 * MB as u64;
        seeded(600, |seeds| resize(bench.files.as_ref(), &top, size, seeds)).unwrap();
        let expected = model(&[&BASE, &CHILD], 5 * MB);
        assert!(bench.read(&top) == expected, "{format:?}");
        merge(&bench, &top).unwrap();
        assert!(
            bench.read(&top) == expected && bench.read(&plan_of_parent(&top)) == expected,
            "{format:?}"
        );
    }
}

#[test]
fn a_parent_of_others_is_not_merged_into() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let other = child(
            format,
            &format!("sub/other.{}", format.as_str()),
            top.parent.as_ref().unwrap().as_str(),
        );
        // The parent was last changed when `top` was created.
        bench.make(&other, 400);
        let error = merge(&bench, &top).unwrap_err();
        assert!(
            matches!(&*error.fault, DiskFault::OtherChildren { child } if Some(child) == other.file.as_ref()),
            "{error}"
        );
        assert!(bench.read(&other) == model(&[&BASE], 3 * MB));
        bench.files.remove(other.file.as_ref().unwrap()).unwrap();
        // A child of the merged image itself prevents the merge, too.
        let own_plan = child(
            format,
            &format!("sub/own.{}", format.as_str()),
            top.file.as_ref().unwrap().as_str(),
        );
        bench.make(&own_plan, 500);
        let error = merge(&bench, &top).unwrap_err();
        assert_eq!(error.file, top.label(), "{error}");
        assert!(matches!(&*error.fault, DiskFault::OtherChildren { .. }), "{error}");
        bench.files.remove(own_plan.file.as_ref().unwrap()).unwrap();
        merge(&bench, &top).unwrap();
    }
}

/// The file may be another child, whose contents would change without notice.
#[test]
fn an_unreadable_image_prevents_a_merge_and_a_damaged_one_does_not() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let other = name(&format!("other.{}", format.as_str()));
        drop(bench.files.create(&other, 512).unwrap());
        bench.store.set_unreadable(Some(other.clone()));
        let error = merge(&bench, &top).unwrap_err();
        assert!(
            matches!(&*error.fault, DiskFault::ChildUnknown { file, .. } if *file == other),
            "{error}"
        );
        assert!(bench.read(&top) == model(&[&BASE, &CHILD], 3 * MB));
        bench.store.set_unreadable(None);
        merge(&bench, &top).unwrap();
    }
}

#[test]
fn a_check_reads_everything_and_finds_what_is_wrong() {
    for plan in kinds() {
        let bench = Bench::new();
        bench.make(&plan, 1);
        bench.fill(&plan, &BASE);
        let check = |bench: &Bench| {
            let job = seeded(1, |seeds| CheckJob::begin(bench.files.as_ref(), &plan, seeds));
            let mut job = job.unwrap();
            run(&mut job).unwrap();
            job
        };
        let sound = check(&bench);
        assert!(sound.report().findings.is_empty(), "{:?}", sound.report());
        assert!(sound.report().read_bytes >= MB as u64);
        if plan.format == DiskFormat::Raw {
            continue;
        }
        let file = name(&plan.label());
        let mut bytes = bench.store.files()[&file].clone();
        // Damages the last valid header and footer, and all copies.
        bytes.truncate(bytes.len() - 512);
        bytes[..512].fill(0);
        let broken = Bench::with_store(MemoryStore::with_files([(file, bytes)]));
        let check = check(&broken);
        assert!(check.report().is_damaged(), "{}", plan.label());
        assert!(check.report().findings.iter().all(|finding| finding.error.file == plan.label()));
    }
}

#[test]
fn metadata_with_a_copy_is_repaired_without_loss() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let bench = Bench::new();
        let plan = plan(format, DiskKind::Dynamic, "disk");
        bench.make(&plan, 1);
        bench.fill(&plan, &BASE);
        let mut bytes = bench.store.files()[&name("disk")].clone();
        // The footer of a VHD and the headers of a VHDX exist twice.
        let offset = if format == DiskFormat::Vhd { bytes.len() - 512 } else { 128 << 10 };
        bytes[offset..offset + 512].fill(0);
        let hurt = Bench::with_store(MemoryStore::with_files([(name("disk"), bytes)]));
        let findings = |bench: &Bench| {
            let job = seeded(1, |seeds| CheckJob::begin(bench.files.as_ref(), &plan, seeds));
            job.unwrap().report().findings.len()
        };
        assert!(findings(&hurt) > 0);
        seeded(50, |seeds| repair(hurt.files.as_ref(), &plan, seeds)).unwrap();
        assert_eq!(findings(&hurt), 0);
        assert!(hurt.read(&plan) == model(&[&BASE], 3 * MB));
    }
}
