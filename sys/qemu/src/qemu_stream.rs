//! Connection to a socket of QEMU that is safe from file descriptors that a hostile QEMU attaches
//! to its data.
//!
//! From Linux 6.16 on, the kernel refuses such descriptors. Earlier kernels deliver them, and their
//! last close may block. The close of these descriptors, and that of the socket, which may contain
//! more of them, is therefore performed by a separate thread
//! (`docs/decisions/0086-descriptors-attached-by-peers.md`).

use std::io::{self, IoSliceMut, Read};
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use suimon_unix_socket::{close_elsewhere, receive, refuse_descriptors};

/// Number of earlier connections to the same socket whose close is in progress. Clones refer to the
/// same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(Arc<(Mutex<usize>, Condvar)>);

impl Closing {
    /// Waits until all earlier connections are closed, which takes as long as the start of a thread
    /// unless QEMU delays it. Returns false after `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let (count, changed) = &*self.0;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(count, limit, |count| *count > 0);
        waited.is_ok_and(|(count, _)| *count == 0)
    }

    fn begin(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn end(&self) {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        self.0.1.notify_all();
    }
}

/// Connected stream socket of QEMU.
#[derive(Debug)]
pub(crate) struct QemuStream {
    stream: UnixStream,
    /// Owner of descriptors; `None` if the kernel refuses them. Dropped after `stream`.
    guard: Option<Guard>,
}

/// Last descriptor of the socket, and the descriptors received through it.
#[derive(Debug)]
struct Guard {
    socket: Option<OwnedFd>,
    received: Mutex<Vec<OwnedFd>>,
    closing: Closing,
}

impl QemuStream {
    /// # Errors
    /// The host has no descriptor left.
    pub(crate) fn new(stream: UnixStream, closing: &Closing) -> io::Result<Self> {
        match refuse_descriptors(&stream) {
            true => Ok(Self { stream, guard: None }),
            false => Self::guarded(stream, closing),
        }
    }

    /// Creates the connection for a kernel that cannot refuse descriptors.
    pub(crate) fn guarded(stream: UnixStream, closing: &Closing) -> io::Result<Self> {
        let socket = Some(OwnedFd::from(stream.try_clone()?));
        let guard = Guard { socket, received: Mutex::default(), closing: closing.clone() };
        Ok(Self { stream, guard: Some(guard) })
    }

    /// Drops this descriptor of the socket without a separate thread, because another descriptor of
    /// it is open.
    pub(crate) fn release(mut self) {
        if let Some(guard) = &mut self.guard {
            guard.socket = None;
        }
    }

    /// Reads data. Without a guard, blocks until data is available.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: QEMU attached a descriptor. Otherwise the error of the
    /// system.
    pub(crate) fn read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(guard) = &self.guard else { return (&self.stream).read(buffer) };
        let mut received = guard.received.lock().unwrap_or_else(PoisonError::into_inner);
        let count = receive(self.stream.as_fd(), &mut [IoSliceMut::new(buffer)], &mut received)?;
        if received.is_empty() {
            return Ok(count);
        }
        let text = "QEMU attached a descriptor to its data, which it does not do by itself";
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

impl Deref for QemuStream {
    type Target = UnixStream;

    fn deref(&self) -> &UnixStream {
        &self.stream
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let received =
            std::mem::take(self.received.get_mut().unwrap_or_else(PoisonError::into_inner));
        let (socket, closing) = (self.socket.take(), self.closing.clone());
        if socket.is_none() && received.is_empty() {
            return;
        }
        closing.begin();
        close_elsewhere((socket, received), move || closing.end());
    }
}
