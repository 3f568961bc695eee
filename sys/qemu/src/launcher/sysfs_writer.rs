//! Writes to sysfs that may block as long as another process uses the device.
//!
//! Unbinding a device from `vfio-pci` blocks uninterruptibly until no process has the device open.
//! Every other write that needs the lock of the device blocks meanwhile. A thread in this state
//! would prevent the launcher from exiting and releasing its socket and lock. Such writes are
//! therefore performed by a child process without descriptors of the launcher. The child may
//! outlive the launcher. The number of child processes is bounded; a child counts until it is
//! reaped.
#![allow(unsafe_code, reason = "a child process that makes system calls only")]

use std::ffi::{CString, c_int, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::messages::wait_readable;

/// Write of a text to a file.
#[derive(Debug)]
pub(crate) struct SysfsWrite {
    path: CString,
    text: Vec<u8>,
}

impl SysfsWrite {
    /// Creates a write of `text` to `path`.
    ///
    /// # Errors
    /// The path contains a zero byte.
    pub(crate) fn new(path: &Path, text: &str) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        Ok(Self { path, text: text.as_bytes().to_vec() })
    }
}

/// Count of the launcher's child processes that write to sysfs, including ended ones that are not
/// reaped. Clones share the same count.
#[derive(Clone, Debug, Default)]
pub(crate) struct SysfsWriters(Arc<AtomicUsize>);

/// Child process that performs writes in order until the first failure. Must be kept until
/// [`SysfsWriter::wait`] has returned a result, which reaps the process.
#[derive(Debug)]
pub(crate) struct SysfsWriter {
    process: OwnedFd,
    _counted: Counted,
}

/// Count of one child process, until it is dropped.
#[derive(Debug)]
struct Counted(SysfsWriters);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SysfsWriters {
    /// Counts another child process; `None` if `max` are counted already.
    fn count(&self, max: usize) -> Option<Counted> {
        let increment = |count| (count < max).then_some(count + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).ok()?;
        Some(Counted(self.clone()))
    }

    /// Starts a child process that performs the writes. It keeps a copy of the descriptor
    /// `retained` open until it ends.
    ///
    /// # Errors
    /// The host has no process or descriptor left, or there are `max` child processes already. No
    /// child process was started.
    pub(crate) fn start(
        &self,
        writes: &[SysfsWrite],
        retained: BorrowedFd<'_>,
        max: usize,
    ) -> io::Result<SysfsWriter> {
        let retained = retained.as_raw_fd();
        let count_guard = self.count(max).ok_or_else(|| {
            let text = format!(
                "{max} changes of drivers have not ended; see the kernel's log for drivers that \
                 do not respond"
            );
            io::Error::new(io::ErrorKind::ResourceBusy, text)
        })?;
        // fork(2) with a descriptor of the process. pidfd_open(2) after the fork could fail, and
        // nothing could reap the child without blocking.
        let flags = c_long::from(libc::CLONE_PIDFD | libc::SIGCHLD);
        let (mut process, none): (c_int, c_long) = (-1, 0);
        // SAFETY: without a stack and without shared memory, the call is a fork. The kernel writes
        // the descriptor to a valid variable of the parent. The child makes system calls only,
        // takes no lock, allocates no memory, reads only data that was created before the fork, and
        // ends without running destructors.
        let child =
            unsafe { libc::syscall(libc::SYS_clone, flags, none, &raw mut process, none, none) };
        match child {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let status =
                    close_all_except(retained).and_then(|()| writes.iter().try_for_each(write));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(status.err().unwrap_or(0)) }
            }
            _ => {
                // SAFETY: the kernel has created this descriptor for the caller.
                let process = unsafe { OwnedFd::from_raw_fd(process) };
                Ok(SysfsWriter { process, _counted: count_guard })
            }
        }
    }
}

impl SysfsWriter {
    /// Waits for the writes and returns their result, and reaps the process. Returns `None` if they
    /// have not ended within `limit`, or this cannot be determined; the caller must call again
    /// then.
    pub(crate) fn wait(&self, limit: Duration) -> Option<io::Result<()>> {
        match wait_readable([self.process.as_fd()], Some(limit)) {
            Ok([true]) => {}
            Ok([false]) => return None,
            Err(error) => {
                tracing::debug!(%error, "cannot wait for a process that writes to sysfs");
                return None;
            }
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let result =
            rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(self.process.as_fd()), options));
        let status = match result {
            Ok(status) => status?.exit_status(),
            // The process was reaped already.
            Err(Errno::CHILD) => return Some(Err(Errno::CHILD.into())),
            Err(_) => return None,
        };
        Some(match status {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other("the process that writes to sysfs was killed")),
        })
    }
}

/// Closes all descriptors of the process except `retained`.
///
/// # Errors
/// The error number.
fn close_all_except(retained: RawFd) -> Result<(), c_int> {
    let retained = libc::c_uint::try_from(retained).map_err(|_| libc::EBADF)?;
    let after = retained.saturating_add(1);
    let before = retained.checked_sub(1).map(|last| (0, last));
    for (first, last) in before.into_iter().chain([(after, libc::c_uint::MAX)]) {
        // SAFETY: takes numbers only; the process uses none of these descriptors any more.
        checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    }
    Ok(())
}

/// Performs a write, in the child process.
///
/// # Errors
/// The error number.
fn write(write: &SysfsWrite) -> Result<(), c_int> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
    // SAFETY: the path is a valid C string.
    let file = unsafe { libc::open(write.path.as_ptr(), flags, 0o600) };
    checked(file.into())?;
    // SAFETY: reads the bytes of a valid slice.
    let written = unsafe { libc::write(file, write.text.as_ptr().cast(), write.text.len()) };
    let written = checked(i64::try_from(written).unwrap_or(-1));
    // SAFETY: closes the descriptor opened above, which nothing else uses.
    unsafe { libc::close(file) };
    written
}

fn checked(result: i64) -> Result<(), c_int> {
    if result >= 0 {
        return Ok(());
    }
    // An exit status has 8 bits, and the kernel has no error numbers above 255.
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
