//! Image locks compatible with QEMU's.
//!
//! QEMU's `block/file-posix.c`: a user of an image holds a shared lock on byte 100 + n for each
//! permission n that it uses, and on byte 200 + n for each permission that it does not share. Then
//! it checks that no other user holds a conflicting lock. The locks belong to the open file
//! description: they end with its last descriptor, and also work within a process.
#![allow(unsafe_code, reason = "asks for locks with fcntl, which rustix does not have")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use suimon_ports::FileLockMode;

/// Offset of the lock byte of permission 0, held by a user that uses the permission. The bytes of
/// other permissions follow.
const DOES: i64 = 100;
/// Offset of the lock byte of permission 0, held by a user that denies the permission to others.
const SHARED_PERMISSIONS_BYTE: i64 = 200;

/// Number of the permission to read, as in QEMU; the next constants are those of other permissions.
const READ: i64 = 0;
const WRITE: i64 = 1;
const WRITE_UNCHANGED: i64 = 2;
const RESIZE: i64 = 3;
/// All permissions, each with a verb for messages.
const ALL: [(i64, &str); 4] =
    [(READ, "reads"), (WRITE, "writes"), (WRITE_UNCHANGED, "rewrites"), (RESIZE, "resizes")];

/// Returns the permissions that a use needs, and those that it denies to other users.
const fn claims(used: FileLockMode) -> (&'static [i64], &'static [i64]) {
    match used {
        FileLockMode::Read => (&[READ], &[WRITE, RESIZE]),
        FileLockMode::Write => (&[READ, WRITE, RESIZE], &[WRITE, WRITE_UNCHANGED, RESIZE]),
    }
}

/// Acquires the locks of a use. If another user of the file holds a conflicting lock, acquires none
/// and returns `Some` with a description of the other user.
///
/// # Errors
/// The error of fcntl(2).
pub(crate) fn lock(file: impl AsFd, used: FileLockMode) -> io::Result<Option<String>> {
    let outcome = take(file.as_fd().as_raw_fd(), used);
    if !matches!(outcome, Ok(None)) {
        unlock(file);
    }
    outcome
}

fn take(file: i32, used: FileLockMode) -> io::Result<Option<String>> {
    let (performed, keeps_off) = claims(used);
    let locked_bytes = performed
        .iter()
        .map(|operation| DOES + operation)
        .chain(keeps_off.iter().map(|operation| SHARED_PERMISSIONS_BYTE + operation));
    for byte in locked_bytes {
        let mut lock = byte_lock(byte, libc::F_RDLCK);
        if let Err(error) = fcntl(file, libc::F_OFD_SETLK, &mut lock) {
            let is_held = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES));
            return if is_held {
                Ok(Some("the whole file is locked".to_owned()))
            } else {
                Err(error)
            };
        }
    }
    for (operation, action) in ALL {
        if keeps_off.contains(&operation) && is_locked(file, DOES + operation)? {
            return Ok(Some(format!("another program {action} the file")));
        }
        if performed.contains(&operation) && is_locked(file, SHARED_PERMISSIONS_BYTE + operation)? {
            return Ok(Some(format!("another program permits no user who {action} the file")));
        }
    }
    Ok(None)
}

/// Releases all locks. Closing the descriptor is not sufficient: a process forked just before may
/// still have a copy of it.
pub(crate) fn unlock(file: impl AsFd) {
    let mut lock = libc::flock { l_len: 0, ..byte_lock(0, libc::F_UNLCK) };
    // This cannot fail for a descriptor that had locks.
    let _ = fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &mut lock);
}

/// Returns true if another user of the file holds a lock on the byte at this offset.
fn is_locked(file: i32, byte: i64) -> io::Result<bool> {
    let mut query = byte_lock(byte, libc::F_WRLCK);
    fcntl(file, libc::F_OFD_GETLK, &mut query)?;
    Ok(query.l_type != short(libc::F_UNLCK))
}

fn byte_lock(byte: i64, kind: i32) -> libc::flock {
    libc::flock {
        l_type: short(kind),
        l_whence: short(libc::SEEK_SET),
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

fn short(value: i32) -> i16 {
    // The constants are all below ten.
    i16::try_from(value).unwrap_or_default()
}

fn fcntl(file: i32, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: both commands read and write one `flock`, which `lock` is; an invalid descriptor
    // yields an error.
    let result = unsafe { libc::fcntl(file, command, core::ptr::from_mut(lock)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
