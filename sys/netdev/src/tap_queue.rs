//! Queues of a TAP. One descriptor carries the frames of a queue pair in both directions.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, readv};
use suimon_frame::{BATCH_FRAMES_MAX, Frame, FrameBatch, Offloads, VNET_HEADER_BYTES, VnetHeader};
use suimon_ports::{ArmResult, FrameSink, FrameSource, QueueFault, TransmitResult};

use crate::errors::{call_failed_fault, device_removed_fault};
use crate::frame_write::write_frame;
use crate::offload::{self, SharedOffloads};

/// State shared by source and sink of one queue pair.
#[derive(Debug)]
pub(crate) struct TapQueue {
    pub(crate) fd: OwnedFd,
    /// Name of the device, for messages.
    pub(crate) device: Arc<str>,
    /// Offloads that frames from the kernel may use.
    pub(crate) ingress: Arc<SharedOffloads>,
    pub(crate) egress: Arc<SharedOffloads>,
}

/// Source of frames that the kernel's side of a TAP has sent.
pub struct TapSource {
    queue: Arc<TapQueue>,
    malformed: u64,
}

impl TapSource {
    pub(crate) fn new(queue: Arc<TapQueue>) -> Self {
        Self { queue, malformed: 0 }
    }
}

impl FrameSource for TapSource {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        let ingress = self.queue.ingress.load();
        // Bounds the calls too: frames that are not admitted leave the batch unchanged.
        for _ in 0..BATCH_FRAMES_MAX {
            let Some(frame) = batch.next_free_frame() else { break };
            let mut header = [0; VNET_HEADER_BYTES];
            let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(frame.space_mut())];
            let read = match readv(&self.queue.fd, &mut parts) {
                Ok(read) => read,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(fault(&self.queue, "reading from", errno)),
            };
            frame.set_len(read.saturating_sub(VNET_HEADER_BYTES));
            // The device may still hold frames sent before an offload was switched off, so all
            // forms that a TAP can carry are admitted.
            match frame.validate_ingress(&VnetHeader::decode(&header), offload::ALL) {
                Ok(()) => {
                    offload::restrict(frame, ingress);
                    batch.commit();
                }
                Err(_) => self.malformed += 1,
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> ArmResult {
        // The descriptor is readable whenever a frame is available.
        ArmResult::Armed
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.queue.fd.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        true
    }

    fn malformed_frames(&self) -> u64 {
        self.malformed
    }
}

/// Sink of frames for the kernel's side of a TAP. A write executes the kernel's receive path
/// completely, so that there is nothing to flush.
pub struct TapSink {
    queue: Arc<TapQueue>,
    discarded: u64,
}

impl TapSink {
    pub(crate) fn new(queue: Arc<TapQueue>) -> Self {
        Self { queue, discarded: 0 }
    }
}

impl FrameSink for TapSink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let wire = frame.wire_format();
        let header = wire.header.encode();
        match write_frame(&self.queue.fd, &header, &wire) {
            Ok(()) => Ok(TransmitResult::Accepted),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Ok(TransmitResult::Full),
            // EIO: the device is down and loses frames, as a NIC does. The others: the kernel
            // rejects this frame.
            Err(Errno::IO | Errno::INVAL | Errno::MSGSIZE) => {
                self.discarded += 1;
                Ok(TransmitResult::Accepted)
            }
            Err(errno) => Err(fault(&self.queue, "writing to", errno)),
        }
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        self.queue.egress.load()
    }

    fn discarded_frames(&self) -> u64 {
        self.discarded
    }
}

fn fault(queue: &TapQueue, doing: &str, errno: Errno) -> QueueFault {
    match errno {
        Errno::BADFD | Errno::NXIO | Errno::NODEV => device_removed_fault(&queue.device, errno),
        errno => call_failed_fault(&queue.device, doing, errno),
    }
}
