//! Connection to a socket of QEMU that is safe from file descriptors that a hostile QEMU attaches
//! to its data.
//!
//! From Linux 6.16 on, the kernel refuses such descriptors. Earlier kernels deliver them, and their
//! last close may block. The close of these descriptors, and that of the socket, which may contain
//! more of them, is therefore performed by a separate thread
//! (`docs/decisions/0086-descriptors-attached-by-peers.md`).

use std::io::{self, IoSliceMut, Read};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use suimon_unix_socket::{AttachedDescriptors, CloseQueue, refuse_descriptors};

/// Connected stream socket, whose peer is QEMU.
#[derive(Debug)]
pub(crate) struct QemuStream {
    stream: UnixStream,
    /// Owner of received descriptors; `None` if the kernel refuses them. Dropped after `stream`.
    guard: Option<AttachedDescriptors>,
}

impl QemuStream {
    /// Creates a connection. `closes` closes it if the close may block.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn new(stream: UnixStream, closes: &CloseQueue) -> io::Result<Self> {
        match refuse_descriptors(&stream) {
            true => Ok(Self { stream, guard: None }),
            false => Self::guarded(stream, closes),
        }
    }

    /// Creates a connection as on a kernel that cannot refuse descriptors.
    pub(crate) fn guarded(stream: UnixStream, closes: &CloseQueue) -> io::Result<Self> {
        let guard = Some(AttachedDescriptors::new(&stream, closes)?);
        Ok(Self { stream, guard })
    }

    /// Closes this descriptor of the socket in the calling thread. Permitted only while another
    /// descriptor of it is open.
    pub(crate) fn close(self) {
        if let Some(guard) = self.guard {
            guard.release();
        }
    }

    /// Receives data and returns the number of bytes; 0 at the end of the connection. Blocks until
    /// there is data if the kernel refuses descriptors; otherwise does not block.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: QEMU attached a descriptor. Otherwise the error of the
    /// system call.
    pub(crate) fn read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(guard) = &self.guard else { return (&self.stream).read(buffer) };
        let received = guard.receive(self.stream.as_fd(), &mut [IoSliceMut::new(buffer)]);
        received.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                let text = "QEMU attached a descriptor to its data, which it does not do by itself";
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
            _ => error,
        })
    }
}

impl Deref for QemuStream {
    type Target = UnixStream;

    fn deref(&self) -> &UnixStream {
        &self.stream
    }
}
