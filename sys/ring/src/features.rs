//! What of the negotiated virtio features concerns a ring.

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

/// Negotiated virtio feature bits, as a ring reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingFeatures(pub u64);

impl RingFeatures {
    /// Whether a bit (its number) is negotiated.
    #[inline]
    pub const fn has(self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// `VIRTIO_RING_F_EVENT_IDX`: notifications are asked for by index.
    #[inline]
    pub const fn event_idx(self) -> bool {
        self.has(VIRTIO_RING_F_EVENT_IDX)
    }

    /// `VIRTIO_RING_F_INDIRECT_DESC`: chains may lie in a table of their own.
    #[inline]
    pub const fn indirect(self) -> bool {
        self.has(VIRTIO_RING_F_INDIRECT_DESC)
    }

    /// `VIRTIO_F_RING_PACKED`: rings are packed, not split.
    #[inline]
    pub const fn packed(self) -> bool {
        self.has(VIRTIO_F_RING_PACKED)
    }

    /// `VIRTIO_F_IN_ORDER`: buffers are returned in the order in which they were
    /// offered, and may be returned by batches.
    #[inline]
    pub const fn in_order(self) -> bool {
        self.has(VIRTIO_F_IN_ORDER)
    }

    /// The [`base`](crate::RingSetup::base) of a ring whose front-end says this
    /// number (`VHOST_USER_SET_VRING_BASE`). For a packed ring the upper half says
    /// where the device before us returned its last buffer. That is where a
    /// network device goes on: what it took and did not return was not used. Some
    /// front-ends leave the upper half empty; then both positions are the lower
    /// one.
    pub const fn ring_base(self, number: u32) -> u16 {
        let used = (number >> 16) as u16;
        if self.packed() && used != 0 { used } else { number as u16 }
    }

    /// `VIRTIO_NET_F_MRG_RXBUF`: a received frame may fill several buffers.
    #[inline]
    pub const fn mergeable(self) -> bool {
        self.has(VIRTIO_NET_F_MRG_RXBUF)
    }

    /// `VIRTIO_F_NOTIFY_ON_EMPTY`: the driver wants an interrupt when the device
    /// has used all buffers, whatever else it said (legacy only).
    #[inline]
    pub const fn notify_on_empty(self) -> bool {
        self.has(VIRTIO_F_NOTIFY_ON_EMPTY)
    }

    /// Bytes of the header before each frame: 12 with `VIRTIO_F_VERSION_1` or
    /// mergeable buffers, else 10 (virtio 1.3, section 5.1.6.1).
    #[inline]
    pub const fn header_bytes(self) -> usize {
        if self.has(VIRTIO_F_VERSION_1) || self.mergeable() {
            VNET_HEADER_BYTES
        } else {
            VNET_HEADER_SHORT_BYTES
        }
    }

    /// What the guest may hand us.
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

    /// What we may hand the guest.
    pub const fn egress(self) -> Offloads {
        let checksum = self.has(VIRTIO_NET_F_GUEST_CSUM);
        Offloads {
            checksum,
            tcp4_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_TSO4),
            tcp6_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_TSO6),
            tcp_ecn_segmentation: checksum && self.has(VIRTIO_NET_F_GUEST_ECN),
            // One switch for both versions of IP: a guest that takes only one of
            // them gets segments.
            udp_segmentation: checksum
                && self.has(VIRTIO_NET_F_GUEST_USO4)
                && self.has(VIRTIO_NET_F_GUEST_USO6),
        }
    }
}
