//! Descriptors that a peer attaches to its data (`SCM_RIGHTS`, unix(7)).
//!
//! A thread that receives data without taking the descriptors closes them, and so does a thread
//! that closes a socket with unread data. The last close of some descriptors blocks for as long as
//! the peer chooses: a TCP socket with `SO_LINGER` (socket(7)), a file on FUSE or NFS. Threads that
//! serve several peers therefore either let the kernel refuse descriptors
//! ([`refuse_descriptors`]), or take them ([`receive`]) and leave the close to another thread
//! ([`close_elsewhere`]).

use core::mem::{ManuallyDrop, MaybeUninit};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// `SCM_MAX_FD` of `include/net/scm.h`: descriptors of one message.
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

/// Receives data without blocking, and appends attached descriptors to `descriptors`. Returns the
/// number of bytes; 0 at the end of the connection. The caller must not close the descriptors in a
/// thread that serves other peers.
///
/// # Errors
/// The error of recvmsg(2); [`io::ErrorKind::WouldBlock`] if there is no data.
pub fn receive(
    socket: BorrowedFd<'_>,
    rooms: &mut [IoSliceMut<'_>],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    // Room for all descriptors of a message: the kernel closes those without room at once.
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

/// Close that waits for a thread.
type PendingClose = Box<dyn FnOnce() + Send>;

/// Closes for which the host had no thread. The next call tries again.
static PENDING: Mutex<Vec<PendingClose>> = Mutex::new(Vec::new());

/// Drops values whose last close may block in a thread of its own, and calls `closed` then. If the
/// host has no thread left, this happens at a later call. The caller bounds the number of values
/// whose close is in progress, and with it the number of threads.
pub fn close_elsewhere<T: Send + 'static>(values: T, closed: impl FnOnce() + Send + 'static) {
    let values = ManuallyDrop::new(values);
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    pending.push(Box::new(move || {
        drop(ManuallyDrop::into_inner(values));
        closed();
    }));
    while let Some(close) = pending.pop() {
        if let Some(close) = start(close, |job| {
            std::thread::Builder::new().name("close".to_owned()).spawn(job).map(drop)
        }) {
            pending.push(close);
            return;
        }
    }
}

/// Starts a close with `spawn`. Returns it if that fails.
fn start(
    close: PendingClose,
    spawn: impl FnOnce(PendingClose) -> io::Result<()>,
) -> Option<PendingClose> {
    let slot = Arc::new(Mutex::new(Some(close)));
    let take = |slot: &Mutex<Option<PendingClose>>| {
        slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let of_thread = Arc::clone(&slot);
    let started = spawn(Box::new(move || {
        if let Some(close) = take(&of_thread) {
            close();
        }
    }));
    started.err().and_then(|_| take(&slot))
}

#[cfg(test)]
mod close_tests {
    use std::sync::mpsc::channel;

    use super::{close_elsewhere, io, start};

    #[test]
    fn a_close_for_which_there_is_no_thread_is_returned_and_can_be_started_later() {
        let (sender, receiver) = channel();
        let close = Box::new(move || sender.send(7).unwrap());
        let close = start(close, |_| Err(io::ErrorKind::OutOfMemory.into())).unwrap();
        assert!(receiver.try_recv().is_err());
        let ran = start(close, |job| {
            job();
            Ok(())
        });
        assert!(ran.is_none() && receiver.try_recv() == Ok(7));
    }

    #[test]
    fn values_are_dropped_before_the_report() {
        let (sender, receiver) = channel();
        let (of_value, of_report) = (sender.clone(), sender);
        struct Value(std::sync::mpsc::Sender<&'static str>);
        impl Drop for Value {
            fn drop(&mut self) {
                self.0.send("dropped").unwrap();
            }
        }
        close_elsewhere(Value(of_value), move || of_report.send("closed").unwrap());
        assert_eq!([receiver.recv(), receiver.recv()], [Ok("dropped"), Ok("closed")]);
    }
}
