//! Queues of frames, and the switch that services them.

use std::os::fd::BorrowedFd;

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_quantity::{PortId, QueueId};
use thiserror::Error;

use crate::{CompletedDetachment, DetachingQueue};

/// Result of enabling notifications with [`FrameSource::arm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmResult {
    /// No input is pending. The wake descriptor becomes readable when input arrives.
    Armed,
    /// Input arrived meanwhile: poll again before sleeping.
    Pending,
}

/// Result of handing a frame to a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitResult {
    /// The frame was queued for transmission.
    Accepted,
    /// The peer's queue is full; the frame was not queued.
    Full,
}

/// Cause of a queue fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device no longer exists: the TAP was deleted, the link is gone.
    Disconnected,
    /// The peer violated the protocol. Its queue stops permanently.
    ProtocolViolation,
    /// A system call of the host failed.
    SystemCallFailed,
}

/// Permanent failure of a queue. The worker drops the queue and reports the fault; other queues
/// continue.
#[derive(Clone, Debug, Error)]
#[error("{detail}")]
pub struct QueueFault {
    /// Cause, by which the port decides between reopening and giving up.
    pub kind: FaultKind,
    /// Failure with field, index or errno, for the text of the event.
    pub detail: String,
}

/// Queue of frames into the switch. Serviced by one thread at a time; `Send` so that ownership can
/// move between threads.
pub trait FrameSource: Send {
    /// Appends frames to `batch` until it is full or the queue is empty, and returns how many were
    /// appended. VLAN tags are moved to the metadata
    /// ([`Frame::validate_ingress`](suimon_frame::Frame::validate_ingress)), the metadata is
    /// correct, and each frame has at least an Ethernet header. Other frames are dropped and
    /// counted as malformed.
    ///
    /// Frames may have tails ([`Frame::set_tail`]). The memory of tails remains valid until
    /// [`FrameSource::release`] or the next call of this function.
    ///
    /// # Errors
    /// The queue has failed permanently; frames appended before remain valid.
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault>;

    /// Returns the memory of the tails of the last received frames to the peer. Called once the
    /// frames are no longer used, if [`FrameBatch::has_tails`] was true.
    fn release(&mut self) {}

    /// Enables notifications. After [`ArmResult::Armed`] the wake descriptor becomes readable as
    /// soon as [`FrameSource::receive`] would return a frame. The implementation resolves the race
    /// with the peer; no notification is lost.
    fn arm(&mut self) -> ArmResult;

    /// Disables notifications and clears the descriptor if necessary. Called after each wake-up,
    /// before polling.
    fn disarm(&mut self);

    /// Returns the descriptor to wait on; valid while the source exists.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Returns true if `receive` makes a system call even when no frame is pending. Such a source
    /// is polled only after its descriptor was readable.
    fn is_polled_by_fd(&self) -> bool;

    /// Returns the number of malformed frames dropped since the source was created.
    fn malformed_frames(&self) -> u64;
}

/// Queue of frames out of the switch.
pub trait FrameSink: Send {
    /// Queues one frame for transmission. The frame must use only offloads that
    /// [`FrameSink::offloads`] includes. A tag in its metadata is sent as 802.1Q tag. The frame has
    /// a tail only if [`FrameSink::reads_tails`] returns true. Frames become visible to the peer
    /// with [`FrameSink::flush`] at the latest.
    ///
    /// # Errors
    /// The queue has failed permanently.
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault>;

    /// Makes all queued frames visible to the peer, and notifies it if it enabled notifications.
    ///
    /// # Errors
    /// The queue has failed permanently.
    fn flush(&mut self) -> Result<(), QueueFault>;

    /// Returns the offloads that frames may currently use.
    fn offloads(&self) -> Offloads;

    /// Returns true if the sink reads the tails of frames. Other sinks receive contiguous frames.
    fn reads_tails(&self) -> bool {
        false
    }

    /// Returns the number of frames accepted since the sink was created that the device then
    /// dropped, because it was down or the frame exceeded its MTU.
    fn discarded_frames(&self) -> u64 {
        0
    }
}

/// The switch, as seen by a device. Implemented by the switching plane. Callable from any thread
/// except workers.
pub trait QueueHost: Send + Sync {
    /// Attaches an ingress queue to the switch. It starts on the worker that is configured for new
    /// queues of its port, if any.
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>);

    /// Attaches an egress queue to the switch.
    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>);

    /// Detaches a queue. Blocks until its owning worker has dropped it. Unknown queues count as
    /// detached.
    fn detach(&self, id: QueueId);

    /// Requests the detachment of a queue. [`DetachingQueue::wait`] blocks until the owning worker
    /// has dropped it, as [`detach`](Self::detach) does. The default implementation calls
    /// [`detach`](Self::detach), which blocks.
    fn begin_detach(&self, id: QueueId) -> Box<dyn DetachingQueue> {
        self.detach(id);
        Box::new(CompletedDetachment)
    }

    /// Detaches all queues of a port; blocks as [`detach`](Self::detach).
    fn detach_port(&self, port: PortId);
}
