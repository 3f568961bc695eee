//! What a ring is made from.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::call_line::CallLine;
use crate::dirty_log::RingLog;
use crate::features::RingFeatures;
use crate::inflight::InflightQueue;

/// The largest queue (virtio 1.3, sections 2.7 and 2.8).
pub const QUEUE_SIZE_MAX: u16 = 32_768;

/// Where a ring's areas lie, as addresses of the front-end (vhost-user,
/// `VHOST_USER_SET_VRING_ADDR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// The descriptor table; of a packed ring the descriptor ring.
    pub descriptors: u64,
    /// The available ring; of a packed ring the driver's event suppression
    /// structure.
    pub available: u64,
    /// The used ring; of a packed ring the device's event suppression structure.
    pub used: u64,
}

/// What a ring is made from. Its form follows from the features: packed if
/// [`RingFeatures::packed`], else split.
#[derive(Clone)]
pub struct RingSetup {
    /// The vring's index in its device, for fault texts.
    pub queue: u16,
    /// Entries, at most [`QUEUE_SIZE_MAX`]; of a split ring a power of two.
    pub size: u32,
    /// Where its areas lie.
    pub addresses: RingAddresses,
    /// Index of the first available entry to take; of a packed ring its position
    /// with the wrap counter as bit 15. See [`RingFeatures::ring_base`].
    pub base: u16,
    /// What was negotiated.
    pub features: RingFeatures,
    /// Becomes readable when the driver kicks; `None` if it never does and has
    /// to be polled for ever. Must not block when read.
    pub kick: Option<Arc<OwnedFd>>,
    /// The way to interrupt the driver.
    pub call: Arc<CallLine>,
    /// Is told once if the ring meets a fault (`VHOST_USER_SET_VRING_ERR`).
    pub error: Arc<CallLine>,
}

/// What a ring writes down beside its work, for others to read. Without any, a
/// ring is compiled without the code for it.
#[derive(Clone, Default)]
pub struct RingRecords {
    /// Which pages it wrote, for a migration under way.
    pub log: Option<RingLog>,
    /// Which buffers it has taken and not returned, for whoever goes on if the
    /// process dies.
    pub inflight: Option<InflightQueue>,
}

impl RingRecords {
    /// Whether there is nothing to write down.
    pub fn is_empty(&self) -> bool {
        self.log.is_none() && self.inflight.is_none()
    }
}
