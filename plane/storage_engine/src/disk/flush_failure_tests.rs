//! Disks with a failed flush. Later flushes of the file succeed although data is lost, as on Linux
//! (fsync(2)).

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use suimon_image::testing::{Crash, MemoryFile, WriteOutcome};
use suimon_image::{DiskGeometry, Image, LinearImage};
use suimon_image_files::RecordedImage;
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::testing::MemoryRedoRecords;
use suimon_ports::{DiskOp, DiskOutcome, RedoRecords};

use crate::full_store::FullStorePolicy;
use crate::testing::fake_file::FakeFile;
use crate::testing::fake_io::FakeIo;
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::{CHILDREN, KINDS, Kind, VHDX};
use crate::testing::random_numbers::RandomNumbers;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::content_model::Model;
use crate::tests::disk_bench::{Bench, TAGS};
use crate::{StorageEngine, StorageNotice};

const BLOCK: u64 = 64 << 10;
const DURABLE: DiskOp = DiskOp::Write { is_durable: true };
const ZEROES: DiskOp =
    DiskOp::WriteZeroes { may_unmap: true, is_durable: false, only_if_fast: false };

fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.into_iter().chain(CHILDREN)
}

fn flush(bench: &mut Bench) -> DiskOutcome {
    bench.run(DiskOp::Flush, range(0, 0), Vec::new())
}

fn write(bench: &mut Bench, op: DiskOp, offset: u64, byte: u8) -> DiskOutcome {
    bench.run(op, range(offset, BLOCK), vec![byte; BLOCK as usize])
}

fn set_failing(bench: &Bench, kind: Option<ErrorKind>) {
    bench.faults.lock().unwrap().failing_flush = kind;
}

fn flushes(bench: &Bench) -> usize {
    bench.faults.lock().unwrap().flushes
}

/// Takes all notices, and returns the errors of the failed flushes among them.
fn failures(bench: &mut Bench) -> Vec<String> {
    let failure = |notice| match notice {
        StorageNotice::FlushFailed { detail, .. } => detail,
        other => panic!("another notice: {other:?}"),
    };
    bench.notices().into_iter().map(failure).collect()
}

/// Returns a disk with a first block that was written, and with a failed flush.
fn failed_flush_bench(kind: Kind) -> Bench {
    let mut bench = Bench::new(kind, 5, 64);
    assert_eq!(write(&mut bench, WRITE, 0, 7), DiskOutcome::Done);
    set_failing(&bench, Some(ErrorKind::Other));
    assert_eq!(flush(&mut bench), DiskOutcome::Failed);
    set_failing(&bench, None);
    bench
}

#[test]
fn a_failed_flush_is_not_repeated_and_changes_fail_while_reads_proceed() {
    for kind in kinds() {
        let mut bench = failed_flush_bench(kind);
        let before = flushes(&bench);
        assert_eq!(failures(&mut bench).len(), 1, "{}", kind.name);
        assert!(bench.engine.flush_error(bench.disk).is_some());
        let ops = bench.file.memory().log().len();
        for op in [WRITE, DURABLE, DiskOp::Discard, ZEROES] {
            for offset in [0, BLOCK * 8] {
                let outcome = write(&mut bench, op, offset, 9);
                assert_eq!(outcome, DiskOutcome::Failed, "{}: {op:?}", kind.name);
            }
        }
        assert_eq!(flush(&mut bench), DiskOutcome::Failed, "{}", kind.name);
        assert_eq!(bench.read(range(0, BLOCK)), vec![7; BLOCK as usize]);
        // The idle disk does not commit, and no other cause begins a commit.
        for _ in 0..100 {
            bench.now = bench.now + Duration::from_secs(1);
            bench.poll();
        }
        assert_eq!(flushes(&bench), before, "{}", kind.name);
        assert_eq!(bench.file.memory().log().len(), ops, "{}", kind.name);
        assert!(failures(&mut bench).is_empty());
    }
}

#[test]
fn all_requests_that_wait_for_a_failed_flush_fail() {
    for kind in kinds() {
        for seed in 0..20 {
            let mut bench = Bench::with_queue(kind, (kind.create)(), seed, 3, FakeQueue::new(64));
            set_failing(&bench, Some(ErrorKind::StorageFull));
            let mut remaining_tags: Vec<u32> = (0..60).collect();
            for &tag in &remaining_tags {
                let op = [DiskOp::Flush, DURABLE, WRITE, DiskOp::Discard, ZEROES][tag as usize % 5];
                let (offset, len) = match op {
                    DiskOp::Flush => (0, 0),
                    _ => (BLOCK * u64::from(tag), BLOCK),
                };
                bench.submit(tag, op, range(offset, len), vec![1; len as usize]);
            }
            for _ in 0..20_000 {
                for (tag, outcome) in bench.poll() {
                    remaining_tags.retain(|remaining_tag| *remaining_tag != tag);
                    let is_durable = tag % 5 < 2;
                    assert!(outcome == DiskOutcome::Failed || !is_durable, "{}", kind.name);
                }
            }
            assert!(remaining_tags.is_empty(), "{}, seed {seed}: {remaining_tags:?}", kind.name);
            assert_eq!(failures(&mut bench).len(), 1);
        }
    }
}

#[test]
fn an_interrupted_flush_may_be_repeated() {
    let mut bench = Bench::new(VHDX, 5, 64);
    for kind in [ErrorKind::Interrupted, ErrorKind::WouldBlock] {
        assert_eq!(write(&mut bench, WRITE, 0, 7), DiskOutcome::Done);
        set_failing(&bench, Some(kind));
        assert_eq!(flush(&mut bench), DiskOutcome::Failed);
        set_failing(&bench, None);
        assert_eq!(flush(&mut bench), DiskOutcome::Done);
    }
    assert!(bench.engine.flush_error(bench.disk).is_none());
}

/// The flush finds no space for delayed allocation and the data is lost, so that waiting for space
/// does not help.
#[test]
fn requests_that_wait_for_space_fail_when_a_flush_fails() {
    for kind in kinds() {
        let mut bench = Bench::with_queue(kind, (kind.create)(), 5, 64, FakeQueue::new(64));
        let wait = FullStorePolicy { ring_wait: None, client_wait: Duration::ZERO };
        bench.engine.set_full_store_policy(bench.disk, wait);
        assert_eq!(write(&mut bench, DURABLE, 0, 7), DiskOutcome::Done);
        bench.faults.lock().unwrap().is_full = true;
        for tag in 1..9 {
            let offset = SIZE - BLOCK * u64::from(tag);
            bench.submit(tag, WRITE, range(offset, BLOCK), vec![1; BLOCK as usize]);
        }
        for _ in 0..1000 {
            assert!(bench.poll().is_empty(), "{}: they wait for space", kind.name);
        }
        set_failing(&bench, Some(ErrorKind::QuotaExceeded));
        bench.submit(0, DiskOp::Flush, range(0, 0), Vec::new());
        let mut completions = Vec::new();
        for _ in 0..1000 {
            completions.extend(bench.poll());
        }
        completions.sort_unstable_by_key(|(tag, _)| *tag);
        let expected: Vec<_> = (0..9).map(|tag| (tag, DiskOutcome::Failed)).collect();
        assert_eq!(completions, expected, "{}", kind.name);
    }
}

fn linear() -> Box<dyn Image> {
    let shape = DiskGeometry {
        size_bytes: SIZE,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: 0,
    };
    Box::new(LinearImage::new(shape, 0, false))
}

/// Adds a raw disk on this file to a worker.
fn on_file(file: &Arc<FakeFile>) -> Bench {
    let mut bench = Bench::new(KINDS[0], 5, 64);
    let mut engine = StorageEngine::new({
        let io = FakeIo::new(5, 64);
        bench.faults = Arc::clone(&io.faults);
        Box::new(io)
    });
    let layers = vec![DiskLayer { image: linear(), file: Arc::clone(file) as _ }];
    bench.disk = engine.add_disk(LayerStack { layers }, None).unwrap();
    let queue = FakeQueue::new(TAGS);
    (bench.client, bench.payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
    bench.queue = engine.add_queue(bench.disk, Box::new(queue)).unwrap();
    bench.file = Arc::clone(file);
    bench.engine = engine;
    bench
}

/// A durable write through the page cache would report the failed writeback of other writes.
#[test]
fn a_durable_write_is_flushed_separately_through_the_page_cache_only() {
    let memory = || MemoryFile::new(vec![0; SIZE as usize]);
    let mut bench = on_file(&FakeFile::new(memory()));
    bench.faults.lock().unwrap().failing_durable_write = Some(ErrorKind::Other);
    assert_eq!(write(&mut bench, DURABLE, 0, 7), DiskOutcome::Done);
    assert_eq!(flushes(&bench), 1);

    let mut bench = on_file(&FakeFile::direct(memory()));
    assert_eq!(write(&mut bench, DURABLE, 0, 7), DiskOutcome::Done);
    assert_eq!(flushes(&bench), 0);
    bench.faults.lock().unwrap().failing_durable_write = Some(ErrorKind::StorageFull);
    assert_eq!(write(&mut bench, DURABLE, 0, 7), DiskOutcome::NoSpace);
    bench.faults.lock().unwrap().failing_durable_write = None;
    assert_eq!(write(&mut bench, WRITE, 0, 7), DiskOutcome::Done);
    bench.faults.lock().unwrap().failing_durable_write = Some(ErrorKind::Other);
    assert_eq!(write(&mut bench, DURABLE, 0, 7), DiskOutcome::Failed);
    assert_eq!(write(&mut bench, WRITE, 0, 7), DiskOutcome::Failed);
    assert!(bench.engine.flush_error(bench.disk).is_some());
}

/// The disk is in the state after a crash of the host: nothing is written, and its record is empty.
#[test]
fn a_disk_with_a_failed_flush_is_closed_without_changes() {
    for kind in kinds() {
        let (memory, records) = ((kind.create)(), MemoryRedoRecords::default());
        let image = (kind.open)(&memory);
        let record = records.create("disk", image.identity()).unwrap();
        let image = Box::new(RecordedImage::new(image, record));
        let queue = FakeQueue::new(TAGS);
        let mut bench = Bench::with_image(kind, image, memory, 5, 64, queue);
        assert_eq!(write(&mut bench, WRITE, 0, 7), DiskOutcome::Done);
        set_failing(&bench, Some(ErrorKind::Other));
        assert_eq!(flush(&mut bench), DiskOutcome::Failed);
        set_failing(&bench, None);
        let redo = records.load("disk").unwrap();
        assert!(redo.is_none_or(|redo| redo.changes.is_empty()), "{}", kind.name);
        let (before, ops) = (flushes(&bench), bench.file.memory().log().len());
        bench.engine.close_disk(bench.disk);
        for _ in 0..100 {
            bench.poll();
        }
        let (_, spec) = bench.engine.poll_closed_disk().unwrap();
        // Another worker serves the disk now.
        let mut other = StorageEngine::new(Box::new(FakeIo::new(1, 64)));
        let disk = other.add_disk(spec, None).unwrap();
        assert!(other.flush_error(disk).is_some());
        assert!(other.disks.get(disk).unwrap().refuses(WRITE));
        other.close_disk(disk);
        let (_, spec) = other.poll_closed_disk().unwrap();
        let error = suimon_image_files::close(spec, "d").unwrap_err().to_string();
        assert!(error.contains("a flush has failed"), "{error}");
        assert_eq!((flushes(&bench), bench.file.memory().log().len()), (before, ops));
        assert_eq!(bench.file.dropped_from_cache.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_disk_is_suspended_only_to_be_reopened() {
    for kind in kinds() {
        let mut bench = failed_flush_bench(kind);
        bench.engine.suspend_disk(bench.disk);
        bench.poll();
        let (_, spec) = bench.engine.poll_suspended_disk().unwrap();
        assert!(spec.is_none(), "{}", kind.name);
        assert_eq!(write(&mut bench, WRITE, 0, 8), DiskOutcome::Failed);
        bench.engine.suspend_disk_to_reopen(bench.disk);
        bench.poll();
        let (_, spec) = bench.engine.poll_suspended_disk().unwrap();
        let parent = spec.unwrap().layers.into_iter().nth(1);
        let memory = MemoryFile::new(bench.file.memory().content());
        let image = (kind.open)(&memory);
        bench.file = FakeFile::new(memory);
        let layer = DiskLayer { image, file: Arc::clone(&bench.file) as _ };
        let layers = [layer].into_iter().chain(parent).collect();
        bench.engine.resume_disk(bench.disk, LayerStack { layers }).unwrap();
        assert!(bench.engine.flush_error(bench.disk).is_none());
        assert_eq!(write(&mut bench, WRITE, 0, 8), DiskOutcome::Done, "{}", kind.name);
        assert_eq!(flush(&mut bench), DiskOutcome::Done, "{}", kind.name);
    }
}

/// Whatever the failed flush has lost, each sector has a content that a crash of the host may
/// leave.
#[test]
fn a_failed_flush_loses_no_flushed_write() {
    for kind in kinds() {
        for seed in 0..12 {
            let mut bench = Bench::new(kind, seed, [3, 64][seed as usize % 2]);
            let before = bench.file.memory().content();
            let mut model = Model::new(kind, seed);
            for round in 0..200 {
                set_failing(&bench, (round > 100).then_some(ErrorKind::Other));
                for _ in 0..model.random.below(6) {
                    model.submit_random(&bench);
                }
                for (tag, outcome) in bench.poll() {
                    let op = model.in_flight.get(&tag).map(|(op, ..)| *op);
                    match outcome {
                        DiskOutcome::Done if op != Some(DiskOp::Read) => {
                            model.handle_completion(&bench, tag);
                        }
                        // A read may or may not return the data of a failed write.
                        _ => {
                            let was_flush = model.in_flight.remove(&tag).is_none();
                            model.flush = model.flush.take().filter(|_| !was_flush);
                        }
                    }
                }
            }
            assert!(bench.engine.flush_error(bench.disk).is_some(), "{}: seed {seed}", kind.name);
            let ops = bench.file.memory().log();
            let crash = Crash { before: &before, changes: &ops, started_count: ops.len() };
            let unsynced = crash.unflushed_count();
            let order: Vec<_> = (0..unsynced).collect();
            for _ in 0..8 {
                let outcome = |random: &mut RandomNumbers| match random.below(2) {
                    0 => WriteOutcome::Persisted,
                    _ => WriteOutcome::Lost,
                };
                let fates: Vec<_> = (0..unsynced).map(|_| outcome(&mut model.random)).collect();
                model.check_crash(kind, crash.content_after(&order, &fates));
            }
        }
    }
}
