//! Transmission of a frame to the kernel in one system call.

use std::io::IoSlice;
use std::os::fd::AsFd;

use rustix::io::{Errno, writev};
use suimon_frame::WireFrame;

/// Writes a frame to `fd`: the encoded virtio-net header `header`, followed by the frame with its
/// VLAN tag inserted.
///
/// # Errors
/// The errno of the call; never `EINTR`.
pub(crate) fn write_frame(fd: impl AsFd, header: &[u8], wire: &WireFrame<'_>) -> Result<(), Errno> {
    let tag = wire.tag.unwrap_or_default();
    let parts = [
        IoSlice::new(header),
        IoSlice::new(wire.before_tag),
        IoSlice::new(&tag),
        IoSlice::new(wire.after_tag),
    ];
    let used = if wire.tag.is_some() { parts.len() } else { 2 };
    loop {
        match writev(&fd, parts.get(..used).unwrap_or_default()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
