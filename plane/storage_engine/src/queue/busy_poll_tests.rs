//! Conditions for polling a queue or waiting for its descriptor.

use std::time::Duration;

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome, ExpectedInput};
use suimon_quantity::Time;

use super::{BUSY_POLL, BusyPoll};
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::tests::disk_bench::Bench;

/// Returns how often the worker waits for a queue before it polls the queue again.
fn waits_until_poll(busy_poll: &mut BusyPoll, now: Time) -> u32 {
    let mut wait_count = 0;
    while !busy_poll.should_poll(now) {
        wait_count += 1;
        assert!(wait_count < 10_000, "the queue is never polled again");
    }
    wait_count
}

#[test]
fn successful_polling_continues_and_unsuccessful_polling_becomes_rare() {
    let mut busy_poll = BusyPoll::default();
    let mut now = Time::ZERO;
    for _ in 0..100 {
        assert_eq!(waits_until_poll(&mut busy_poll, now), 0);
        assert!(busy_poll.should_poll(now + BUSY_POLL / 2));
        busy_poll.handle_requests_found();
        now = now + BUSY_POLL / 2;
    }
    let mut seldom = Vec::new();
    for _ in 0..14 {
        seldom.push(waits_until_poll(&mut busy_poll, now));
        now = now + BUSY_POLL;
        assert!(!busy_poll.should_poll(now), "a look ends");
    }
    assert_eq!(seldom, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
    // A poll that finds a request resets the effect of all earlier polls without one.
    assert_eq!(waits_until_poll(&mut busy_poll, now), 1024);
    busy_poll.handle_requests_found();
    assert_eq!(waits_until_poll(&mut busy_poll, now), 0);
}

#[test]
fn requests_received_without_polling_do_not_affect_polling() {
    let mut busy_poll = BusyPoll::default();
    assert!(busy_poll.should_poll(Time::ZERO));
    busy_poll.handle_poll_period_end();
    busy_poll.handle_requests_found();
    busy_poll.handle_poll_period_end();
    assert_eq!(waits_until_poll(&mut busy_poll, Time::ZERO), 1);
}

/// Creates a disk with a single queue that is polled by a system call.
fn bench() -> Bench {
    let mut queue = FakeQueue::new(4);
    queue.is_polled_by_fd = true;
    let kind = KINDS[0];
    Bench::with_queue(kind, (kind.create)(), 1, 8, queue)
}

/// Submits a request that completes without file I/O, and polls until it has completed.
fn submit_and_wait(bench: &mut Bench) {
    let range = ByteRange::new(0, 512).unwrap();
    bench.submit(0, DiskOp::AllocationStatus { is_first_only: true }, range, Vec::new());
    bench.engine.wake_queue(bench.queue);
    assert_eq!(bench.wait(0), DiskOutcome::Done);
}

/// Returns how long the queue is polled.
fn polled_for(bench: &mut Bench) -> Duration {
    let start = bench.now;
    while bench.engine.expects() != ExpectedInput::None {
        assert!(bench.poll().is_empty());
        assert!(
            bench.now.since(start) < BUSY_POLL * 10,
            "polling of a client without requests does not end"
        );
    }
    bench.now.since(start)
}

#[test]
fn a_queue_is_polled_after_its_completions_and_not_before() {
    let mut bench = bench();
    assert!(polled_for(&mut bench) >= BUSY_POLL, "a new client may submit a request at once");
    // That poll found no request, so the next completion is not followed by polling.
    submit_and_wait(&mut bench);
    assert!(polled_for(&mut bench) < BUSY_POLL / 2);
    for _ in 0..3 {
        submit_and_wait(&mut bench);
        assert!(bench.poll().is_empty());
        assert!(bench.engine.expects() != ExpectedInput::None, "the next request may come at once");
    }
    assert!(polled_for(&mut bench) >= BUSY_POLL / 2);
    // The worker waits for a queue that has requests in flight.
    bench.faults.lock().unwrap().is_stalled = true;
    bench.submit(0, DiskOp::Read, ByteRange::new(0, 512).unwrap(), vec![0; 512]);
    bench.engine.wake_queue(bench.queue);
    for _ in 0..3 {
        assert!(bench.poll().is_empty());
    }
    assert!(bench.engine.has_waiting_queues());
}
