//! Pauses between polls of a queue, and their length.

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome, ExpectedInput};

use super::*;
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::tests::disk_bench::Bench;

/// Client that processes completions one after another, and submits one request for each.
struct Client {
    poll_pause: PollPause,
    now: Time,
    /// Number of requests in flight.
    depth: u32,
    /// Time that the client needs to process a completion and submit a new request.
    pace: Duration,
}

impl Client {
    fn new(depth: u32, pace: Duration) -> Self {
        Self { poll_pause: PollPause::default(), now: Time::ZERO, depth, pace }
    }

    /// Runs one poll and the pause after it. Returns the length of the pause, and how long the
    /// client is idle in it.
    fn run_iteration(&mut self, request_count: u32) -> [Duration; 2] {
        let has_completions = request_count < self.depth;
        let until =
            self.poll_pause
                .handle_requests_found(self.now, request_count as usize, true, || has_completions);
        let paused = until.map_or(Duration::ZERO, |until| until.since(self.now));
        self.now = self.now + paused.max(self.pace);
        [paused, paused.saturating_sub(self.pace * self.depth)]
    }

    /// Runs this number of iterations, each with the requests submitted since the previous one.
    /// Returns the sums of the results of [`Client::run_iteration`].
    fn run_iterations(&mut self, turns: u32) -> [Duration; 2] {
        let mut sums = [Duration::ZERO; 2];
        let mut request_count = self.depth.min(REQUESTS_MIN as u32);
        for _ in 0..turns {
            let durations = self.run_iteration(request_count);
            sums = [sums[0] + durations[0], sums[1] + durations[1]];
            let arrivals = durations[0].as_nanos() / self.pace.as_nanos();
            request_count = self.depth.min((arrivals as u32).max(REQUESTS_MIN as u32));
        }
        sums
    }
}

#[test]
fn a_client_with_many_completions_gets_the_longest_pause() {
    let mut client = Client::new(64, Duration::from_micros(5));
    client.run_iterations(100);
    assert_eq!(client.run_iterations(100), [LONGEST * 100, Duration::ZERO]);
}

#[test]
fn a_client_with_few_completions_gets_a_pause_of_their_duration() {
    let mut client = Client::new(16, Duration::from_micros(5));
    client.run_iterations(100);
    let [paused, idle] = client.run_iterations(1000);
    assert!(paused > client.pace * 16 * 1000 / 2, "{paused:?}");
    assert!(idle < paused / 20, "{idle:?} of {paused:?}");
}

#[test]
fn a_client_that_waits_for_all_completions_rarely_gets_a_pause() {
    // Each poll finds all requests: the client had no completions left to process.
    for depth in [1, 2, 32] {
        let mut client = Client::new(depth, Duration::from_micros(1));
        for _ in 0..1000 {
            assert_eq!(client.run_iteration(depth)[0], Duration::ZERO);
        }
    }
    // The client submits each request at once, so that polls find only a part of its requests, and
    // then waits.
    let mut client = Client::new(4, Duration::from_micros(1));
    let [paused, _] = client.run_iterations(100_000);
    assert!(paused < SHORTEST * 150, "{paused:?}");
}

#[test]
fn single_requests_cause_no_query_of_the_client() {
    let mut poll_pause = PollPause::default();
    for round in 0..10 {
        let now = Time::ZERO + LONGEST * round;
        assert_eq!(
            poll_pause
                .handle_requests_found(now, 1, true, || panic!("the client's state was queried")),
            None
        );
    }
    // After a pause, a single request is evaluated, too.
    let until = poll_pause.handle_requests_found(Time::ZERO, 2, true, || true).unwrap();
    assert!(poll_pause.handle_requests_found(until, 1, true, || true).is_some());
    // An iteration without requests is not evaluated.
    poll_pause.handle_empty_poll();
    assert_eq!(
        poll_pause
            .handle_requests_found(until, 1, true, || panic!("the client's state was queried")),
        None
    );
}

#[test]
fn a_queue_that_may_have_more_requests_is_polled_without_a_pause() {
    let mut poll_pause = PollPause::default();
    assert_eq!(poll_pause.handle_requests_found(Time::ZERO, 32, false, || true), None);
    assert!(poll_pause.handle_requests_found(Time::ZERO, 8, true, || true).is_some());
}

/// Creates a disk with a single queue that is polled by a system call, and a client that always has
/// completions to process.
fn bench() -> Bench {
    let mut queue = FakeQueue::new(8);
    queue.is_polled_by_fd = true;
    queue.has_unconsumed = true;
    let kind = KINDS[0];
    Bench::with_queue(kind, (kind.create)(), 1, 8, queue)
}

/// Submits two requests that complete without file I/O.
fn submit_two(bench: &mut Bench) {
    let range = ByteRange::new(0, 512).unwrap();
    for tag in [0, 1] {
        bench.submit(tag, DiskOp::AllocationStatus { is_first_only: true }, range, Vec::new());
    }
}

#[test]
fn the_worker_may_sleep_during_a_pause_and_serves_the_queue_after_it() {
    let mut bench = bench();
    submit_two(&mut bench);
    assert_eq!(bench.wait(1), DiskOutcome::Done);
    assert!(bench.engine.expects() == ExpectedInput::None && !bench.engine.has_waiting_queues());
    submit_two(&mut bench);
    assert!(bench.engine.arm(), "the worker may sleep although a queue has requests");
    let until = bench.engine.next_deadline().unwrap();
    assert!(until > bench.now && until.since(bench.now) <= LONGEST);
    assert!(bench.poll().is_empty());
    bench.now = until;
    assert_eq!(bench.wait(1), DiskOutcome::Done);
}

#[test]
fn a_queue_in_a_pause_is_closed_at_once() {
    let mut bench = bench();
    submit_two(&mut bench);
    assert_eq!(bench.wait(1), DiskOutcome::Done);
    submit_two(&mut bench);
    bench.engine.close_queue(bench.queue);
    assert!(bench.engine.poll_closed_queue().is_some_and(|(number, _)| number == bench.queue));
    assert_eq!(bench.engine.poll_pauses_deadline(), None);
}
