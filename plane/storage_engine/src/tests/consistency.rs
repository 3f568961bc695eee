//! Disks of clients with many requests in flight, on files with operations that complete in any
//! order, fail, or are interrupted.

use std::collections::BTreeMap;
use std::io;

use suimon_image::testing::{Crash, MemoryFile, WriteOutcome};
use suimon_ports::{DiskOp, DiskOutcome};

use crate::StorageNotice;
use crate::engine::notices::SpaceChange;
use crate::testing::fake_io::FaultInjection;
use crate::testing::image_kinds::{CHILDREN, KINDS, Kind};
use crate::testing::random_numbers::RandomNumbers;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::content_model::Model;
use crate::tests::disk_bench::{Bench, REGION, REGIONS, SECTOR, close};

/// Runs clients, and simulates crashes at some moments.
fn run(kind: Kind, seed: u64, capacity: usize) {
    let mut bench = Bench::new(kind, seed, capacity);
    let before = bench.file.memory().content();
    let mut model = Model::new(kind, seed);
    for turn in 0..400 {
        for _ in 0..model.random.below(6) {
            model.submit_random(&bench);
        }
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            model.handle_completion(&bench, tag);
        }
        if turn % 40 == 39 {
            let ops = bench.file.memory().log();
            let crash = Crash { before: &before, changes: &ops, started_count: ops.len() };
            for _ in 0..4 {
                let unsynced = crash.unflushed_count();
                let fate = |random: &mut RandomNumbers| match random.below(3) {
                    0 => WriteOutcome::Persisted,
                    1 => WriteOutcome::Lost,
                    _ => WriteOutcome::Torn(random.below(u64::MAX)),
                };
                let fates: Vec<_> = (0..unsynced).map(|_| fate(&mut model.random)).collect();
                let mut order: Vec<_> = (0..unsynced).collect();
                for at in (1..unsynced).rev() {
                    order.swap(at, model.random.below(at as u64 + 1) as usize);
                }
                model.check_crash(kind, crash.content_after(&order, &fates));
            }
        }
    }
    for _ in 0..10_000 {
        if model.in_flight.is_empty() && model.flush.is_none() {
            break;
        }
        for (tag, _) in bench.poll() {
            model.handle_completion(&bench, tag);
        }
    }
    assert!(model.in_flight.is_empty() && model.flush.is_none(), "{}: seed {seed}", kind.name);
    assert!(bench.notices().is_empty());
    close(&mut bench);
    // After an orderly close, the file contains all changes.
    let file = bench.file.memory().content();
    let mut reopened = Bench::with_memory(kind, MemoryFile::new(file), 1, 64);
    let found = reopened.read(range(0, SIZE));
    for (found, of) in found.chunks(SECTOR).zip(&model.sectors) {
        assert!(found[0] == of.now || matches!(of.may_be.last(), Some(None)));
    }
}

#[test]
fn completed_writes_are_read_and_flushed_writes_survive_every_crash() {
    for kind in KINDS.into_iter().chain(CHILDREN) {
        for seed in 0..4 {
            run(kind, seed, [3, 64][seed as usize % 2]);
        }
    }
}

#[test]
fn each_request_completes_once_whatever_fails() {
    for kind in KINDS {
        for seed in 0..8 {
            let excludes_flushes = seed % 2 == 0;
            let mut bench = Bench::new(kind, seed, 8);
            *bench.faults.lock().unwrap() = FaultInjection {
                one_in: 4,
                kind: Some(io::ErrorKind::Other),
                excludes_flushes,
                ..FaultInjection::default()
            };
            let mut random = RandomNumbers(seed);
            let mut open = BTreeMap::new();
            let mut outcomes = BTreeMap::new();
            for turn in 0..2000 {
                let tag = random.below(REGIONS) as u32;
                if turn < 1000 && !open.contains_key(&tag) {
                    let place = range(u64::from(tag) * REGION, REGION);
                    let (op, place) = match random.below(5) {
                        0 => (DiskOp::Read, place),
                        1 => (DiskOp::Write { is_durable: true }, place),
                        2 => (DiskOp::Flush, range(0, 0)),
                        3 => (DiskOp::Discard, place),
                        _ => (WRITE, place),
                    };
                    bench.submit(tag, op, place, vec![1; REGION as usize]);
                    open.insert(tag, op);
                }
                for (tag, outcome) in bench.poll() {
                    assert!(open.remove(&tag).is_some(), "{}: {tag} twice", kind.name);
                    *outcomes.entry(outcome == DiskOutcome::Done).or_insert(0) += 1;
                }
            }
            assert!(open.is_empty(), "{}: seed {seed}: {open:?}", kind.name);
            assert!(outcomes.len() == 2, "{}: some fail, some do not: {outcomes:?}", kind.name);
            assert!(!bench.notices().is_empty());
            // After the faults have ended, the disk works, unless a flush has failed.
            bench.faults.lock().unwrap().kind = None;
            let written = bench.run(WRITE, range(0, 4096), vec![7; 4096]);
            assert_eq!(written == DiskOutcome::Done, excludes_flushes, "{}", kind.name);
            let read = bench.read(range(0, 4096));
            assert!(read == [7; 4096] || !excludes_flushes);
            close(&mut bench);
        }
    }
}

#[test]
fn a_full_file_system_is_reported_as_no_space() {
    for kind in KINDS {
        let mut bench = Bench::new(kind, 1, 8);
        bench.faults.lock().unwrap().one_in = 1;
        bench.faults.lock().unwrap().kind = Some(io::ErrorKind::StorageFull);
        let outcome = bench.run(WRITE, range(0, 4096), vec![7; 4096]);
        assert_eq!(outcome, DiskOutcome::NoSpace, "{}", kind.name);
        let notices = bench.notices();
        assert!(matches!(
            &notices[..],
            [StorageNotice::DiskSpaceChange { change: SpaceChange::Full, .. }]
        ));
    }
}
