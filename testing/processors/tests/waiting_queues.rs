//! A queue that waits for its notification is served while others keep the processor
//! busy, and how soon depends on time, not on rounds: a round takes two microseconds
//! with small frames and a hundred with large ones. Time is the test's own.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_forwarding::{PortRole, PortSpec, SwitchSpec};
use suimon_frame::{Frame, FrameBatch, MacAddr, Offloads};
use suimon_ports::{
    FrameSink, FrameSource, PortFault, ProcessorBody, ProcessorJoin, ProcessorRuntime, QueueHost,
    Sent, Wait, Waker, Wakeup,
};
use suimon_processor_tests::{Bottomless, Endless, Sender};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId, Time};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::PinnedThreads;

/// Rounds between two frames of the waiting queue: enough for it to wait again.
const PAUSE_ROUNDS: u64 = 2000;
const FRAMES: usize = 20;

/// Pinned threads with a clock that goes on by a step whenever a processor reads it,
/// which is once in a round.
struct Stepping(Duration);

impl ProcessorRuntime for Stepping {
    fn start(
        &self,
        name: &str,
        cpu: u16,
        body: ProcessorBody,
    ) -> io::Result<(Arc<dyn Waker>, ProcessorJoin)> {
        let step = self.0;
        let stepped = move |wait| {
            body(Box::new(SteppingWait { wait, step, steps: AtomicU64::new(0) }));
        };
        PinnedThreads.start(name, cpu, Box::new(stepped))
    }

    fn cpus(&self) -> Vec<u16> {
        PinnedThreads.cpus()
    }

    fn now(&self) -> Time {
        Time::ZERO
    }
}

struct SteppingWait {
    wait: Box<dyn Wait>,
    step: Duration,
    steps: AtomicU64,
}

impl Wait for SteppingWait {
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.wait.watch(fd, token)
    }

    fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.wait.unwatch(fd);
    }

    fn wait(&mut self, _: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()> {
        self.wait.wait(None, ready)
    }

    fn now(&self) -> Time {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed);
        Time::ZERO + self.step * u32::try_from(steps).unwrap()
    }

    fn cpu_time(&self) -> Duration {
        self.wait.cpu_time()
    }
}

/// What the busy queue and the far side of the waiting one share.
#[derive(Default)]
struct Seen {
    round: AtomicU64,
    /// The round in which the frame that is under way was sent, plus one.
    sent: AtomicU64,
    delays: Mutex<Vec<u64>>,
}

/// Always has frames; sends one through the waiting queue now and then.
struct Busy {
    frames: Endless,
    waiting: Sender,
    seen: Arc<Seen>,
}

impl FrameSource for Busy {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        let round = self.seen.round.fetch_add(1, Ordering::Relaxed);
        if round % PAUSE_ROUNDS == PAUSE_ROUNDS - 1 {
            self.seen.sent.store(round + 1, Ordering::Relaxed);
            self.waiting.send(&frame(1, 0));
        }
        self.frames.receive(batch)
    }

    fn arm(&mut self) -> Wakeup {
        self.frames.arm()
    }

    fn disarm(&mut self) {
        self.frames.disarm();
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.frames.wake_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        self.frames.is_polled_by_fd()
    }

    fn malformed(&self) -> u64 {
        self.frames.malformed()
    }
}

struct Arrivals(Arc<Seen>);

impl FrameSink for Arrivals {
    fn transmit(&mut self, _: &Frame) -> Result<Sent, PortFault> {
        let sent = self.0.sent.swap(0, Ordering::Relaxed);
        assert_ne!(sent, 0, "a frame that nobody sent");
        self.0.delays.lock().unwrap().push(self.0.round.load(Ordering::Relaxed) - sent);
        Ok(Sent::Accepted)
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

fn frame(from: u8, to: u8) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..6].copy_from_slice(&mac(to));
    bytes[6..12].copy_from_slice(&mac(from));
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

fn queue(port: u32, direction: Direction) -> QueueId {
    QueueId { port: PortId(port), direction, index: 0 }
}

/// In how many rounds of the busy queue each frame of the waiting one arrived.
/// Port 0 is busy, and where port 1's frames go; what it sends goes to port 2.
fn delays(step: Duration) -> Vec<u64> {
    let cpu = PinnedThreads.cpus()[0];
    let plane = DataPlane::start(&[cpu], Arc::new(Stepping(step))).unwrap();
    let port = |id| PortTopology {
        spec: PortSpec {
            mac: Some(MacAddr::new(mac(id as u8))),
            ..PortSpec::new(PortId(id), SwitchId(1), PortRole::Nic)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: false,
    };
    let switches = vec![SwitchSpec::new(SwitchId(1))];
    plane.publish(Topology { switches, ports: vec![port(0), port(1), port(2)] }).unwrap();
    let seen = Arc::new(Seen::default());
    let (waiting, source) = Sender::pair();
    plane.attach_sink(queue(0, Direction::Egress), Box::new(Arrivals(Arc::clone(&seen))));
    plane.attach_sink(queue(2, Direction::Egress), Box::new(Bottomless::default()));
    plane.attach_source(queue(1, Direction::Ingress), source);
    let frames = Endless::new(frame(0, 2));
    let busy = Busy { frames, waiting, seen: Arc::clone(&seen) };
    plane.attach_source(queue(0, Direction::Ingress), Box::new(busy));
    let began = Instant::now();
    while seen.delays.lock().unwrap().len() < FRAMES {
        assert!(began.elapsed() < Duration::from_secs(20), "the waiting queue is not served");
        std::thread::yield_now();
    }
    plane.stop();
    let delays = seen.delays.lock().unwrap();
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
