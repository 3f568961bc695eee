//! Queues in memory with which tests run the switching plane on real threads without devices, and
//! clocks set by the test.
//!
//! Frames pushed at one end are returned as bytes at the other end. The queues do not process
//! frames and have no offload metadata besides the virtio-net header; the frame processing of
//! devices is tested with the devices.
#![forbid(unsafe_code)]

mod clock;
mod endless;
mod lan;
mod neighbours;
mod supply;
mod timed;

pub use clock::TestClockRuntime;
pub use endless::{EndlessSource, NullSink};
pub use lan::{mac, plane_of_nics, queue, small_frame};
pub use neighbours::{ns_per_frame_beside_full_mailbox, ns_per_frame_of_workers};
pub use supply::Supply;
pub use timed::{Clock, Gate, TimedSink, TimedSource};

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use suimon_frame::{Frame, FrameBatch, Offloads, VnetHeader};
use suimon_ports::{ArmResult, FaultKind, FrameSink, FrameSource, QueueFault, TransmitResult};

/// Sleeps briefly between two checks of a condition. Sleeping matters: the scheduler runs a thread
/// that wakes from sleep before threads that compute, and a worker is also such a thread. A test
/// that polled without sleeping would wait for its time slice after each frame.
pub fn sleep_briefly() {
    std::thread::sleep(std::time::Duration::from_micros(20));
}

/// The guest's end of an ingress queue, which sends frames.
#[derive(Clone)]
pub struct Sender(Arc<Ingress>);

struct Ingress {
    waiting: Mutex<VecDeque<(VnetHeader, Vec<u8>)>>,
    armed: AtomicBool,
    broken: AtomicBool,
    sent: AtomicU64,
    kick: OwnedFd,
}

impl Ingress {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(VnetHeader, Vec<u8>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kick(&self) {
        let _ = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
    }
}

impl Sender {
    /// Returns an ingress queue and its guest end.
    ///
    /// # Panics
    /// The host has no eventfd left.
    pub fn pair() -> (Self, Box<dyn FrameSource>) {
        let kick = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).expect("an eventfd");
        let ingress = Arc::new(Ingress {
            waiting: Mutex::default(),
            armed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            kick,
        });
        (Self(Arc::clone(&ingress)), Box::new(MemorySource(ingress)))
    }

    /// Sends one frame. Like a guest, it notifies the switch only if the queue is armed.
    pub fn send(&self, bytes: &[u8]) {
        self.send_with(&VnetHeader::default(), bytes);
    }

    /// Sends one frame with a virtio-net header.
    pub fn send_with(&self, header: &VnetHeader, bytes: &[u8]) {
        let mut waiting = self.0.waiting();
        waiting.push_back((*header, bytes.to_vec()));
        self.0.sent.fetch_add(1, Ordering::SeqCst);
        if self.0.armed.swap(false, Ordering::SeqCst) {
            self.0.kick();
        }
    }

    /// Returns whether the queue is armed, so that the next frame causes a notification.
    pub fn is_awaited(&self) -> bool {
        self.0.armed.load(Ordering::SeqCst)
    }

    /// Returns the number of frames sent.
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::SeqCst)
    }

    /// Makes the queue report a protocol violation at its next use.
    pub fn report_violation(&self) {
        self.0.broken.store(true, Ordering::SeqCst);
        self.0.kick();
    }

    /// Returns true if the queue exists on a worker.
    pub fn is_attached(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

struct MemorySource(Arc<Ingress>);

impl FrameSource for MemorySource {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        if self.0.broken.load(Ordering::SeqCst) {
            return Err(QueueFault {
                kind: FaultKind::ProtocolViolation,
                detail: "it misbehaved".into(),
            });
        }
        let mut waiting = self.0.waiting();
        let before = batch.len();
        while !waiting.is_empty() {
            let Some(frame) = batch.next_free_frame() else { break };
            let (header, bytes) = waiting.pop_front().unwrap_or_default();
            frame.set_bytes(&bytes);
            if frame.validate_ingress(&header, Offloads::TCP).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> ArmResult {
        let waiting = self.0.waiting();
        self.0.armed.store(true, Ordering::SeqCst);
        if waiting.is_empty() && !self.0.broken.load(Ordering::SeqCst) {
            ArmResult::Armed
        } else {
            ArmResult::Pending
        }
    }

    fn disarm(&mut self) {
        self.0.armed.store(false, Ordering::SeqCst);
        let _ = rustix::io::read(&self.0.kick, &mut [0; 8]);
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.0.kick.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed_frames(&self) -> u64 {
        0
    }
}

/// The guest's end of an egress queue, which receives frames.
#[derive(Clone, Default)]
pub struct Receiver(Arc<Egress>);

#[derive(Default)]
struct Egress {
    handed_over: Mutex<Vec<Vec<u8>>>,
    flushed: Mutex<VecDeque<Vec<u8>>>,
    sinks_alive: AtomicUsize,
    offloads: Mutex<Offloads>,
}

impl Receiver {
    /// Returns an egress queue and its guest end. A frame is visible at the guest end after the
    /// flush.
    pub fn pair() -> (Self, Box<dyn FrameSink>) {
        let receiver = Self::default();
        receiver.0.sinks_alive.store(1, Ordering::SeqCst);
        let sink = MemorySink(Arc::clone(&receiver.0));
        (receiver, Box::new(sink))
    }

    /// Sets the offloads that the queue accepts; initially none.
    pub fn set_offloads(&self, offloads: Offloads) {
        *self.0.offloads.lock().unwrap_or_else(PoisonError::into_inner) = offloads;
    }

    /// Returns the next frame.
    pub fn poll(&self) -> Option<Vec<u8>> {
        self.0.flushed.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Returns whether the queue is still attached to the switch.
    pub fn is_attached(&self) -> bool {
        self.0.sinks_alive.load(Ordering::SeqCst) > 0
    }
}

struct MemorySink(Arc<Egress>);

impl FrameSink for MemorySink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let wire = frame.wire_format();
        let mut bytes = wire.before_tag.to_vec();
        bytes.extend_from_slice(wire.tag.as_ref().map_or(&[], |tag| &tag[..]));
        bytes.extend_from_slice(wire.after_tag);
        self.0.handed_over.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        let mut handed_over = self.0.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        let mut flushed = self.0.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        flushed.extend(handed_over.drain(..));
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        *self.0.offloads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemorySink {
    fn drop(&mut self) {
        self.0.sinks_alive.store(0, Ordering::SeqCst);
    }
}
