//! Control frames of team members: LACPDUs sent and received past the switch.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use thiserror::Error;

use crate::{DeviceError, LinkProperties};

/// Maximum number of bytes copied of a received frame. The longest untagged frame has 1514 bytes;
/// longer frames are not LACPDUs.
pub const CONTROL_FRAME_BYTES_MAX: usize = 1600;

/// Maximum number of frames per [`ControlSocket::receive`] call.
pub const CONTROL_FRAMES_PER_CALL_MAX: usize = 8;

/// Pause before the next receive call after one that returned the maximum number of frames.
pub const CONTROL_RECEIVE_PAUSE: Duration = Duration::from_millis(20);

/// Control frame received on a member's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFrame<'a> {
    /// First [`CONTROL_FRAME_BYTES_MAX`] bytes, starting with the destination address, without FCS.
    pub bytes: &'a [u8],
    /// Length on the wire in bytes, without FCS.
    pub wire_bytes: usize,
}

/// Next step after a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextReceive {
    /// Wait until the descriptor is readable.
    WhenReadable,
    /// Ignore the descriptor for [`CONTROL_RECEIVE_PAUSE`]; more frames may be pending.
    AfterPause,
}

/// Failure to send or receive a control frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The socket's device was deleted or moved to another namespace. [`ControlSocket::reopen`] is
    /// required once a device of that name exists again.
    #[error(
        "device {device} does not exist any more; reopen its control socket when the device exists"
    )]
    DeviceMissing {
        /// Name of the socket's device.
        device: String,
    },
    /// The device is administratively down. The frame is lost; the socket recovers by itself.
    #[error("device {device} is down; set it up, or send again when its link is up")]
    DeviceDown {
        /// Name of the socket's device.
        device: String,
    },
    /// The device's transmit queue is full. The frame is lost; later frames may succeed.
    #[error("the transmit queue of device {device} is full; send again later")]
    TransmitQueueFull {
        /// Name of the socket's device.
        device: String,
    },
    /// The frame has an invalid length.
    #[error(
        "device {device} does not accept a frame of {bytes} bytes; pass it from the destination \
         address on, without FCS, with at least 14 bytes and at most its MTU plus the header"
    )]
    InvalidLength {
        /// Name of the socket's device.
        device: String,
        /// Length of the frame passed, in bytes.
        bytes: usize,
    },
    /// A system call on the socket failed.
    #[error("{operation} device {device}: {error_text}")]
    SystemCallFailed {
        /// Operation, as in `sending on`.
        operation: &'static str,
        /// Name of the socket's device.
        device: String,
        /// Error text of the errno.
        error_text: String,
    },
}

/// Socket for control frames of an Ethernet device. Sends complete frames; receives only untagged
/// LACPDUs and Marker PDUs addressed to [`MacAddr::SLOW_PROTOCOLS`] (IEEE 802.3 Annex 57A, IEEE
/// 802.1AX), excluding those sent by this host.
///
/// The CPU time for received frames is bounded: a call receives at most
/// [`CONTROL_FRAMES_PER_CALL_MAX`] frames and is followed by [`CONTROL_RECEIVE_PAUSE`] if it
/// received that many, so that a device delivers at most 400 frames per second. During the pause
/// the kernel queues a few dozen frames and drops and counts the others
/// ([`ControlSocket::dropped_frames`]). Frames with an invalid length or TLV length are queued
/// separately and returned only if no valid frame is queued, so that they cannot displace LACPDUs.
/// Well-formed LACPDUs of a flood compete with genuine ones for the queue.
///
/// Used on control-plane threads, not on workers.
///
/// [`MacAddr::SLOW_PROTOCOLS`]: suimon_frame::MacAddr::SLOW_PROTOCOLS
pub trait ControlSocket: Send {
    /// Passes the queued frames to `handle_frame` in order. Does not block. A device that is down
    /// has no frames, which is not an error.
    ///
    /// # Errors
    /// [`ControlError::DeviceMissing`], on every call until the socket is reopened, or
    /// [`ControlError::SystemCallFailed`]. Frames passed before the error remain valid.
    fn receive(
        &mut self,
        handle_frame: &mut dyn FnMut(ControlFrame<'_>),
    ) -> Result<NextReceive, ControlError>;

    /// Sends one complete Ethernet frame of any protocol, optionally tagged, without FCS. Does not
    /// block.
    ///
    /// # Errors
    /// Fails if the frame was not sent.
    fn send(&mut self, frame: &[u8]) -> Result<(), ControlError>;

    /// Returns the descriptor to wait on: readable when a frame is queued or when the device was
    /// set down or deleted. Valid until [`ControlSocket::reopen`]. Deleting a device that is
    /// already down does not make the descriptor readable; [`DeviceNotice::LinkDown`] reports this
    /// case.
    ///
    /// [`DeviceNotice::LinkDown`]: crate::DeviceNotice::LinkDown
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Returns the number of frames that the kernel dropped for this socket since it was first
    /// opened, because the receive queue was full.
    fn dropped_frames(&mut self) -> u64;

    /// Reopens the socket on the device that now has the name.
    ///
    /// # Errors
    /// Fails with kind `Missing` if no such device exists, or as [`MemberDevices::open_control`];
    /// the socket is unchanged.
    fn reopen(&mut self) -> Result<(), DeviceError>;
}

/// Access to team members' devices beyond their frame queues.
pub trait MemberDevices: Send + Sync {
    /// Opens a socket for control frames on an Ethernet device in the daemon's network namespace.
    ///
    /// # Errors
    /// Fails if the device does not exist or is not Ethernet, or if the daemon lacks the
    /// permission.
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError>;

    /// Returns the link state of a device in the daemon's network namespace, as reported by the
    /// kernel. May block; must not be called on a worker.
    ///
    /// # Errors
    /// Fails if the device does not exist. An unknown speed is not an error.
    fn link_properties(&self, device: &str) -> Result<LinkProperties, DeviceError>;
}
