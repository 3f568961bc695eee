//! Owner of the descriptors that a peer attaches to its messages, on kernels that cannot refuse
//! them (before Linux 6.16).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::net::{Shutdown, shutdown};

use crate::{CloseQueue, receive_with_descriptors};

/// Duplicate descriptor of a peer's socket, and the descriptors received through it. When dropped,
/// it shuts the socket down and passes all of them to [`CloseQueue`], because their close may
/// block. Must be dropped after all other descriptors of the socket.
#[derive(Debug)]
pub struct AttachedDescriptors {
    socket: Option<OwnedFd>,
    received: Mutex<Vec<OwnedFd>>,
    closes: CloseQueue,
}

impl AttachedDescriptors {
    /// Creates the owner for a connected socket, and duplicates the descriptor of the socket.
    ///
    /// # Errors
    /// The process or host has no free descriptor.
    pub fn new(socket: impl AsFd, closes: &CloseQueue) -> io::Result<Self> {
        let socket = Some(socket.as_fd().try_clone_to_owned()?);
        Ok(Self { socket, received: Mutex::default(), closes: closes.clone() })
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
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let count = receive_with_descriptors(socket, rooms, &mut received)?;
        if received.is_empty() {
            return Ok(count);
        }
        let text = "the peer attached a descriptor to its data";
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Closes the duplicate in the calling thread and leaves the connection open. Permitted only
    /// while another descriptor of the socket is open.
    pub fn release(mut self) {
        self.socket = None;
    }
}

impl Drop for AttachedDescriptors {
    fn drop(&mut self) {
        let received = self.received.get_mut().unwrap_or_else(PoisonError::into_inner);
        let values = (self.socket.take(), core::mem::take(received));
        if let Some(socket) = &values.0 {
            // The peer receives the end of the connection although the close may be queued.
            let _ = shutdown(socket, Shutdown::Both);
        }
        if values.0.is_some() || !values.1.is_empty() {
            self.closes.close(values);
        }
    }
}
