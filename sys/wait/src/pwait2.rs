//! Wrapper of `epoll_pwait2`, the epoll wait whose timeout has nanosecond resolution.
//!
//! rustix offers the call only with a feature that excludes a fallback for kernels older than 5.11
//! and for seccomp filters that reject it.
#![allow(unsafe_code, reason = "a system call that has no safe wrapper with a fallback")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of events per call. Further events are returned by the next call; the kernel
/// rotates its list, so no descriptor starves.
pub(crate) const EVENTS_MAX: usize = 64;

/// Buffer for the events that one call returns.
pub(crate) struct Events {
    buffer: [libc::epoll_event; EVENTS_MAX],
    len: usize,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { buffer: [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX], len: 0 }
    }

    /// Returns the tokens of the descriptors that the last call reported as ready.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = u64> + '_ {
        self.buffer.iter().take(self.len).map(|event| event.u64)
    }

    /// Calls `epoll_pwait2`. `timeout` is a `struct __kernel_timespec` (seconds, nanoseconds),
    /// which has 64-bit fields on every architecture; `None` means no limit. Returns the number of
    /// events, or -1.
    fn wait_raw(&mut self, epoll: BorrowedFd<'_>, timeout: Option<&[i64; 2]>) -> libc::c_long {
        let timeout = timeout.map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: `buffer` is valid for writes of EVENTS_MAX events and outlives the call,
        // `timeout` is null or points to two i64, which is the layout of __kernel_timespec, and a
        // null signal mask is permitted with size 0.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll.as_raw_fd(),
                self.buffer.as_mut_ptr(),
                EVENTS_MAX,
                timeout,
                core::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        }
    }

    /// Blocks until an event occurs or `timeout` (seconds, nanoseconds) has passed; without limit
    /// if `None`.
    ///
    /// # Errors
    /// The error of the call; `Unsupported` if the kernel lacks it.
    pub(crate) fn wait(
        &mut self,
        epoll: BorrowedFd<'_>,
        timeout: Option<&[i64; 2]>,
    ) -> io::Result<()> {
        self.len = 0;
        let count = self.wait_raw(epoll, timeout);
        self.len = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }

    /// Waits with `epoll_wait`, whose timeout has millisecond resolution: without limit if
    /// `forever` is true, otherwise without blocking.
    ///
    /// # Errors
    /// The error of the call.
    pub(crate) fn wait_plain(&mut self, epoll: BorrowedFd<'_>, forever: bool) -> io::Result<()> {
        self.len = 0;
        let timeout_ms = if forever { -1 } else { 0 };
        let events_max = libc::c_int::try_from(EVENTS_MAX).unwrap_or(1);
        // SAFETY: `buffer` is valid for writes of `events_max` events and outlives the call.
        let count = unsafe {
            libc::epoll_wait(epoll.as_raw_fd(), self.buffer.as_mut_ptr(), events_max, timeout_ms)
        };
        self.len = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }
}
