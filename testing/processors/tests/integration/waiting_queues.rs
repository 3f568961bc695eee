//! Tests that an armed queue is served while other queues keep the worker busy. The delay depends
//! on time, not on the number of rounds: a round takes two microseconds with small frames and a
//! hundred with large ones. The clock is virtual.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, QueueFault, QueueHost, TransmitResult};
use suimon_processor_tests::{
    EndlessSource, NullSink, Sender, Supply, TestClockRuntime, plane_of_nics, queue, small_frame,
};
use suimon_quantity::{Direction, Time};
use suimon_wait::WorkerThreads;

/// Number of rounds between two frames of the armed queue, enough for it to be armed again.
const PAUSE_ROUNDS: u64 = 2000;
const FRAMES: usize = 20;

/// State shared by the busy queue and the far end of the armed queue.
#[derive(Default)]
struct Seen {
    round: AtomicU64,
    /// Round in which the frame in flight was sent, plus one; 0 if no frame is in flight.
    sent: AtomicU64,
    delays: Mutex<Vec<u64>>,
}

/// Source that always has frames, and at intervals sends one through the armed queue.
struct Busy {
    frames: EndlessSource,
    waiting: Sender,
    seen: Arc<Seen>,
}

impl Supply for Busy {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let round = self.seen.round.fetch_add(1, Ordering::Relaxed);
        if round % PAUSE_ROUNDS == PAUSE_ROUNDS - 1 {
            self.seen.sent.store(round + 1, Ordering::Relaxed);
            self.waiting.send(&small_frame(1, 0));
        }
        self.frames.fill(batch)
    }
}

struct Arrivals(Arc<Seen>);

impl FrameSink for Arrivals {
    fn transmit(&mut self, _: &Frame) -> Result<TransmitResult, QueueFault> {
        let sent_round = self.0.sent.swap(0, Ordering::Relaxed);
        assert_ne!(sent_round, 0, "a frame that was not sent");
        self.0.delays.lock().unwrap().push(self.0.round.load(Ordering::Relaxed) - sent_round);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

/// Returns the delay of each frame of the armed queue in rounds of the busy queue. The clock
/// advances by `step` per read, which a worker does once per round. Port 0 is the busy source and
/// also receives the frames of port 1; frames of port 0 go to port 2.
fn delays(step: Duration) -> Vec<u64> {
    let steps = AtomicU64::new(0);
    let stepping = TestClockRuntime::new(move || {
        let steps = steps.fetch_add(1, Ordering::Relaxed);
        Time::ZERO + step * u32::try_from(steps).unwrap()
    });
    let plane = plane_of_nics(Arc::new(stepping), 3);
    let arrivals = Arc::new(Seen::default());
    let (waiting, source) = Sender::pair();
    plane.attach_sink(queue(0, Direction::Egress), Box::new(Arrivals(Arc::clone(&arrivals))));
    plane.attach_sink(queue(2, Direction::Egress), Box::new(NullSink::default()));
    plane.attach_source(queue(1, Direction::Ingress), source);
    let frames = EndlessSource::new(small_frame(0, 2));
    let busy = Busy { frames, waiting, seen: Arc::clone(&arrivals) };
    plane.attach_source(queue(0, Direction::Ingress), busy.source());
    let started = Instant::now();
    while arrivals.delays.lock().unwrap().len() < FRAMES {
        assert!(started.elapsed() < Duration::from_secs(120), "the waiting queue is not served");
        suimon_processor_tests::sleep_briefly();
    }
    plane.stop();
    let delays = arrivals.delays.lock().unwrap();
    delays.clone()
}

#[test]
fn a_waiting_queue_is_served_in_the_next_round_when_rounds_are_long() {
    let delays = delays(Duration::from_micros(100));
    assert!(delays.iter().all(|rounds| *rounds <= 2), "{delays:?}");
}

#[test]
fn descriptors_are_not_looked_at_in_each_short_round() {
    let delays = delays(Duration::from_micros(2));
    assert!(delays.iter().all(|rounds| *rounds <= 12), "{delays:?}");
    assert!(delays.iter().any(|rounds| *rounds > 2), "{delays:?}");
}

#[test]
fn an_idle_ring_of_a_busy_worker_waits_for_its_notification() {
    let plane = plane_of_nics(Arc::new(WorkerThreads), 3);
    // The result must not depend on the polling time of a worker without work.
    plane.set_polling_time(Duration::from_secs(3600));
    plane.attach_sink(queue(2, Direction::Egress), Box::new(NullSink::default()));
    plane.attach_source(
        queue(0, Direction::Ingress),
        EndlessSource::new(small_frame(0, 2)).source(),
    );
    let until = |description: &str, condition: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < Duration::from_secs(120), "{description}");
            suimon_processor_tests::sleep_briefly();
        }
    };
    until("it is not busy", &|| plane.workers()[0].batches > 0);
    let sleeps = plane.workers()[0].sleeps;
    let (idle, source) = Sender::pair();
    plane.attach_source(queue(1, Direction::Ingress), source);
    until("it is polled for ever", &|| idle.is_awaited());
    assert_eq!(plane.workers()[0].sleeps, sleeps);
    plane.stop();
}
