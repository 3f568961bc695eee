//! Suspension and resumption of disks, and fault notices.

use std::io;
use std::sync::Arc;

use suimon_image::{DiskGeometry, Image, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{DiskOp, DiskOutcome};
use suimon_quantity::Time;

use crate::testing::image_kinds::{KINDS, Kind};
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::content_model::Model;
use crate::tests::device_bench::{
    Bench as QosBench, Load, MILLISECOND, SECOND as NS, deep, limits, spec,
};
use crate::tests::disk_bench::{Bench, SECTOR, close};
use crate::{FAULT_NOTICE_INTERVAL, NOTICES_MAX, StorageNotice};

/// Suspends the disk and polls until it is suspended, while requests are submitted to its queue.
/// Returns its images.
fn suspend(bench: &mut Bench, model: &mut Model) -> LayerStack {
    bench.engine.suspend_disk(bench.disk);
    for round in 0..10_000 {
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done);
            model.handle_completion(bench, tag);
        }
        if round < 5 {
            model.submit_random(bench);
        }
        if let Some((disk, spec)) = bench.engine.poll_suspended_disk() {
            assert_eq!(disk, bench.disk);
            return spec.unwrap();
        }
    }
    panic!("the disk is not returned");
}

fn run(kind: Kind, seed: u64, capacity: usize) {
    let mut bench = Bench::new(kind, seed, capacity);
    let mut model = Model::new(kind, seed);
    for round in 0..500 {
        for _ in 0..model.random.below(6) {
            model.submit_random(&bench);
        }
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            model.handle_completion(&bench, tag);
        }
        if round % 50 != 49 {
            continue;
        }
        let spec = suspend(&mut bench, &mut model);
        // The requests taken from the queue have completed. Requests that have not completed were
        // never taken.
        let open = model.in_flight.len() + usize::from(model.flush.is_some());
        assert_eq!(bench.client.lock().unwrap().requests.len(), open);
        for DiskLayer { image, file } in spec.layers {
            image.close(&*file).unwrap();
        }
        for _ in 0..20 {
            assert!(bench.poll().is_empty(), "it is not in service");
        }
        assert!(bench.engine.arm(), "no request is in flight");
        // All completed writes are in the file, which another process may open.
        let image = (kind.open)(&bench.file.memory());
        let file = Arc::clone(&bench.file) as _;
        let spec = LayerStack { layers: vec![DiskLayer { image, file }] };
        bench.engine.resume_disk(bench.disk, spec).unwrap();
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
    let content = bench.read(range(0, SIZE));
    for (content, sector) in content.chunks(SECTOR).zip(&model.sectors) {
        assert!(content[0] == sector.now || matches!(sector.may_be.last(), Some(None)));
    }
    close(&mut bench);
}

#[test]
fn a_disk_that_is_suspended_and_resumed_loses_nothing() {
    for kind in KINDS {
        for seed in 0..6 {
            run(kind, seed, [3, 64][seed as usize % 2]);
        }
    }
}

fn raw(size: u64) -> Box<dyn Image> {
    let (logical_sector, physical_sector) = (512, 4096);
    let shape = DiskGeometry {
        size_bytes: size,
        logical_sector_bytes: logical_sector,
        physical_sector_bytes: physical_sector,
        block_bytes: 0,
    };
    Box::new(LinearImage::new(shape, 0, false))
}

#[test]
fn a_disk_may_be_resumed_with_a_larger_size() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert_eq!(bench.run(WRITE, range(0, 512), vec![3; 512]), DiskOutcome::Done);
    bench.engine.suspend_disk(bench.disk);
    bench.poll();
    let (_, suspended) = bench.engine.poll_suspended_disk().unwrap();
    let file = Arc::clone(&suspended.unwrap().layers[0].file);
    file.set_len(2 * SIZE).unwrap();
    let layers = vec![DiskLayer { image: raw(2 * SIZE), file: Arc::clone(&file) }];
    bench.engine.resume_disk(bench.disk, LayerStack { layers }).unwrap();
    let second_spec = LayerStack { layers: vec![DiskLayer { image: raw(SIZE), file }] };
    assert!(bench.engine.resume_disk(bench.disk, second_spec).is_err(), "it is in service");
    assert_eq!(bench.run(WRITE, range(SIZE, 512), vec![4; 512]), DiskOutcome::Done);
    assert_eq!(bench.read(range(SIZE, 512)), [4; 512]);
    assert_eq!(bench.read(range(0, 512)), [3; 512]);
    assert_eq!(
        bench.engine.counters(bench.disk).unwrap().writes.requests,
        2,
        "it is the same disk"
    );
}

#[test]
fn a_disk_that_cannot_be_made_durable_stays_in_service() {
    for kind in &KINDS[1..] {
        let mut bench = Bench::new(*kind, 1, 8);
        assert_eq!(bench.run(WRITE, range(0, 4096), vec![3; 4096]), DiskOutcome::Done);
        bench.faults.lock().unwrap().one_in = 1;
        bench.faults.lock().unwrap().kind = Some(io::ErrorKind::Other);
        bench.engine.suspend_disk(bench.disk);
        let suspended = (0..100).find_map(|_| {
            bench.poll();
            bench.engine.poll_suspended_disk()
        });
        assert!(matches!(suspended, Some((_, None))), "{}", kind.name);
        assert_eq!(bench.notices().len(), 1);
        bench.faults.lock().unwrap().kind = None;
        assert_eq!(bench.read(range(0, 4096)), [3; 4096]);
        // The commit succeeds now, and a suspended disk can be closed.
        bench.engine.suspend_disk(bench.disk);
        let suspended = (0..1000).find_map(|_| {
            bench.poll();
            bench.engine.poll_suspended_disk()
        });
        assert!(suspended.unwrap().1.is_some());
        bench.engine.close_disk(bench.disk);
        bench.poll();
        let (_, closed) = bench.engine.poll_closed_disk().unwrap();
        assert!(closed.layers.is_empty());
        assert!(bench.engine.poll_closed_queue().is_some());
    }
}

#[test]
fn requests_of_a_suspended_disk_start_at_once_and_are_charged() {
    let mut bench = QosBench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 20));
    bench.add_client(0, Load::reads(4096, 128));
    bench.run(NS);
    let (start, (worker, disk)) = (bench.device().now, bench.disks[&0]);
    for _ in 0..10 {
        bench.engines[worker].suspend_disk(disk);
        bench.run(2 * MILLISECOND);
        let (_, suspended) = bench.engines[worker].poll_suspended_disk().unwrap();
        assert_eq!(suspended.unwrap().layers.len(), 1);
        let before = bench.clients[0].completion_count;
        bench.run(50 * MILLISECOND);
        assert_eq!(bench.clients[0].completion_count, before);
        bench.engines[worker].resume_disk(disk, spec(0)).unwrap();
        bench.run(2 * MILLISECOND);
    }
    let bypassed = bench.device().count(0, start, u64::MAX);
    assert!((64..=66).contains(&bypassed), "{bypassed}: only the requests that were queued once");
    bench.run(20 * NS);
    let delivered = bench.device().count(0, start, u64::MAX);
    assert!(delivered.abs_diff((bench.device().now - start) * 20 / NS) <= 3, "{delivered}");
}

#[test]
fn fault_notices_are_rate_limited_and_contain_the_offset() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    bench.faults.lock().unwrap().one_in = 1;
    bench.faults.lock().unwrap().kind = Some(io::ErrorKind::Other);
    for _ in 0..50 {
        assert_eq!(bench.run(DiskOp::Read, range(8192, 512), vec![0; 512]), DiskOutcome::Failed);
    }
    let notices = bench.notices();
    let [StorageNotice::DiskFault { disk, offset: Some(8192), suppressed: 0, .. }] = &notices[..]
    else {
        panic!("{notices:?}");
    };
    assert_eq!(*disk, bench.disk);
    bench.now = bench.now + FAULT_NOTICE_INTERVAL;
    bench.run(DiskOp::Read, range(12_288 + 512, 512), vec![0; 512]);
    let notices = bench.notices();
    let [StorageNotice::DiskFault { offset: Some(12_288), suppressed: 49, .. }] = &notices[..]
    else {
        panic!("{notices:?}");
    };
    // The notices are not fetched for a year.
    for _ in 0..2 * NOTICES_MAX {
        bench.now = bench.now + FAULT_NOTICE_INTERVAL;
        bench.run(DiskOp::Read, range(0, 512), vec![0; 512]);
    }
    assert_eq!(bench.notices().len(), NOTICES_MAX);
}

/// Returns the file's length after writes of blocks that follow failed writes of other blocks.
fn len_after_failures(kind: Kind, failures: u64) -> u64 {
    let mut bench = Bench::new(kind, 1, 64);
    let block = if kind.name == "dynamic VHDX" { 1 << 20 } else { 64 << 10 };
    let write = |bench: &mut Bench, block_number: u64| {
        bench.run(WRITE, range(block_number * block, 4096), vec![1; 4096])
    };
    let flush = |bench: &mut Bench| {
        let outcome = bench.run(DiskOp::Flush, range(0, 0), Vec::new());
        // Freed space reads as zeros after the completion of the flush.
        (0..100).for_each(|_| drop(bench.poll()));
        outcome
    };
    for block_number in 0..failures {
        *bench.faults.lock().unwrap() = crate::testing::fake_io::FaultInjection {
            one_in: 1,
            kind: Some(io::ErrorKind::Other),
            is_stalled: false,
            ..crate::testing::fake_io::FaultInjection::default()
        };
        assert_eq!(write(&mut bench, block_number), DiskOutcome::Failed);
        bench.faults.lock().unwrap().kind = None;
        assert_eq!(flush(&mut bench), DiskOutcome::Done);
    }
    assert_eq!(write(&mut bench, failures), DiskOutcome::Done);
    assert_eq!(flush(&mut bench), DiskOutcome::Done);
    // Failed writes have no effect.
    assert_eq!(bench.read(range(0, 4096)), vec![u8::from(failures == 0); 4096]);
    close(&mut bench);
    bench.file.memory().bytes().len() as u64
}

#[test]
fn space_of_writes_that_failed_is_used_again() {
    for kind in &KINDS[1..] {
        assert_eq!(len_after_failures(*kind, 3), len_after_failures(*kind, 0), "{}", kind.name);
    }
}

#[test]
fn latencies_are_reported_by_kind_of_request() {
    let mut bench = QosBench::new(1, &deep(), 1, 1_000_000);
    bench.add_disk(0, 0, limits(0, 0));
    bench.add_client(0, Load::reads(4096, 1));
    bench.run(NS);
    let counters = bench.engines[0].counters(bench.disks[&0].1).unwrap();
    assert!(counters.reads.requests > 900);
    for ns in [counters.reads.latencies.p50_ns, counters.reads.latencies.max_ns] {
        assert!((1_000_000..1_070_000).contains(&ns), "{ns}");
    }
    assert_eq!((counters.writes, bench.time() > Time::ZERO), (Default::default(), true));
}
