//! Observed state of an AF_XDP uplink's sockets.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Hook at which XDP receives frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum XdpHook {
    /// Native XDP in the device's driver.
    Driver,
    /// Generic XDP, after allocation of socket buffers: the driver does not support XDP.
    Generic,
}

/// Operation of an uplink's AF_XDP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct XdpStatus {
    /// Hook of the XDP program.
    pub hook: XdpHook,
    /// True if the device accesses the sockets' memory directly. Otherwise the kernel copies
    /// frames.
    pub zero_copy: bool,
    /// True if frames may span several chunks, which the MTU requires.
    pub multi_buffer: bool,
    /// Size of a chunk in bytes.
    pub chunk_bytes: u16,
    /// Received frames lost for lack of space in a socket, since the uplink was opened.
    pub lost_frames: u64,
}

/// Formats as `driver, copy, chunks of 2048 bytes`.
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
