//! Features that NICs and disks offer.

use suimon_frame::Offloads;
use suimon_ports::OffloadToggles;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH,
    VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_TOPOLOGY,
    VIRTIO_BLK_F_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::{
    VIRTIO_F_ANY_LAYOUT, VIRTIO_F_IN_ORDER, VIRTIO_F_NOTIFY_ON_EMPTY, VIRTIO_F_RING_PACKED,
    VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_CSUM, VIRTIO_NET_F_CTRL_VQ, VIRTIO_NET_F_GUEST_ANNOUNCE, VIRTIO_NET_F_GUEST_CSUM,
    VIRTIO_NET_F_GUEST_ECN, VIRTIO_NET_F_GUEST_TSO4, VIRTIO_NET_F_GUEST_TSO6,
    VIRTIO_NET_F_GUEST_USO4, VIRTIO_NET_F_GUEST_USO6, VIRTIO_NET_F_HOST_ECN,
    VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_HOST_USO, VIRTIO_NET_F_MAC,
    VIRTIO_NET_F_MQ, VIRTIO_NET_F_MRG_RXBUF, VIRTIO_NET_F_MTU, VIRTIO_NET_F_STATUS,
};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use crate::fault::DeviceFault;
use crate::request::Request;

/// Feature bits defined by vhost-user.
pub mod protocol {
    /// Virtio feature bit `VHOST_F_LOG_ALL`: written pages are logged.
    pub const LOG_ALL_BIT: u32 = 26;
    /// Virtio feature bit `VHOST_USER_F_PROTOCOL_FEATURES`: protocol features are supported.
    pub const FEATURES_BIT: u32 = 30;
    /// Protocol feature: more than one queue or queue pair.
    pub const MQ: u64 = 1 << 0;
    /// Log of written pages in shared memory, for migration.
    pub const LOG_SHMFD: u64 = 1 << 1;
    /// The front-end requests an announcement of the guest after a migration (`SEND_RARP`).
    pub const RARP: u64 = 1 << 2;
    /// Acknowledgement of requests that have no reply of their own.
    pub const REPLY_ACK: u64 = 1 << 3;
    /// The front-end reports the guest's MTU.
    pub const NET_MTU: u64 = 1 << 4;
    /// The back-end may send requests.
    pub const BACKEND_REQ: u64 = 1 << 5;
    /// The back-end provides configuration space.
    pub const CONFIG: u64 = 1 << 9;
    /// The front-end keeps the back-end's in-flight record.
    pub const INFLIGHT_SHMFD: u64 = 1 << 12;
    /// Request `RESET_DEVICE`.
    pub const RESET_DEVICE: u64 = 1 << 13;
    /// Requests that add and remove single memory regions.
    pub const CONFIGURE_MEM_SLOTS: u64 = 1 << 15;
    /// Requests for the virtio device status.
    pub const STATUS: u64 = 1 << 16;
}

/// Checks that the protocol feature that `request` requires was negotiated. Requests that existing
/// front-ends send without negotiation are permitted.
///
/// # Errors
/// [`DeviceFault::NotNegotiated`].
pub(crate) fn check_negotiated(request: Request, negotiated: u64) -> Result<(), DeviceFault> {
    let required = match request {
        Request::SetBackendReqFd => protocol::BACKEND_REQ,
        Request::SetLogBase | Request::SetLogFd => protocol::LOG_SHMFD,
        Request::GetInflightFd | Request::SetInflightFd => protocol::INFLIGHT_SHMFD,
        _ => 0,
    };
    if negotiated & required == required {
        return Ok(());
    }
    Err(DeviceFault::NotNegotiated { request, bit: required.trailing_zeros() })
}

/// Features and queues offered to a front-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureOffer {
    /// Bits of the virtio features, with `VHOST_USER_F_PROTOCOL_FEATURES`.
    pub features: u64,
    /// Bits of the vhost-user protocol features.
    pub protocol: u64,
    /// Queue pairs of a NIC, queues of a disk.
    pub queue_pairs: u16,
}

impl FeatureOffer {
    /// Returns the offer of a NIC: all implemented features except those that `switches` disables,
    /// plus `frozen`, the features that the VM has already negotiated.
    ///
    /// `has_mac` is true if the MAC address is known. Configuration space is then offered too, so
    /// that a front-end without an address can read it.
    pub fn for_nic(
        queue_pairs: u16,
        has_mac: bool,
        switches: &OffloadToggles,
        frozen: u64,
    ) -> Self {
        let mut features = bits(&[
            VIRTIO_F_VERSION_1,
            VIRTIO_F_ANY_LAYOUT,
            VIRTIO_F_NOTIFY_ON_EMPTY,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_NET_F_MRG_RXBUF,
            VIRTIO_NET_F_MTU,
            VIRTIO_NET_F_STATUS,
            VIRTIO_F_RING_PACKED,
            VIRTIO_F_IN_ORDER,
            // A guest with this feature announces itself after a migration. For other guests the
            // front-end requests the announcement (`SEND_RARP`).
            VIRTIO_NET_F_GUEST_ANNOUNCE,
            protocol::LOG_ALL_BIT,
            protocol::FEATURES_BIT,
        ]);
        let mut protocol = protocol::MQ
            | protocol::LOG_SHMFD
            | protocol::INFLIGHT_SHMFD
            | protocol::RARP
            | protocol::REPLY_ACK
            | protocol::NET_MTU
            | protocol::BACKEND_REQ
            | protocol::RESET_DEVICE
            | protocol::CONFIGURE_MEM_SLOTS
            | protocol::STATUS;
        if queue_pairs > 1 {
            // MQ requires the control queue, which the front-end implements (virtio 1.3, section
            // 5.1.3.1).
            features |= bits(&[VIRTIO_NET_F_MQ, VIRTIO_NET_F_CTRL_VQ]);
        }
        if has_mac {
            features |= bits(&[VIRTIO_NET_F_MAC]);
            protocol |= protocol::CONFIG;
        }
        features |= offload_bits(switches);
        let offloads = offload_bits(&OffloadToggles::default());
        Self { features: features | (frozen & offloads), protocol, queue_pairs }
    }

    /// Returns the offer of a disk: all implemented features, except those for writing if the disk
    /// is read-only, plus `frozen`, the features that the VM has already negotiated.
    /// `VIRTIO_F_IN_ORDER` is not offered.
    pub fn for_disk(queues: u16, is_read_only: bool, frozen: u64) -> Self {
        let mut features = bits(&[
            VIRTIO_F_VERSION_1,
            VIRTIO_F_ANY_LAYOUT,
            VIRTIO_F_NOTIFY_ON_EMPTY,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_F_RING_PACKED,
            VIRTIO_BLK_F_SEG_MAX,
            VIRTIO_BLK_F_BLK_SIZE,
            VIRTIO_BLK_F_TOPOLOGY,
            VIRTIO_BLK_F_FLUSH,
            VIRTIO_BLK_F_CONFIG_WCE,
            protocol::LOG_ALL_BIT,
            protocol::FEATURES_BIT,
        ]);
        let writing = bits(&[VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES]);
        features |= if is_read_only { bits(&[VIRTIO_BLK_F_RO]) } else { writing };
        if queues > 1 {
            features |= bits(&[VIRTIO_BLK_F_MQ]);
        }
        let protocol = protocol::MQ
            | protocol::LOG_SHMFD
            | protocol::INFLIGHT_SHMFD
            | protocol::REPLY_ACK
            | protocol::BACKEND_REQ
            | protocol::CONFIG
            | protocol::RESET_DEVICE
            | protocol::CONFIGURE_MEM_SLOTS
            | protocol::STATUS;
        // A VM whose disk has become read-only gets errors for discards as it does for writes.
        let offered = writing | bits(&[VIRTIO_BLK_F_MQ]);
        Self { features: features | (frozen & offered), protocol, queue_pairs: queues }
    }
}

/// Returns the virtio feature bits of the enabled offloads. Segmentation requires checksum offload
/// in the same direction.
fn offload_bits(switches: &OffloadToggles) -> u64 {
    let mut features = 0;
    if switches.tx_checksum {
        features |= bits(&[VIRTIO_NET_F_CSUM]);
        if switches.segmentation {
            features |= bits(&[
                VIRTIO_NET_F_HOST_TSO4,
                VIRTIO_NET_F_HOST_TSO6,
                VIRTIO_NET_F_HOST_ECN,
                VIRTIO_NET_F_HOST_USO,
            ]);
        }
    }
    if switches.rx_checksum {
        features |= bits(&[VIRTIO_NET_F_GUEST_CSUM]);
        if switches.segmentation {
            features |= bits(&[
                VIRTIO_NET_F_GUEST_TSO4,
                VIRTIO_NET_F_GUEST_TSO6,
                VIRTIO_NET_F_GUEST_ECN,
                VIRTIO_NET_F_GUEST_USO4,
                VIRTIO_NET_F_GUEST_USO6,
            ]);
        }
    }
    features
}

/// Returns the offloads that `switches` permits for frames to the guest, if the guest has
/// negotiated them.
pub(crate) fn allowed_egress_offloads(switches: &OffloadToggles) -> Offloads {
    match (switches.rx_checksum, switches.segmentation) {
        (false, _) => Offloads::NONE,
        (true, false) => Offloads { checksum: true, ..Offloads::NONE },
        (true, true) => Offloads { udp_segmentation: true, ..Offloads::TCP },
    }
}

fn bits(numbers: &[u32]) -> u64 {
    numbers.iter().fold(0, |bits, number| bits | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: OffloadToggles = OffloadToggles {
        tx_checksum: false,
        rx_checksum: false,
        tx_ip_checksum: false,
        rx_ip_checksum: false,
        segmentation: false,
        receive_coalescing: false,
    };

    #[test]
    fn switches_take_features_away_unless_the_vm_has_them() {
        let with_offloads = FeatureOffer::for_nic(1, false, &OffloadToggles::default(), 0);
        let none = FeatureOffer::for_nic(1, false, &OFF, 0);
        let no_segmentation = FeatureOffer::for_nic(
            1,
            false,
            &OffloadToggles { segmentation: false, ..Default::default() },
            0,
        );
        assert_eq!(
            with_offloads.features & !none.features,
            offload_bits(&OffloadToggles::default())
        );
        assert_eq!(
            no_segmentation.features & !none.features,
            bits(&[VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM])
        );
        let no_checksum = FeatureOffer::for_nic(
            1,
            false,
            &OffloadToggles { tx_checksum: false, ..Default::default() },
            0,
        );
        assert_eq!(no_checksum.features & bits(&[VIRTIO_NET_F_HOST_TSO4]), 0);
        assert_ne!(no_checksum.features & bits(&[VIRTIO_NET_F_GUEST_TSO4]), 0);
        // A VM that negotiated all features is offered all of them again, and no unimplemented
        // ones.
        assert_eq!(
            FeatureOffer::for_nic(1, false, &OFF, u64::MAX).features,
            with_offloads.features
        );
    }

    #[test]
    fn several_queues_and_an_address_bring_their_features() {
        let single = FeatureOffer::for_nic(1, false, &OFF, 0);
        let multi = FeatureOffer::for_nic(4, true, &OFF, 0);
        let expected = bits(&[VIRTIO_NET_F_MQ, VIRTIO_NET_F_CTRL_VQ, VIRTIO_NET_F_MAC]);
        assert_eq!(multi.features ^ single.features, expected);
        assert_eq!(multi.protocol ^ single.protocol, protocol::CONFIG);
    }
}
