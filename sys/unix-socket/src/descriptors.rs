//! Descriptors that a peer attaches to its data (`SCM_RIGHTS`, unix(7)).
//!
//! A thread that receives data without taking the descriptors closes them, and so does a thread
//! that closes a socket with unread data. The last close of some descriptors blocks for as long as
//! the peer chooses: a TCP socket with `SO_LINGER` (socket(7)), a file on FUSE or NFS. Threads that
//! serve several peers therefore either let the kernel refuse descriptors ([`refuse_descriptors`]),
//! or take them ([`receive_with_descriptors`]) and leave the close to another thread
//! ([`AttachedDescriptors`](crate::AttachedDescriptors)).

use core::mem::MaybeUninit;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Maximum number of descriptors of one message: `SCM_MAX_FD` of `include/net/scm.h`.
const DESCRIPTORS_MAX: usize = 253;

/// `SO_PASSRIGHTS` of `include/uapi/asm-generic/socket.h`.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Makes the kernel reject messages with descriptors (`EPERM` at the sender). Connections of a
/// listening socket inherit the setting. Returns false before Linux 6.16, which lacks the option.
#[allow(unsafe_code, reason = "a socket option that rustix does not provide")]
pub fn refuse_descriptors(socket: impl AsFd) -> bool {
    let is_passed: libc::c_int = 0;
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option value is an int, which exists during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const is_passed).cast(),
            bytes,
        )
    };
    result == 0
}

/// Receives data into `rooms` without blocking, and appends attached descriptors to `descriptors`.
/// Returns the number of bytes; 0 at the end of the connection. The caller must not close the
/// descriptors in a thread that serves other peers.
///
/// # Errors
/// The error of recvmsg(2); [`io::ErrorKind::WouldBlock`] if there is no data.
pub fn receive_with_descriptors(
    socket: BorrowedFd<'_>,
    rooms: &mut [IoSliceMut<'_>],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    // Space for all descriptors of a message: the kernel closes those without space in this thread.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, rooms, &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(received.bytes)
}
