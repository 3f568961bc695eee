//! Polling of queues: empty queues, queues that fail, and the poll budget of the worker.

use suimon_ports::{DiskOutcome, ExpectedInput, FaultKind, QueueFault};
use suimon_storage_qos::StoreSpec;

use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::testing::requests::{WRITE, range};
use crate::tests::device_bench::{self, Load, MILLISECOND, STORE, limits};
use crate::tests::disk_bench::{Bench, TAGS};
use crate::{StorageEngine, StorageNotice};

#[test]
fn a_faulty_queue_is_returned_when_its_requests_have_ended() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    bench.faults.lock().unwrap().is_stalled = true;
    bench.submit(0, WRITE, range(0, 4096), vec![1; 4096]);
    bench.poll();
    let fault = QueueFault { kind: FaultKind::ProtocolViolation, detail: "its ring".to_owned() };
    bench.client.lock().unwrap().fault = Some(fault);
    bench.submit(1, WRITE, range(4096, 4096), vec![1; 4096]);
    for _ in 0..10 {
        assert!(bench.poll().is_empty());
        assert!(bench.engine.poll_closed_queue().is_none(), "its payload is in use");
    }
    assert!(matches!(&bench.notices()[..], [StorageNotice::QueueFault { queue: 0, .. }]));
    bench.faults.lock().unwrap().is_stalled = false;
    let mut completions = Vec::new();
    for _ in 0..100 {
        completions.extend(bench.poll());
    }
    assert_eq!(completions.len(), 2, "requests received before the fault are completed");
    assert_eq!(bench.engine.poll_closed_queue().unwrap().0, bench.queue);
    assert_eq!(bench.engine.counters(bench.disk).unwrap().writes.requests, 2);
}

#[test]
fn the_worker_waits_for_an_empty_queue_and_is_woken() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert!(bench.engine.arm(), "no request is in flight");
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    assert!(
        bench.poll().is_empty(),
        "a queue is not polled while the worker waits for its descriptor"
    );
    bench.engine.wake_queue(bench.queue);
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    // A busy worker stops polling an empty queue, and still receives its next request.
    for _ in 0..2000 {
        bench.poll();
    }
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    bench.engine.wake_queue(bench.queue);
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    let counters = bench.engine.counters(bench.disk).unwrap().writes;
    assert_eq!((counters.requests, counters.bytes), (2, 1024));
    assert!(counters.latency_sum_ns > 0);
}

/// A client that receives completions can submit further requests without waking the worker.
#[test]
fn a_waiting_queue_is_polled_when_its_client_has_completions() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    bench.faults.lock().unwrap().is_stalled = true;
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    bench.poll();
    assert!(!bench.engine.arm() && bench.engine.has_waiting_queues(), "the completion is pending");
    bench.faults.lock().unwrap().is_stalled = false;
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    assert!(
        !bench.engine.has_waiting_queues() && bench.engine.expects() == ExpectedInput::Requests
    );
    bench.submit(1, WRITE, range(0, 512), vec![1; 512]);
    assert_eq!(bench.wait(1), DiskOutcome::Done, "the request completes without a wake-up");
}

/// Polling such a queue costs a system call, and a client with requests in flight may be waiting
/// for their completions.
#[test]
fn a_queue_polled_by_descriptor_is_polled_when_all_its_requests_have_completed() {
    let mut queue = FakeQueue::new(TAGS);
    queue.is_polled_by_fd = true;
    let memory = (KINDS[0].create)();
    let mut bench = Bench::with_queue(KINDS[0], memory, 1, 8, queue);
    for tag in [0, 1] {
        bench.submit(tag, WRITE, range(u64::from(tag) * 512, 512), vec![1; 512]);
    }
    bench.faults.lock().unwrap().is_stalled = true;
    (0..2).for_each(|_| assert!(bench.poll().is_empty()));
    bench.faults.lock().unwrap().is_stalled = false;
    let mut completions = 0;
    while completions < 2 {
        completions += bench.poll().len();
        // The worker waits for the queue while requests are in flight. After the last completion,
        // it polls the queue.
        assert_eq!(bench.engine.has_waiting_queues(), completions < 2);
    }
    bench.submit(2, WRITE, range(0, 512), vec![1; 512]);
    assert_eq!(bench.wait(2), DiskOutcome::Done, "the request completes without a wake-up");
}

/// Polling ends after the worker's poll budget (a time), and not after a number of polls.
#[test]
fn a_worker_without_work_polls_a_queue_until_it_sleeps() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert_eq!(bench.run(WRITE, range(0, 512), vec![1; 512]), DiskOutcome::Done);
    bench.engine.set_worker_busy(false);
    for _ in 0..5000 {
        bench.poll();
    }
    assert!(bench.engine.expects() != ExpectedInput::None && !bench.engine.has_waiting_queues());
    assert!(bench.engine.arm(), "it sleeps");
    assert!(bench.engine.has_waiting_queues());
    bench.engine.wake_queue(bench.queue);
    bench.engine.set_worker_busy(true);
    for _ in 0..1100 {
        bench.poll();
    }
    assert!(
        bench.engine.has_waiting_queues(),
        "polling an empty queue takes time from other queues"
    );
}

/// Otherwise, requests that a queue delivers in the same iteration would be queued although there
/// is room.
#[test]
fn completions_are_reported_to_the_store_before_queues_are_polled() {
    let store = StoreSpec { depth_min: 8, depth_max: 8, ..StoreSpec::default() };
    let mut bench = device_bench::Bench::new(1, &store, 8, 200_000);
    bench.add_disk(0, 0, limits(0, 0));
    bench.add_client(0, Load::reads(4096, 8));
    bench.run(1000);
    let in_flight =
        |engine: &StorageEngine| engine.store_status(STORE).unwrap().in_flight_of_all_workers;
    assert_eq!(in_flight(&bench.engines[0]), 8);
    bench.device().now += MILLISECOND;
    let now = bench.time();
    let engine = &mut bench.engines[0];
    engine.now = now;
    assert!(engine.process_completions());
    engine.dispatch_ready();
    assert_eq!(in_flight(engine), 0);
}
