//! Descriptors received with a message, until the message has been checked.
//!
//! A front-end can send any descriptor. The last close of some waits for a process of the front-end
//! (a file on FUSE) or for the network (a socket with `SO_LINGER`, a file on NFS). Such a close on
//! the thread that reads messages would stop all devices. Descriptors of kinds that the protocol
//! does not use are therefore closed by a thread for blocking calls, and the device serves no other
//! front-end meanwhile. The same applies to a Unix socket, which is closed together with the
//! descriptors in its unread messages.

use std::io::IoSliceMut;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::net::AddressFamily;
use rustix::net::sockopt::{socket_acceptconn, socket_domain};
use suimon_eventfd::is_eventfd;
use suimon_ring::{MEMORY_FILE, is_memory_file};
use suimon_socket_runtime::run_blocking_detached;
use suimon_unix_socket::{receive_with_descriptors, refuse_descriptors};

use crate::request::Request;

/// Maximum number of messages that are read from a received socket to empty it; the queue of a
/// usual socket holds fewer.
const UNREAD_MAX: usize = 1024;

/// Number of descriptor sets of one device that threads for blocking calls are closing.
#[derive(Debug, Default)]
pub(crate) struct ClosingDescriptors(AtomicUsize);

/// Descriptors received with the message that is being received. Dropping closes them.
#[derive(Debug)]
pub(crate) struct ReceivedDescriptors {
    pub(crate) fds: Vec<OwnedFd>,
    closing: Arc<ClosingDescriptors>,
}

impl ClosingDescriptors {
    /// Returns true while descriptors are being closed.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl ReceivedDescriptors {
    pub(crate) fn new(closing: &Arc<ClosingDescriptors>) -> Self {
        Self { fds: Vec::new(), closing: Arc::clone(closing) }
    }

    /// Returns the descriptors if all of them are of kinds that messages carry; otherwise `None`.
    pub(crate) fn take_accepted(mut self) -> Option<Vec<OwnedFd>> {
        let all_known = self.fds.iter().all(|fd| is_known(fd.as_fd()));
        let is_accepted = all_known && self.empty_sockets();
        is_accepted.then(|| std::mem::take(&mut self.fds))
    }

    /// Reads all messages from received Unix sockets, which should have none yet. Returns false if
    /// there are too many, or one carries descriptors, which are added to the received ones.
    fn empty_sockets(&mut self) -> bool {
        let (mut descriptors, mut all_empty) = (Vec::new(), true);
        for socket in self.fds.iter().filter(|fd| is_unix_socket(fd.as_fd())) {
            // Without effect before Linux 6.16: descriptors that arrive later are closed with the
            // socket.
            refuse_descriptors(socket);
            let mut buffer = [0; 4096];
            let mut next = || {
                receive_with_descriptors(
                    socket.as_fd(),
                    &mut [IoSliceMut::new(&mut buffer)],
                    &mut descriptors,
                )
            };
            all_empty &= (0..UNREAD_MAX).any(|_| next().map_or(true, |bytes| bytes == 0));
        }
        let is_acceptable = all_empty && descriptors.is_empty();
        self.fds.append(&mut descriptors);
        is_acceptable
    }
}

impl Drop for ReceivedDescriptors {
    /// Closes the descriptors. Does not block. Must be called by a task.
    fn drop(&mut self) {
        // Descriptors whose close does not block are closed by `retain`.
        self.fds.retain(|fd| !is_known(fd.as_fd()) || is_unix_socket(fd.as_fd()));
        if self.fds.is_empty() {
            return;
        }
        // If the host has no thread left, the descriptors stay open.
        let foreign = ManuallyDrop::new(std::mem::take(&mut self.fds));
        self.closing.0.fetch_add(1, Ordering::AcqRel);
        let closing = Arc::clone(&self.closing);
        let is_started = run_blocking_detached(move || {
            drop(ManuallyDrop::into_inner(foreign));
            closing.0.fetch_sub(1, Ordering::AcqRel);
        });
        if !is_started {
            self.closing.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Returns true if the descriptor is of a kind that messages carry: an eventfd, a file in memory or
/// a Unix socket. Neither the check nor the close of such a descriptor blocks, if a socket has no
/// unread descriptors.
fn is_known(fd: BorrowedFd<'_>) -> bool {
    is_memory_file(fd)
        || is_unix_socket(fd)
        // A descriptor that cannot be examined counts as one of another kind.
        || is_eventfd(fd).unwrap_or(false)
}

/// Returns true if the descriptor is a Unix socket that does not listen. Does not block.
pub(crate) fn is_unix_socket(fd: BorrowedFd<'_>) -> bool {
    socket_domain(fd).is_ok_and(|domain| domain == AddressFamily::UNIX)
        && socket_acceptconn(fd) == Ok(false)
}

/// Returns a description of the kind of descriptor that a request carries, for error messages.
pub(crate) const fn descriptor_kind(request: Request) -> &'static str {
    match request {
        Request::SetVringKick
        | Request::SetVringCall
        | Request::SetVringErr
        | Request::SetLogFd => "an eventfd",
        Request::SetBackendReqFd => "a Unix socket",
        Request::SetMemTable | Request::AddMemReg => MEMORY_FILE,
        Request::SetLogBase | Request::SetInflightFd => "a file on tmpfs or hugetlbfs",
        _ => "expected",
    }
}
