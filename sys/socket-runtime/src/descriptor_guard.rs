//! Protection from file descriptors that peers attach to their data, on kernels that cannot refuse
//! them (before Linux 6.16).

use std::io::{self, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use suimon_unix_socket::{receive_with_descriptors, refuse_descriptors};

use crate::runtime::SocketRuntime;

/// Owner of a peer's Unix socket and of the descriptors received through it. A thread for blocking
/// calls performs their last close, which may block. Must be dropped after all other descriptors of
/// the socket.
#[derive(Debug)]
pub struct DescriptorGuard {
    runtime: SocketRuntime,
    socket: Option<OwnedFd>,
    received: Mutex<Vec<OwnedFd>>,
}

impl DescriptorGuard {
    /// Configures the kernel to refuse descriptors on a socket, and returns `None`. Returns a guard
    /// of the socket if the kernel does not support this.
    ///
    /// # Errors
    /// The process or host has no free descriptor.
    pub fn refuse_or_guard(
        socket: BorrowedFd<'_>,
        runtime: &SocketRuntime,
    ) -> io::Result<Option<Self>> {
        if refuse_descriptors(socket) { Ok(None) } else { Self::new(socket, runtime).map(Some) }
    }

    /// Creates the guard of a socket.
    ///
    /// # Errors
    /// The host has no descriptor left.
    pub fn new(socket: BorrowedFd<'_>, runtime: &SocketRuntime) -> io::Result<Self> {
        let socket = Some(socket.try_clone_to_owned()?);
        Ok(Self { runtime: runtime.clone(), socket, received: Mutex::default() })
    }

    /// Receives data into `rooms` without blocking, and keeps attached descriptors. Returns the
    /// number of bytes; 0 at the end of the connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: the peer attached a descriptor. Otherwise the error of
    /// recvmsg(2).
    pub fn receive(
        &self,
        socket: BorrowedFd<'_>,
        rooms: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        let mut received = Vec::new();
        let result = receive_with_descriptors(socket, rooms, &mut received);
        if received.is_empty() {
            return result;
        }
        self.received.lock().unwrap_or_else(PoisonError::into_inner).append(&mut received);
        let text = "the peer attached a descriptor to its data";
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

impl Drop for DescriptorGuard {
    fn drop(&mut self) {
        let received = self.received.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.runtime.drop_later((self.socket.take(), std::mem::take(received)));
    }
}
