//! How a file wants to be used.
#![allow(unsafe_code, reason = "asks for alignment with statx, which rustix has not in full")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What direct I/O on a file must be aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectAlignment {
    /// Of memory, in bytes.
    pub(crate) memory: u32,
    /// Of offsets and lengths, in bytes.
    pub(crate) offset: u32,
}

/// What a device that does not tell is sure to accept.
const SAFE: DirectAlignment = DirectAlignment { memory: 4096, offset: 4096 };

/// What the kernel says of direct I/O on this file (`STATX_DIOALIGN`); `None` if there is
/// none.
pub(crate) fn direct_alignment(file: impl AsFd) -> io::Result<Option<DirectAlignment>> {
    let mut told = core::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty string that is ended, as AT_EMPTY_PATH wants, the
    // descriptor is open, and `told` has room for what is written.
    let result = unsafe {
        libc::statx(
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            told.as_mut_ptr(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros are a value of this type, and the kernel wrote over some of them.
    let told = unsafe { told.assume_init() };
    if told.stx_mask & libc::STATX_DIOALIGN == 0 {
        // It was opened for direct I/O, so there is some; the file system tells no more.
        return Ok(Some(SAFE));
    }
    let (memory, offset) = (told.stx_dio_mem_align, told.stx_dio_offset_align);
    Ok((memory != 0 && offset != 0).then_some(DirectAlignment { memory, offset }))
}
