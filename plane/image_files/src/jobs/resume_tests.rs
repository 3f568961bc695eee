//! An interrupted job continues from its checkpoint, with the same result as an uninterrupted one.

use suimon_image::testing::WriteOutcome;
use suimon_ports::FileName;

use super::crash_tests::is_of_full_store;
use super::tests::{Bench, Fill, MB, model, plan_of_parent, run};
use super::*;
use crate::open_tests::{child, plan, seeded};
use crate::{DiskFormat, DiskKind, DiskPlan, incomplete_name, remove_all_incomplete};

const NOW: u64 = 1_700_009_999;
const SIZE: usize = 24 * MB;
/// Content for several steps, with holes.
const BASE: [Fill; 3] = [(4096, 9 * MB, 1), (11 * MB, 6 * MB, 2), (20 * MB, MB, 0)];
const CHILD: [Fill; 3] = [(MB, 9 * MB, 3), (11 * MB + 512, 5 * MB, 4), (23 * MB, 512, 5)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Convert(DiskFormat, DiskKind),
    Compact,
    Merge,
}

const WORKS: [Work; 6] = [
    Work::Convert(DiskFormat::Raw, DiskKind::Fixed),
    Work::Convert(DiskFormat::Vhd, DiskKind::Dynamic),
    Work::Convert(DiskFormat::Vhdx, DiskKind::Dynamic),
    Work::Convert(DiskFormat::Vhdx, DiskKind::Fixed),
    Work::Compact,
    Work::Merge,
];

struct Case {
    bench: Bench,
    top: DiskPlan,
    work: Work,
}

impl Case {
    fn new(format: DiskFormat, work: Work) -> Self {
        let bench = Bench::new();
        let base =
            DiskPlan { size_bytes: Some(SIZE as u64), ..plan(format, DiskKind::Dynamic, "base") };
        bench.make(&base, 1);
        bench.fill(&base, &BASE);
        let top = child(format, "top", "base");
        bench.make(&top, 100);
        bench.fill(&top, &CHILD);
        bench.store.set_time(NOW);
        Self { bench, top, work }
    }

    fn target(&self) -> DiskPlan {
        match self.work {
            Work::Convert(format, kind) => {
                DiskPlan { block_bytes: None, ..plan(format, kind, "new") }
            }
            Work::Compact | Work::Merge => self.top.clone(),
        }
    }

    fn begin(&self, checkpoint: Option<&Checkpoint>) -> Result<Box<dyn DiskJob>, DiskError> {
        let files = &self.bench.files;
        seeded(700, |seeds| -> Result<Box<dyn DiskJob>, DiskError> {
            Ok(match self.work {
                Work::Convert(..) => {
                    let target = DiskPlan { size_bytes: None, ..self.target() };
                    Box::new(CopyJob::convert(files, &self.top, &target, checkpoint, seeds)?)
                }
                Work::Compact => Box::new(CopyJob::compact(files, &self.top, checkpoint, seeds)?),
                Work::Merge => Box::new(MergeJob::begin(files, &self.top, checkpoint, seeds)?),
            })
        })
    }

    /// Performs the recovery that a new process performs before it opens disks.
    fn clear_up(&self) {
        let kept_drafts = [incomplete_name(self.target().file.as_ref().unwrap()).unwrap()];
        assert!(remove_all_incomplete(self.bench.files.as_ref(), &kept_drafts).unwrap().is_empty());
        recover_merges(self.bench.files.as_ref()).unwrap();
    }

    fn assert_content(&self, is_completed: bool) {
        let content = model(&[&BASE, &CHILD], SIZE);
        assert!(self.bench.read(&self.top) == content, "{:?}", self.work);
        if is_completed {
            let target_plan = match self.work {
                Work::Merge => plan_of_parent(&self.top),
                _ => self.target(),
            };
            assert!(self.bench.read(&target_plan) == content, "{:?}", self.work);
            let is_draft = |file: &FileName| file.file_name().starts_with('.');
            assert!(!self.bench.store.files().keys().any(is_draft), "{:?}", self.work);
        }
    }
}

/// Performs a step, a checkpoint, and a further step whose work is lost. Returns the job, the
/// checkpoint, and the number of changes of the store up to the checkpoint.
fn cut_off(case: &Case) -> (Box<dyn DiskJob>, Checkpoint, usize) {
    let mut job = case.begin(None).unwrap();
    let progress = job.step().unwrap();
    assert!(!progress.is_done, "{:?}", case.work);
    let checkpoint = job.checkpoint(NOW).unwrap().unwrap();
    assert_eq!(checkpoint.completed_bytes, progress.done_bytes);
    let durable = case.bench.store.ops().len();
    job.step().unwrap();
    (job, checkpoint, durable)
}

#[test]
fn a_job_interrupted_by_a_crash_continues_from_its_checkpoint() {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        for work in WORKS {
            let case = Case::new(format, work);
            case.bench.store.clear_log();
            let (job, checkpoint, durable) = cut_off(&case);
            let ops = case.bench.store.ops().len();
            for (nth, crash_point) in
                (durable..=ops).step_by(((ops - durable) / 3).max(1)).enumerate()
            {
                let store = case.bench.store.store_after_crash(crash_point, || match nth % 3 {
                    0 => WriteOutcome::Persisted,
                    1 => WriteOutcome::Lost,
                    _ => {
                        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        [WriteOutcome::Persisted, WriteOutcome::Lost, WriteOutcome::Torn(bits)]
                            [(bits >> 60) as usize % 3]
                    }
                });
                let crashed = Case { bench: Bench::with_store(store), top: case.top.clone(), work };
                crashed.clear_up();
                crashed.assert_content(false);
                let mut job = crashed.begin(Some(&checkpoint)).unwrap();
                let first = job.step().unwrap().done_bytes;
                assert!(first > checkpoint.completed_bytes, "{work:?} at {crash_point}: {first}");
                run(job.as_mut()).unwrap();
                drop(job);
                crashed.assert_content(true);
            }
            drop(job);
        }
    }
}

#[test]
fn a_job_that_is_left_continues_and_a_dropped_one_is_reverted() {
    for work in WORKS {
        let case = Case::new(DiskFormat::Vhdx, work);
        let before = case.bench.store.files().len();
        let (mut job, checkpoint, _) = cut_off(&case);
        job.keep_for_resume();
        drop(job);
        case.clear_up();
        case.assert_content(false);
        let mut job = case.begin(Some(&checkpoint)).unwrap();
        assert!(job.step().unwrap().done_bytes > checkpoint.completed_bytes);
        drop(job);
        assert_eq!(case.bench.store.files().len(), before, "{work:?}");
        case.assert_content(false);
    }
}

#[test]
fn a_job_on_a_disk_changed_meanwhile_starts_from_the_beginning() {
    for work in WORKS {
        let case = Case::new(DiskFormat::Vhdx, work);
        let (mut job, checkpoint, _) = cut_off(&case);
        job.keep_for_resume();
        drop(job);
        case.bench.store.set_time(NOW + 1);
        case.bench.fill(&case.top, &CHILD[..1]);
        let mut job = case.begin(Some(&checkpoint)).unwrap();
        assert!(job.step().unwrap().done_bytes <= checkpoint.completed_bytes, "{work:?}");
        // The file was changed in this second, and a further change could not be detected.
        assert_eq!(job.checkpoint(NOW + 1).unwrap(), None, "{work:?}");
        run(job.as_mut()).unwrap();
        drop(job);
        case.assert_content(true);
    }
}

#[test]
fn a_damaged_or_missing_incomplete_image_is_created_again() {
    for is_missing in [true, false] {
        for work in WORKS.into_iter().filter(|work| *work != Work::Merge) {
            let case = Case::new(DiskFormat::Vhd, work);
            let (mut job, checkpoint, _) = cut_off(&case);
            job.keep_for_resume();
            drop(job);
            let draft = incomplete_name(case.target().file.as_ref().unwrap()).unwrap();
            if is_missing {
                case.bench.files.remove(&draft).unwrap();
            } else {
                let file =
                    case.bench.files.open(&draft, suimon_ports::FileLockMode::Write, 1).unwrap();
                file.set_len(4096).unwrap();
            }
            let mut job = case.begin(Some(&checkpoint)).unwrap();
            assert!(job.step().unwrap().done_bytes <= checkpoint.completed_bytes, "{work:?}");
            run(job.as_mut()).unwrap();
            drop(job);
            case.assert_content(true);
        }
    }
}

#[test]
fn a_job_completed_before_its_end_was_recorded_is_done() {
    let case = Case::new(DiskFormat::Vhdx, Work::Convert(DiskFormat::Raw, DiskKind::Fixed));
    let (mut job, checkpoint, _) = cut_off(&case);
    run(job.as_mut()).unwrap();
    drop(job);
    assert!(case.begin(None).err().unwrap().to_string().contains("already"));
    for checkpoint in [checkpoint, Checkpoint::default()] {
        assert!(case.begin(Some(&checkpoint)).unwrap().step().unwrap().is_done);
    }
    case.assert_content(true);
}

/// Runs a job on a store that is full after `change_limit` changes, until some steps or checkpoints
/// have failed. Then the store has space again. Returns true if the job is done, and the number of
/// failures.
fn run_held_up(case: &Case, change_limit: usize, checkpoint: &mut Checkpoint) -> (bool, usize) {
    const HELD_UP: usize = 4;
    let mut job = case.begin(None).unwrap();
    case.bench.store.set_change_limit(Some(change_limit));
    let mut held_up = 0;
    for _ in 0..10_000 {
        match job.step() {
            Ok(progress) if progress.is_done => return (true, held_up),
            Ok(_) => {}
            Err(error) if error.is_full() => held_up += 1,
            Err(error) => {
                assert!(is_of_full_store(&error), "{:?}, room {change_limit}: {error}", case.work);
                return (false, held_up);
            }
        }
        match job.checkpoint(NOW) {
            Ok(durable) => *checkpoint = durable.unwrap_or_default(),
            Err(error) => {
                assert!(error.is_full(), "{:?}, room {change_limit}: {error}", case.work);
                held_up += 1;
            }
        }
        if held_up >= HELD_UP {
            case.bench.store.set_change_limit(None);
        }
    }
    panic!("{:?}, room {change_limit}: it does not end", case.work);
}

/// Runs each job on stores that become full after each number of changes that is a multiple of
/// `step`, up to the number with which the job does not fail.
fn check_full_stores(step: usize) {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        for work in WORKS {
            let mut was_held_up = false;
            for change_limit in (0..).step_by(step) {
                let case = Case::new(format, work);
                let mut checkpoint = Checkpoint::default();
                let (is_completed, held_up) = run_held_up(&case, change_limit, &mut checkpoint);
                case.bench.store.set_change_limit(None);
                was_held_up |= is_completed && held_up > 0;
                if !is_completed {
                    // The image could not be closed. Another job continues from the checkpoint.
                    case.clear_up();
                    run(case.begin(Some(&checkpoint)).unwrap().as_mut()).unwrap();
                }
                case.assert_content(true);
                if is_completed && held_up == 0 {
                    break;
                }
            }
            assert!(was_held_up, "{work:?}");
        }
    }
}

#[test]
fn a_full_store_pauses_jobs_and_they_continue() {
    check_full_stores(11);
}

mod full {
    #[test]
    fn a_full_store_pauses_jobs_and_they_continue_after_any_change() {
        super::check_full_stores(1);
    }
}
