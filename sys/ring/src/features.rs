//! Negotiated virtio features that concern a ring.

use suimon_frame::{Offloads, VNET_HEADER_BYTES, VNET_HEADER_SHORT_BYTES};
use virtio_bindings::virtio_config::{
    VIRTIO_F_IN_ORDER, VIRTIO_F_NOTIFY_ON_EMPTY, VIRTIO_F_RING_PACKED, VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM, VIRTIO_NET_F_GUEST_ECN, VIRTIO_NET_F_GUEST_TSO4,
    VIRTIO_NET_F_GUEST_TSO6, VIRTIO_NET_F_GUEST_USO4, VIRTIO_NET_F_GUEST_USO6,
    VIRTIO_NET_F_HOST_ECN, VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_HOST_USO,
    VIRTIO_NET_F_MRG_RXBUF,
};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

/// Negotiated virtio feature bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingFeatures(pub u64);

impl RingFeatures {
    /// Returns true if the feature bit with this number was negotiated.
    #[inline]
    pub const fn has(self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// Returns true if `VIRTIO_RING_F_EVENT_IDX` was negotiated: notifications are requested by
    /// index.
    #[inline]
    pub const fn event_idx(self) -> bool {
        self.has(VIRTIO_RING_F_EVENT_IDX)
    }

    /// Returns true if `VIRTIO_RING_F_INDIRECT_DESC` was negotiated: chains may be in indirect
    /// tables.
    #[inline]
    pub const fn indirect(self) -> bool {
        self.has(VIRTIO_RING_F_INDIRECT_DESC)
    }

    /// Returns true if `VIRTIO_F_RING_PACKED` was negotiated: rings are packed, not split.
    #[inline]
    pub const fn packed(self) -> bool {
        self.has(VIRTIO_F_RING_PACKED)
    }

    /// Returns true if `VIRTIO_F_IN_ORDER` was negotiated: buffers are returned in the order in
    /// which they were made available, and may be returned in batches.
    #[inline]
    pub const fn in_order(self) -> bool {
        self.has(VIRTIO_F_IN_ORDER)
    }

    /// Returns the [`base`](crate::RingSetup::base) of a ring from the number in
    /// `VHOST_USER_SET_VRING_BASE`. For a packed ring the upper half is the position at which the
    /// previous device returned its last buffer. A network device continues there, because buffers
    /// that were taken and not returned were not used. Some front-ends leave the upper half 0; then
    /// both positions are the lower half.
    pub const fn base_from_vring(self, number: u32) -> u16 {
        let used = (number >> 16) as u16;
        if self.packed() && used != 0 { used } else { number as u16 }
    }

    /// Returns true if `VIRTIO_NET_F_MRG_RXBUF` was negotiated: a received frame may fill several
    /// buffers.
    #[inline]
    pub const fn mergeable(self) -> bool {
        self.has(VIRTIO_NET_F_MRG_RXBUF)
    }

    /// Returns true if `VIRTIO_F_NOTIFY_ON_EMPTY` was negotiated: the driver requests an interrupt
    /// when the device has used all buffers, even if interrupts are suppressed (legacy only).
    #[inline]
    pub const fn notify_on_empty(self) -> bool {
        self.has(VIRTIO_F_NOTIFY_ON_EMPTY)
    }

    /// Returns the length in bytes of the header before each frame: 12 with `VIRTIO_F_VERSION_1` or
    /// mergeable buffers, else 10 (virtio 1.3, section 5.1.6.1).
    #[inline]
    pub const fn header_bytes(self) -> usize {
        if self.has(VIRTIO_F_VERSION_1) || self.mergeable() {
            VNET_HEADER_BYTES
        } else {
            VNET_HEADER_SHORT_BYTES
        }
    }

    /// Returns the offloads that frames from the guest may use.
    pub const fn ingress(self) -> Offloads {
        let checksum = self.has(VIRTIO_NET_F_CSUM);
        Offloads {
            checksum,
            tcp4_segmentation: checksum && self.has(VIRTIO_NET_F_HOST_TSO4),
            tcp6_segmentation: checksum && self.has(VIRTIO_NET_F_HOST_TSO6),
            tcp_ecn_segmentation: checksum && self.has(VIRTIO_NET_F_HOST_ECN),
            udp_segmentation: checksum && self.has(VIRTIO_NET_F_HOST_USO),
        }
    }

    /// Returns the offloads that frames to the guest may use.
    pub const fn egress(self) -> Offloads {
        let checksum = self.has(VIRTIO_NET_F_GUEST_CSUM);
        Offloads {
            checksum,
            tcp4_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_TSO4),
            tcp6_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_TSO6),
            tcp_ecn_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_ECN),
            // The switch has one setting for UDP segmentation over IPv4 and IPv6: a guest that
            // accepts only one of them receives segments.
            udp_segmentation: checksum
                && self.has(VIRTIO_NET_F_GUEST_USO4)
                && self.has(VIRTIO_NET_F_GUEST_USO6),
        }
    }
}
