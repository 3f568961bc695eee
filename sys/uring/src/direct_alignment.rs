//! Alignment required for direct I/O on a file.
#![allow(unsafe_code, reason = "asks for alignment with statx, which rustix has not in full")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Alignment that direct I/O on a file requires. Both values are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectAlignment {
    /// Alignment of memory in bytes.
    pub(crate) memory: u32,
    /// Alignment of offsets and lengths in bytes.
    pub(crate) offset: u32,
}

/// Alignment assumed for devices that report none; every device accepts it.
const SAFE: DirectAlignment = DirectAlignment { memory: 4096, offset: 4096 };

/// Returns the alignment that a file opened with `O_DIRECT` requires (`STATX_DIOALIGN`); `None` if
/// the file does not support direct I/O.
pub(crate) fn direct_alignment(file: impl AsFd) -> io::Result<Option<DirectAlignment>> {
    let mut status = core::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty, terminated string, as AT_EMPTY_PATH requires, the descriptor is
    // open, and `status` is valid for writes of the structure.
    let result = unsafe {
        libc::statx(
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            status.as_mut_ptr(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros are a valid value of this type, and the kernel has overwritten some of
    // them.
    let status = unsafe { status.assume_init() };
    if status.stx_mask & libc::STATX_DIOALIGN == 0 {
        // The file was opened for direct I/O, which is therefore supported, but the file system
        // does not report the alignment.
        return Ok(Some(SAFE));
    }
    let (memory, offset) = (status.stx_dio_mem_align, status.stx_dio_offset_align);
    Ok((memory != 0 && offset != 0).then_some(DirectAlignment { memory, offset }))
}
