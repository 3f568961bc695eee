//! Receive and transmit queue of an AF_XDP uplink. Each has its own rings.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use libc::xdp_desc;
use rustix::io::Errno;
use suimon_frame::{
    BATCH_FRAMES_MAX, ETHERNET_HEADER_BYTES, Frame, FrameBatch, Offloads, VLAN_TAG_BYTES,
    VnetHeader, WireFrame,
};
use suimon_ports::{ArmResult, FrameSink, FrameSource, QueueFault, TransmitResult};

use super::socket::{Receiver, Sender, XdpSocket};
use crate::errors::{call_failed_fault, device_removed_fault};
use crate::offload::SharedOffloads;

/// Returns the maximum length in bytes of a frame of a device with this MTU: the IP packet, the
/// Ethernet header and two VLAN tags.
pub(super) fn frame_bytes_max(mtu: u16) -> usize {
    usize::from(mtu) + ETHERNET_HEADER_BYTES + 2 * VLAN_TAG_BYTES
}

/// State shared by source and sink of one queue.
#[derive(Debug)]
pub(super) struct XdpQueue {
    pub(super) socket: XdpSocket,
    /// Name of the device, for messages.
    pub(super) device: Arc<str>,
    /// Offloads that sent frames may use.
    pub(super) egress: SharedOffloads,
    /// Maximum length in bytes of a frame that is sent. Drivers do not check it.
    pub(super) frame_bytes_max: AtomicUsize,
    /// True if the TX ring contains frames for which the device had no space. The kernel sends them
    /// only after another call of [`XdpSocket::wake_sending`].
    needs_wakeup: AtomicBool,
}

impl XdpQueue {
    pub(super) fn new(
        socket: XdpSocket,
        device: Arc<str>,
        egress: Offloads,
        frame_bytes_max: usize,
    ) -> Self {
        Self {
            socket,
            device,
            egress: SharedOffloads::new(egress),
            frame_bytes_max: AtomicUsize::new(frame_bytes_max),
            needs_wakeup: AtomicBool::new(false),
        }
    }

    /// Makes the kernel send frames for which the device had no space before. Returns true if some
    /// of them remain.
    fn is_stalled(&self) -> bool {
        if !self.needs_wakeup.load(Ordering::Relaxed) {
            return false;
        }
        let stalls = matches!(self.socket.wake_sending(), Err(Errno::AGAIN | Errno::BUSY));
        if !stalls {
            self.needs_wakeup.store(false, Ordering::Relaxed);
        }
        stalls
    }
}

/// Source of frames received by an uplink's device.
pub(super) struct XdpSource {
    queue: Arc<XdpQueue>,
    receiver: Receiver,
    malformed: u64,
}

impl XdpSource {
    pub(super) fn new(queue: Arc<XdpQueue>, receiver: Receiver) -> Self {
        Self { queue, receiver, malformed: 0 }
    }

    /// Returns the number of descriptors of the frame that begins at the descriptor `first`, of
    /// `available` ones; `None` if its end has not arrived.
    fn descriptor_count(&self, first: u32, available: u32) -> Option<u32> {
        let mut count = 1;
        while self.receiver.rx.peek(first + count - 1)?.options & libc::XDP_PKT_CONTD != 0 {
            count += 1;
            if first + count > available {
                return None;
            }
        }
        Some(count)
    }

    /// Copies the frame in `descriptors` descriptors from `first` on to `frame`, and validates it.
    /// Returns false for a frame that is too long, invalid, or not within chunks.
    fn read(&self, frame: &mut Frame, first: u32, descriptors: u32) -> bool {
        let mut len = 0;
        for index in first..first + descriptors {
            let Some(descriptor) = self.receiver.rx.peek(index) else { return false };
            let end = len + descriptor.len as usize;
            let Some(target) = frame.space_mut().get_mut(len..end) else { return false };
            if !self.receiver.area.read(descriptor.addr, target) {
                return false;
            }
            len = end;
        }
        frame.set_len(len);
        frame.validate_ingress_plain().is_ok()
    }

    /// Returns the chunks of `descriptors` descriptors from `first` on to the fill ring.
    fn refill(&mut self, first: u32, descriptors: u32) {
        for index in first..first + descriptors {
            let chunk = self.receiver.rx.peek(index).map(|descriptor| descriptor.addr);
            if let Some(chunk) =
                chunk.and_then(|address| self.receiver.area.chunk_containing(address))
            {
                // The ring has as many entries as there are chunks, so there is space.
                self.receiver.fill.push(chunk);
            }
        }
    }
}

impl FrameSource for XdpSource {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        self.queue.is_stalled();
        let available = self.receiver.rx.available();
        let mut consumed = 0;
        // Malformed frames are counted too, so that the loop is bounded.
        for _ in 0..BATCH_FRAMES_MAX {
            if consumed >= available {
                break;
            }
            let Some(descriptors) = self.descriptor_count(consumed, available) else { break };
            let Some(frame) = batch.next_free_frame() else { break };
            if self.read(frame, consumed, descriptors) {
                batch.commit();
            } else {
                self.malformed += 1;
            }
            self.refill(consumed, descriptors);
            consumed += descriptors;
        }
        if consumed > 0 {
            self.receiver.rx.release(consumed);
            self.receiver.fill.submit();
            if self.receiver.fill.requires_wakeup() {
                self.queue.socket.wake_receiving();
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> ArmResult {
        if self.receiver.rx.available() > 0 || self.queue.is_stalled() {
            return ArmResult::Pending;
        }
        if self.receiver.fill.requires_wakeup() {
            self.queue.socket.wake_receiving();
        }
        // The descriptor is readable whenever a frame is available.
        ArmResult::Armed
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.queue.socket.fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed_frames(&self) -> u64 {
        self.malformed
    }
}

/// Sink of frames for an uplink's device. They bypass the device's queueing discipline.
pub(super) struct XdpSink {
    queue: Arc<XdpQueue>,
    sender: Sender,
    /// Chunks that contain no frame to send.
    free: Vec<u64>,
    /// Number of chunks for sending.
    chunks: usize,
    /// True if the device was down when frames were last sent.
    is_down: bool,
    discarded: u64,
}

impl XdpSink {
    pub(super) fn new(queue: Arc<XdpQueue>, sender: Sender) -> Self {
        let free: Vec<u64> = sender.area.chunks().collect();
        let chunks = free.len();
        Self { queue, sender, free, chunks, is_down: false, discarded: 0 }
    }

    /// Takes chunks of sent frames from the completion ring. `free` never exceeds the number of
    /// chunks, even if the kernel returns one repeatedly.
    fn reclaim(&mut self) {
        let completed = self.sender.completion.available();
        for index in 0..completed {
            let address = self.sender.completion.peek(index);
            let address = address.filter(|_| self.free.len() < self.chunks);
            if let Some(chunk) =
                address.and_then(|chunk_address| self.sender.area.chunk_containing(chunk_address))
            {
                self.free.push(chunk);
            }
        }
        self.sender.completion.release(completed);
    }

    /// Submits the written frames to the kernel, and makes the kernel send as many as the device
    /// accepts now.
    fn submit(&mut self) -> Result<(), QueueFault> {
        self.sender.tx.submit();
        let mut waiting = self.sender.tx.unconsumed_count();
        // Each iteration sends something, or is the last.
        while waiting > 0 && self.sender.tx.requires_wakeup() {
            match self.queue.socket.wake_sending() {
                Ok(()) => self.is_down = false,
                // The kernel keeps the frames and sends them when the device is up again.
                Err(Errno::NETDOWN) => {
                    self.is_down = true;
                    return Ok(());
                }
                Err(errno @ (Errno::NXIO | Errno::NODEV | Errno::BADF)) => {
                    return Err(device_removed_fault(&self.queue.device, errno));
                }
                Err(errno @ (Errno::PERM | Errno::ACCESS | Errno::NOTCONN)) => {
                    return Err(call_failed_fault(&self.queue.device, "sending on", errno));
                }
                // No space now, or a frame that cannot be sent, which the kernel skips.
                Err(_) => {}
            }
            self.reclaim();
            let remaining = self.sender.tx.unconsumed_count();
            if remaining >= waiting {
                self.queue.needs_wakeup.store(true, Ordering::Relaxed);
                return Ok(());
            }
            waiting = remaining;
        }
        self.queue.needs_wakeup.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns true if the device was down and still is. Frames are then discarded, as by other
    /// uplinks.
    fn is_down(&mut self) -> bool {
        self.is_down =
            self.is_down && matches!(self.queue.socket.wake_sending(), Err(Errno::NETDOWN));
        self.is_down
    }

    /// Writes a frame to `descriptors` free chunks, and pushes their descriptors to the TX ring.
    fn write(&mut self, wire: &WireFrame<'_>, descriptors: usize) {
        let piece_bytes = self.sender.segment_bytes();
        let tag = wire.tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        let mut parts = [wire.before_tag, tag, wire.after_tag].into_iter();
        let mut part = parts.next().unwrap_or_default();
        for index in 1..=descriptors {
            let Some(chunk) = self.free.pop() else { return };
            let start = chunk + self.sender.headroom_bytes as u64;
            let mut len = 0;
            while len < piece_bytes {
                if part.is_empty() {
                    let Some(next) = parts.next() else { break };
                    part = next;
                }
                let (now, rest) = part.split_at(part.len().min(piece_bytes - len));
                self.sender.area.write(start + len as u64, now);
                len += now.len();
                part = rest;
            }
            let mut options = if index < descriptors { libc::XDP_PKT_CONTD } else { 0 };
            if index == 1 && wire.header.flags & VnetHeader::NEEDS_CSUM != 0 {
                options |= libc::XDP_TX_METADATA;
                self.sender.area.write(chunk, &checksum_request(&wire.header));
            }
            // The ring has as many entries as there are chunks, so there is space.
            self.sender.tx.push(xdp_desc { addr: start, len: len as u32, options });
        }
    }
}

/// Encodes the beginning of `struct xsk_tx_metadata` (linux/if_xdp.h), which makes the kernel
/// complete the frame's checksum.
fn checksum_request(header: &VnetHeader) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = u64::from(libc::XDP_TXMD_FLAGS_CHECKSUM).to_ne_bytes();
    let [i, j] = header.csum_start.to_ne_bytes();
    let [k, l] = header.csum_offset.to_ne_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

impl FrameSink for XdpSink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let wire = frame.wire_format();
        let len = wire.wire_len();
        if len > self.queue.frame_bytes_max.load(Ordering::Relaxed) || self.is_down() {
            self.discarded += 1;
            return Ok(TransmitResult::Accepted);
        }
        let descriptors = len.div_ceil(self.sender.segment_bytes());
        if self.free.len() < descriptors {
            self.reclaim();
        }
        if self.free.len() < descriptors {
            self.submit()?;
            if self.free.len() < descriptors {
                return Ok(TransmitResult::Full);
            }
        }
        self.write(&wire, descriptors);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.reclaim();
        self.submit()
    }

    fn offloads(&self) -> Offloads {
        self.queue.egress.load()
    }

    fn discarded_frames(&self) -> u64 {
        self.discarded
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
