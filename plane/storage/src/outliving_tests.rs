//! Clients that go on when the process that served them was killed, with another one: to them
//! everything that was answered has happened.

use std::io;
use std::sync::{Arc, Mutex};

use suimon_image::testing::MemoryFile;
use suimon_image::{MetadataChange, OpenedImage, Redo};
use suimon_ports::{DiskOutcome, RedoRecord};

use crate::fakes::FakeQueue;
use crate::images::RecordedImage;
use crate::kinds::{KINDS, Kind};
use crate::work_tests::{Bench, Model, TAGS};

/// What a record keeps.
#[derive(Default)]
struct Kept {
    room: usize,
    first: u64,
    changes: Vec<MetadataChange>,
    opened: OpenedImage,
}

/// A record in memory that the test reads.
#[derive(Clone, Default)]
struct MemoryRecord(Arc<Mutex<Kept>>);

impl MemoryRecord {
    fn redo(&self) -> Redo {
        let kept = self.0.lock().unwrap();
        Redo { opened: kept.opened, changes: kept.changes.clone(), redone_as: [0x77; 16] }
    }
}

impl RedoRecord for MemoryRecord {
    fn keep(&mut self, changes: &[MetadataChange], file_len: u64) -> io::Result<bool> {
        let mut kept = self.0.lock().unwrap();
        if kept.changes.len() + changes.len() > kept.room {
            return Ok(false);
        }
        kept.changes.extend_from_slice(changes);
        kept.opened.file_len = kept.opened.file_len.max(file_len);
        Ok(true)
    }

    fn next(&self) -> u64 {
        let kept = self.0.lock().unwrap();
        kept.first + kept.changes.len() as u64
    }

    fn forget(&mut self, before: u64) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap();
        let count = before - kept.first;
        kept.changes.drain(..count as usize);
        kept.first = before;
        Ok(())
    }

    fn remove(self: Box<Self>) -> io::Result<()> {
        self.0.lock().unwrap().changes.clear();
        Ok(())
    }
}

/// A disk whose changes are kept in a record with so much room; none is there without room.
fn bench(kind: Kind, seed: u64, capacity: usize, room: usize) -> (Bench, MemoryRecord) {
    let mut queue = FakeQueue::new(TAGS);
    queue.outlives_process = true;
    let record = MemoryRecord::default();
    let memory = (kind.create)();
    let mut image = (kind.open)(&memory);
    if room > 0 {
        *record.0.lock().unwrap() = Kept { room, opened: image.opened(), ..Kept::default() };
        image = Box::new(RecordedImage::new(image, Box::new(record.clone())));
    }
    (Bench::with_image(image, memory, seed, capacity, queue), record)
}

/// Runs a client, and after each turn looks what the next process would find. Returns how many
/// commits that took.
fn run(kind: Kind, seed: u64, capacity: usize, room: usize) -> u64 {
    let (mut bench, record) = bench(kind, seed, capacity, room);
    let mut model = Model::new(seed);
    for _ in 0..120 {
        for _ in 0..model.dice.below(6) {
            model.ask(&bench);
        }
        let mut has_answers = false;
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            let asked = model.under_way.get(&tag).copied();
            model.handle_answer(&bench, tag);
            for sector in asked.map(|(_, range, _)| model.of(range)).into_iter().flatten() {
                sector.handle_durable(sector.answered);
                has_answers = true;
            }
        }
        if has_answers {
            // What a killed process has handed to the kernel stays, synced or not.
            let file = MemoryFile::new(bench.file.memory().bytes());
            (kind.redo)(&file, &record.redo());
            model.check_crash(kind, file.bytes());
        }
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

#[test]
fn what_was_answered_is_there_for_the_next_process_with_a_record_of_any_room() {
    for kind in KINDS {
        let commits = [0, 1, 7, 1024].map(|room| run(kind, 1, 64, room));
        let [without, .., with] = commits;
        // With room for all, only the client's flushes and much that has changed cost a commit.
        assert!(kind.name == "raw" || with < without, "{}: {commits:?}", kind.name);
    }
}
