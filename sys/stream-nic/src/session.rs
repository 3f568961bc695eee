//! Connection of one QEMU process, shared by its queues and the NIC's task.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use suimon_ports::{FaultKind, QueueFault};
use suimon_socket_runtime::DescriptorGuard;
use thiserror::Error;

use crate::framing::FramingError;

/// Reason why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum SessionEnd {
    /// The peer closed the connection, or its process ended.
    #[error("QEMU closed the connection")]
    PeerClosed,
    /// The host could not start a thread that attaches the queues to the switch.
    #[error("the host cannot start a thread for the connection")]
    AttachThreadFailed,
    /// The peer sent an invalid length.
    #[error("{0}")]
    Framing(FramingError),
    /// The peer attached a descriptor to a frame.
    #[error("QEMU attached a descriptor to its data")]
    DescriptorAttached,
    /// A system call on the socket failed.
    #[error("cannot {action} the socket: {errno}")]
    Socket {
        /// Name of the call: `read` or `write`.
        action: &'static str,
        /// Error number of the call.
        errno: Errno,
    },
}

impl SessionEnd {
    /// Converts the error of a system call, after which the connection is closed.
    pub(crate) fn from_call_error(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::PeerClosed,
            errno => Self::Socket { action, errno },
        }
    }

    /// Returns true if the peer violated the protocol.
    pub(crate) const fn is_violation(&self) -> bool {
        matches!(self, Self::Framing(_) | Self::DescriptorAttached)
    }
}

/// Data of which the socket accepted only a part.
#[derive(Debug, Default)]
struct PendingData {
    bytes: Vec<u8>,
    sent: usize,
}

/// Connection of one QEMU process, for one NIC.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) socket: Arc<OwnedFd>,
    /// Eventfd that wakes the NIC's task.
    wake: Arc<OwnedFd>,
    end: OnceLock<SessionEnd>,
    /// True if bytes are in `pending`. The transmit queue sets it; it is cleared when the last
    /// pending byte was sent. The lock is therefore only taken while the peer is slow.
    is_stalled: AtomicBool,
    pending: Mutex<PendingData>,
    /// `None` if the kernel refuses descriptors on the socket. Dropped after the socket.
    pub(crate) guard: Option<DescriptorGuard>,
}

impl Session {
    pub(crate) fn new(socket: OwnedFd, wake: Arc<OwnedFd>, guard: Option<DescriptorGuard>) -> Self {
        Self {
            socket: Arc::new(socket),
            wake,
            end: OnceLock::new(),
            is_stalled: AtomicBool::new(false),
            pending: Mutex::default(),
            guard,
        }
    }

    /// Returns the reason of the end; `None` while the connection is open.
    pub(crate) fn end_reason(&self) -> Option<&SessionEnd> {
        self.end.get()
    }

    /// Records the end of the connection, and wakes the task. Returns the fault that the detecting
    /// queue reports to the switch.
    pub(crate) fn finish(&self, end: SessionEnd) -> QueueFault {
        let kind = match end {
            SessionEnd::PeerClosed => FaultKind::Disconnected,
            SessionEnd::Framing(_) | SessionEnd::DescriptorAttached => FaultKind::ProtocolViolation,
            SessionEnd::AttachThreadFailed | SessionEnd::Socket { .. } => {
                FaultKind::SystemCallFailed
            }
        };
        let detail = end.to_string();
        // If both queues detect an end, the first one is recorded.
        let _ = self.end.set(end);
        self.wake_task();
        QueueFault { kind, detail }
    }

    fn wake_task(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Returns true if partly sent data is pending.
    pub(crate) fn has_pending_data(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    /// Sends bytes. What the socket does not accept now is sent later, before anything else. Must
    /// not be called while data is pending. Afterwards `bytes` is empty.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn send(&self, bytes: &mut Vec<u8>) -> Result<(), QueueFault> {
        let sent = match self.send_now(bytes) {
            Ok(sent) => sent,
            Err(end) => {
                bytes.clear();
                return Err(self.finish(end));
            }
        };
        if sent < bytes.len() {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            // The buffers are swapped, so that neither is reallocated.
            std::mem::swap(&mut pending.bytes, bytes);
            pending.sent = sent;
            self.is_stalled.store(true, Ordering::Release);
            drop(pending);
            self.wake_task();
        }
        bytes.clear();
        Ok(())
    }

    /// Sends as much of the pending data as the socket accepts.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn send_pending(&self) -> Result<(), QueueFault> {
        let mut pending = match self.pending.try_lock() {
            Ok(pending) => pending,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread sends the pending data at this moment.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let waiting = pending.bytes.get(pending.sent..).unwrap_or_default();
        if !waiting.is_empty() {
            let sent = self.send_now(waiting).map_err(|end| self.finish(end))?;
            pending.sent += sent;
        }
        if pending.sent >= pending.bytes.len() {
            pending.bytes.clear();
            pending.sent = 0;
            self.is_stalled.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Sends as many bytes as the socket accepts without blocking, and returns their number.
    fn send_now(&self, bytes: &[u8]) -> Result<usize, SessionEnd> {
        loop {
            match send(&*self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => return Ok(sent),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(SessionEnd::from_call_error("write", errno)),
            }
        }
    }
}
