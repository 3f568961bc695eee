//! Clients that continue with a new process after the serving process was killed. Every completed
//! request has taken effect.

use suimon_image::testing::MemoryFile;
use suimon_image::{ByteRange, Image, ImageFile, Translation};
use suimon_image_files::RecordedImage;
use suimon_ports::testing::MemoryRedoRecords;
use suimon_ports::{DiskOp, DiskOutcome, RedoRecords};
use suimon_vhdx::NewVhdx;

use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::{CHILDREN, KINDS, Kind, VHDX, new_vhdx};
use crate::testing::requests::WRITE;
use crate::tests::content_model::Model;
use crate::tests::disk_bench::{Bench, TAGS};

/// Key of the disk's record.
const KEY: &str = "disk";

fn all_kinds() -> impl Iterator<Item = Kind> {
    KINDS.into_iter().chain(CHILDREN)
}

/// Creates a disk with a redo record that has room for `record_capacity` changes; without a record
/// if that is 0.
fn bench(
    kind: Kind,
    seed: u64,
    capacity: usize,
    record_capacity: usize,
) -> (Bench, MemoryRedoRecords) {
    let records = MemoryRedoRecords::with_capacity(record_capacity);
    let memory = (kind.create)();
    let image = (kind.open)(&memory);
    let image = if record_capacity > 0 {
        let record = records.create(KEY, image.identity()).unwrap();
        RecordedImage::new(image, record)
    } else {
        RecordedImage::without_record(image)
    };
    (
        Bench::with_image(kind, Box::new(image), memory, seed, capacity, FakeQueue::new(TAGS)),
        records,
    )
}

/// Number of commits of a disk, and number of requests that had to be durable.
#[derive(Clone, Copy)]
struct Counts {
    commits: u64,
    durable: u64,
}

/// Runs a client, and checks after each iteration the state that a new process would find.
fn run(kind: Kind, seed: u64, capacity: usize, record_capacity: usize) -> Counts {
    let (bench, records) = bench(kind, seed, capacity, record_capacity);
    run_on(kind, seed, bench, &records)
}

fn run_on(kind: Kind, seed: u64, mut bench: Bench, records: &MemoryRedoRecords) -> Counts {
    let mut model = Model::new(kind, seed);
    let mut durable = 0;
    let mut commits_when_abandoned = None;
    for _ in 0..120 {
        for _ in 0..model.random.below(6) {
            model.submit_random(&bench);
        }
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            let pending = model.in_flight.get(&tag).copied();
            durable += u64::from(pending.is_none_or(|(op, ..)| is_durable(op)));
            model.handle_completion(&bench, tag);
            for sector in pending.map(|(_, range, _)| model.sectors(range)).into_iter().flatten() {
                sector.handle_durable(sector.answered);
            }
        }
        let commits = bench.engine.counters(bench.disk).unwrap().commits;
        if records.is_abandoned(KEY) {
            let first = *commits_when_abandoned.get_or_insert(commits);
            if commits == first {
                // The commit after the failure of a record is in flight.
                continue;
            }
        }
        // This holds even during a commit. Data that a killed process has passed to the kernel
        // persists, whether or not it was synchronised.
        let file = MemoryFile::new(bench.file.memory().content());
        (kind.redo)(&file, &records.load(KEY).unwrap().unwrap_or_default());
        model.check_crash(kind, file.content());
    }
    for _ in 0..10_000 {
        if model.in_flight.is_empty() && model.flush.is_none() {
            break;
        }
        for (tag, _) in bench.poll() {
            let pending = model.in_flight.get(&tag);
            durable += u64::from(pending.is_none_or(|(op, ..)| is_durable(*op)));
            model.handle_completion(&bench, tag);
        }
    }
    let is_idle = model.in_flight.is_empty() && model.flush.is_none();
    assert!(is_idle, "{}: seed {seed}: requests do not end", kind.name);
    Counts { commits: bench.engine.counters(bench.disk).unwrap().commits, durable }
}

fn is_durable(op: DiskOp) -> bool {
    matches!(op, DiskOp::Write { is_durable: true } | DiskOp::WriteZeroes { is_durable: true, .. })
}

#[test]
fn completed_writes_are_visible_to_the_next_process() {
    for kind in all_kinds() {
        run(kind, 0, 3, 0);
    }
}

/// Runs a disk with a redo record that has room for one request, for few, and for all.
fn run_with_room(kind: Kind, seed: u64) -> [Counts; 3] {
    [24, 40, 1024].map(|record_capacity| run(kind, seed, 64, record_capacity))
}

#[test]
fn completed_writes_are_visible_to_the_next_process_with_a_record_of_any_capacity() {
    for kind in all_kinds().filter(|kind| kind.name != "raw") {
        let without_record = run(kind, 1, 64, 0);
        let [.., with_record] = run_with_room(kind, 1);
        // With room for all requests, commits are caused only by the client's flushes and durable
        // writes, and in a VHD by growth of the file.
        if kind.name.ends_with("VHDX") {
            assert!(
                with_record.commits <= with_record.durable,
                "{}: {} commits",
                kind.name,
                with_record.commits
            );
        } else {
            let (commits_with, commits_without) = (with_record.commits, without_record.commits);
            assert!(
                commits_with < commits_without,
                "{}: {commits_with} of {commits_without}",
                kind.name
            );
        }
    }
}

#[test]
fn a_record_that_cannot_be_written_is_not_used_further() {
    let kinds = all_kinds().filter(|kind| kind.name != "raw");
    for (kind, (seed, writes)) in kinds.zip([(1, 0), (3, 7), (2, 1), (3, 7)]) {
        let (bench, records) = bench(kind, seed, 64, 40);
        records.fail_after_writes(writes);
        run_on(kind, seed, bench, &records);
        assert!(records.is_abandoned(KEY), "{}: after {writes} writes", kind.name);
    }
}

#[test]
fn zeros_over_many_parts_need_room_for_one_write_only() {
    for kind in all_kinds() {
        for may_unmap in [false, true] {
            let (mut bench, records) = bench(kind, 1, 64, 24);
            for sector in (0..128).step_by(2) {
                let range = ByteRange::new(sector * 512, 512).unwrap();
                assert_eq!(bench.run(WRITE, range, vec![1; 512]), DiskOutcome::Done);
            }
            let full_range = ByteRange::new(512, 63 * 1024).unwrap();
            let zeros = DiskOp::WriteZeroes { may_unmap, is_durable: false, only_if_fast: false };
            assert_eq!(
                bench.run(zeros, full_range, Vec::new()),
                DiskOutcome::Done,
                "{}",
                kind.name
            );
            assert!(bench.read(full_range).iter().all(|byte| *byte == 0), "{}", kind.name);
            let file = MemoryFile::new(bench.file.memory().content());
            (kind.redo)(&file, &records.load(KEY).unwrap().unwrap_or_default());
            let mut reopened = Bench::with_memory(kind, file, 1, 64);
            assert!(reopened.read(full_range).iter().all(|byte| *byte == 0), "{}", kind.name);
        }
    }
}

#[test]
fn an_image_that_frees_nothing_keeps_what_is_discarded() {
    // A fixed VHDX whose first two blocks are exchanged.
    let memory = MemoryFile::default();
    let new = NewVhdx { is_fixed: true, ..new_vhdx(None) };
    new.create(&memory).unwrap();
    let (bat, mut entries) = (3 << 20, [0; 16]);
    memory.read_at(bat, &mut entries).unwrap();
    entries.rotate_left(8);
    memory.write_at(bat, &entries).unwrap();
    let image = (VHDX.open)(&memory);
    assert!(image.linear_offset().is_none() && image.disk_geometry().block_bytes == 0);
    let record = MemoryRedoRecords::with_capacity(24).create(KEY, image.identity()).unwrap();
    let mut image = RecordedImage::new(image, record);
    let full_range = ByteRange::new(0, image.disk_geometry().size_bytes).unwrap();
    let mut kept_ranges = Vec::new();
    assert_eq!(image.discard(full_range, &mut kept_ranges).unwrap(), Translation::Ready);
    assert_eq!(kept_ranges, [full_range]);
    assert_eq!(image.translate_write(full_range, &mut Vec::new()).unwrap(), Translation::Ready);
}

/// Without a record, only writes to blocks with uncommitted changes wait for a commit.
#[test]
fn without_a_record_a_write_waits_for_changes_of_its_own_blocks_only() {
    for kind in all_kinds().filter(|kind| kind.name != "raw") {
        let (mut bench, _) = bench(kind, 1, 64, 0);
        let block = |nth: u64| ByteRange::new(nth << 20, 1 << 20).unwrap();
        let sector = |nth: u64| ByteRange::new((nth << 20) + 4096, 4096).unwrap();
        // Both blocks are allocated, entirely in the file, and committed.
        for nth in 0..2 {
            let written = bench.run(WRITE, block(nth), vec![1; 1 << 20]);
            assert_eq!(written, DiskOutcome::Done, "{}", kind.name);
        }
        let commits = |bench: &Bench| bench.engine.counters(bench.disk).unwrap().commits;
        // The metadata of a further block cannot become durable, because flushes do not end.
        bench.faults.lock().unwrap().stalled_flushes = true;
        bench.submit(3, WRITE, sector(2), vec![3; 4096]);
        (0..200).for_each(|_| assert!(bench.poll().is_empty()));
        let before = commits(&bench);
        for (tag, nth) in (5..).zip(0..2) {
            bench.submit(tag, WRITE, sector(nth), vec![2; 4096]);
            let completions: Vec<_> = (0..200).flat_map(|_| bench.poll()).collect();
            assert_eq!(completions, [(tag, DiskOutcome::Done)], "{}: block {nth}", kind.name);
        }
        assert_eq!(commits(&bench), before);
        // A write to a block waits while the block's allocation is in flight.
        bench.submit(4, WRITE, ByteRange::new(sector(2).end(), 4096).unwrap(), vec![3; 4096]);
        (0..200).for_each(|_| assert!(bench.poll().is_empty()));
        bench.faults.lock().unwrap().stalled_flushes = false;
        let mut completions = Vec::new();
        while completions.len() < 2 {
            completions.extend(bench.poll());
        }
        assert!(completions.iter().all(|(_, outcome)| *outcome == DiskOutcome::Done));
    }
}

mod full {
    use super::*;

    #[test]
    fn completed_writes_are_visible_to_the_next_process_with_a_record_of_any_capacity() {
        for (kind, seed) in all_kinds().flat_map(|kind| (2..8).map(move |seed| (kind, seed))) {
            run(kind, seed, [3, 64][seed as usize % 2], 0);
            run_with_room(kind, seed);
        }
    }

    #[test]
    fn a_record_that_cannot_be_written_is_not_used_further() {
        for (kind, writes) in
            all_kinds().skip(1).flat_map(|kind| [0, 1, 2, 5, 9].map(|position| (kind, position)))
        {
            let (bench, records) = bench(kind, writes, 64, 40);
            records.fail_after_writes(writes);
            run_on(kind, writes, bench, &records);
        }
    }
}
