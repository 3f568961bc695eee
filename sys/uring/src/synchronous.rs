//! Synchronous reads, writes and flushes of files in memory (tmpfs), without the ring.
//!
//! Allocated pages of a file are copied directly ([`MappedFile`](crate::mapped_file)); other ranges
//! are transferred by system calls.
//!
//! For tmpfs, the kernel cannot determine whether an operation would block. It therefore passes
//! each operation submitted by io_uring to a kernel thread, which costs several times the copy
//! itself. A synchronous operation blocks only if the host swaps, on the swap device.
#![allow(unsafe_code, reason = "hands pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::host_file::HostFile;
use crate::operation::{Operation, OperationKind};

/// Maximum size in bytes of a synchronous operation. Larger ones are executed by kernel threads, so
/// that other work of the worker is not delayed.
const BYTES_MAX: u64 = 256 << 10;

/// Returns true if the operation is executed synchronously: a short read or write, or a flush, of a
/// file in memory.
pub(crate) fn is_synchronous(file: &HostFile, operation: &Operation) -> bool {
    file.is_in_memory()
        && operation.len <= BYTES_MAX
        && matches!(
            operation.kind,
            OperationKind::Read | OperationKind::Write { .. } | OperationKind::Flush
        )
}

/// Executes one step of an operation. Returns the number of bytes transferred or a negative error
/// number, like a completion of io_uring.
pub(crate) fn execute_step(file: &HostFile, operation: &Operation) -> i32 {
    if operation.kind == OperationKind::Flush {
        // A file in memory has no device to flush.
        return 0;
    }
    let offset = operation.next_offset();
    if is_copied(file, operation, offset) {
        // At most `BYTES_MAX` bytes are transferred.
        return i32::try_from(operation.len.saturating_sub(operation.done_bytes))
            .unwrap_or(i32::MAX);
    }
    let moved = submit(file, operation, offset);
    if let (OperationKind::Write { .. }, Ok(moved @ 1..)) = (operation.kind, u64::try_from(moved)) {
        file.handle_written(offset, moved);
    }
    moved
}

/// Copies the remaining bytes of an operation from or to the file's mapped pages. Returns false if
/// some of the pages are not mapped, or the file was truncated.
fn is_copied(file: &HostFile, operation: &Operation, offset: u64) -> bool {
    let Some(mapped) = file.mapped_file() else { return false };
    // SAFETY: the memory of the segments is valid for reads, and for writes if the operation reads;
    // no reference into it exists while the operation lasts.
    unsafe {
        match operation.kind {
            OperationKind::Read => mapped.read(offset, &operation.iovecs),
            // A write to memory is as durable as this file can be.
            OperationKind::Write { .. } => mapped.write(offset, &operation.iovecs),
            _ => false,
        }
    }
}

/// Executes one step of a read or write by a system call. Returns the number of bytes transferred,
/// or a negative error number.
fn submit(file: &HostFile, operation: &Operation, offset: u64) -> i32 {
    let fd = file.as_fd().as_raw_fd();
    let Ok(offset) = libc::off_t::try_from(offset) else { return -libc::EINVAL };
    let (iovecs, count) = operation.iovec_list();
    let Ok(count) = libc::c_int::try_from(count) else { return -libc::EINVAL };
    let read = || match operation.single_buffer() {
        // SAFETY: the segment is valid for writes of its length, and is held by the operation,
        // which outlives the call.
        Some((pointer, len)) => unsafe { libc::pread(fd, pointer.cast(), len as usize, offset) },
        // SAFETY: as above, for each of the `count` segments of the list.
        None => unsafe { libc::preadv(fd, iovecs, count, offset) },
    };
    let write = |flags| {
        // SAFETY: as above; the segments are valid for reads.
        unsafe { libc::pwritev2(fd, iovecs, count, offset, flags) }
    };
    let moved = match operation.kind {
        OperationKind::Read => read(),
        OperationKind::Write { is_durable } => write(if is_durable { libc::RWF_DSYNC } else { 0 }),
        _ => return -libc::EINVAL,
    };
    if moved < 0 {
        return -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    }
    // A system call transfers less than 2^31 bytes.
    i32::try_from(moved).unwrap_or(i32::MAX)
}
