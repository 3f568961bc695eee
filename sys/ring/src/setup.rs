//! Parameters of a ring.

use std::sync::Arc;

use suimon_eventfd::PeerEventFd;

use crate::addresses::RingAddresses;
use crate::dirty_log::RingLog;
use crate::features::RingFeatures;
use crate::inflight::InflightQueue;
use crate::interrupt_line::InterruptLine;

/// Parameters of a ring. The ring is packed if [`RingFeatures::packed`] returns true, otherwise
/// split.
#[derive(Clone)]
pub struct RingSetup {
    /// Index of the vring in its device, for error messages.
    pub queue: u16,
    /// Size in entries, at most [`QUEUE_SIZE_MAX`](crate::QUEUE_SIZE_MAX); for a split ring a power
    /// of two.
    pub size: u32,
    /// Addresses of the ring's areas.
    pub addresses: RingAddresses,
    /// Index of the first available entry to take; packed ring: the position with the wrap counter
    /// as bit 15. See [`RingFeatures::base_from_vring`].
    pub base: u16,
    /// Feature bits negotiated with the driver.
    pub features: RingFeatures,
    /// Eventfd that becomes readable when the driver kicks; `None` if the driver never kicks, so
    /// that the ring must be polled.
    pub kick: Option<Arc<PeerEventFd>>,
    /// Interrupt line to the driver.
    pub call: Arc<InterruptLine>,
    /// Line that is signalled once if the ring has a fault (`VHOST_USER_SET_VRING_ERR`).
    pub error: Arc<InterruptLine>,
}

/// Records that a ring maintains for other processes. A ring without records uses code compiled
/// without them.
#[derive(Clone, Default)]
pub struct RingTracking {
    /// Dirty page log during a migration; otherwise `None`.
    pub log: Option<RingLog>,
    /// Part of the in-flight region, from which the next process continues if this one dies; `None`
    /// if the front-end keeps none.
    pub inflight: Option<InflightQueue>,
}

impl RingTracking {
    /// Returns true if there are no records to maintain.
    pub fn is_empty(&self) -> bool {
        self.log.is_none() && self.inflight.is_none()
    }
}
