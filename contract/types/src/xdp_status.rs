//! Observed state of an AF_XDP uplink's sockets.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where frames leave a device's way into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum XdpHook {
    /// In its driver.
    Driver,
    /// Before the kernel's stack, after the kernel has made packets of them: the driver
    /// runs no XDP programs.
    Generic,
}

/// How the AF_XDP sockets of an uplink get at frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct XdpStatus {
    /// Where they are taken.
    pub hook: XdpHook,
    /// Whether the device reads and writes the sockets' memory itself. Otherwise the
    /// kernel copies.
    pub zero_copy: bool,
    /// Whether a frame may lie in several chunks, because the MTU asks for it.
    pub multi_buffer: bool,
    /// Bytes of a chunk.
    pub chunk_bytes: u16,
    /// Frames received since it was opened for which a socket had no room.
    pub lost_frames: u64,
}

/// `driver, copy, chunks of 2048 bytes`.
impl fmt::Display for XdpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.hook {
            XdpHook::Driver => "driver",
            XdpHook::Generic => "generic",
        })?;
        f.write_str(if self.zero_copy { ", zero-copy" } else { ", copy" })?;
        f.write_str(if self.multi_buffer { ", multi-buffer" } else { "" })?;
        write!(f, ", chunks of {} bytes", self.chunk_bytes)
    }
}
