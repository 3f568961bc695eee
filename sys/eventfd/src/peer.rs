//! Eventfd that another process holds too.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{ReadWriteFlags, preadv2};
use thiserror::Error;

use crate::contexts::{AioContexts, contexts};

/// Number of reads by which an eventfd is checked for `EFD_SEMAPHORE`, because another process may
/// change the counter between two of them.
const SEMAPHORE_CHECKS: usize = 8;

/// Reason why a descriptor is not accepted.
#[derive(Debug, Error)]
pub enum EventFdError {
    /// Descriptor of a file that is not an eventfd.
    #[error("the descriptor is not an eventfd")]
    NotAnEventFd,
    /// Eventfd with the flag `EFD_SEMAPHORE`, which one read does not clear.
    #[error("the eventfd is a semaphore; create it without EFD_SEMAPHORE")]
    Semaphore,
    /// The host failed to check the descriptor.
    #[error("the eventfd cannot be checked: {0}")]
    Host(#[from] io::Error),
}

/// Eventfd whose open file description another process shares. No method blocks.
pub struct PeerEventFd {
    fd: OwnedFd,
    contexts: &'static AioContexts,
}

impl core::fmt::Debug for PeerEventFd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("PeerEventFd").field(&self.fd).finish()
    }
}

impl PeerEventFd {
    /// Takes ownership of a descriptor that this process signals.
    ///
    /// # Errors
    /// The descriptor is not an eventfd, or an error of [`prepare`](crate::prepare).
    pub fn for_signalling(fd: OwnedFd) -> Result<Self, EventFdError> {
        let contexts = contexts()?;
        if !contexts.is_eventfd(fd.as_fd())? {
            return Err(EventFdError::NotAnEventFd);
        }
        Ok(Self { fd, contexts })
    }

    /// Takes ownership of a descriptor that this process waits for and clears. The descriptor is
    /// signalled once, so that a signal of the peer that arrives during the check is not lost.
    ///
    /// # Errors
    /// As [`PeerEventFd::for_signalling`], or the eventfd is a semaphore: it would stay readable
    /// after it is cleared, and the waiting thread would never sleep.
    pub fn for_waiting(fd: OwnedFd) -> Result<Self, EventFdError> {
        let peer = Self::for_signalling(fd)?;
        // The counter is at least 2, of which a semaphore returns 1.
        let reads_one = || {
            peer.signal();
            peer.signal();
            peer.clear() == Some(1)
        };
        let is_semaphore = (0..SEMAPHORE_CHECKS).all(|_| reads_one());
        peer.signal();
        if is_semaphore { Err(EventFdError::Semaphore) } else { Ok(peer) }
    }

    /// Creates an eventfd that no other process holds, for use in place of one that a peer
    /// supplies.
    ///
    /// # Errors
    /// An error of [`prepare`](crate::prepare), or the process or host has no free descriptor.
    pub fn unshared() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { fd, contexts: contexts()? })
    }

    /// Increments the counter by 1, so that the descriptor is readable. A full counter stays full.
    pub fn signal(&self) {
        self.contexts.signal(self.fd.as_fd());
    }

    /// Sets the counter to 0 and returns its previous value; `None` if it was 0.
    pub fn clear(&self) -> Option<u64> {
        let mut count = [0; 8];
        let buffers = &mut [IoSliceMut::new(&mut count)];
        // The offset of all ones stands for no offset.
        let read = preadv2(&self.fd, buffers, u64::MAX, ReadWriteFlags::NOWAIT);
        (read == Ok(8)).then(|| u64::from_ne_bytes(count))
    }
}

impl AsFd for PeerEventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
