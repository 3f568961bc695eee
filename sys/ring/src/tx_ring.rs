//! Transmit ring of a VM: receives frames from the guest for the switch. Frames are copied and
//! their chains returned in the same call, so that the guest may reuse its buffers at once.
//!
//! Of a large frame only the beginning is copied. Its payload stays in guest memory as the frame's
//! tail and is copied once, to its destination; until then the batch's chains are not returned. A
//! guest that modifies the payload meanwhile, or truncates its memory, affects only the payload it
//! sends: the payload's addresses are checked when the chain is taken, and its contents are not
//! interpreted.

use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use suimon_eventfd::PeerEventFd;
use suimon_frame::{
    Announcement, FRAME_BYTES_MAX, Frame, FrameBatch, GSO_HEADER_BYTES_MAX, MacAddr, Offloads,
    Span, TAIL_SPANS_MAX, TailMemory, VNET_HEADER_BYTES, VNET_HEADER_SHORT_BYTES, VnetHeader,
};
use suimon_ports::{ArmResult, FrameSource, QueueFault};

use crate::chain::next_buffer;
use crate::chain_head::ChainHead;
use crate::chain_walk::ChainWalk;
use crate::fault::RingFault;
use crate::kick::kick_eventfd;
use crate::setup::RingSetup;
use crate::virtqueue::Virtqueue;

/// Minimum length in bytes of frames whose payload stays in guest memory as a tail, if they are to
/// be segmented. For shorter ones, a copy within the first-level cache costs less than the handling
/// of tails.
const TAIL_THRESHOLD_BYTES: usize = 8192;

/// Number of bytes at the beginning of such a frame that are copied at once: the longest permitted
/// headers and the VLAN tag, which is not counted in them, rounded to whole cache lines.
const FRONT_BYTES: usize = GSO_HEADER_BYTES_MAX + 64;

/// Handle with which other threads make a transmit ring announce its VM: after a migration, the
/// announcement updates the new host's switch (`VHOST_USER_SEND_RARP`).
#[derive(Debug)]
pub struct RarpAnnouncer {
    /// MAC address to announce, with the bit [`RarpAnnouncer::PENDING`] set; 0 if no announcement
    /// is pending.
    requested: AtomicU64,
    wake: Arc<PeerEventFd>,
}

impl RarpAnnouncer {
    const PENDING: u64 = 1 << 63;

    /// Makes the ring emit a reverse ARP broadcast from this address before any later frame of the
    /// VM. Wakes the ring if it sleeps.
    pub fn announce(&self, mac: MacAddr) {
        self.requested.store(mac.to_u64() | Self::PENDING, Ordering::Release);
        self.wake.signal();
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.requested.load(Ordering::Relaxed) != 0
    }

    /// Returns and clears the pending announcement; `None` if there is none.
    fn take(&self) -> Option<Announcement> {
        let address = self.requested.swap(0, Ordering::Acquire);
        (address != 0).then(|| Announcement::reverse_arp(MacAddr::from_u64(address), None))
    }
}

/// Transmit ring over one form of virtqueue (split or packed).
pub(crate) struct TxEngine<Q> {
    queue: Q,
    kick: Arc<PeerEventFd>,
    /// True if the driver never kicks: the ring must be polled and cannot be armed.
    is_poll_only: bool,
    header_bytes: usize,
    allowed: Offloads,
    malformed: u64,
    announcer: Arc<RarpAnnouncer>,
    /// Locations of the bytes of the current frame after its copied beginning.
    spans: Vec<Span>,
    /// True if chains that are completed and not returned contain tails of frames.
    has_pending_tails: bool,
}

impl<Q: Virtqueue> TxEngine<Q> {
    /// Creates a running ring. Kicks are suppressed until it is armed.
    pub(crate) fn new(queue: Q, setup: &RingSetup) -> Result<Self, QueueFault> {
        let kick = kick_eventfd(setup)?;
        Ok(Self {
            announcer: Arc::new(RarpAnnouncer {
                requested: AtomicU64::new(0),
                wake: Arc::clone(&kick),
            }),
            kick,
            is_poll_only: setup.kick.is_none(),
            header_bytes: setup.features.header_bytes(),
            allowed: setup.features.ingress(),
            malformed: 0,
            spans: Vec::with_capacity(TAIL_SPANS_MAX),
            has_pending_tails: false,
            queue,
        })
    }

    pub(crate) fn announcer(&self) -> Arc<RarpAnnouncer> {
        Arc::clone(&self.announcer)
    }

    /// Copies frames from the fetched chains to the batch. Returns the number of frames.
    fn take_batch(&mut self, batch: &mut FrameBatch) -> Result<usize, RingFault> {
        let mut count = 0;
        let mut current = self.queue.fetch()?;
        while current > 0 {
            let (Some(head), Some(frame)) = (self.queue.peek(), batch.next_free_frame()) else {
                break;
            };
            let admitted = self.take_frame(head, frame)?;
            self.queue.complete(head, 0);
            current -= 1;
            if admitted {
                self.has_pending_tails |= frame.has_tail();
                batch.commit();
                count += 1;
            } else {
                frame.reset();
                self.malformed += 1;
            }
        }
        self.queue.prefetch_ahead()?;
        Ok(count)
    }

    /// Copies one chain to `frame`. Returns false if the chain does not contain a valid frame.
    #[inline(always)]
    fn take_frame(&mut self, head: ChainHead, frame: &mut Frame) -> Result<bool, RingFault> {
        let len = head.first.len as usize;
        if head.first.known_flags() != 0 || len < self.header_bytes || len >= TAIL_THRESHOLD_BYTES {
            return self.gather(head, frame);
        }
        let body = len - self.header_bytes;
        let addr = head.first.addr;
        let body_addr = addr.wrapping_add(self.header_bytes as u64);
        let Some(space) = free_bytes(frame, 0, body) else {
            return Err(self.too_long(head));
        };
        let view = self.queue.view();
        let header = if self.header_bytes == VNET_HEADER_BYTES {
            view.read_words(addr).map(|(low, high)| VnetHeader::from_words(low, high))
        } else {
            let mut header = [0; VNET_HEADER_SHORT_BYTES];
            view.read(addr, &mut header).map(|()| VnetHeader::decode_short(&header))
        };
        let header = header.and_then(|header| view.read(body_addr, space).map(|()| header));
        let header = header.map_err(|_| self.queue.out_of_memory_fault(head.index, addr, len))?;
        frame.set_len(body);
        Ok(self.admit(header, frame))
    }

    /// Implements [`Self::take_frame`] for a chain that is long or has several buffers.
    #[inline(never)]
    fn gather(&mut self, head: ChainHead, frame: &mut Frame) -> Result<bool, RingFault> {
        let mut header = [0; VNET_HEADER_BYTES];
        let mut missing = self.header_bytes;
        let (mut front, mut body) = (0, 0);
        self.spans.clear();
        let mut walk = ChainWalk::new(head, self.queue.size());
        while let Some(buffer) = next_buffer(&mut self.queue, &mut walk)? {
            let into_header = missing.min(buffer.len);
            let start = self.header_bytes - missing;
            let into_body = buffer.len - into_header;
            // All bytes after the first span of the tail belong to the tail.
            let is_front = self.spans.is_empty();
            let into_front =
                if is_front { into_body.min(FRONT_BYTES.max(front) - front) } else { 0 };
            let (Some(header_part), Some(space), true) = (
                header.get_mut(start..start + into_header),
                free_bytes(frame, front, into_front),
                into_body <= FRAME_BYTES_MAX - body,
            ) else {
                return Err(self.too_long(head));
            };
            let body_addr = buffer.addr.wrapping_add(into_header as u64);
            let tail = Span {
                address: body_addr.wrapping_add(into_front as u64),
                bytes: into_body - into_front,
            };
            let view = self.queue.view();
            view.read(buffer.addr, header_part)
                .and_then(|()| view.read(body_addr, space))
                .and_then(|()| view.check(tail.address, tail.bytes))
                .map_err(|_| self.queue.out_of_memory_fault(head.index, buffer.addr, buffer.len))?;
            missing -= into_header;
            front += into_front;
            body += into_body;
            if tail.bytes > 0 {
                if self.spans.len() == TAIL_SPANS_MAX {
                    front = self.copy_tail(frame, front);
                }
                self.spans.push(tail);
                self.queue.view().prefetch_read(tail.address);
            }
        }
        let header = VnetHeader::decode(&header);
        if header.gso_type == VnetHeader::GSO_NONE || body < TAIL_THRESHOLD_BYTES {
            front = self.copy_tail(frame, front);
        }
        frame.set_len(front);
        if !self.spans.is_empty() {
            let memory = Arc::clone(self.queue.queue_state().view.memory());
            frame.set_tail(memory, &self.spans);
        }
        Ok(missing == 0 && self.admit(header, frame))
    }

    /// Copies the bytes of the tail to `frame` after the first `front` bytes. Returns the new
    /// length of the front. Each span was checked to be in memory, and together they fit into the
    /// frame.
    fn copy_tail(&mut self, frame: &mut Frame, mut front: usize) -> usize {
        for span in self.spans.drain(..) {
            if let Some(space) = free_bytes(frame, front, span.bytes) {
                self.queue.queue_state().view.memory().read(span.address, space);
                front += span.bytes;
            }
        }
        front
    }

    /// Validates a frame with its header. Returns false if it is invalid. A driver may not claim
    /// that a checksum was verified (virtio 1.3, section 5.1.6.2); the claim is removed.
    #[inline(always)]
    fn admit(&self, header: VnetHeader, frame: &mut Frame) -> bool {
        frame.validate_ingress(&header.without_data_valid(), self.allowed).is_ok()
    }

    #[cold]
    fn too_long(&self, head: ChainHead) -> RingFault {
        let max = self.header_bytes + FRAME_BYTES_MAX;
        RingFault::FrameLength { queue: self.queue.queue_state().queue, head: head.index, max }
    }
}

/// Returns the space for `bytes` bytes after the first `start` bytes of a frame; `None` if the
/// frame would become too long.
#[inline(always)]
fn free_bytes(frame: &mut Frame, start: usize, bytes: usize) -> Option<&mut [u8]> {
    let end = start + bytes;
    if end > FRAME_BYTES_MAX { None } else { frame.space_mut().get_mut(start..end) }
}

impl<Q: Virtqueue> FrameSource for TxEngine<Q> {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        self.release();
        self.queue.queue_state().check()?;
        let mut count = 0;
        if self.announcer.is_pending() {
            if let Some(frame) = batch.next_free_frame() {
                if let Some(announcement) = self.announcer.take() {
                    frame.set_bytes(announcement.bytes());
                    batch.commit();
                    count += 1;
                }
            }
        }
        let result = self.take_batch(batch);
        if !self.has_pending_tails {
            self.queue.publish();
        }
        match result {
            Ok(received) => Ok(count + received),
            Err(fault) => Err(self.queue.queue_state_mut().fail(fault).into()),
        }
    }

    fn release(&mut self) {
        if self.has_pending_tails {
            self.has_pending_tails = false;
            self.queue.publish();
        }
    }

    fn arm(&mut self) -> ArmResult {
        if self.is_poll_only || self.announcer.is_pending() {
            return ArmResult::Pending;
        }
        self.queue.arm()
    }

    fn disarm(&mut self) {
        self.queue.park();
        self.kick.clear();
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed_frames(&self) -> u64 {
        self.malformed
    }
}
