//! Descriptors for which tasks wait until they are ready.
#![allow(unsafe_code, reason = "registers owned descriptors with Tokio")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Non-blocking descriptor whose readiness the runtime watches. Must be created by a task, or by a
/// thread that has [entered](crate::SocketRuntime::enter) the runtime; one runtime must not watch
/// the same file description twice.
#[derive(Debug)]
pub struct WatchedFd(AsyncFd<Arc<OwnedFd>>);

impl WatchedFd {
    /// Watches for readability and writability.
    ///
    /// # Errors
    /// The kernel cannot watch the descriptor, see epoll_ctl(2): no memory, or the limit
    /// `fs.epoll.max_user_watches` is reached.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::register(Arc::new(fd), Interest::READABLE | Interest::WRITABLE)
    }

    /// Watches for readability only.
    ///
    /// # Errors
    /// As [`WatchedFd::new`].
    pub fn readable(fd: impl Into<Arc<OwnedFd>>) -> io::Result<Self> {
        Self::register(fd.into(), Interest::READABLE)
    }

    /// Watches for writability only.
    ///
    /// # Errors
    /// As [`WatchedFd::new`].
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

    /// Calls `read` now, and then whenever the descriptor may be readable, until it returns
    /// something other than `WouldBlock` or `Interrupted`. Completes at once if the descriptor is
    /// readable. In a biased `select!` of several such calls, the first one that can complete
    /// therefore completes. Cancel safe: nothing is awaited after such a call.
    ///
    /// # Errors
    /// The error of `read`.
    pub async fn read<T>(
        &self,
        read: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.attempt(Interest::READABLE, read).await
    }

    /// Calls `write` now, and then whenever the descriptor may be writable, until it returns
    /// something other than `WouldBlock` or `Interrupted`. Cancel safe, as [`read`](Self::read).
    ///
    /// # Errors
    /// The error of `write`.
    pub async fn write<T>(
        &self,
        write: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.attempt(Interest::WRITABLE, write).await
    }

    /// Stops watching and returns the descriptor. Returns a duplicate if the `Arc` given to
    /// [`readable`](Self::readable) or [`writable`](Self::writable) has other owners.
    ///
    /// # Errors
    /// The duplicate cannot be created: the process or host has no free descriptor.
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
        // Yields: a peer that always has data to read must not prevent other tasks from running.
        tokio::task::coop::consume_budget().await;
        // The runtime detects the readiness of other descriptors only at its next poll.
        match attempt(self.0.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        self.0.async_io(interest, attempt).await
    }
}

impl AsFd for WatchedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
