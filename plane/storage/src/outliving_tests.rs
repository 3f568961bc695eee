//! Clients that go on when the process that served them was killed, with another one: to them
//! everything that was answered has happened.

use suimon_image::testing::MemoryFile;
use suimon_ports::testing::MemoryRecords;
use suimon_ports::{DiskOutcome, RedoRecords};

use crate::fakes::FakeQueue;
use crate::images::RecordedImage;
use crate::kinds::{KINDS, Kind};
use crate::work_tests::{Bench, Model, TAGS};

/// The key of the disk's record.
const KEY: &str = "disk";

/// A disk whose changes are kept in a record with so much room; none is there without room.
fn bench(kind: Kind, seed: u64, capacity: usize, room: usize) -> (Bench, MemoryRecords) {
    let records = MemoryRecords::with_room(room);
    let memory = (kind.create)();
    let mut image = (kind.open)(&memory);
    if room > 0 {
        let record = records.begin(KEY, image.opened()).unwrap();
        image = Box::new(RecordedImage::new(image, record));
    }
    (Bench::with_image(image, memory, seed, capacity, FakeQueue::new(TAGS)), records)
}

/// Runs a client, and after each turn looks what the next process would find. Returns how many
/// commits that took.
fn run(kind: Kind, seed: u64, capacity: usize, room: usize) -> u64 {
    let (bench, records) = bench(kind, seed, capacity, room);
    run_on(kind, seed, bench, &records)
}

fn run_on(kind: Kind, seed: u64, mut bench: Bench, records: &MemoryRecords) -> u64 {
    let mut model = Model::new(seed);
    let mut commits_when_abandoned = None;
    for _ in 0..120 {
        for _ in 0..model.dice.below(6) {
            model.ask(&bench);
        }
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            let asked = model.under_way.get(&tag).copied();
            model.handle_answer(&bench, tag);
            for sector in asked.map(|(_, range, _)| model.of(range)).into_iter().flatten() {
                sector.handle_durable(sector.answered);
            }
        }
        let commits = bench.work.tally(bench.disk).unwrap().commits;
        if records.is_abandoned(KEY) {
            let first = *commits_when_abandoned.get_or_insert(commits);
            if commits == first {
                // The commit that comes after a record has failed is under way.
                continue;
            }
        }
        // Also in the middle of a commit. What a killed process has handed to the kernel stays, synced or
        // not.
        let file = MemoryFile::new(bench.file.memory().bytes());
        (kind.redo)(&file, &records.load(KEY).unwrap().unwrap_or_default());
        model.check_crash(kind, file.bytes());
    }
    bench.work.tally(bench.disk).unwrap().commits
}

#[test]
fn what_was_answered_is_there_for_the_next_process() {
    for kind in KINDS {
        for seed in 0..6 {
            run(kind, seed, [3, 64][seed as usize % 2], 0);
        }
    }
}

/// How many commits a disk takes with room for one request in its record, for few, and for all.
fn run_with_room(kind: Kind, seed: u64) -> [u64; 3] {
    [24, 40, 1024].map(|room| run(kind, seed, 64, room))
}

#[test]
fn what_was_answered_is_there_for_the_next_process_with_a_record_of_any_room() {
    for kind in KINDS {
        let without = run(kind, 1, 64, 0);
        let [.., with] = run_with_room(kind, 1);
        // With room for all, only the client's flushes and much that has changed cost a commit.
        assert!(kind.name == "raw" || with < without, "{}: {with} of {without}", kind.name);
    }
}

#[test]
fn a_record_that_cannot_be_written_is_used_no_more() {
    for kind in KINDS.into_iter().filter(|kind| kind.name != "raw") {
        for (seed, writes) in [(1, 0), (2, 1), (3, 7), (4, 12)] {
            let (bench, records) = bench(kind, seed, 64, 40);
            records.fail_after(writes);
            run_on(kind, seed, bench, &records);
            assert!(records.is_abandoned(KEY), "{}: after {writes} writes", kind.name);
        }
    }
}

mod full {
    use super::*;

    #[test]
    fn what_was_answered_is_there_for_the_next_process_with_a_record_of_any_room() {
        for (kind, seed) in KINDS.into_iter().flat_map(|kind| (2..8).map(move |seed| (kind, seed)))
        {
            run_with_room(kind, seed);
        }
    }
}
