//! Writes that were completed before a process was killed are visible to all later users of the
//! image.

use suimon_image::ByteRange;
use suimon_ports::RedoRecords;
use suimon_ports::testing::MemoryRedoRecords;

use super::offline_disk::OfflineDisk;
use super::tests::{BASE, Bench, CHILD, Fill, MB, model, run};
use super::{CheckJob, CopyJob, MergeJob};
use crate::open_tests::{child, name, plan, recorded};
use crate::{
    DiskError, DiskFault, DiskFormat, DiskKind, DiskPlan, HostInputs, OpenedDisk,
    RemainingRecordPolicy, create, discard_remaining_record, open,
};

const FORMATS: [DiskFormat; 2] = [DiskFormat::Vhd, DiskFormat::Vhdx];

fn open_disk(
    bench: &Bench,
    plan: &DiskPlan,
    records: &MemoryRedoRecords,
) -> Result<OpenedDisk, DiskError> {
    recorded(7000, Some(records), |seeds| open(bench.files.as_ref(), plan, seeds))
}

/// Writes to a disk and leaves the files in the state in which a killed process leaves them.
fn write_and_die(bench: &Bench, plan: &DiskPlan, fills: &[Fill], records: &MemoryRedoRecords) {
    let mut disk = OfflineDisk::from(open_disk(bench, plan, records).unwrap());
    for (offset, len, byte) in fills {
        let bytes = vec![*byte; len.div_ceil(512) * 512];
        let range = ByteRange::new(*offset as u64, bytes.len() as u64).unwrap();
        disk.write(range, &bytes).unwrap();
    }
    drop(disk);
}

/// Creates a disk and its redo record in the state in which a killed process leaves them.
fn left(format: DiskFormat) -> (Bench, DiskPlan, MemoryRedoRecords) {
    let bench = Bench::new();
    let block_bytes = Some(if format == DiskFormat::Vhd { MB as u64 / 2 } else { MB as u64 });
    let base = DiskPlan { block_bytes, ..plan(format, DiskKind::Dynamic, "base") };
    bench.make(&base, 1);
    let records = MemoryRedoRecords::default();
    write_and_die(&bench, &base, &BASE, &records);
    assert_ne!(bench.read(&base), model(&[&BASE], 3 * MB), "the change is in the record only");
    (bench, base, records)
}

#[test]
fn changes_of_a_killed_process_are_visible_to_the_next_writer() {
    for format in FORMATS {
        let (bench, base, records) = left(format);
        let disk = OfflineDisk::from(open_disk(&bench, &base, &records).unwrap());
        assert_eq!(records.count(), 1, "{format:?}: the new writer's");
        disk.close().unwrap();
        assert_eq!(records.count(), 0, "{format:?}");
        assert_eq!(bench.read(&base), model(&[&BASE], 3 * MB), "{format:?}");
        // A killed process has left a redo record of the child, too.
        let top = child(format, "top", "base");
        bench.make(&top, 100);
        write_and_die(&bench, &top, &CHILD, &records);
        drop(open_disk(&bench, &top, &records).unwrap());
        assert_eq!(bench.read(&top), model(&[&BASE, &CHILD], 3 * MB), "{format:?}");
    }
}

#[test]
fn changes_of_a_killed_process_are_visible_to_readers_children_and_jobs() {
    for format in FORMATS {
        let (bench, base, records) = left(format);
        let reading = DiskPlan { is_read_only: true, ..base.clone() };
        drop(open_disk(&bench, &reading, &records).unwrap());
        assert_eq!(bench.read(&base), model(&[&BASE], 3 * MB), "{format:?}");

        let (bench, base, records) = left(format);
        let top = child(format, "top", "base");
        recorded(100, Some(&records), |seeds| create(&bench.files, &top, seeds)).unwrap();
        bench.fill(&top, &CHILD);
        assert_eq!(bench.read(&top), model(&[&BASE, &CHILD], 3 * MB), "{format:?}");

        // Both redo records exist at the time of the merge.
        write_and_die(&bench, &top, &[(0, 512, 9)], &records);
        let merge = |seeds: &mut HostInputs<'_>| MergeJob::begin(&bench.files, &top, None, seeds);
        run(&mut recorded(200, Some(&records), merge).unwrap()).unwrap();
        let expected = model(&[&BASE, &CHILD, &[(0, 512, 9)]], 3 * MB);
        assert_eq!(bench.read(&base), expected, "{format:?}");

        let (bench, base, records) = left(format);
        let raw = plan(DiskFormat::Raw, DiskKind::Fixed, "raw");
        let convert =
            |seeds: &mut HostInputs<'_>| CopyJob::convert(&bench.files, &base, &raw, None, seeds);
        run(&mut recorded(300, Some(&records), convert).unwrap()).unwrap();
        assert_eq!(bench.read(&raw), model(&[&BASE], 3 * MB), "{format:?}");

        let (bench, base, records) = left(format);
        let [first, second] = [400, 500].map(|seed| {
            let check =
                |seeds: &mut HostInputs<'_>| CheckJob::begin(bench.files.as_ref(), &base, seeds);
            let mut job = recorded(seed, Some(&records), check).unwrap();
            run(&mut job).unwrap();
            job.into_report()
        });
        assert!(first.findings.is_empty(), "{format:?}: {first:?}");
        assert_eq!(
            first.unused_bytes, second.unused_bytes,
            "{format:?}: the child is read with the parent's redone changes"
        );
    }
}

#[test]
fn changes_that_another_host_may_have_overwritten_are_not_redone() {
    for format in FORMATS {
        let (bench, base, records) = left(format);
        let content = bench.read(&base);
        let reading = DiskPlan { is_read_only: true, ..base.clone() };
        let taken_over = recorded(100, Some(&records), |seeds| {
            seeds.remaining_redo_records = RemainingRecordPolicy::Discard;
            open(bench.files.as_ref(), &reading, seeds)
        });
        drop(taken_over.unwrap());
        assert_eq!(records.count(), 0, "{format:?}");
        assert_eq!(bench.read(&base), content, "{format:?}");
        // Removing a file removes its record.
        let (bench, base, records) = left(format);
        recorded(100, Some(&records), |seeds| {
            discard_remaining_record(bench.files.as_ref(), &base, seeds)
        })
        .unwrap();
        assert_eq!(records.count(), 0, "{format:?}");
        // A disk without a file has no record.
        let missing_plan = DiskPlan { file: Some(name("gone")), ..base };
        recorded(100, Some(&records), |seeds| {
            discard_remaining_record(bench.files.as_ref(), &missing_plan, seeds)
        })
        .unwrap();
    }
}

#[test]
fn a_redo_interrupted_by_a_kill_is_repeated() {
    for format in FORMATS {
        let (bench, base, records) = left(format);
        let before = bench.store.ops().len();
        drop(open_disk(&bench, &base, &records).unwrap());
        for crash_point in before..bench.store.ops().len() {
            let (bench, base, records) = left(format);
            bench.store.set_change_limit(Some(crash_point - before));
            drop(open_disk(&bench, &base, &records));
            bench.store.set_change_limit(None);
            drop(open_disk(&bench, &base, &records).unwrap());
            assert_eq!(bench.read(&base), model(&[&BASE], 3 * MB), "{format:?} {crash_point}");
        }
    }
}

#[test]
fn an_image_that_another_program_wrote_to_is_refused_until_the_record_is_removed() {
    for format in FORMATS {
        let (bench, base, records) = left(format);
        // The record is removed; a block of the record is placed at another offset.
        let others = [(MB + MB / 2, 512, 8), (2 * MB, 512, 7)];
        bench.fill(&base, &others);
        let content = bench.read(&base);
        let bytes = bench.store.files()[&name("base")].clone();
        let error = open_disk(&bench, &base, &records).err().unwrap();
        let DiskFault::RedoFailed { record, .. } = &*error.fault else { panic!("{error}") };
        assert!(error.to_string().contains(&format!("remove {record}")), "{error}");
        assert_eq!(bench.store.files()[&name("base")], bytes, "{format:?}: nothing was changed");
        records.discard(record.strip_prefix("memory/").unwrap()).unwrap();
        drop(open_disk(&bench, &base, &records).unwrap());
        assert_eq!(bench.read(&base), content, "{format:?}");
    }
}
