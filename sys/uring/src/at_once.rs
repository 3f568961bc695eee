//! Reads and writes of files that are memory, without the ring.
//!
//! Where the file has pages they are copied from and to ([`MappedFile`](crate::mapped_file)); of the
//! rest the kernel is asked.
//!
//! The kernel cannot say whether one of a tmpfs would wait, so it hands each that comes by
//! io_uring to a thread of its own, which costs several times what the copy costs. Nothing
//! is waited for there but, where the host swaps, its swap device.
#![allow(unsafe_code, reason = "hands pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::host_file::HostFile;
use crate::operation::{Kind, Operation};

/// The most that is moved at once; more is left to the kernel's threads, so that others
/// have their turn meanwhile.
const BYTES_MAX: u64 = 256 << 10;

/// Whether an operation on a file is carried out at once.
pub(crate) fn is_at_once(file: &HostFile, operation: &Operation) -> bool {
    file.is_in_memory()
        && operation.len <= BYTES_MAX
        && matches!(operation.kind, Kind::Read | Kind::Write { .. })
}

/// One turn of an operation: how many bytes were moved, or an error as the kernel says it,
/// like a result of io_uring.
pub(crate) fn turn(file: &HostFile, operation: &Operation) -> i32 {
    let place = operation.place();
    if is_copied(file, operation, place) {
        // More than `BYTES_MAX` are not moved at once.
        return i32::try_from(operation.len.saturating_sub(operation.done)).unwrap_or(i32::MAX);
    }
    let moved = ask(file, operation, place);
    if let (Kind::Write { .. }, Ok(moved @ 1..)) = (operation.kind, u64::try_from(moved)) {
        file.handle_written(place, moved);
    }
    moved
}

/// Copies all that is left of an operation from or to the file's pages. `false`: it has none
/// there, or they are gone.
fn is_copied(file: &HostFile, operation: &Operation, place: u64) -> bool {
    let Some(mapped) = file.mapped() else { return false };
    // SAFETY: what the pieces point to may be read, and written for what reads; nobody holds a
    // reference into it while the operation lasts.
    unsafe {
        match operation.kind {
            Kind::Read => mapped.read(place, &operation.pieces),
            // Memory is as durable as it gets.
            Kind::Write { .. } => mapped.write(place, &operation.pieces),
            _ => false,
        }
    }
}

/// One turn by the kernel.
fn ask(file: &HostFile, operation: &Operation, place: u64) -> i32 {
    let fd = file.as_fd().as_raw_fd();
    let Ok(place) = libc::off_t::try_from(place) else { return -libc::EINVAL };
    let (pieces, count) = operation.list();
    let Ok(count) = libc::c_int::try_from(count) else { return -libc::EINVAL };
    let read = || match operation.only_piece() {
        // SAFETY: what the piece points to may be written for its length, and is held by the
        // operation, which outlives the call.
        Some((pointer, len)) => unsafe { libc::pread(fd, pointer.cast(), len as usize, place) },
        // SAFETY: as above, of each piece; the list has `count` of them.
        None => unsafe { libc::preadv(fd, pieces, count, place) },
    };
    let write = |flags| {
        // SAFETY: as above; what they point to may be read.
        unsafe { libc::pwritev2(fd, pieces, count, place, flags) }
    };
    let moved = match operation.kind {
        Kind::Read => read(),
        Kind::Write { is_durable } => write(if is_durable { libc::RWF_DSYNC } else { 0 }),
        _ => return -libc::EINVAL,
    };
    if moved < 0 {
        return -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    }
    // No call moves more than fits.
    i32::try_from(moved).unwrap_or(i32::MAX)
}
