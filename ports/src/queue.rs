//! Queues of frames, and the switch that owns them.

use std::os::fd::BorrowedFd;

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_quantity::{PortId, QueueId};
use thiserror::Error;

/// Whether a source may sleep after [`FrameSource::arm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// Nothing is waiting; the wake descriptor becomes readable when it is.
    Armed,
    /// Something arrived meanwhile: poll again, do not sleep.
    Pending,
}

/// What became of a frame handed to a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Accepted,
    /// The other side has no room; the frame was not taken.
    Full,
}

/// The side a fault is blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device went away: the TAP was deleted, the link is gone.
    Gone,
    /// The other side broke the protocol. Its queue stops for good.
    Hostile,
    /// The host refused: an errno of a system call.
    Host,
}

/// Why a queue can carry no more frames. The processor gives the queue up and
/// reports this; other queues go on.
#[derive(Clone, Debug, Error)]
#[error("{detail}")]
pub struct PortFault {
    /// Whom to blame.
    pub kind: FaultKind,
    /// What happened, with the field, index or errno, for the event's text.
    pub detail: String,
}

/// A queue that carries frames into the switch. Driven by one thread at a time;
/// `Send` so that it can be handed over.
pub trait FrameSource: Send {
    /// Appends frames to `batch` until it is full or nothing is left, and
    /// returns how many. Frames come with their tag in the metadata
    /// ([`Frame::admit`](suimon_frame::Frame::admit)), true metadata and at least
    /// an Ethernet header; what does not meet this is dropped and counted here.
    ///
    /// Frames may have tails ([`Frame::set_tail`]). What these lie in stays the
    /// switch's until [`FrameSource::release`] or the next call of this.
    ///
    /// # Errors
    /// The queue is finished; frames appended before stand.
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault>;

    /// Gives back what the tails of the frames received last lie in. Called when
    /// nobody needs them any more, wherever [`FrameBatch::has_tails`] said so.
    fn release(&mut self) {}

    /// Asks for a wake-up. After [`Wakeup::Armed`] the wake descriptor becomes
    /// readable as soon as [`FrameSource::receive`] would return a frame. A
    /// race with the other side is decided inside: it is never lost.
    fn arm(&mut self) -> Wakeup;

    /// Takes the request back, and clears the descriptor if that is needed.
    /// Called after each wake-up, before polling.
    fn disarm(&mut self);

    /// The descriptor to wait on; valid while the source lives.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Whether `receive` costs a system call even when nothing is there. Such a
    /// source is polled only after its descriptor was seen readable.
    fn is_polled_by_fd(&self) -> bool;

    /// Frames dropped inside the source since it was made, because they were
    /// malformed.
    fn malformed(&self) -> u64;
}

/// A queue that carries frames out of the switch.
pub trait FrameSink: Send {
    /// Hands one frame over. Its form is one that [`FrameSink::offloads`]
    /// takes; its tag, if any, is to appear on the wire as an 802.1Q tag. It has a
    /// tail only if [`FrameSink::reads_tails`].
    /// Nothing is promised to be visible before [`FrameSink::flush`].
    ///
    /// # Errors
    /// The queue is finished.
    fn transmit(&mut self, frame: &Frame) -> Result<Sent, PortFault>;

    /// Makes all frames handed over visible to the other side, and notifies it
    /// if it asked for that.
    ///
    /// # Errors
    /// The queue is finished.
    fn flush(&mut self) -> Result<(), PortFault>;

    /// The forms of frame this egress takes now.
    fn offloads(&self) -> Offloads;

    /// Whether it reads the tails of frames itself. To others frames are handed
    /// whole.
    fn reads_tails(&self) -> bool {
        false
    }

    /// Frames taken with [`Sent::Accepted`] since the sink was made that the
    /// device then threw away: it was down, or the frame was longer than its MTU.
    fn discarded(&self) -> u64 {
        0
    }
}

/// The switch, as a device sees it. Implemented by the switching plane; may be
/// called from any thread but a processor's.
pub trait QueueHost: Send + Sync {
    /// Gives an ingress queue to the switch. It starts on its home processor.
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>);

    /// Gives an egress queue to the switch.
    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>);

    /// Takes a queue back: returns after its owner has let go of it and dropped
    /// it. Unknown queues are already gone.
    fn detach(&self, id: QueueId);

    /// Takes all queues of a port back.
    fn detach_port(&self, port: PortId);
}
