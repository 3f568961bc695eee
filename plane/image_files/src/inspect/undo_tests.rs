//! A change is reverted completely, regardless of when it was interrupted, and only if the image
//! was not changed otherwise.

use std::sync::Arc;

use suimon_contract::{ImageChanges, ImageVerdict};
use suimon_image::testing::WriteOutcome;
use suimon_ports::testing::{MemoryRedoRecords, MemoryStore};
use suimon_ports::{FileLockMode, FileName};

use super::tests::{Bench, Damage, MB, NOW, formats};
use super::*;
use crate::open_tests::{child, name, plan, recorded, seeded};
use crate::{
    DiskFormat, DiskKind, DiskPlan, HostInputs, RemainingRecordPolicy, close, create, open,
};

/// Images with the damage that a repair fixes.
fn damages() -> [(DiskFormat, Damage); 4] {
    [
        (DiskFormat::Vhd, (-512, 512)),
        (DiskFormat::Vhd, (0, 512)),
        (DiskFormat::Vhdx, (64 << 10, 4096)),
        (DiskFormat::Vhdx, (192 << 10, 65536)),
    ]
}

fn unfinished(file: &FileName) -> FileName {
    name(&format!("{file}.backup-unfinished"))
}

fn bench_with(store: MemoryStore) -> Bench {
    Bench { files: Arc::new(store.clone()), store }
}

fn undone(bench: &Bench, file: &FileName, backup: &str) -> Result<ImageChanges, String> {
    undo(bench.target(file), &name(backup), false).map_err(|error| error.to_string())
}

/// Writes a file that looks like a backup with one range.
fn forge(bench: &Bench, lengths: (u64, u64), range: (u64, &[u8], &[u8]), modified: u64) {
    let (offset, before, after) = range;
    let (from, to) = lengths;
    let head = format!(
        "Suimon image backup 2\nlength {from} {to} {}\nmodified {modified} 0\n\
         range {offset} {}\n\n",
        from.max(to),
        before.len()
    );
    let _ = bench.files.remove(&name("forged"));
    let file = bench.files.create(&name("forged"), 1).unwrap();
    file.write_at(0, &[head.as_bytes(), before, after].concat()).unwrap();
}

#[test]
fn a_change_is_not_reverted_after_later_writes_of_payload() {
    for (format, damage) in damages() {
        let (bench, file) = Bench::new(format);
        bench.damage(&file, damage);
        bench.store.set_time(NOW + 500);
        let changes = bench.repair(&file, false);
        let backup = changes.backup.unwrap();
        let repaired = bench.bytes(&file);
        // The range contains only payload, and no sector that the repair has written.
        let payload = repaired.windows(512).position(|part| part == [7; 512]).unwrap();
        let writer = bench.files.open(&file, FileLockMode::Write, 1).unwrap();
        writer.write_at(payload as u64, &[8; 512]).unwrap();
        drop(writer);
        let written = bench.files.status(&file).unwrap();
        let error = undone(&bench, &file, &backup).unwrap_err();
        assert!(error.contains("written to since") && error.contains("touch -d @"), "{error}");
        assert_eq!(bench.files.status(&file).unwrap(), written);
        assert!(!bench.store.files().contains_key(&unfinished(&file)));
    }
}

#[test]
fn a_raw_image_has_no_change_to_revert() {
    let bench = bench_with(MemoryStore::with_files([(name("disk.raw"), vec![7; 4096])]));
    let file = name("disk.raw");
    let modified = bench.files.status(&file).unwrap().modified_unix_s;
    forge(&bench, (4096, 4096), (1024, &[9; 512], &[7; 512]), modified);
    let error = undone(&bench, &file, "forged").unwrap_err();
    assert!(error.contains("others have no metadata"), "{error}");
    assert_eq!(bench.bytes(&file), vec![7; 4096]);
}

#[test]
fn a_backup_that_truncates_used_space_is_refused() {
    for format in formats() {
        let (bench, file) = Bench::new(format);
        let bytes = bench.bytes(&file);
        let (len, modified) =
            (bytes.len() as u64, bench.files.status(&file).unwrap().modified_unix_s);
        let first = &bytes[..512];
        let payload = bytes.windows(512).position(|part| part == [7; 512]).unwrap() as u64;
        for cut in [0, 512, MB, payload, payload + MB - 512] {
            for former in [first, &[0x5a; 512]] {
                forge(&bench, (cut, len), (0, former, first), modified);
                let error = undone(&bench, &file, "forged").unwrap_err();
                assert!(error.contains("would have") || error.contains("payload"), "{error}");
                assert_eq!(bench.bytes(&file), bytes);
            }
        }
    }
}

#[test]
fn a_dry_undo_reports_the_image_as_it_would_be() {
    for (format, damage) in damages() {
        let (bench, file) = Bench::new(format);
        bench.damage(&file, damage);
        let backup = name(&bench.repair(&file, false).backup.unwrap());
        let repaired = bench.bytes(&file);
        let dry = undo(bench.target(&file), &backup, true).unwrap();
        assert_eq!(dry.check.verdict, ImageVerdict::Damaged, "{dry:?}");
        assert_eq!(bench.bytes(&file), repaired);
        let real = undo(bench.target(&file), &backup, false).unwrap();
        assert_eq!((real.check, real.changes), (dry.check, dry.changes));
    }
}

/// After a crash at any point of a repair or of its reversal, one of these holds: the image is in
/// its former state, it is repaired, or the incomplete change is reported, prevents opening for
/// writing, and is reverted by the next repair.
#[test]
fn an_interrupted_change_is_reverted_and_repeated() {
    for (format, damage) in damages() {
        for is_undo in [false, true] {
            let (bench, file) = Bench::new(format);
            bench.damage(&file, damage);
            let damaged = bench.bytes(&file);
            let modified = bench.files.status(&file).unwrap().modified_unix_s;
            bench.store.set_time(NOW + 500);
            let backup = is_undo.then(|| bench.repair(&file, false).backup.unwrap());
            bench.store.set_time(NOW + 600);
            bench.store.clear_log();
            match &backup {
                Some(backup) => drop(undone(&bench, &file, backup).unwrap()),
                None => drop(bench.repair(&file, false)),
            }
            let ops = bench.store.ops().len();
            assert!(ops > 5, "{ops}");
            let mut unfinished_seen = 0;
            for crash_point in 0..=ops {
                for write_outcome in [
                    WriteOutcome::Persisted,
                    WriteOutcome::Lost,
                    WriteOutcome::Torn(0x5555_5555_5555_5555),
                ] {
                    let crashed =
                        bench_with(bench.store.store_after_crash(crash_point, || write_outcome));
                    crashed.store.set_time(NOW + 610);
                    if crashed.store.files().contains_key(&unfinished(&file)) {
                        unfinished_seen += 1;
                        let writing = plan(format, DiskKind::Dynamic, file.as_str());
                        let opened =
                            seeded(9, |seeds| open(crashed.files.as_ref(), &writing, seeds));
                        let error = opened.err().unwrap().to_string();
                        assert!(error.contains("--undo disk."), "{error}");
                        let check = crashed.check(&file);
                        assert_eq!(check.verdict, ImageVerdict::Damaged, "{check:?}");
                        let dry = seeded(1, |seeds| repair(crashed.target(&file), true, seeds));
                        assert!(dry.is_err());
                        // This reverts the change without a further repair.
                        let other = bench_with(
                            crashed.store.store_after_crash(0, || WriteOutcome::Persisted),
                        );
                        undone(&other, &file, unfinished(&file).as_str()).unwrap();
                        assert_eq!(other.bytes(&file), damaged, "{crash_point} {write_outcome:?}");
                        let now = other.files.status(&file).unwrap().modified_unix_s;
                        assert_eq!(now, modified);
                        assert!(!other.store.files().contains_key(&unfinished(&file)));
                    }
                    let changes = crashed.repair(&file, false);
                    assert_eq!(
                        changes.check.verdict,
                        ImageVerdict::Sound,
                        "{crash_point} {changes:?}"
                    );
                    assert_eq!(crashed.check(&file).verdict, ImageVerdict::Sound);
                    crashed.reads(&file);
                    let now = crashed.files.status(&file).unwrap().modified_unix_s;
                    assert_eq!(now, modified, "{crash_point} {write_outcome:?}");
                }
            }
            assert!(unfinished_seen > 0);
        }
    }
}

#[test]
fn an_image_written_to_after_an_interrupted_change_is_not_reverted() {
    let (bench, file) = Bench::new(DiskFormat::Vhd);
    bench.damage(&file, (-512, 512));
    bench.store.set_time(NOW + 500);
    bench.store.clear_log();
    bench.repair(&file, false);
    let ops = bench.store.ops();
    let rename_index = ops.iter().position(|op| {
        matches!(
            op,
            suimon_ports::testing::StoreOp::Rename(_, renamed_to)
                if *renamed_to == unfinished(&file)
        )
    });
    let crashed = bench_with(
        bench.store.store_after_crash(rename_index.unwrap() + 2, || WriteOutcome::Persisted),
    );
    assert!(crashed.store.files().contains_key(&unfinished(&file)));
    // Another program, which ignores the backup, writes payload an hour later.
    crashed.store.set_time(NOW + 4100);
    let payload = crashed.bytes(&file).windows(512).position(|part| part == [7; 512]).unwrap();
    let writer = crashed.files.open(&file, FileLockMode::Write, 1).unwrap();
    writer.write_at(payload as u64, &[8; 512]).unwrap();
    drop(writer);
    let before = crashed.store.files();
    let error = seeded(1, |seeds| repair(crashed.target(&file), false, seeds)).unwrap_err();
    assert!(error.to_string().contains("touch -d @"), "{error}");
    assert_eq!(crashed.store.files(), before);
}

/// If the store becomes full during a change, the image is in its former state, or the error names
/// the backup.
#[test]
fn a_failed_change_names_its_backup_and_can_be_reverted() {
    for (format, damage) in damages() {
        let mut failed = 0;
        for change_limit in 0.. {
            let (bench, file) = Bench::new(format);
            bench.damage(&file, damage);
            let damaged = bench.bytes(&file);
            bench.store.set_change_limit(Some(change_limit));
            let result = seeded(700, |seeds| repair(bench.target(&file), false, seeds));
            bench.store.set_change_limit(None);
            let Err(error) = result else { break };
            if bench.store.files().contains_key(&unfinished(&file)) {
                failed += 1;
                let text = error.to_string();
                let undo = format!("suimon image repair --undo {}", unfinished(&file));
                assert!(text.contains(&undo), "{text}");
                undone(&bench, &file, unfinished(&file).as_str()).unwrap();
            }
            assert_eq!(bench.bytes(&file), damaged, "{change_limit}");
            assert_eq!(bench.repair(&file, false).check.verdict, ImageVerdict::Sound);
        }
        assert!(failed > 0);
    }
}

/// Opening a VHD repairs metadata only, so children still accept the image as their parent.
#[test]
fn a_vhd_keeps_its_time_when_it_is_opened() {
    let (bench, file) = Bench::new(DiskFormat::Vhd);
    // Opening zeroes the space at the end and repairs the damaged footer.
    let opened = seeded(50, |seeds| {
        open(bench.files.as_ref(), &plan(DiskFormat::Vhd, DiskKind::Dynamic, file.as_str()), seeds)
    });
    drop(opened.unwrap());
    bench.damage(&file, (0, 8));
    let modified = bench.files.status(&file).unwrap().modified_unix_s;
    bench.store.set_time(NOW + 900);
    let writing = plan(DiskFormat::Vhd, DiskKind::Dynamic, file.as_str());
    let before = bench.bytes(&file);
    let opened = seeded(50, |seeds| open(bench.files.as_ref(), &writing, seeds)).unwrap();
    assert_ne!(bench.bytes(&file), before);
    close(opened.layer_stack, "disk").unwrap();
    assert_eq!(bench.files.status(&file).unwrap().modified_unix_s, modified);
}

/// Reading the properties of a child, and planning its new link, writes nothing to the parent, even
/// if a killed process left a redo record of it.
#[test]
fn a_parent_with_a_record_is_not_written_by_a_description() {
    for format in formats() {
        let (bench, base) = Bench::new(format);
        let top = name(&format!("top.{}", format.as_str()));
        let child_plan = child(format, top.as_str(), base.as_str());
        seeded(100, |seeds| create(&bench.files, &child_plan, seeds)).unwrap();
        let records = MemoryRedoRecords::default();
        let key = bench.files.open(&base, FileLockMode::Read, 1).unwrap().properties().id.unwrap();
        leave_record(&bench, &base, &records);
        assert_eq!(records.count(), 1, "{key}");
        bench.store.clear_log();
        let described =
            recorded(5, Some(&records), |seeds| info(bench.target(&top), seeds)).unwrap();
        let linked =
            recorded(5, Some(&records), |seeds| set_parent(bench.target(&top), &base, true, seeds));
        assert_eq!((bench.store.ops(), records.count()), (Vec::new(), 1));
        // Opening a VHDX for writing changes its content identifier for children; opening a VHD
        // does not.
        if format == DiskFormat::Vhd {
            assert_eq!(described.parent.unwrap().found_file.as_deref(), Some(base.as_str()));
            linked.unwrap();
        }
    }
}

/// Leaves a redo record of the image, as a killed process does.
fn leave_record(bench: &Bench, file: &FileName, records: &MemoryRedoRecords) {
    let format = bench.target(file).read_format().unwrap();
    let modified = bench.files.open(file, FileLockMode::Read, 1).unwrap().modified().unwrap();
    let plan = DiskPlan { size_bytes: None, ..plan(format, DiskKind::Dynamic, file.as_str()) };
    let remaining = RemainingRecordPolicy::Redo;
    let mut next = 4000_u128;
    let mut random = || {
        next += 1;
        next.to_be_bytes()
    };
    let seeds = &mut HostInputs {
        random: &mut random,
        now_unix_s: NOW,
        redo_records: Some(records),
        remaining_redo_records: remaining,
    };
    let mut disk = crate::jobs::offline_disk::OfflineDisk::from(
        open(bench.files.as_ref(), &plan, seeds).unwrap(),
    );
    let range = suimon_image::ByteRange::new(0, 4096).unwrap();
    disk.write(range, &[5; 4096]).unwrap();
    drop(disk);
    let opened = bench.files.open(file, FileLockMode::Write, 1).unwrap();
    opened.set_modified(modified).unwrap();
}
