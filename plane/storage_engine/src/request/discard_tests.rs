//! Freed space: discards concurrent with other requests of the disk, and zeroing concurrent with
//! its commits.

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome};

use crate::testing::image_kinds::{KINDS, Kind, VHDX};
use crate::testing::requests::{WRITE, range};
use crate::tests::disk_bench::Bench;

/// Size of a block of the VHDX of these tests, a multiple of the others.
const BLOCK: u64 = 1 << 20;
const BLOCKS: u64 = 4;
const FLUSH: DiskOp = DiskOp::Flush;
const DONE: DiskOutcome = DiskOutcome::Done;

fn block(nth: u64) -> ByteRange {
    range(nth * BLOCK, BLOCK)
}

/// Creates a disk on which all blocks are written and durable.
fn full_disk(kind: Kind) -> Bench {
    let mut bench = Bench::new(kind, 5, 64);
    for nth in 0..BLOCKS {
        assert_eq!(bench.run(WRITE, block(nth), vec![1; BLOCK as usize]), DONE);
    }
    assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE);
    assert!(settle(&mut bench).is_empty());
    bench
}

/// Polls, and returns the tags of the requests that have completed, in ascending order.
fn settle(bench: &mut Bench) -> Vec<u32> {
    let completions: Vec<_> = (0..300).flat_map(|_| bench.poll()).collect();
    assert!(completions.iter().all(|(_, outcome)| *outcome == DONE), "{completions:?}");
    let mut tags: Vec<u32> = completions.into_iter().map(|(tag, _)| tag).collect();
    tags.sort_unstable();
    tags
}

#[test]
fn no_flush_waits_for_freed_space_to_be_zeroed() {
    for kind in KINDS.into_iter().filter(|kind| kind.name != "raw") {
        let mut bench = full_disk(kind);
        let (before, _) = bench.faults.lock().unwrap().zeroed;
        bench.faults.lock().unwrap().stalled_zeroing = true;
        assert_eq!(bench.run(DiskOp::Discard, range(0, BLOCKS * BLOCK), Vec::new()), DONE);
        for _ in 0..3 {
            assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE, "{}", kind.name);
            // The write does not go to the space that is being zeroed.
            assert_eq!(bench.run(WRITE, block(1), vec![7; BLOCK as usize]), DONE);
        }
        assert!(bench.read(block(1)).iter().all(|byte| *byte == 7), "{}", kind.name);
        let (started_count, _) = bench.faults.lock().unwrap().zeroed;
        assert_eq!(started_count, before + 1, "{}: one at a time", kind.name);
        // The disk keeps its file open until the operation has ended.
        bench.engine.close_disk(bench.disk);
        (0..300).for_each(|_| drop(bench.poll()));
        assert!(bench.engine.poll_closed_disk().is_none(), "{}", kind.name);
        bench.faults.lock().unwrap().stalled_zeroing = false;
        crate::tests::disk_bench::close(&mut bench);
    }
}

#[test]
fn adjacent_freed_blocks_are_zeroed_by_one_operation_and_used_again() {
    let mut bench = full_disk(VHDX);
    let before = bench.file.memory().bytes().len();
    for round in 0..3 {
        let (count, _) = bench.faults.lock().unwrap().zeroed;
        assert_eq!(bench.run(DiskOp::Discard, range(0, BLOCKS * BLOCK), Vec::new()), DONE);
        assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE);
        assert!(settle(&mut bench).is_empty());
        let zeroed = bench.faults.lock().unwrap().zeroed;
        assert_eq!(zeroed, (count + 1, BLOCKS * BLOCK), "round {round}");
        for nth in 0..BLOCKS {
            assert_eq!(bench.run(WRITE, block(nth), vec![round; BLOCK as usize]), DONE);
        }
    }
    assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE);
    assert_eq!(bench.file.memory().bytes().len(), before, "the file has not grown");
}

#[test]
fn zeroing_that_fails_is_reported_and_repeated_after_the_next_commit() {
    let mut bench = full_disk(VHDX);
    assert_eq!(bench.run(DiskOp::Discard, block(0), Vec::new()), DONE);
    bench.faults.lock().unwrap().failing_zeroing = true;
    assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE);
    assert!(settle(&mut bench).is_empty());
    assert_eq!(bench.notices().len(), 1);
    let (started_count, _) = bench.faults.lock().unwrap().zeroed;
    bench.faults.lock().unwrap().failing_zeroing = false;
    assert_eq!(bench.run(DiskOp::Discard, block(1), Vec::new()), DONE);
    assert_eq!(bench.run(FLUSH, range(0, 0), Vec::new()), DONE);
    assert!(settle(&mut bench).is_empty());
    // The adjacent block is zeroed with it.
    assert_eq!(bench.faults.lock().unwrap().zeroed, (started_count + 1, 2 * BLOCK));
    assert!(bench.notices().is_empty());
}

#[test]
fn a_discard_waits_for_overlapping_requests_only_and_delays_only_these() {
    let mut bench = full_disk(VHDX);
    // Reads do not complete.
    bench.faults.lock().unwrap().stalled_reads = Some((0, u64::MAX));
    bench.submit(1, DiskOp::Read, block(0), vec![0; BLOCK as usize]);
    assert!(settle(&mut bench).is_empty());
    bench.submit(2, DiskOp::Discard, block(1), Vec::new());
    bench.submit(3, WRITE, block(2), vec![3; BLOCK as usize]);
    assert_eq!(settle(&mut bench), [2, 3], "nothing of it is in flight");
    // This discards the block that is being read. The request behind it overlaps the block, too.
    bench.submit(4, DiskOp::Discard, range(0, 2 * BLOCK), Vec::new());
    assert!(settle(&mut bench).is_empty());
    bench.submit(5, WRITE, block(3), vec![5; BLOCK as usize]);
    assert_eq!(settle(&mut bench), [5], "it does not overlap the discard");
    bench.submit(6, WRITE, block(1), vec![6; BLOCK as usize]);
    bench.submit(7, DiskOp::Discard, block(3), Vec::new());
    assert!(settle(&mut bench).is_empty(), "in order of submission");
    bench.faults.lock().unwrap().stalled_reads = None;
    assert_eq!(settle(&mut bench), [1, 4, 6, 7]);
    let byte_of = [0, 6, 3, 0];
    for (nth, byte) in (0..).zip(byte_of) {
        assert!(
            bench.read(block(nth)).iter().all(|content_byte| *content_byte == byte),
            "block {nth}"
        );
    }
}

#[test]
fn zeros_that_are_written_do_not_delay_discards_of_other_ranges() {
    for kind in KINDS {
        let mut bench = full_disk(kind);
        bench.faults.lock().unwrap().stalled_zeroing = true;
        let zeros =
            DiskOp::WriteZeroes { may_unmap: false, is_durable: false, only_if_fast: false };
        bench.submit(1, zeros, range(512, BLOCK), Vec::new());
        assert!(settle(&mut bench).is_empty(), "{}", kind.name);
        if kind.name != "raw" {
            bench.submit(2, DiskOp::Discard, block(2), Vec::new());
            assert_eq!(settle(&mut bench), [2], "{}", kind.name);
        }
        bench.faults.lock().unwrap().stalled_zeroing = false;
        assert_eq!(settle(&mut bench), [1], "{}", kind.name);
        assert!(bench.read(range(512, BLOCK)).iter().all(|byte| *byte == 0), "{}", kind.name);
        assert_eq!(bench.read(range(0, 512)), [1; 512], "{}", kind.name);
    }
}
