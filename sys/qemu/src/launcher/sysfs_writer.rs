//! Writes to sysfs that may block as long as another process uses the device.
//!
//! Unbinding a device from `vfio-pci` blocks uninterruptibly until no process has the device open.
//! Every other write that needs the lock of the device blocks meanwhile. A thread in this state
//! would prevent the launcher from exiting and releasing its socket and lock. Such writes are
//! therefore performed by a child process without descriptors of the launcher. The child may
//! outlive the launcher.
#![allow(unsafe_code, reason = "a child process that makes system calls only")]

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::peer::wait_readable;

/// Text to write to a file.
#[derive(Debug)]
pub(crate) struct SysfsWrite {
    path: CString,
    text: Vec<u8>,
}

impl SysfsWrite {
    /// # Errors
    /// The path contains a zero byte.
    pub(crate) fn new(path: &Path, text: &str) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        Ok(Self { path, text: text.as_bytes().to_vec() })
    }
}

/// Child process that performs writes in order until the first failure.
#[derive(Debug)]
pub(crate) struct SysfsWriter {
    process: OwnedFd,
}

impl SysfsWriter {
    /// Starts the writes. The child process keeps a copy of the descriptor `kept` open until it
    /// ends.
    ///
    /// # Errors
    /// The host has no process or descriptor left.
    pub(crate) fn start(writes: &[SysfsWrite], kept: BorrowedFd<'_>) -> io::Result<Self> {
        let kept = kept.as_raw_fd();
        // SAFETY: the child makes system calls only, takes no lock, allocates no memory, reads only
        // data that was created before the fork, and ends without running destructors.
        let child = unsafe { libc::fork() };
        match child {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let status =
                    close_all_except(kept).and_then(|()| writes.iter().try_for_each(write));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(status.err().unwrap_or(0)) }
            }
            _ => {
                let child = Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?;
                // The process id is not reused before the child is reaped.
                Ok(Self { process: pidfd_open(child, PidfdFlags::empty())? })
            }
        }
    }

    /// Returns the result of the writes; `None` if they have not ended within `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<io::Result<()>> {
        match wait_readable([self.process.as_fd()], Some(limit)) {
            Ok([true]) => {}
            Ok([false]) => return None,
            Err(error) => return Some(Err(error)),
        }
        let status = match waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED) {
            Ok(status) => status?.exit_status(),
            Err(errno) => return Some(Err(errno.into())),
        };
        Some(match status {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other("the process that writes to sysfs was killed")),
        })
    }
}

/// Closes all descriptors of the process except one. Returns the error number on failure.
fn close_all_except(kept: RawFd) -> Result<(), c_int> {
    let kept = libc::c_uint::try_from(kept).map_err(|_| libc::EBADF)?;
    let after = kept.saturating_add(1);
    let before = kept.checked_sub(1).map(|last| (0, last));
    for (first, last) in before.into_iter().chain([(after, libc::c_uint::MAX)]) {
        // SAFETY: takes numbers only; the process uses none of these descriptors any more.
        checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    }
    Ok(())
}

/// Performs a write. Returns the error number on failure.
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
