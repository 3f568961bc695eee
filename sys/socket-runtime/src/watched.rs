//! Descriptors whose readiness tasks await.
#![allow(unsafe_code, reason = "registers owned descriptors with Tokio")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A non-blocking descriptor that the runtime watches. To be made by a task, or by a thread that has
/// [entered](crate::SocketRuntime::enter) the runtime; the same file description must not be
/// watched twice by one runtime.
#[derive(Debug)]
pub struct Watched(AsyncFd<Arc<OwnedFd>>);

impl Watched {
    /// Watches whether the descriptor can be read and written.
    ///
    /// # Errors
    /// The kernel cannot watch the descriptor, see epoll_ctl(2): no memory, or the limit
    /// `fs.epoll.max_user_watches` is reached.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::register(Arc::new(fd), Interest::READABLE | Interest::WRITABLE)
    }

    /// Watches only whether the descriptor can be read.
    ///
    /// # Errors
    /// As [`Watched::new`].
    pub fn readable(fd: impl Into<Arc<OwnedFd>>) -> io::Result<Self> {
        Self::register(fd.into(), Interest::READABLE)
    }

    /// Watches only whether the descriptor can be written.
    ///
    /// # Errors
    /// As [`Watched::new`].
    pub fn writable(fd: impl Into<Arc<OwnedFd>>) -> io::Result<Self> {
        Self::register(fd.into(), Interest::WRITABLE)
    }

    fn register(fd: Arc<OwnedFd>, interest: Interest) -> io::Result<Self> {
        // SAFETY: `Arc<OwnedFd>` returns the same descriptor each time, and the descriptor is open
        // as long as the `AsyncFd` owns the `Arc`: safe code cannot close an `OwnedFd` that it
        // shares.
        let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
        Ok(Self(registered?))
    }

    /// Calls `read` now, and then whenever the descriptor may be readable, until it returns something
    /// other than `WouldBlock` or `Interrupted`. Completes at once if the descriptor is readable, so
    /// that of several such calls in a biased `select!` the first that can complete does. Cancel
    /// safe: nothing is awaited after such a call.
    ///
    /// # Errors
    /// The error of `read`.
    pub async fn read<T>(
        &self,
        read: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.attempt(Interest::READABLE, read).await
    }

    /// The same for a call that writes.
    ///
    /// # Errors
    /// The error of `write`.
    pub async fn write<T>(
        &self,
        write: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.attempt(Interest::WRITABLE, write).await
    }

    /// Stops watching and returns the descriptor. It is duplicated if other parts of the program
    /// share it.
    ///
    /// # Errors
    /// It is shared, and the host has no descriptor left.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        Arc::try_unwrap(self.0.into_inner()).or_else(|shared| shared.try_clone())
    }

    async fn attempt<T>(
        &self,
        interest: Interest,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut attempt = |fd: &Arc<OwnedFd>| {
            loop {
                match call(fd.as_fd()) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => return result,
                }
            }
        };
        // A peer that always has something to read does not keep other tasks from running.
        tokio::task::coop::consume_budget().await;
        // The runtime knows that a descriptor is ready only after its next look at all of them.
        match attempt(self.0.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        self.0.async_io(interest, attempt).await
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
