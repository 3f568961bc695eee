//! After a crash, on a full store, or after dropping a job, the disk opens with its content.

use suimon_image::testing::WriteOutcome;
use suimon_ports::FileName;

use super::tests::{BASE, Bench, CHILD, MB, compact, convert, kinds, merge, model, plan_of_parent};
use super::*;
use crate::open_tests::{name, plan, seeded};
use crate::{DiskFault, DiskFormat, DiskKind, remove_all_incomplete};

/// Runs a job and simulates a crash after each of its changes to the store. The disk must have its
/// content after the recovery that precedes the opening of disks, and again after a further run of
/// the job. `is_good` asserts the content.
fn crash_everywhere(
    bench: &Bench,
    job: impl Fn(&Bench) -> Result<(), DiskError>,
    is_good: impl Fn(&Bench, bool),
) {
    bench.store.clear_log();
    job(bench).unwrap();
    let ops = bench.store.ops().len();
    let stride = (ops / 16).max(1);
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for crash_point in (0..ops).filter(|crash_point| {
        crash_point % stride == 0 || ops - crash_point < 12 || *crash_point < 12
    }) {
        // Near the end, where a file gets its final name, all possible outcomes of changes that are
        // not synchronised are simulated.
        let modes = if ops - crash_point < 8 { 0..3 } else { crash_point % 3..crash_point % 3 + 1 };
        for mode in modes {
            let crashed =
                Bench::with_store(bench.store.store_after_crash(crash_point, || match mode {
                    0 => WriteOutcome::Persisted,
                    1 => WriteOutcome::Lost,
                    _ => {
                        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        [WriteOutcome::Persisted, WriteOutcome::Lost, WriteOutcome::Torn(bits)]
                            [(bits >> 60) as usize % 3]
                    }
                }));
            remove_all_incomplete(crashed.files.as_ref(), &[]).unwrap();
            recover_merges(crashed.files.as_ref()).unwrap();
            is_good(&crashed, false);
            match job(&crashed) {
                Ok(()) => is_good(&crashed, true),
                // A completed job is not repeated.
                Err(error) => {
                    assert!(error.to_string().contains("already"), "{crash_point}: {error}");
                }
            }
            let is_draft = |file: &FileName| file.file_name().starts_with('.');
            assert!(!crashed.store.files().keys().any(is_draft), "{crash_point}");
        }
    }
}

#[test]
fn a_crash_of_a_copy_leaves_the_disk() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let content = model(&[&BASE, &CHILD], 3 * MB);
        let target_plan = plan(format, DiskKind::Fixed, "new");
        crash_everywhere(
            &bench,
            |bench| convert(bench, &top, &target_plan),
            |bench, is_completed| {
                assert!(bench.read(&top) == content);
                let exists = bench.store.files().contains_key(&name("new"));
                assert!(exists || !is_completed);
                if exists {
                    assert!(bench.read(&target_plan) == content);
                }
            },
        );
        let (bench, top) = Bench::with_child(format);
        crash_everywhere(
            &bench,
            |bench| compact(bench, &top),
            |bench, _| {
                assert!(bench.read(&top) == content);
            },
        );
    }
}

#[test]
fn a_crash_of_a_merge_leaves_the_disk() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let content = model(&[&BASE, &CHILD], 3 * MB);
        crash_everywhere(
            &bench,
            |bench| merge(bench, &top),
            |bench, is_completed| {
                assert!(bench.read(&top) == content);
                if is_completed {
                    assert!(bench.read(&plan_of_parent(&top)) == content);
                }
            },
        );
    }
}

#[test]
fn a_crash_of_a_resize_or_a_snapshot_leaves_the_disk() {
    for plan in kinds() {
        let bench = Bench::new();
        bench.make(&plan, 1);
        bench.fill(&plan, &BASE);
        let size = 6 * MB;
        let job = |bench: &Bench| {
            seeded(600, |seeds| resize(bench.files.as_ref(), &plan, size as u64, seeds)).map(|_| ())
        };
        crash_everywhere(&bench, job, |bench, is_completed| {
            let content = bench.read(&plan);
            assert!(content.len() == size || (content.len() == 3 * MB && !is_completed));
            assert!(content == model(&[&BASE], content.len()), "{}", plan.label());
        });
    }
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let job = |bench: &Bench| {
            seeded(300, |seeds| snapshot(&bench.files, &top, name("next"), seeds)).map(|_| ())
        };
        crash_everywhere(&bench, job, |bench, _| {
            assert!(bench.read(&top) == model(&[&BASE, &CHILD], 3 * MB));
        });
    }
}

#[test]
fn a_job_that_is_dropped_or_finds_no_room_leaves_the_disk() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let content = model(&[&BASE, &CHILD], 3 * MB);
        let before = bench.store.files();
        drop(seeded(1, |seeds| CopyJob::compact(&bench.files, &top, None, seeds)).unwrap());
        assert!(bench.store.files() == before);
        drop(seeded(1, |seeds| MergeJob::begin(&bench.files, &top, None, seeds)).unwrap());
        assert!(bench.read(&top) == content);
        assert_eq!(bench.store.files().len(), 2);
        for work in [compact, merge] {
            for change_limit in (0..).step_by(7) {
                let (bench, top) = Bench::with_child(format);
                bench.store.set_change_limit(Some(change_limit));
                let outcome = work(&bench, &top);
                bench.store.set_change_limit(None);
                assert!(bench.read(&top) == content, "{change_limit}");
                assert_eq!(bench.store.files().len(), 2, "{change_limit}");
                match outcome {
                    Ok(()) => break,
                    Err(error) => assert!(is_of_full_store(&error), "{change_limit}: {error}"),
                }
            }
        }
    }
}

/// Returns true if the error was caused by a full store, including the case that a job could not be
/// completed for this reason.
pub(super) fn is_of_full_store(error: &DiskError) -> bool {
    error.is_full() || matches!(&*error.fault, DiskFault::CloseFailed { error } if error.is_full())
}
