//! Disks on a store that becomes full and has space again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_ports::{DiskOp, DiskOutcome, DiskRequest};

use crate::engine::notices::SpaceChange;
use crate::full_store::FullStorePolicy;
use crate::full_store::queueing::FULL_STORE_RETRY_INTERVAL;
use crate::queue::QueueKind;
use crate::testing::fake_queue::{Client, FakeQueue, Payloads};
use crate::testing::image_kinds::{CHILDREN, KINDS, Kind};
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::disk_bench::Bench;
use crate::{StorageEngine, StorageNotice};

const BLOCK: u64 = 64 << 10;
const STEP: Duration = Duration::from_millis(100);
const FOR_EVER: FullStorePolicy = FullStorePolicy { ring_wait: None, client_wait: Duration::ZERO };
const DURABLE: DiskOp = DiskOp::Write { is_durable: true };

/// Further queue of a disk.
struct Second {
    number: usize,
    client: Arc<Mutex<Client>>,
    payloads: Payloads,
}

impl Second {
    fn new(engine: &mut StorageEngine, disk: usize, kind: QueueKind, queue: FakeQueue) -> Self {
        let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
        let number = engine.add_queue_of_kind(disk, Box::new(queue), kind).unwrap();
        Self { number, client, payloads }
    }

    fn write(&self, tag: u32, offset: u64, byte: u8) {
        self.payloads.lock().unwrap()[tag as usize] = vec![byte; BLOCK as usize];
        let request = DiskRequest { tag, op: WRITE, range: range(offset, BLOCK) };
        self.client.lock().unwrap().requests.push_back(request);
    }

    fn completions(&self) -> Vec<(u32, DiskOutcome)> {
        std::mem::take(&mut self.client.lock().unwrap().completions)
    }
}

fn write(bench: &Bench, tag: u32, op: DiskOp, offset: u64, byte: u8) {
    bench.submit(tag, op, range(offset, BLOCK), vec![byte; BLOCK as usize]);
}

/// Polls the engine for the given time. Returns the completions of the first queue.
fn pass(bench: &mut Bench, time: Duration) -> Vec<(u32, DiskOutcome)> {
    let (end, mut completions) = (bench.now + time, Vec::new());
    // A queue that was empty for a long time is not polled.
    bench.engine.wake_queue(bench.queue);
    while bench.now < end {
        bench.now = bench.now + STEP;
        // Requests submitted in one iteration complete in another.
        for _ in 0..64 {
            completions.extend(bench.poll());
        }
    }
    completions.sort_unstable_by_key(|(tag, _)| *tag);
    completions
}

/// Creates a disk with one allocated block, on a store that is full from now on.
fn full(kind: Kind, policy: FullStorePolicy) -> Bench {
    full_with(kind, policy, FakeQueue::new(512))
}

fn full_with(kind: Kind, policy: FullStorePolicy, queue: FakeQueue) -> Bench {
    fill(Bench::with_queue(kind, (kind.create)(), 5, 64, queue), kind, policy)
}

fn full_seeded(kind: Kind, policy: FullStorePolicy, seed: u64) -> Bench {
    let bench = Bench::with_queue(kind, (kind.create)(), seed, 64, FakeQueue::new(512));
    fill(bench, kind, policy)
}

fn fill(mut bench: Bench, kind: Kind, policy: FullStorePolicy) -> Bench {
    bench.engine.set_full_store_policy(bench.disk, policy);
    let written = bench.run(DURABLE, range(0, BLOCK), vec![1; BLOCK as usize]);
    assert_eq!(written, DiskOutcome::Done, "{}", kind.name);
    bench.faults.lock().unwrap().is_full = true;
    bench
}

fn full_changes(bench: &mut Bench) -> Vec<SpaceChange> {
    let of_full = |notice| match notice {
        StorageNotice::DiskSpaceChange { change, .. } => Some(change),
        StorageNotice::DiskFault { detail, .. } => panic!("a fault: {detail}"),
        _ => None,
    };
    bench.notices().into_iter().filter_map(of_full).collect()
}

/// Writes that fail because the store is full do not cause failures of flushes and durable writes
/// of other requests, whether these are submitted before, during or after the writes.
#[test]
fn failed_writes_fail_no_flush() {
    for kind in KINDS.into_iter().chain(CHILDREN) {
        for seed in 0..40 {
            let mut bench = full_seeded(kind, FullStorePolicy::FAIL_AT_ONCE, seed);
            for round in 0..4 {
                let mut expected = Vec::new();
                for tag in 0..12 {
                    let (op, offset) = match tag % 4 {
                        0 => (WRITE, SIZE - BLOCK * (1 + u64::from(tag + round))),
                        1 => (DURABLE, 0),
                        2 => (DiskOp::Flush, 0),
                        _ => (DURABLE, SIZE - BLOCK * (1 + u64::from(tag + round))),
                    };
                    let needs_space = offset > 0;
                    let is_flush = op == DiskOp::Flush;
                    let len = if is_flush { 0 } else { BLOCK };
                    bench.submit(tag, op, range(offset, len), vec![2; len as usize]);
                    let outcome =
                        if needs_space { DiskOutcome::NoSpace } else { DiskOutcome::Done };
                    expected.push((tag, outcome));
                }
                let completions = pass(&mut bench, STEP * 20);
                assert_eq!(completions, expected, "{}, seed {seed}, round {round}", kind.name);
            }
        }
    }
}

#[test]
fn writes_are_queued_until_there_is_space_and_nothing_else_is() {
    for kind in KINDS.into_iter().chain(CHILDREN) {
        let mut bench = full(kind, FOR_EVER);
        for tag in 0..20 {
            let op = if tag % 2 == 0 { WRITE } else { DURABLE };
            let offset = SIZE - BLOCK * (1 + u64::from(tag % 10));
            write(&bench, tag, op, offset, 100 + (tag % 10) as u8);
        }
        assert_eq!(pass(&mut bench, Duration::from_secs(300)), [], "{}", kind.name);
        assert_eq!(full_changes(&mut bench), [SpaceChange::Full], "{}", kind.name);
        let view = bench.engine.full_store_view(bench.disk).unwrap();
        assert_eq!(view.queued, 20);
        assert!(view.full_for >= Duration::from_secs(299), "{view:?}");
        // Writes to allocated space continue, and a flush covers them.
        write(&bench, 30, WRITE, 0, 2);
        assert_eq!(pass(&mut bench, STEP), [(30, DiskOutcome::Done)], "{}", kind.name);
        bench.submit(31, DiskOp::Flush, range(0, 0), Vec::new());
        bench.submit(32, DiskOp::Read, range(0, BLOCK), vec![0; BLOCK as usize]);
        // A commit has many steps.
        let completions = pass(&mut bench, STEP * 30);
        assert!(completions.contains(&(31, DiskOutcome::Done)), "{}: {completions:?}", kind.name);
        assert!(completions.contains(&(32, DiskOutcome::Done)), "{}", kind.name);
        assert_eq!(bench.payloads.lock().unwrap()[32], vec![2; BLOCK as usize]);
        // Queued requests continue at once after the first successful attempt.
        bench.faults.lock().unwrap().is_full = false;
        let completions = pass(&mut bench, FULL_STORE_RETRY_INTERVAL * 2);
        let expected = (0..20).map(|tag| (tag, DiskOutcome::Done));
        assert_eq!(completions, expected.collect::<Vec<_>>(), "{}", kind.name);
        assert_eq!(full_changes(&mut bench), [SpaceChange::HasSpace], "{}", kind.name);
        assert_eq!(bench.engine.full_store_view(bench.disk), None);
        for block in 0..10 {
            bench.engine.wake_queue(bench.queue);
            let read = bench.read(range(SIZE - BLOCK * (1 + block), BLOCK));
            assert_eq!(read, vec![100 + block as u8; BLOCK as usize], "{}", kind.name);
        }
    }
}

#[test]
fn attempts_are_few_while_a_store_is_full() {
    let mut bench = full(KINDS[0], FOR_EVER);
    for tag in 0..100 {
        write(&bench, tag, WRITE, BLOCK * (1 + u64::from(tag % 50)), 3);
    }
    pass(&mut bench, STEP);
    // Each request was tried once. After that there is one attempt per interval, and no work in
    // between.
    let next = bench.engine.next_deadline().unwrap();
    assert!(
        next > bench.now && next <= bench.now + FULL_STORE_RETRY_INTERVAL,
        "{next:?} {:?}",
        bench.now
    );
    let queued = bench.engine.full_store_view(bench.disk).unwrap().queued;
    assert_eq!(queued, 100);
}

#[test]
fn requests_of_clients_are_queued_as_configured_and_those_of_qemu_fail_at_once() {
    let wait = Duration::from_secs(5);
    let mut bench = full(KINDS[1], FullStorePolicy { ring_wait: None, client_wait: wait });
    let (engine, disk) = (&mut bench.engine, bench.disk);
    let client = Second::new(engine, disk, QueueKind::Client, FakeQueue::new(4));
    let qemu = Second::new(engine, disk, QueueKind::EmulatedDisk, FakeQueue::new(4));
    let mirror = Second::new(engine, disk, QueueKind::Mirror, FakeQueue::new(4));
    for queue in [&client, &qemu, &mirror] {
        queue.write(0, SIZE - BLOCK, 4);
    }
    write(&bench, 0, WRITE, SIZE - 2 * BLOCK, 4);
    assert_eq!(pass(&mut bench, STEP), []);
    assert_eq!(qemu.completions(), [(0, DiskOutcome::NoSpace)]);
    assert_eq!(mirror.completions(), [(0, DiskOutcome::NoSpace)]);
    assert_eq!(pass(&mut bench, wait - STEP * 3), []);
    assert_eq!(client.completions(), []);
    assert_eq!(pass(&mut bench, STEP * 4), []);
    assert_eq!(client.completions(), [(0, DiskOutcome::NoSpace)]);
    // With this policy all requests fail at once, and the full state ends some time after the last
    // failure.
    bench.engine.set_full_store_policy(bench.disk, FullStorePolicy::FAIL_AT_ONCE);
    assert_eq!(pass(&mut bench, STEP), [(0, DiskOutcome::NoSpace)]);
    assert_eq!(full_changes(&mut bench), [SpaceChange::Full]);
    assert!(bench.engine.full_store_view(bench.disk).is_some());
    pass(&mut bench, Duration::from_secs(11));
    assert_eq!(full_changes(&mut bench), [SpaceChange::NoLongerObserved]);
}

#[test]
fn a_closing_queue_returns_its_requests_to_the_client_or_fails_them() {
    for (redelivers, takes_back) in [(true, true), (true, false), (false, true)] {
        let mut queue = FakeQueue::new(512);
        queue.redelivers = redelivers;
        queue.client.lock().unwrap().refuses_reclaim = !takes_back;
        let mut bench = full_with(KINDS[2], FOR_EVER, queue);
        let other = Second::new(&mut bench.engine, bench.disk, QueueKind::Ring, FakeQueue::new(4));
        (0..3).for_each(|tag| write(&bench, tag, WRITE, SIZE - BLOCK, 4));
        other.write(0, SIZE - 2 * BLOCK, 6);
        assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
        bench.engine.close_queue(bench.queue);
        let completions = pass(&mut bench, STEP);
        let closed = bench.engine.poll_closed_queue().map(|(number, _)| number);
        assert_eq!(closed, Some(bench.queue), "it was waited for");
        let queued = bench.client.lock().unwrap().requests.len();
        let failed = [0, 1, 2].map(|tag| (tag, DiskOutcome::NoSpace));
        if redelivers && takes_back {
            assert_eq!((completions.as_slice(), queued), (&[][..], 3));
        } else {
            assert_eq!((completions.as_slice(), queued), (&failed[..], 0));
        }
        // The request of the other queue is unaffected.
        bench.faults.lock().unwrap().is_full = false;
        pass(&mut bench, FULL_STORE_RETRY_INTERVAL * 2);
        assert_eq!(other.completions(), [(0, DiskOutcome::Done)]);
        bench.engine.close_queue(other.number);
    }
}

#[test]
fn queues_of_a_disk_that_moves_or_closes_take_requests_back() {
    let mut bench = full(KINDS[1], FOR_EVER);
    write(&bench, 7, WRITE, SIZE - BLOCK, 4);
    assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
    bench.engine.close_disk(bench.disk);
    assert_eq!(pass(&mut bench, STEP), []);
    assert!(
        bench.engine.poll_closed_queue().is_some() && bench.engine.poll_closed_disk().is_some()
    );
    let tags: Vec<u32> =
        bench.client.lock().unwrap().requests.iter().map(|ask_entry| ask_entry.tag).collect();
    assert_eq!(tags, [7]);
    assert_eq!(bench.engine.next_deadline(), None);
}

/// The last request of a closing queue finds the store full after the queue was closed.
#[test]
fn a_queue_closed_during_its_last_request_ends_although_the_store_is_full() {
    for (kind, moves) in KINDS.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
        let mut queue = FakeQueue::new(512);
        queue.redelivers = true;
        let mut bench = full_with(kind, FOR_EVER, queue);
        bench.faults.lock().unwrap().is_stalled = true;
        write(&bench, 7, WRITE, SIZE - BLOCK, 4);
        bench.engine.wake_queue(bench.queue);
        for _ in 0..4 {
            assert_eq!(bench.poll(), []);
        }
        if moves {
            bench.engine.close_disk(bench.disk);
        } else {
            bench.engine.close_queue(bench.queue);
        }
        assert!(bench.engine.poll_closed_queue().is_none(), "its request is in flight");
        bench.faults.lock().unwrap().is_stalled = false;
        assert_eq!(pass(&mut bench, STEP), [], "{}", kind.name);
        let closed = bench.engine.poll_closed_queue().map(|(number, _)| number);
        assert_eq!(closed, Some(bench.queue), "{}, moves: {moves}", kind.name);
        assert_eq!(bench.engine.poll_closed_disk().is_some(), moves, "{}", kind.name);
        let tags: Vec<u32> =
            bench.client.lock().unwrap().requests.iter().map(|ask_entry| ask_entry.tag).collect();
        assert_eq!(tags, [7], "{}", kind.name);
    }
}

/// Gives a disk with its queues, of these kinds, to another worker. Returns the second queue's
/// number.
fn move_disk(bench: &mut Bench, policy: FullStorePolicy, kinds: [QueueKind; 2]) -> usize {
    let engine = &mut bench.engine;
    engine.close_disk(bench.disk);
    let mut queues: Vec<_> = std::iter::from_fn(|| engine.poll_closed_queue()).collect();
    queues.sort_by_key(|(number, _)| *number != bench.queue);
    assert_eq!(queues.len(), kinds.len(), "nothing is in flight");
    let (_, spec) = engine.poll_closed_disk().unwrap();
    bench.disk = engine.add_disk(spec, None).unwrap();
    engine.set_full_store_policy(bench.disk, policy);
    let found_full =
        queues.iter().map(|(number, _)| engine.take_no_space_requests(*number)).collect::<Vec<_>>();
    let queues =
        queues.into_iter().zip(found_full).zip(kinds).map(|(((_, queue), found_full), kind)| {
            let number = engine.add_queue_of_kind(bench.disk, queue, kind).unwrap();
            engine.set_no_space_requests(number, found_full);
            number
        });
    let queues: Vec<usize> = queues.collect();
    bench.queue = queues[0];
    queues[1]
}

#[test]
fn requests_are_queued_no_longer_if_their_disk_moves() {
    let wait = Duration::from_secs(5);
    let policy = FullStorePolicy { ring_wait: None, client_wait: wait };
    let kinds = [QueueKind::Ring, QueueKind::Client];
    let mut bench = full(KINDS[1], policy);
    let mut client = Second::new(&mut bench.engine, bench.disk, kinds[1], FakeQueue::new(4));
    client.write(0, SIZE - BLOCK, 4);
    write(&bench, 0, WRITE, SIZE - 2 * BLOCK, 4);
    for _ in 0..4 {
        assert_eq!(pass(&mut bench, Duration::from_millis(1200)), []);
        assert_eq!(client.completions(), []);
        client.number = move_disk(&mut bench, policy, kinds);
    }
    pass(&mut bench, STEP * 4);
    assert_eq!(client.completions(), [(0, DiskOutcome::NoSpace)]);
    // A later request of the same tag is queued for as long as any other.
    client.write(0, SIZE - BLOCK, 4);
    bench.engine.wake_queue(client.number);
    pass(&mut bench, wait - STEP * 2);
    assert_eq!(client.completions(), []);
    pass(&mut bench, STEP * 4);
    assert_eq!(client.completions(), [(0, DiskOutcome::NoSpace)]);
    // The store counts as full without interruption since the first request found it full.
    assert_eq!(full_changes(&mut bench), [SpaceChange::Full]);
    let view = bench.engine.full_store_view(bench.disk).unwrap();
    assert!(view.queued == 1 && view.full_for >= wait * 2 - STEP * 4, "{view:?}");
    bench.faults.lock().unwrap().is_full = false;
    assert_eq!(pass(&mut bench, FULL_STORE_RETRY_INTERVAL * 2), [(0, DiskOutcome::Done)]);
    assert_eq!(full_changes(&mut bench), [SpaceChange::HasSpace]);
}

#[test]
fn a_disk_without_queued_requests_is_not_full_any_more_when_it_moves() {
    let mut bench = full(KINDS[1], FullStorePolicy::FAIL_AT_ONCE);
    write(&bench, 7, WRITE, SIZE - BLOCK, 4);
    assert_eq!(pass(&mut bench, STEP), [(7, DiskOutcome::NoSpace)]);
    assert_eq!(full_changes(&mut bench), [SpaceChange::Full]);
    bench.engine.close_disk(bench.disk);
    pass(&mut bench, STEP);
    assert!(bench.engine.poll_closed_disk().is_some());
    assert_eq!(full_changes(&mut bench), [SpaceChange::NoLongerObserved]);
}

/// A queue whose detachment was requested is dropped, so its requests must be completed before.
#[test]
fn a_queue_detached_before_its_disk_moves_loses_no_request() {
    for (turns, seed) in (0..8).flat_map(|turns| (0..8).map(move |seed| (turns, seed))) {
        let mut bench = full_seeded(KINDS[1], FOR_EVER, seed);
        write(&bench, 7, WRITE, SIZE - BLOCK, 4);
        assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
        // The request is being repeated in some of these iterations.
        bench.now = bench.now + FULL_STORE_RETRY_INTERVAL;
        (0..turns).for_each(|_| assert_eq!(bench.poll(), []));
        bench.engine.close_queue(bench.queue);
        bench.engine.close_disk(bench.disk);
        assert_eq!(pass(&mut bench, STEP), [(7, DiskOutcome::NoSpace)], "{turns}, seed {seed}");
        assert!(bench.engine.poll_closed_queue().is_some());
        assert!(bench.client.lock().unwrap().requests.is_empty());
    }
}

#[test]
fn a_suspended_disk_keeps_its_queued_requests() {
    let mut bench = full(KINDS[0], FOR_EVER);
    write(&bench, 7, WRITE, SIZE - BLOCK, 4);
    assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
    bench.engine.suspend_disk(bench.disk);
    assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
    let Some((_, Some(spec))) = bench.engine.poll_suspended_disk() else { panic!("in service") };
    bench.faults.lock().unwrap().is_full = false;
    assert_eq!(pass(&mut bench, Duration::from_secs(3)), []);
    bench.engine.resume_disk(bench.disk, spec).unwrap();
    assert_eq!(pass(&mut bench, FULL_STORE_RETRY_INTERVAL * 2), [(7, DiskOutcome::Done)]);
    bench.engine.wake_queue(bench.queue);
    assert_eq!(bench.read(range(SIZE - BLOCK, BLOCK)), vec![4; BLOCK as usize]);
}

#[test]
fn a_client_whose_requests_are_all_queued_keeps_no_other_from_being_served() {
    let mut bench = full_with(KINDS[0], FOR_EVER, FakeQueue::new(512));
    let second = Second::new(&mut bench.engine, bench.disk, QueueKind::Client, FakeQueue::new(4));
    for tag in 0..512 {
        write(&bench, tag, WRITE, BLOCK * (1 + u64::from(tag) % 60), 3);
    }
    assert_eq!(pass(&mut bench, Duration::from_secs(10)), []);
    assert_eq!(
        bench.engine.full_store_view(bench.disk).unwrap().queued,
        512,
        "its tags are the bound"
    );
    second.write(0, 0, 5);
    bench.engine.wake_queue(second.number);
    pass(&mut bench, STEP);
    assert_eq!(second.completions(), [(0, DiskOutcome::Done)]);
    bench.faults.lock().unwrap().is_full = false;
    let completions = pass(&mut bench, FULL_STORE_RETRY_INTERVAL * 2);
    assert_eq!(completions.len(), 512);
    assert!(completions.iter().all(|(_, outcome)| *outcome == DiskOutcome::Done));
    assert_eq!(full_changes(&mut bench), [SpaceChange::Full, SpaceChange::HasSpace]);
}
