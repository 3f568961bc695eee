//! One connection, as its queues and the NIC's task share it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use suimon_ports::{FaultKind, PortFault};
use thiserror::Error;

use crate::framing::FramingError;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum End {
    /// The other side closed it, or its process ended.
    #[error("QEMU has left")]
    Left,
    /// The host could not start a thread to hand its queues over.
    #[error("the host has no thread left to serve it")]
    Host,
    /// What it sent is no stream of frames.
    #[error("{0}")]
    Framing(FramingError),
    /// A system call failed.
    #[error("cannot {action} the socket: {errno}")]
    Socket {
        /// `read` or `write`.
        action: &'static str,
        /// What it said.
        errno: Errno,
    },
}

impl End {
    /// What a system call said of a connection, which is then over.
    pub(crate) fn of_call(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::Left,
            errno => Self::Socket { action, errno },
        }
    }

    /// Whether the other side broke the protocol.
    pub(crate) const fn is_violation(&self) -> bool {
        matches!(self, Self::Framing(_))
    }
}

/// What was begun to be sent and is not yet.
#[derive(Debug, Default)]
struct Rest {
    bytes: Vec<u8>,
    sent: usize,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) socket: Arc<OwnedFd>,
    /// Eventfd that wakes the NIC's task.
    wake: Arc<OwnedFd>,
    end: OnceLock<End>,
    /// Whether `rest` has bytes. Set by the egress queue, cleared by whoever sends the last of
    /// them; so the lock is taken only while the other side is slow.
    is_stalled: AtomicBool,
    rest: Mutex<Rest>,
}

impl Session {
    pub(crate) fn new(socket: OwnedFd, wake: Arc<OwnedFd>) -> Self {
        Self {
            socket: Arc::new(socket),
            wake,
            end: OnceLock::new(),
            is_stalled: AtomicBool::new(false),
            rest: Mutex::default(),
        }
    }

    /// Why it is over, once it is.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Notes that the connection has ended, and wakes the task. The fault is for the queue that found
    /// it.
    pub(crate) fn finish(&self, end: End) -> PortFault {
        let kind = match end {
            End::Left => FaultKind::Gone,
            End::Framing(_) => FaultKind::Hostile,
            End::Host | End::Socket { .. } => FaultKind::Host,
        };
        let detail = end.to_string();
        // Of two queues that find out, the first tells.
        let _ = self.end.set(end);
        self.wake_task();
        PortFault { kind, detail }
    }

    fn wake_task(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Whether something that was begun waits to be sent.
    pub(crate) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    /// Sends these bytes, and what the socket does not take now later, before all else. Only
    /// while nothing waits. `bytes` is empty afterwards.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn send(&self, bytes: &mut Vec<u8>) -> Result<(), PortFault> {
        let sent = match self.send_now(bytes) {
            Ok(sent) => sent,
            Err(end) => {
                bytes.clear();
                return Err(self.finish(end));
            }
        };
        if sent < bytes.len() {
            let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
            // The buffers change places: neither is made anew.
            std::mem::swap(&mut rest.bytes, bytes);
            rest.sent = sent;
            self.is_stalled.store(true, Ordering::Release);
            drop(rest);
            self.wake_task();
        }
        bytes.clear();
        Ok(())
    }

    /// Sends of what waits as much as the socket takes now.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn send_rest(&self) -> Result<(), PortFault> {
        let mut rest = match self.rest.try_lock() {
            Ok(rest) => rest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else sends it this moment.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let waiting = rest.bytes.get(rest.sent..).unwrap_or_default();
        if !waiting.is_empty() {
            let sent = self.send_now(waiting).map_err(|end| self.finish(end))?;
            rest.sent += sent;
        }
        if rest.sent >= rest.bytes.len() {
            rest.bytes.clear();
            rest.sent = 0;
            self.is_stalled.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// How many of these bytes the socket took.
    fn send_now(&self, bytes: &[u8]) -> Result<usize, End> {
        loop {
            match send(&*self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => return Ok(sent),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(End::of_call("write", errno)),
            }
        }
    }
}
