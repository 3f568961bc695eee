//! Tests of large frames whose payload remains in the memory of the source: the buffers are
//! released after the frame has been delivered or copied, and not earlier.
//!
//! The source overwrites released buffers, so a late read delivers different bytes.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_frame::{Frame, FrameBatch, Offloads, Span, TailMemory, VnetHeader};
use suimon_ports::{FrameSink, QueueFault, QueueHost, TransmitResult, WorkerRuntime};
use suimon_processor_tests::{Receiver, Supply, mac, plane_of_nics, queue};
use suimon_quantity::{Direction, PortId, WorkerId};
use suimon_switch::{CaptureBufferLimits, DataPlane};
use suimon_wait::WorkerThreads;

/// Deadline of every condition, generous because the machine may be loaded.
const DEADLINE: Duration = Duration::from_secs(120);
const FRAMES: usize = 200;
const FRONT_BYTES: usize = 100;
const FRAME_BYTES: usize = 20_000;

/// Payload memory of one frame, which is overwritten when the frame releases it.
struct Lent(Mutex<Vec<u8>>);

impl TailMemory for Lent {
    fn read(&self, address: u64, target: &mut [u8]) {
        let start = address as usize;
        target.copy_from_slice(&self.0.lock().unwrap()[start..start + target.len()]);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// State that the sending guest observes.
#[derive(Default)]
struct Guest {
    waiting: Mutex<VecDeque<Vec<u8>>>,
    /// Number of frames whose buffers have been released.
    released: AtomicUsize,
    /// Whether a buffer was still referenced at its release.
    was_held: AtomicBool,
}

struct Lender {
    guest: Arc<Guest>,
    lent: Vec<Arc<Lent>>,
}

impl Supply for Lender {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        assert!(self.lent.is_empty(), "payloads are released before the next batch");
        let mut waiting = self.guest.waiting.lock().unwrap();
        let before = batch.len();
        while !waiting.is_empty() {
            let Some(frame) = batch.next_free_frame() else { break };
            let bytes = waiting.pop_front().unwrap();
            let borrowed = Arc::new(Lent(Mutex::new(bytes[FRONT_BYTES..].to_vec())));
            let (cut, len) = (5001, bytes.len() - FRONT_BYTES);
            let spans = [(0, cut), (cut, len - cut)];
            frame.set_bytes(&bytes[..FRONT_BYTES]);
            frame.set_tail(
                borrowed.clone(),
                &spans.map(|(offset, bytes)| Span { address: offset as u64, bytes }),
            );
            frame.validate_ingress(&header(), Offloads::TCP).unwrap();
            batch.commit();
            self.lent.push(borrowed);
        }
        Ok(batch.len() - before)
    }

    fn release(&mut self) {
        for borrowed in self.lent.drain(..) {
            if Arc::strong_count(&borrowed) != 1 {
                self.guest.was_held.store(true, Ordering::SeqCst);
            }
            borrowed.0.lock().unwrap().fill(0xff);
            self.guest.released.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Received frames, each with the number of buffers that had been released when it was read.
type Read = Mutex<VecDeque<(Vec<u8>, usize)>>;

/// Sink that reads tails itself.
struct Reader {
    guest: Arc<Guest>,
    read: Arc<Read>,
}

impl FrameSink for Reader {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let mut bytes = frame.wire_head().before_tag.to_vec();
        let mut tail = frame.tail();
        let mut buffer = vec![0; tail.remaining()];
        tail.read(&mut buffer);
        bytes.extend(buffer);
        let released = self.guest.released.load(Ordering::SeqCst);
        self.read.lock().unwrap().push_back((bytes, released));
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::TCP
    }

    fn reads_tails(&self) -> bool {
        true
    }
}

fn header() -> VnetHeader {
    VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: 54,
        gso_size: 1448,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 1,
    }
}

fn large_frame(number: usize, destination: [u8; 6]) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..FRAME_BYTES)
        .map(|index| (index * 31 + number * 7 + index / 251) as u8 & 0x7f)
        .collect();
    bytes[..6].copy_from_slice(&destination);
    bytes[6..12].copy_from_slice(&mac(0));
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    bytes[16..18].copy_from_slice(&(FRAME_BYTES as u16 - 14).to_be_bytes());
    bytes[20..26].copy_from_slice(&[0, 0, 64, 6, 0, 0]);
    // The PSH flag prevents coalescing with the next segment.
    bytes[46..48].copy_from_slice(&[0x50, 0x18]);
    bytes
}

fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "waited in vain for {description}");
        suimon_processor_tests::sleep_briefly();
    }
}

/// A guest with loaned payloads at port 0, a sink that reads tails at port 1, a sink that does not
/// at port 2, and a sink without segmentation offload at port 3.
struct Bench {
    plane: DataPlane,
    guest: Arc<Guest>,
    read: Arc<Read>,
    whole: Receiver,
    cut: Receiver,
    sent: usize,
}

impl Bench {
    /// Attaches the source to the first of `processors` workers and the sinks to the last.
    fn new(workers: usize) -> Self {
        let runtime = Arc::new(WorkerThreads);
        let cpus = runtime.allowed_cpus();
        let plane = plane_of_nics(runtime, 4);
        let (guest, read) = (Arc::new(Guest::default()), Arc::<Read>::default());
        let source = Lender { guest: Arc::clone(&guest), lent: Vec::new() };
        plane.attach_source(queue(0, Direction::Ingress), source.source());
        let reader = Reader { guest: Arc::clone(&guest), read: Arc::clone(&read) };
        plane.attach_sink(queue(1, Direction::Egress), Box::new(reader));
        let (whole_receiver, sink) = Receiver::pair();
        whole_receiver.set_offloads(Offloads::TCP);
        plane.attach_sink(queue(2, Direction::Egress), sink);
        let (cut, sink) = Receiver::pair();
        plane.attach_sink(queue(3, Direction::Egress), sink);
        assert!(cpus.len() >= workers, "this test needs {workers} CPUs");
        plane.set_workers(&cpus[..workers]).unwrap();
        plane.move_queue(queue(0, Direction::Ingress), WorkerId(0)).unwrap();
        let last = WorkerId(workers as u16 - 1);
        for port in 1..4 {
            plane.move_queue(queue(port, Direction::Egress), last).unwrap();
        }
        Self { plane, guest, read, whole: whole_receiver, cut, sent: 0 }
    }

    fn send(&mut self, destination: [u8; 6]) -> Vec<u8> {
        let bytes = large_frame(self.sent, destination);
        self.sent += 1;
        self.guest.waiting.lock().unwrap().push_back(bytes.clone());
        bytes
    }

    /// Returns the next frame at the sink that reads tails, and the number of buffers released
    /// before.
    fn next_read(&self) -> (Vec<u8>, usize) {
        let mut next = None;
        wait_for("the frame", || {
            next = self.read.lock().unwrap().pop_front();
            next.is_some()
        });
        next.unwrap()
    }

    fn next_whole(&self) -> Vec<u8> {
        let mut next = None;
        wait_for("the frame", || {
            next = self.whole.poll();
            next.is_some()
        });
        next.unwrap()
    }

    /// Returns the combined payload of the segments of one large frame.
    fn next_payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        wait_for("the segments", || {
            while let Some(segment) = self.cut.poll() {
                payload.extend_from_slice(&segment[54..]);
            }
            payload.len() >= FRAME_BYTES - 54
        });
        payload
    }

    fn check_released(&self) {
        wait_for("the release", || self.guest.released.load(Ordering::SeqCst) == self.sent);
        assert!(!self.guest.was_held.load(Ordering::SeqCst), "a frame held a released tail");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.plane.stop();
    }
}

#[test]
fn buffers_come_back_after_the_sink_has_read_them() {
    let mut bench = Bench::new(1);
    for _ in 0..FRAMES {
        let released = bench.sent;
        let sent_frame = bench.send(mac(1));
        let (read, released_then) = bench.next_read();
        assert!(read == sent_frame);
        assert_eq!(released_then, released, "released before it was read");
        bench.check_released();
    }
}

#[test]
fn sinks_that_do_not_read_tails_are_given_whole_frames() {
    for workers in [1, 2] {
        let mut bench = Bench::new(workers);
        for _ in 0..FRAMES {
            let sent_frame = bench.send(mac(2));
            assert!(bench.next_whole() == sent_frame);
            let sent_frame = bench.send(mac(3));
            assert!(bench.next_payload() == sent_frame[54..]);
            bench.check_released();
        }
    }
}

/// The source does not wait for the other worker, which may be delayed.
#[test]
fn another_worker_is_given_copies() {
    let mut bench = Bench::new(2);
    for _ in 0..FRAMES {
        let sent_frames = [(); 3].map(|()| bench.send(mac(1)));
        for sent_frame in sent_frames {
            assert!(bench.next_read().0 == sent_frame);
        }
        bench.check_released();
    }
}

#[test]
fn a_flood_brings_every_port_the_whole_frame() {
    for workers in [1, 2] {
        let mut bench = Bench::new(workers);
        for _ in 0..FRAMES {
            let sent_frame = bench.send([0xff; 6]);
            assert!(bench.next_read().0 == sent_frame);
            assert!(bench.next_whole() == sent_frame);
            assert!(bench.next_payload() == sent_frame[54..]);
            bench.check_released();
        }
    }
}

#[test]
fn captures_see_the_whole_frame_that_is_delivered() {
    for port in [0, 1] {
        let mut bench = Bench::new(1);
        let capture = bench.plane.start_capture(PortId(port), CaptureBufferLimits::default());
        for _ in 0..20 {
            let sent_frame = bench.send(mac(1));
            assert!(bench.next_read().0 == sent_frame);
            let mut captured = Vec::new();
            capture.read(DEADLINE, 1, |frame| captured.push(frame.bytes().to_vec()));
            assert!(captured == [sent_frame]);
            bench.check_released();
        }
    }
}

/// The buffers are also released if no queue accepts the frames.
#[test]
fn buffers_of_frames_that_are_dropped_come_back() {
    let mut bench = Bench::new(1);
    bench.plane.detach_port(PortId(2));
    for _ in 0..FRAMES {
        bench.send(mac(2));
        bench.check_released();
    }
}
