//! The way of a member's control frames: LACPDUs come and go past the switch.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use thiserror::Error;

use crate::{DeviceError, LinkFacts};

/// Bytes that are copied of a received frame, at most. The longest untagged frame has
/// 1514; one that is longer is no LACPDU.
pub const CONTROL_FRAME_BYTES_MAX: usize = 1600;

/// Frames that one [`ControlSocket::receive`] takes, at most.
pub const CONTROL_FRAMES_PER_TURN: usize = 8;

/// How long a socket is left alone after a turn in which it gave all it may.
pub const CONTROL_PAUSE: Duration = Duration::from_millis(20);

/// A control frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFrame<'a> {
    /// Its first [`CONTROL_FRAME_BYTES_MAX`] bytes, from the destination address on,
    /// without FCS.
    pub bytes: &'a [u8],
    /// How many bytes it has on the wire, without FCS.
    pub wire_bytes: usize,
}

/// What to do after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTurn {
    /// Wait for the descriptor.
    Wait,
    /// Leave the descriptor alone for [`CONTROL_PAUSE`]: there may be more.
    Pause,
}

/// Why a control frame could not be sent or received.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The device that the socket was opened on was deleted, or moved to another
    /// namespace. Only [`ControlSocket::reopen`] helps, once there is a device again.
    #[error(
        "device {device} is gone; reopen its control socket when a device of that name is there"
    )]
    Gone {
        /// Its name.
        device: String,
    },
    /// The device is set down. The frame is lost; the socket works again by itself.
    #[error("device {device} is down; set it up, or send again when its link is up")]
    Down {
        /// Its name.
        device: String,
    },
    /// The device has more to send than it takes. The frame is lost; a later one may
    /// pass.
    #[error("device {device} has no room for another frame; send again later")]
    Full {
        /// Its name.
        device: String,
    },
    /// It cannot be sent as it is.
    #[error(
        "{bytes} bytes are no frame that device {device} takes; give it from the destination address on, without FCS, 14 bytes at least and no more than its MTU and the header"
    )]
    NoFrame {
        /// The device's name.
        device: String,
        /// Bytes that were handed over.
        bytes: usize,
    },
    /// The host refused.
    #[error("{doing} device {device}: {errno}")]
    Host {
        /// What was done, as in `sending on`.
        doing: &'static str,
        /// The device's name.
        device: String,
        /// The kernel's words.
        errno: String,
    },
}

/// Sends whole frames on a device, and receives the LACPDUs and Marker PDUs that
/// arrive there untagged and for [`MacAddr::SLOW_PROTOCOLS`]; no others, and none that
/// this host sends.
///
/// What arrives costs a bounded share of a processor, however much it is: a turn takes
/// [`CONTROL_FRAMES_PER_TURN`] frames at most, and after a full turn comes a pause, so
/// that a device costs no more than 400 frames a second. Meanwhile a few dozen frames
/// wait in the kernel, which throws away and counts the rest ([`ControlSocket::lost`]).
/// Frames whose length, or that of a TLV, is wrong wait apart and are given when no others
/// wait: however many come, they take no room from LACPDUs. Among a flood of frames that
/// read as LACPDUs the true ones are lost like the others: each waits or not by chance.
///
/// Lives on a thread of the control plane, not on a processor's.
///
/// [`MacAddr::SLOW_PROTOCOLS`]: suimon_frame::MacAddr::SLOW_PROTOCOLS
pub trait ControlSocket: Send {
    /// Hands the frames that wait to `take`, one after another, and never blocks. A
    /// device that is down has none; that is no error.
    ///
    /// # Errors
    /// [`ControlError::Gone`], now and each time until it is reopened, or
    /// [`ControlError::Host`]. Frames taken before stand.
    fn receive(
        &mut self,
        take: &mut dyn FnMut(ControlFrame<'_>),
    ) -> Result<AfterTurn, ControlError>;

    /// Sends one whole Ethernet frame of any protocol, a tag included, without FCS.
    /// Never blocks.
    ///
    /// # Errors
    /// The frame was not sent.
    fn send(&mut self, frame: &[u8]) -> Result<(), ControlError>;

    /// The descriptor to wait on: readable when a frame waits, or when the device was
    /// set down or deleted. Valid until [`ControlSocket::reopen`]. A device that is
    /// deleted after it was set down wakes nobody; [`DeviceNotice::LinkDown`] tells of
    /// it.
    ///
    /// [`DeviceNotice::LinkDown`]: crate::DeviceNotice::LinkDown
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Frames for this socket that the kernel threw away since it was first opened,
    /// because too many waited.
    fn lost(&mut self) -> u64;

    /// Opens it anew on the device that has the name now.
    ///
    /// # Errors
    /// There is none (`Missing`), or what [`MemberDevices::open_control`] would say;
    /// the socket is as it was.
    fn reopen(&mut self) -> Result<(), DeviceError>;
}

/// What a team needs of its members' devices, besides their queues.
pub trait MemberDevices: Send + Sync {
    /// Opens the way of control frames on an Ethernet device of this process'
    /// namespace.
    ///
    /// # Errors
    /// There is no such device, it is none of Ethernet, or this user may not.
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError>;

    /// What the kernel says now of the link of a device of this process' namespace.
    /// Not for a processor's thread: it may wait.
    ///
    /// # Errors
    /// There is no such device. A speed that nobody knows is no error.
    fn link(&self, device: &str) -> Result<LinkFacts, DeviceError>;
}
