//! Receive and transmit queues of an uplink over packet sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use suimon_frame::{
    BATCH_FRAMES_MAX, Frame, FrameBatch, Offloads, VNET_HEADER_SHORT_BYTES, VlanTag, VnetHeader,
};
use suimon_ports::{ArmResult, FrameSink, FrameSource, QueueFault, TransmitResult};

use crate::errors::{call_failed_fault, device_removed_fault};
use crate::frame_write::write_frame;
use crate::offload::{self, SharedOffloads};
use crate::packet_socket::{PacketSocket, ReceivedFrame, StrippedTag};

const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
const VLAN_TPID: u16 = libc::ETH_P_8021Q as u16;

/// State shared by source and sink of one queue pair.
#[derive(Debug)]
pub(crate) struct PacketQueue {
    pub(crate) socket: PacketSocket,
    pub(crate) index: u32,
    /// Name of the device, for messages.
    pub(crate) device: Arc<str>,
    /// Offloads that received frames may use.
    pub(crate) ingress: SharedOffloads,
    pub(crate) egress: SharedOffloads,
}

impl PacketQueue {
    /// Converts the errno of the call for `doing` to a fault; returns `None` if the queue
    /// continues.
    fn fault(&self, doing: &str, errno: Errno) -> Option<QueueFault> {
        let exists = || index_to_name(self.socket.fd(), self.index).is_ok();
        match errno {
            // The device was set down, or is being deleted.
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV => {
                (!exists()).then(|| device_removed_fault(&self.device, errno))
            }
            errno => Some(call_failed_fault(&self.device, doing, errno)),
        }
    }
}

/// Source of frames received by an uplink's device.
pub struct PacketSource {
    queue: Arc<PacketQueue>,
    malformed: u64,
}

impl PacketSource {
    pub(crate) fn new(queue: Arc<PacketQueue>) -> Self {
        Self { queue, malformed: 0 }
    }
}

impl FrameSource for PacketSource {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        let ingress = self.queue.ingress.load();
        for _ in 0..BATCH_FRAMES_MAX {
            let Some(frame) = batch.next_free_frame() else { break };
            let mut header = [0; VNET_HEADER_SHORT_BYTES];
            let received = match self.queue.socket.receive(&mut header, frame.space_mut()) {
                Ok(received) => received,
                Err(error) => match self.handle(&error)? {
                    After::Stop => break,
                    After::Retry => continue,
                },
            };
            match admit(frame, VnetHeader::decode_short(&header), received) {
                Some(()) => {
                    offload::restrict(frame, ingress);
                    batch.commit();
                }
                None => self.malformed += 1,
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
        self.queue.socket.fd().as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        true
    }

    fn malformed_frames(&self) -> u64 {
        self.malformed
    }
}

enum After {
    Stop,
    Retry,
}

impl PacketSource {
    fn handle(&self, error: &io::Error) -> Result<After, QueueFault> {
        let errno = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
        match errno {
            Errno::AGAIN => Ok(After::Stop),
            Errno::INTR => Ok(After::Retry),
            // The kernel dropped a frame that it could not describe in a header (EINVAL).
            Errno::INVAL => Ok(After::Retry),
            errno => self.queue.fault("receiving from", errno).map_or(Ok(After::Retry), Err),
        }
    }
}

/// Converts a received frame, with the VLAN tag that the kernel removed, to a frame of the switch.
/// Returns `None` if it is malformed.
fn admit(frame: &mut Frame, mut header: VnetHeader, received: ReceivedFrame) -> Option<()> {
    let len = received.len.checked_sub(VNET_HEADER_SHORT_BYTES)?;
    if received.is_truncated {
        return None;
    }
    frame.set_len(len);
    match received.tag {
        None => {}
        Some(StrippedTag { tci, tpid: VLAN_TPID }) => frame.meta.tag = Some(VlanTag::from_tci(tci)),
        // A tag with another TPID (for example 802.1ad) is payload to the switch and is inserted
        // into the bytes again.
        Some(tag) => {
            insert_tag(frame, tag)?;
            if header.flags & VnetHeader::NEEDS_CSUM != 0 {
                header.csum_start = header.csum_start.checked_add(TAG_BYTES as u16)?;
            }
        }
    }
    frame.validate_ingress(&header, offload::ALL).ok()
}

fn insert_tag(frame: &mut Frame, tag: StrippedTag) -> Option<()> {
    let len = frame.len();
    let grown = len.checked_add(TAG_BYTES)?;
    let bytes = frame.space_mut().get_mut(..grown)?;
    if len < ADDRESSES_BYTES {
        return None;
    }
    bytes.copy_within(ADDRESSES_BYTES..len, ADDRESSES_BYTES + TAG_BYTES);
    let [type_high, type_low] = tag.tpid.to_be_bytes();
    let [high, low] = tag.tci.to_be_bytes();
    let tag_field = bytes.get_mut(ADDRESSES_BYTES..ADDRESSES_BYTES + TAG_BYTES)?;
    tag_field.copy_from_slice(&[type_high, type_low, high, low]);
    frame.set_len(grown);
    Some(())
}

/// Sink of frames for an uplink's device. They pass the device's queueing discipline, so that the
/// host's traffic control applies.
pub struct PacketSink {
    queue: Arc<PacketQueue>,
    discarded: u64,
}

impl PacketSink {
    pub(crate) fn new(queue: Arc<PacketQueue>) -> Self {
        Self { queue, discarded: 0 }
    }
}

impl FrameSink for PacketSink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let wire = frame.wire_format();
        let header = wire.header.encode_short();
        let socket = self.queue.socket.sending_fd();
        let outcome = match write_frame(socket, &header, &wire) {
            // The socket may still hold the error of an earlier time when the device was down,
            // which is unrelated to this frame; it is reported once.
            Err(Errno::NETDOWN) => write_frame(socket, &header, &wire),
            outcome => outcome,
        };
        match outcome {
            Ok(()) => return Ok(TransmitResult::Accepted),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(TransmitResult::Full),
            // The frame exceeds the device's MTU, or the kernel cannot send it: this frame is lost.
            Err(Errno::MSGSIZE | Errno::INVAL) => {}
            Err(errno) => {
                if let Some(fault) = self.queue.fault("sending on", errno) {
                    return Err(fault);
                }
            }
        }
        self.discarded += 1;
        Ok(TransmitResult::Accepted)
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
