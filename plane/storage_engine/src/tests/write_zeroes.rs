//! Discards and writes of zeros, and changes of read-only disks.

use std::sync::Arc;

use suimon_image::testing::MemoryFile;
use suimon_image::{DiskGeometry, Image, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{DiskOp, DiskOutcome, DiskRequest};
use suimon_quantity::Time;

use crate::StorageEngine;
use crate::testing::fake_file::FakeFile;
use crate::testing::fake_io::FakeIo;
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::disk_bench::Bench;

/// Returns the outcomes of requests for the first sector, in order.
fn completions(image: Box<dyn Image>, file: Arc<FakeFile>, ops: &[DiskOp]) -> Vec<DiskOutcome> {
    let mut engine = StorageEngine::new(Box::new(FakeIo::new(1, 8)));
    let disk =
        engine.add_disk(LayerStack { layers: vec![DiskLayer { image, file }] }, None).unwrap();
    let queue = FakeQueue::new(ops.len());
    let client = Arc::clone(&queue.client);
    queue.payloads.lock().unwrap().fill(vec![0; 512]);
    engine.add_queue(disk, Box::new(queue)).unwrap();
    for (tag, &op) in (0..).zip(ops) {
        client.lock().unwrap().requests.push_back(DiskRequest { tag, op, range: range(0, 512) });
    }
    for _ in 0..100 {
        engine.poll(Time::ZERO);
    }
    let mut completions = client.lock().unwrap().completions.clone();
    completions.sort_unstable_by_key(|(tag, _)| *tag);
    completions.into_iter().map(|(_, outcome)| outcome).collect()
}

const ZEROS: DiskOp =
    DiskOp::WriteZeroes { may_unmap: true, is_durable: false, only_if_fast: false };
const FAST_ZEROS: DiskOp =
    DiskOp::WriteZeroes { may_unmap: true, is_durable: false, only_if_fast: true };

#[test]
fn changes_of_a_read_only_disk_fail_as_read_only() {
    use DiskOutcome::{Done, ReadOnly};
    let shape = DiskGeometry {
        size_bytes: SIZE,
        logical_sector_bytes: 512,
        physical_sector_bytes: 512,
        block_bytes: 0,
    };
    for open in [FakeFile::new, FakeFile::solid] {
        let file = open(MemoryFile::new(vec![5; SIZE as usize]));
        let ops = [WRITE, DiskOp::Discard, ZEROS, FAST_ZEROS, DiskOp::Read];
        let outcomes =
            completions(Box::new(LinearImage::new(shape, 0, true)), Arc::clone(&file), &ops);
        assert_eq!(outcomes, [ReadOnly, ReadOnly, ReadOnly, ReadOnly, Done]);
        assert!(file.memory().log().is_empty());
    }
}

#[test]
fn fast_zeros_fail_where_zeros_would_have_to_be_written() {
    use DiskOutcome::{Done, Unsupported};
    for kind in KINDS {
        for (open, fast) in [(FakeFile::new as fn(_) -> _, Done), (FakeFile::solid, Unsupported)] {
            let memory = (kind.create)();
            let image = (kind.open)(&memory);
            let outcomes = completions(image, open(memory), &[ZEROS, FAST_ZEROS]);
            assert_eq!(outcomes, [Done, fast], "{}", kind.name);
        }
    }
}

/// The lack of support for holes may be detected only by the first attempt.
#[test]
fn a_discard_writes_nothing_and_fast_zeros_fail_where_holes_are_refused() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert_eq!(bench.run(WRITE, range(0, 4096), vec![7; 4096]), DiskOutcome::Done);
    bench.faults.lock().unwrap().cannot_zero = true;
    let ops = bench.file.memory().log().len();
    assert_eq!(bench.run(DiskOp::Discard, range(0, 4096), Vec::new()), DiskOutcome::Done);
    let fast = bench.run(FAST_ZEROS, range(0, 4096), Vec::new());
    assert_eq!(fast, DiskOutcome::Unsupported);
    assert_eq!(bench.file.memory().log().len(), ops);
    assert_eq!(bench.read(range(0, 4096)), [7; 4096]);
    assert!(bench.notices().is_empty());
}
