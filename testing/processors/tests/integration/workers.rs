//! Tests of workers and of queues that move between them, on real threads that are pinned to CPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use suimon_ports::{CpuAffinity, NoTasks, Waker, WorkerRuntime, WorkerTask, WorkerTaskFactory};
use suimon_processor_tests::Sender;
use suimon_quantity::{Direction, PortId, QueueId, WorkerId};
use suimon_switch::{DataPlane, MoveError};
use suimon_wait::WorkerThreads;

use crate::bench::{Bench, DEADLINE, frame, number, queue, wait_for};

const FRAMES: u32 = 60_000;

/// Sends at least [`FRAMES`] numbered frames, and more while `continues` returns true. Limits the
/// number of frames in flight to what a switch can hold without dropping. Returns the number of
/// frames sent.
fn send_in_window(
    sender: &Sender,
    received: &AtomicU32,
    continues: impl Fn() -> bool,
    frame: impl Fn(u32) -> Vec<u8>,
) -> u32 {
    let mut number = 0;
    while number < FRAMES || continues() {
        wait_for("room", || number - received.load(Ordering::Relaxed) < 256);
        sender.send(&frame(number));
        number += 1;
    }
    number
}

#[test]
fn queues_move_under_load_and_nothing_is_lost_or_reordered() {
    let bench = Bench::new(2, 3);
    bench.introduce();
    let received = [AtomicU32::new(0), AtomicU32::new(0)];
    let sent_counts = [AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX)];
    let is_moving = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for from in [0, 1] {
            let (sender, received) = (&bench.guests[from].sender, &received[from]);
            let (sent_count, continues) =
                (&sent_counts[from], || is_moving.load(Ordering::Relaxed));
            scope.spawn(move || {
                let count = send_in_window(sender, received, continues, |n| frame(from, 2, n));
                sent_count.store(count, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            for step in 0..1000_u16 {
                let port = PortId(u32::from(step) % 3);
                let direction = if port.0 == 2 { Direction::Egress } else { Direction::Ingress };
                let to = WorkerId(step / 3 % 2);
                bench.plane.move_queue(queue(port, direction), to).unwrap();
            }
            is_moving.store(false, Ordering::Relaxed);
        });
        let (mut next, mut last) = ([0; 2], Instant::now());
        while next != [0, 1].map(|from: usize| sent_counts[from].load(Ordering::Relaxed)) {
            let Some(bytes) = bench.guests[2].receiver.poll() else {
                assert!(last.elapsed() < DEADLINE, "no frame came after {next:?}");
                suimon_processor_tests::sleep_briefly();
                continue;
            };
            last = Instant::now();
            let from = usize::from(bytes[11]);
            assert_eq!(number(&bytes), next[from], "lost or out of order");
            next[from] += 1;
            received[from].store(next[from], Ordering::Relaxed);
        }
    });
    let moves: u64 = bench.plane.queues().iter().map(|queue| queue.moves).sum();
    // Each of the first steps moves a queue to the worker that already has it.
    assert!(moves >= 990, "only {moves} hand-overs took place");
}

#[test]
fn workers_are_added_and_removed_while_frames_are_forwarded() {
    let bench = Bench::new(1, 2);
    bench.introduce();
    let received = AtomicU32::new(0);
    let cpus = WorkerThreads.allowed_cpus();
    std::thread::scope(|scope| {
        let (sender, received) = (&bench.guests[0].sender, &received);
        scope.spawn(move || {
            send_in_window(sender, received, || false, |number| frame(0, 1, number))
        });
        scope.spawn(|| {
            let [first, second] = [cpus[0], cpus[1]].map(CpuAffinity::Pinned);
            let floating = CpuAffinity::Floating;
            for choice in [
                &[first, second][..],
                &[second],
                &[floating],
                &[first],
                &[floating, second],
                &[floating, floating, first],
                &[floating; 5],
                &[first, second],
                &[floating, floating],
                &[floating],
            ] {
                bench.plane.set_workers(choice).unwrap();
                let now = bench.plane.workers();
                let mut now: Vec<_> = now.iter().map(|view| view.placement.cpu()).collect();
                let mut expected: Vec<_> = choice.iter().map(|placement| placement.cpu()).collect();
                now.sort_unstable();
                expected.sort_unstable();
                assert_eq!(now, expected);
            }
        });
        for expected in 0..FRAMES {
            let mut bytes = None;
            wait_for("the next frame", || {
                bytes = bench.guests[1].receiver.poll();
                bytes.is_some()
            });
            assert_eq!(number(&bytes.unwrap()), expected);
            received.store(expected + 1, Ordering::Relaxed);
        }
    });
    assert!(bench.plane.set_workers::<u16>(&[]).is_err());
    assert!(bench.plane.set_workers(&[cpus[0], cpus[0]]).is_err());
    assert!(bench.plane.set_workers(&[u16::MAX]).is_err());
    assert_eq!(bench.plane.workers().len(), 1, "a refused change changes nothing");
}

/// Work that cannot be moved off its workers while the value is true.
struct Immovable(AtomicBool);

impl WorkerTaskFactory for Immovable {
    fn create(&self, _: WorkerId, _: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        Box::new(NoTasks)
    }

    fn retire_workers(&self, workers: &[WorkerId]) -> Vec<WorkerId> {
        if self.0.load(Ordering::SeqCst) { workers.to_vec() } else { Vec::new() }
    }

    fn handle_workers_ended(&self) {}
}

#[test]
fn a_worker_whose_work_cannot_be_moved_does_not_stop() {
    let works = Arc::new(Immovable(AtomicBool::new(true)));
    let (of_plane, runtime) = (Arc::clone(&works), Arc::new(WorkerThreads));
    let plane =
        DataPlane::start_with_tasks(&[CpuAffinity::Floating; 2], runtime, of_plane).unwrap();
    for _ in 0..2 {
        let error = plane.set_workers(&[CpuAffinity::Floating]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("workers that respond: 1. They continue"), "{error}");
        assert_eq!(plane.workers().len(), 2);
    }
    works.0.store(false, Ordering::SeqCst);
    plane.set_workers(&[CpuAffinity::Floating]).unwrap();
    assert_eq!(plane.workers().len(), 1);
    plane.stop();
}

#[test]
fn an_idle_worker_sleeps_and_wakes_for_a_frame() {
    let bench = Bench::new(1, 8);
    bench.introduce();
    wait_for("sleep", || bench.plane.workers()[0].is_asleep);
    let before = bench.plane.workers()[0].clone();
    std::thread::sleep(Duration::from_millis(1500));
    let after = bench.plane.workers()[0].clone();
    assert!(after.sleeps - before.sleeps <= 3, "an idle processor has no tick");
    bench.guests[3].sender.send(&frame(3, 4, 9));
    wait_for("the frame", || bench.guests[4].receiver.poll().is_some());
}

#[test]
fn a_queue_that_does_not_exist_cannot_be_moved() {
    let bench = Bench::new(1, 1);
    let id = queue(PortId(0), Direction::Ingress);
    let missing_worker = WorkerId(7);
    assert_eq!(
        bench.plane.move_queue(id, missing_worker),
        Err(MoveError::NoSuchWorker(missing_worker))
    );
    let unknown = QueueId { index: 3, ..id };
    assert_eq!(bench.plane.move_queue(unknown, WorkerId(0)), Err(MoveError::NoSuchQueue(unknown)));
}

#[test]
fn under_overload_every_frame_is_delivered_in_order_or_counted_as_dropped() {
    let bench = Bench::new(2, 2);
    bench.introduce();
    bench.plane.move_queue(queue(PortId(0), Direction::Ingress), WorkerId(0)).unwrap();
    bench.plane.move_queue(queue(PortId(1), Direction::Egress), WorkerId(1)).unwrap();
    let before = bench.plane.port_counters(PortId(1)).tx_frames;
    for number in 0..FRAMES {
        bench.guests[0].sender.send(&frame(0, 1, number));
    }
    let accounted = || {
        let counters = bench.plane.port_counters(PortId(1));
        let dropped: u64 = counters.tx_dropped.iter().map(|(_, frames)| frames).sum();
        (counters.tx_frames - before, dropped)
    };
    wait_for("all frames to be accounted for", || {
        let (delivered, dropped) = accounted();
        delivered + dropped == u64::from(FRAMES)
    });
    let mut received = 0;
    let mut last = None;
    while let Some(bytes) = bench.guests[1].receiver.poll() {
        assert!(last < Some(number(&bytes)), "out of order");
        last = Some(number(&bytes));
        received += 1;
    }
    assert_eq!(received, accounted().0, "what was counted as sent has arrived");
}
